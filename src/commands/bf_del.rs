//! `BF.DEL key item`
//!
//! Deletes an item once from a counting filter (BF.RESERVE … COUNTING): an item that was added twice is there until it was
//! deleted twice.
//!
//! Reply: 1 (RESP3: true) if the item was there and was deleted once, 0 (false) if it was surely not there. A missing key
//! holds nothing: 0. Error: a filter that was not reserved with COUNTING.
//!
//! Delete only what was added, and as often. An item that was never added and is a false positive is answered 1 too, and its
//! delete takes counts that belong to other items, so that these may be missed from then on. Which items were added the
//! filter cannot know. An item that was added fifteen times or more before it is deleted stays, since its counters do.
//!
//! Complexity: O(k · l) for k counters an item and l layers. RedisBloom has no such command; in its cuckoo filters it is
//! CF.DEL.

use super::delete_items::delete_one;
use super::errors::Error;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};

/// The command.
pub struct Del;

impl Command for Del {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.del",
        arity: 3,
        access: Access::Delete,
        fast: true,
        summary: c"Deletes an item once from a Bloom filter that was reserved with COUNTING",
        complexity: c"O(k * l), where k is the number of counters an item and l the number of layers",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key), Arg::one(c"item", Kind::String)],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name, item] = args else { return Ok(()) };
        delete_one(ctx, *name, *item)
    }
}
