//! How large a filter may become: asked before it is made and before it grows.
//!
//! A filter counts at its full size, with every chunk made: one that could never fit would be filled until the server
//! evicts everything else, and then the filter. Asked of clients only. What a primary, an AOF or an RDB brings has
//! happened, and refusing it would lose it.

use super::errors::Error;
use crate::host::Ctx;
use crate::host::memory::Limit;

/// Below this nobody is asked: reading the figures takes longer than making such a filter.
const ALWAYS_ALLOWED: u64 = 1 << 20;

/// Checks the bytes that a filter needs at its full size.
///
/// # Errors
/// [`Error::OverMemory`] with both figures.
pub fn check(ctx: Ctx<'_>, needs: u64) -> Result<(), Error> {
    if needs < ALWAYS_ALLOWED {
        return Ok(());
    }
    match Limit::now(ctx) {
        Some(limit) if needs > limit.bytes => Err(Error::OverMemory { needs, limit }),
        _ => Ok(()),
    }
}
