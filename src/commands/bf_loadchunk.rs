//! `BF.LOADCHUNK key iterator data`
//!
//! Takes a record of a dump: pass on each pair of iterator and data that BF.SCANDUMP returned, in order, beginning with a
//! missing key. Replication and the AOF use it too, with several records at once where a filter is made.
//!
//! Reply: OK. Errors: a record that is damaged, not the next one, of another filter, or newer than this release; nothing
//! changes then. A record that changes nothing is answered OK again. Until the last one came, the filter answers no
//! question.
//!
//! A dump that RedisBloom's BF.SCANDUMP gave is taken too, told apart by its content. The filter it makes keeps RedisBloom's
//! layout, and is of RedisBloom's type, `MBbloom--`, once the last byte came. Its pieces have no checksum.
//!
//! Complexity: O(n) in the bytes of the data. The loop is that of RedisBloom's BF.LOADCHUNK; the data are Bloomgate's own
//! (`docs/format.md`), or RedisBloom's.

use super::add_items::is_trusted;
use super::errors::Error;
use super::{args, limits};
use crate::codec::filter::{Filter, Source, Taken};
use crate::codec::record::{self, Refused};
use crate::host::key::KeyMut;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::log::{Level, log};
use crate::host::{Ctx, Str};
use crate::keytype::{self, FILTERS};

/// The command.
pub struct LoadChunk;

impl Command for LoadChunk {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.loadchunk",
        arity: 4,
        access: Access::Insert,
        fast: false,
        summary: c"Loads a record of a Bloom filter's dump",
        complexity: c"O(n), where n is the number of bytes of the data",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key), Arg::one(c"iterator", Kind::Integer), Arg::one(c"data", Kind::String)],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name, iterator, data] = args else { return Ok(()) };
        let iterator = args::iterator(iterator.bytes())?;
        let limit = |bytes| limits::check(ctx, bytes).map_err(|error| Refused::Limit(error.to_string()));
        let source = if is_trusted(ctx) { Source::Trusted } else { Source::Client(&limit) };
        // SAFETY: the only key that is open, and nothing deletes it until it is closed below.
        let mut key = unsafe { KeyMut::open(ctx, *name) };
        let taken = match key.get_mut(&FILTERS)? {
            Some(filter) => {
                let taken = load(filter, iterator, data.bytes(), source)?;
                keytype::settle(&mut key);
                taken
            }
            None if iterator == 1 => {
                let filter = Filter::from_dump(data.bytes(), source)?;
                keytype::set(&mut key, Box::new(filter));
                Taken::Made
            }
            None => return Err(Error::FirstRecordMissing),
        };
        drop(key);
        let event = match taken {
            Taken::Made => Some(c"bf.reserve"),
            Taken::Changed => Some(c"bf.add"),
            Taken::Unchanged => None,
            Taken::KeptOwnLayer => {
                let what = format_args!("the filter has a layer of its own in the place of one that was sent");
                log(ctx, Level::Warning, what);
                None
            }
        };
        if let Some(event) = event {
            ctx.replicate_verbatim();
            ctx.signal_modified(*name);
            ctx.notify(event, *name);
        }
        ctx.reply_simple(c"OK");
        Ok(())
    }
}

/// One record, or piece of a dump of RedisBloom's, for a filter that is there.
fn load(filter: &mut Filter, iterator: u64, mut data: &[u8], source: Source) -> Result<Taken, Error> {
    if let Some(taken) = filter.load_piece(iterator, data, source)? {
        return Ok(taken);
    }
    let record = record::read(&mut data)?;
    if data.is_empty() { Ok(filter.load(iterator, record, source)?) } else { Err(Error::SeveralRecords) }
}
