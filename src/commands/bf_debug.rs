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
        ctx.reply_array(1 + filter.layer_count());
        ctx.reply_bytes(format!("size:{}", filter.items()).as_bytes());
        for layer in filter.layers() {
            let plan = layer.plan();
            // At most 2³⁴ lines of 64 bytes.
            let bytes = 64 * plan.size.lines;
            let line = format!(
                "bytes:{bytes} bits:{} hashes:{} hashwidth:64 capacity:{} size:{} ratio:{} hash:{}",
                8 * bytes,
                plan.size.bits,
                plan.capacity,
                layer.items(),
                plan.rate,
                filter.head().hash().name()
            );
            ctx.reply_bytes(line.as_bytes());
        }
        Ok(())
    }
}
