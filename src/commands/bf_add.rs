//! `BF.ADD key item`
//!
//! Adds an item; a missing key is made with the defaults (rate 0.01, capacity 100, expansion 2 unless configured).
//!
//! Reply: 1 (RESP3: true) if the item was not there before, 0 (false) if it was, or seems to have been. Error
//! `ERR non scaling filter is full` if it is new and the filter has taken its capacity and does not grow.
//!
//! To a counting filter (BF.RESERVE … COUNTING) an add counts each time, whatever its answer: what was added twice is there
//! until it was deleted twice.
//!
//! ```text
//! > BF.ADD k x          1
//! > BF.ADD k x          0      it was there; its count is 2 now
//! > BF.DEL k x          1
//! > BF.EXISTS k x       1
//! > BF.DEL k x          1
//! > BF.EXISTS k x       0
//! ```
//!
//! Complexity: O(k · l) for k bits an item and l layers. As RedisBloom's BF.ADD.

use super::add_items::add_one;
use super::errors::Error;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};

/// The command.
pub struct Add;

impl Command for Add {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.add",
        arity: 3,
        access: Access::Insert,
        fast: true,
        summary: c"Adds an item to a Bloom filter, which is made if the key is missing",
        complexity: c"O(k * l), where k is the number of bits an item and l the number of layers",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key), Arg::one(c"item", Kind::String)],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name, item] = args else { return Ok(()) };
        add_one(ctx, *name, *item)
    }
}
