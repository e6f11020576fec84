//! `BF.SCANDUMP key iterator`
//!
//! Dumps a filter record by record: begin with iterator 0, pass the iterator of each reply to the next call, and end when
//! it is 0. Each pair of iterator and data goes to BF.LOADCHUNK unchanged.
//!
//! Reply: an array of the next iterator and at most 1 MiB of data. Adds and growth during a dump leave it loadable, and
//! what was in when it began is in it. A dump of a filter with a keyed hash holds its key: whoever may dump it can make items
//! that collide, so in ACLs the command counts as reading (`@read`, `%R~`). Errors: `ERR not found`, or an iterator that was not returned.
//!
//! The dump of a filter in RedisBloom's layout is RedisBloom's: a header, then all bytes of its layers, which that module's
//! BF.LOADCHUNK takes too. One that grows while it is dumped has to be dumped again.
//!
//! Complexity: O(n) in the bytes of the record. The loop is that of RedisBloom's BF.SCANDUMP.

use super::args;
use super::errors::Error;
use crate::bloom::whole::Whole;
use crate::codec::filter::Filter;
use crate::codec::redisbloom;
use crate::host::key::Key;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};
use crate::keytype::FILTERS;

/// The command.
pub struct ScanDump;

impl Command for ScanDump {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.scandump",
        arity: 3,
        access: Access::Read,
        fast: false,
        summary: c"Returns a record of a Bloom filter's dump, and the iterator of the next one",
        complexity: c"O(n), where n is the number of bytes of the record",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key), Arg::one(c"iterator", Kind::Integer)],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name, iterator] = args else { return Ok(()) };
        let iterator = args::iterator(iterator.bytes())?;
        // SAFETY: the only key that is open.
        let key = unsafe { Key::open(ctx, *name) };
        let record = match key.get(&FILTERS)? {
            None => return Err(Error::NotFound),
            Some(Filter::Partial(_) | Filter::Half(_)) => return Err(Error::Loading),
            Some(Filter::Whole(Whole::Flat(flat))) => redisbloom::piece_at(flat, iterator)?,
            Some(whole) => whole.record_at(iterator)?,
        };
        let (next, bytes) = record.unwrap_or((0, Vec::new()));
        ctx.reply_array(2);
        ctx.reply_integer(next.cast_signed());
        ctx.reply_bytes(&bytes);
        Ok(())
    }
}
