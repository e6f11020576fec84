//! What well-formed means: the one place where loaders, tests and fuzzers end.
//!
//! The structure of each layer (bits, spread, lines, rate, capacity) is checked where a [`Layer`] is made, so no layer
//! that breaks it can exist; this checks what holds of a filter as a whole. Nothing is demanded of items against
//! capacity or bits, and no size is computed again: a later release may size layers differently.

use super::chain::{Head, MAX_EXPANSION, MAX_LAYERS};
use super::error::Error;
use super::layer::Layer;
use super::sizing::MAX_LINES;

/// Checks a filter of these layers.
///
/// # Errors
/// [`Error::Malformed`] with the rule that it breaks.
pub fn check(head: &Head, layers: &[Layer]) -> Result<(), Error> {
    check_head(head)?;
    if layers.is_empty() || layers.len() > MAX_LAYERS {
        return Err(Error::Malformed("a filter has 1 to 128 layers"));
    }
    // 128 layers of 2^34 lines each: no overflow.
    if layers.iter().map(|layer| layer.geometry().lines()).sum::<u64>() > MAX_LINES {
        return Err(Error::Malformed("a filter's layers have at most 2^34 lines together"));
    }
    Ok(())
}

/// Checks what a filter was asked to be.
///
/// # Errors
/// [`Error::Malformed`] with the rule that it breaks.
pub fn check_head(head: &Head) -> Result<(), Error> {
    // NaN is within no range.
    if !(head.rate > 0.0 && head.rate < 1.0) {
        return Err(Error::Malformed("a filter's error rate is above 0 and below 1"));
    }
    if head.capacity == 0 {
        return Err(Error::Malformed("a filter's capacity is at least 1"));
    }
    if head.expansion > MAX_EXPANSION {
        return Err(Error::Malformed("a filter's expansion is at most 32768"));
    }
    Ok(())
}
