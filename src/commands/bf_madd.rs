//! `BF.MADD key item [item …]`
//!
//! Adds items, in order; a missing key is made with the defaults, as by BF.ADD.
//!
//! Reply: an array with one element for each item: 1 (RESP3: true) if it was not there before, 0 (false) if it was or
//! seems to have been, or the error that BF.ADD would have answered. An item that stands twice is new once; a counting filter
//! counts it twice.
//!
//! Complexity: O(n · k · l) for n items, k bits an item and l layers. As RedisBloom's BF.MADD, except that a full filter
//! does not end the array: every item has its element.

use super::add_items::{add_many, head_of};
use super::args::Options;
use super::errors::Error;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};

/// The command.
pub struct MAdd;

impl Command for MAdd {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.madd",
        arity: -3,
        access: Access::Insert,
        fast: true,
        summary: c"Adds items to a Bloom filter, which is made if the key is missing",
        complexity: c"O(n * k * l), where n is the number of items, k of bits an item and l of layers",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key), Arg::many(c"item", Kind::String)],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name, items @ ..] = args else { return Ok(()) };
        add_many(ctx, *name, items, || Ok(head_of(&Options::default())))
    }
}
