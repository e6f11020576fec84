//! From the bytes of arguments to values, strictly: what is not wholly understood is refused.
//!
//! ```text
//!     whole number   digits                                          100, 007
//!     error rate     digits [. [digits]] [e [+|-] digits]            0.01, 1., 1e-5, 1E-5
//!                    . digits [e [+|-] digits]                       .01
//! ```
//!
//! So no sign, no space, no `%`, no `nan`, no `inf`, and no whole number written as `1e3`. Knows no Redis:
//! configurations and load arguments are read here too.

use super::errors::{ArgError, Error};
use crate::bloom::chain::MAX_EXPANSION;

/// The rates of false positives that a filter may be made for, from the least to below 1.
pub const LEAST_ERROR_RATE: f64 = 1e-12;

/// An error rate: from [`LEAST_ERROR_RATE`] to below 1.
pub fn error_rate(text: &[u8]) -> Result<f64, ArgError> {
    decimal(text).filter(|rate| (LEAST_ERROR_RATE..1.0).contains(rate)).ok_or(ArgError::ErrorRate)
}

/// A number of items: from 1 on. Whether so many fit into memory is asked later.
pub fn capacity(text: &[u8]) -> Result<u64, ArgError> {
    whole(text).filter(|&items| items >= 1).ok_or(ArgError::Capacity)
}

/// An expansion: from 0, which stands for a filter that does not grow, to [`MAX_EXPANSION`].
pub fn expansion(text: &[u8]) -> Result<u32, ArgError> {
    let factor = whole(text).and_then(|factor| u32::try_from(factor).ok());
    factor.filter(|&factor| factor <= MAX_EXPANSION).ok_or(ArgError::Expansion)
}

/// An iterator of a dump: from 0 on; which one is right the filter knows.
pub fn iterator(text: &[u8]) -> Result<u64, Error> {
    whole(text).ok_or(Error::Iterator)
}

/// The options of BF.RESERVE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReserveOptions {
    /// How many times larger the next layer is; 0 if the filter is not to scale, none if nothing was said.
    pub expansion: Option<u32>,
}

impl ReserveOptions {
    /// Reads the words after the capacity: whole words, any case and order, each option at most once.
    pub fn parse<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Result<Self, Error> {
        let (mut factor, mut non_scaling) = (None, false);
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case(b"EXPANSION") {
                let value = words.next().ok_or(Error::OptionWithoutValue("EXPANSION"))?;
                if factor.replace(expansion(value)?).is_some() {
                    return Err(Error::OptionTwice("EXPANSION"));
                }
            } else if word.eq_ignore_ascii_case(b"NONSCALING") {
                if std::mem::replace(&mut non_scaling, true) {
                    return Err(Error::OptionTwice("NONSCALING"));
                }
            } else {
                return Err(Error::UnknownOption(String::from_utf8_lossy(&word[..word.len().min(64)]).into_owned()));
            }
        }
        match (factor, non_scaling) {
            (Some(_), true) => Err(Error::NonScalingWithExpansion),
            (None, true) => Ok(Self { expansion: Some(0) }),
            (factor, false) => Ok(Self { expansion: factor }),
        }
    }
}

/// A whole number of at most 64 bits.
fn whole(text: &[u8]) -> Option<u64> {
    // The standard library would take a plus sign, and refuses the empty text.
    let digits = text.iter().all(u8::is_ascii_digit);
    str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
}

/// A number without a sign.
fn decimal(text: &[u8]) -> Option<f64> {
    // What starts so and is taken by the standard library follows the grammar above: it knows neither spaces nor
    // separators, and its words `inf` and `nan` start with a letter.
    let starts_well = text.first().is_some_and(|&b| b.is_ascii_digit() || b == b'.');
    str::from_utf8(text).ok().filter(|_| starts_well)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_rates() {
        for (text, rate) in
            [(".01", 0.01), ("0.01", 0.01), ("1e-5", 1e-5), ("1E-5", 1e-5), ("1.e-2", 0.01), ("1e-12", 1e-12)]
        {
            assert_eq!(error_rate(text.as_bytes()), Ok(rate), "{text}");
        }
        assert_eq!(error_rate(b"0.99999999"), Ok(0.99999999));
        for text in [
            "", " ", " 0.01", "0.01 ", "+0.01", "-0.1", "5%", "0,01", "2", "1", "1.0", "0", "0.0", "9e-13", "1e-13",
            "1e-320", "1e-400", "nan", "inf", "infinity", "1e400", "e-5", ".", ".e-5", "1e", "0x1p-3", "1_0e-5",
            "text", "0.01\0", "0.01\n",
        ] {
            assert_eq!(error_rate(text.as_bytes()), Err(ArgError::ErrorRate), "{text:?}");
        }
        assert_eq!(error_rate(b"0.01\xff"), Err(ArgError::ErrorRate));
    }

    #[test]
    fn capacities() {
        for (text, items) in [("1", 1), ("007", 7), ("5000000000", 5_000_000_000), ("18446744073709551615", u64::MAX)] {
            assert_eq!(capacity(text.as_bytes()), Ok(items), "{text}");
        }
        for text in
            ["", "0", "-1", "+1", "1e3", "1.0", " 1", "1 ", "1\n", "18446744073709551616", "nan", "0x10", "1_000"]
        {
            assert_eq!(capacity(text.as_bytes()), Err(ArgError::Capacity), "{text:?}");
        }
    }

    #[test]
    fn expansions() {
        for (text, factor) in [("0", 0), ("1", 1), ("32768", 32768)] {
            assert_eq!(expansion(text.as_bytes()), Ok(factor), "{text}");
        }
        for text in ["", "-1", "+2", "32769", "65536", "65538", "4294967298", "2.0", "x"] {
            assert_eq!(expansion(text.as_bytes()), Err(ArgError::Expansion), "{text:?}");
        }
    }

    /// The texts say what the constants are.
    #[test]
    fn errors_name_argument_and_range() {
        assert_eq!(ArgError::ErrorRate.to_string(), "ERR bad error rate: it must be a number from 1e-12 to below 1");
        assert!(ArgError::ErrorRate.allowed().contains(&format!("{LEAST_ERROR_RATE:e}")));
        assert!(ArgError::Expansion.to_string().ends_with(&format!("from 0 to {MAX_EXPANSION}")));
        assert!(ArgError::Capacity.to_string().ends_with(&format!("from 1 to {}", u64::MAX)));
    }
}
