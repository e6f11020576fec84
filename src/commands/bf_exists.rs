//! `BF.EXISTS key item`
//!
//! Reply: 0 (RESP3: false) if the item was surely never added, 1 (true) if it was, or seems to have been. A missing key
//! holds nothing: 0.
//!
//! Complexity: O(k · l) for k bits an item and l layers. As RedisBloom's BF.EXISTS, except that a key of another type is
//! an error.

use super::errors::Error;
use super::keys;
use crate::host::key::Key;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};
use crate::metrics;

/// The command.
pub struct Exists;

impl Command for Exists {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.exists",
        arity: 3,
        access: Access::Read,
        fast: true,
        summary: c"Tells whether an item may be in a Bloom filter",
        complexity: c"O(k * l), where k is the number of bits an item and l the number of layers",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key), Arg::one(c"item", Kind::String)],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name, item] = args else { return Ok(()) };
        // SAFETY: the only key that is open.
        let key = unsafe { Key::open(ctx, *name) };
        let found = keys::filter(&key)?.is_some_and(|filter| filter.contains(item.bytes()));
        metrics::CHECKS.add(1);
        metrics::HITS.add(found.into());
        ctx.reply_bool(found);
        Ok(())
    }
}
