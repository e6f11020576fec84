//! What well-formed means: the one place where loaders, tests and fuzzers end.
//!
//! The structure of each layer (bits, spread, lines, rate, capacity) is checked where a [`Layer`] is made, or its plan is
//! read, so no layer that breaks it can exist; this checks what holds of a filter as a whole. Nothing is demanded of items against
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
    if layers.iter().any(|layer| layer.geometry().kind() != head.kind) {
        return Err(Error::Malformed("the layers of a counting filter have 4-bit places, those of any other have not"));
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
    check_rate(head.rate)?;
    check_capacity(head.capacity)?;
    if head.expansion > MAX_EXPANSION {
        return Err(Error::Malformed("a filter's expansion is at most 32768"));
    }
    Ok(())
}

/// Checks the error rate of a filter or a layer.
///
/// # Errors
/// [`Error::Malformed`].
pub fn check_rate(rate: f64) -> Result<(), Error> {
    // NaN is within no range.
    if rate > 0.0 && rate < 1.0 { Ok(()) } else { Err(Error::Malformed("an error rate is above 0 and below 1")) }
}

/// Checks the capacity of a filter or a layer: replies are signed, and 2^34 lines never hold so many at a rate below 1.
///
/// # Errors
/// [`Error::Malformed`].
pub fn check_capacity(capacity: u64) -> Result<(), Error> {
    let range = 1..=i64::MAX.cast_unsigned();
    if range.contains(&capacity) { Ok(()) } else { Err(Error::Malformed("a capacity is from 1 to 2^63 - 1")) }
}
