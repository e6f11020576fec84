//! `BF.DEBUG key`
//!
//! Reply: an array of lines. The first one is `size:` and the number of items, then there is one for each layer, oldest
//! first:
//!
//! ```text
//! bytes:192 bits:1536 hashes:3 hashwidth:64 capacity:100 size:1 ratio:0.00607927101854027 hash:murmur3
//! ```
//!
//! `bytes` and `bits` is its size, whether made or not; `hashes` the places that an item sets (bits, or counters of four bits);
//! `size` its items and `ratio` the error rate that it was made for; `hash` the filter's hash family, murmur3 or siphash. Errors:
//! `ERR not found`; a filter that is being loaded.
//!
//! Complexity: O(l) for l layers. As RedisBloom's BF.DEBUG, which does not have `hash`; what the figures are of differs
//! as the filters do. BF.STATS tells more.

use super::errors::Error;
use super::keys;
use crate::bloom::whole::NextPlan;
use crate::host::key::Key;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};

/// The command.
pub struct Debug;

impl Command for Debug {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.debug",
        arity: 2,
        access: Access::Look,
        fast: true,
        summary: c"Returns a line about each layer of a Bloom filter",
        complexity: c"O(l), where l is the number of layers",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key)],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name] = args else { return Ok(()) };
        // SAFETY: the only key that is open.
        let key = unsafe { Key::open(ctx, *name) };
        let filter = keys::filter(&key)?.ok_or(Error::NotFound)?;
        ctx.reply_array(1 + filter.layers().count());
        ctx.reply_bytes(format!("size:{}", filter.items()).as_bytes());
        for (plan, layer) in filter.plans().zip(filter.layers()) {
            let (bytes, bits, hashes) = match plan {
                // At most 2³⁴ lines of 64 bytes.
                NextPlan::Native(plan) => (64 * plan.size.lines, 8 * 64 * plan.size.lines, plan.size.bits.into()),
                NextPlan::Flat(plan) => (plan.bytes, plan.bits, plan.hashes),
            };
            let width = if filter.flat().is_some_and(|flat| !flat.flat_head().is_wide()) { 32 } else { 64 };
            let line = format!(
                "bytes:{bytes} bits:{bits} hashes:{hashes} hashwidth:{width} capacity:{} size:{} ratio:{} hash:{}",
                layer.capacity(),
                layer.items(),
                layer.rate(),
                filter.hash_name()
            );
            ctx.reply_bytes(line.as_bytes());
        }
        Ok(())
    }
}
