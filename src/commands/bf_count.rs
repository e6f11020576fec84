//! `BF.COUNT key item`
//!
//! Reply: how often an item was added to a counting filter (BF.RESERVE … COUNTING) and not deleted, at most: an integer, in
//! RESP3 too. 0 is certain; 15 stands for 15 or more. It is too high, mostly by one, where other items share all of its counters,
//! which is no likelier than a false positive. A missing key: 0. Error: a filter that was not reserved with COUNTING.
//!
//! Complexity: O(k · l) for k counters an item and l layers. RedisBloom has no such command; in its cuckoo filters it is
//! CF.COUNT.

use super::errors::Error;
use super::keys;
use crate::bloom::geometry;
use crate::host::key::Key;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};

/// The command.
pub struct CountOf;

impl Command for CountOf {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.count",
        arity: 3,
        access: Access::Read,
        fast: true,
        summary: c"Tells how often an item was added, at most, to a Bloom filter that was reserved with COUNTING",
        complexity: c"O(k * l), where k is the number of counters an item and l the number of layers",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key), Arg::one(c"item", Kind::String)],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name, item] = args else { return Ok(()) };
        // SAFETY: the only key that is open.
        let key = unsafe { Key::open(ctx, *name) };
        let times = match keys::filter(&key)? {
            None => 0,
            Some(whole) => {
                let counting = whole.native().filter(|chain| chain.kind() == geometry::Kind::Counting);
                counting.ok_or(Error::NotCounting)?.times(item.bytes())
            }
        };
        ctx.reply_integer(times.into());
        Ok(())
    }
}
