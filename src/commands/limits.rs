//! How large a filter may become: asked before it is made and before it grows.
//!
//! A filter counts at its full size, with every chunk made: one that could never fit would be filled until the server
//! evicts everything else, and then the filter. Below that an operator may set a limit of their own, `filter-max-bytes`.
//! Asked of clients only. What a primary, an AOF or an RDB brings has
//! happened, and refusing it would lose it.

use super::errors::Error;
use crate::host::Ctx;
use crate::host::memory::{Limit, Source};
use crate::{config, metrics};

/// Below this the server is not asked: reading its figures takes longer than making such a filter.
const ALWAYS_ALLOWED: u64 = 1 << 20;

/// Checks the bytes that a filter needs at its full size.
///
/// # Errors
/// [`Error::OverMemory`] with both figures.
pub fn check(ctx: Ctx<'_>, needs: u64) -> Result<(), Error> {
    let set = Some(config::values().filter_max_bytes).filter(|&bytes| bytes > 0);
    let set = set.map(|bytes| Limit { bytes, source: Source::Setting("filter-max-bytes") });
    // The one that is set first: it is known without asking.
    let exceeded = |limit: &Limit| needs > limit.bytes;
    let ask = || if needs < ALWAYS_ALLOWED { None } else { Limit::now(ctx) };
    match set.filter(exceeded).or_else(|| ask().filter(exceeded)) {
        Some(limit) => {
            metrics::REFUSED_FOR_MEMORY.add(1);
            Err(Error::OverMemory { needs, limit })
        }
        None => Ok(()),
    }
}
