//! `BF.MEXISTS key item [item …]`
//!
//! Reply: an array with one element for each item, as BF.EXISTS answers it.
//!
//! Complexity: O(n · k · l) for n items, k bits an item and l layers. Items are hashed, fetched from memory and tested in
//! groups, so many items in one command cost far less than as many commands. As RedisBloom's BF.MEXISTS, except that a
//! key of another type is an error.

use super::errors::Error;
use super::keys;
use crate::bloom::layer::GROUP;
use crate::host::key::Key;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};
use crate::metrics;

/// The command.
pub struct MExists;

impl Command for MExists {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.mexists",
        arity: -3,
        access: Access::Read,
        fast: true,
        summary: c"Tells which items may be in a Bloom filter",
        complexity: c"O(n * k * l), where n is the number of items, k of bits an item and l of layers",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key), Arg::many(c"item", Kind::String)],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name, items @ ..] = args else { return Ok(()) };
        // SAFETY: the only key that is open.
        let key = unsafe { Key::open(ctx, *name) };
        let filter = keys::filter(&key)?;
        ctx.reply_array(items.len());
        metrics::CHECKS.add(items.len() as u64);
        for group in items.chunks(GROUP) {
            let bytes = keys::bytes_of(group);
            let found = filter.map_or(0, |filter| filter.contains_group(bytes.get(..group.len()).unwrap_or_default()));
            metrics::HITS.add(found.count_ones().into());
            for i in 0..group.len() {
                ctx.reply_bool(found >> i & 1 == 1);
            }
        }
        Ok(())
    }
}
