//! `BF.MDEL key item [item …]`
//!
//! Deletes items from a counting filter, each once, in order.
//!
//! Reply: an array with one element for each item, as BF.DEL answers it. An item that stands twice is deleted twice. Error: as
//! BF.DEL.
//!
//! Complexity: O(n · k · l) for n items, k counters an item and l layers; in groups, as BF.MEXISTS. RedisBloom has no such
//! command.

use super::delete_items::delete_many;
use super::errors::Error;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};

/// The command.
pub struct MDel;

impl Command for MDel {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.mdel",
        arity: -3,
        access: Access::Delete,
        fast: true,
        summary: c"Deletes items, each once, from a Bloom filter that was reserved with COUNTING",
        complexity: c"O(n * k * l), where n is the number of items, k of counters an item and l of layers",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key), Arg::many(c"item", Kind::String)],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name, items @ ..] = args else { return Ok(()) };
        delete_many(ctx, *name, items)
    }
}
