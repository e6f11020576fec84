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
use crate::bloom::flat::MAX_GROWTH;
use crate::bloom::geometry::Kind;
use crate::bloom::hash;

/// The rates of false positives that a filter may be made for, from the least to below 1.
pub const LEAST_ERROR_RATE: f64 = 1e-12;

/// An error rate: from [`LEAST_ERROR_RATE`] to below 1.
pub fn error_rate(text: &[u8]) -> Result<f64, ArgError> {
    decimal(text).filter(|rate| (LEAST_ERROR_RATE..1.0).contains(rate)).ok_or(ArgError::ErrorRate)
}

/// The largest capacity: what a reply's integer can state. Memory ends long before it, which is asked later.
const MAX_CAPACITY: u64 = i64::MAX as u64;

/// A number of items: from 1 to [`MAX_CAPACITY`].
pub fn capacity(text: &[u8]) -> Result<u64, ArgError> {
    whole(text).filter(|items| (1..=MAX_CAPACITY).contains(items)).ok_or(ArgError::Capacity)
}

/// An expansion: from 0, which stands for a filter that does not grow, to [`MAX_EXPANSION`].
pub fn expansion(text: &[u8]) -> Result<u32, ArgError> {
    let factor = whole(text).and_then(|factor| u32::try_from(factor).ok());
    factor.filter(|&factor| factor <= MAX_EXPANSION).ok_or(ArgError::Expansion)
}

/// A hash family, by its name in any case.
pub fn hash(text: &[u8]) -> Result<hash::Choice, ArgError> {
    let named = |choice: &hash::Choice| text.eq_ignore_ascii_case(choice.name().as_bytes());
    hash::Choice::ALL.into_iter().find(named).ok_or(ArgError::Hash)
}

/// An iterator of a dump: from 0 on; which one is right the filter knows.
pub fn iterator(text: &[u8]) -> Result<u64, Error> {
    whole(text).ok_or(Error::Iterator)
}

/// A word of a command's syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// `CAPACITY n`
    Capacity,
    /// `ERROR rate`
    Error,
    /// `EXPANSION n`
    Expansion,
    /// `HASH murmur3|siphash`
    Hash,
    /// `NOCREATE`
    NoCreate,
    /// `NONSCALING`
    NonScaling,
    /// `COUNTING`
    Counting,
    /// `ITEMS item …`: the last one, all after it is items.
    Items,
}

impl Word {
    /// The word as it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Capacity => "CAPACITY",
            Self::Error => "ERROR",
            Self::Expansion => "EXPANSION",
            Self::Hash => "HASH",
            Self::NoCreate => "NOCREATE",
            Self::NonScaling => "NONSCALING",
            Self::Counting => "COUNTING",
            Self::Items => "ITEMS",
        }
    }
}

/// The options after BF.RESERVE's capacity.
pub const RESERVE_WORDS: &[Word] = &[Word::Expansion, Word::NonScaling, Word::Counting, Word::Hash];

/// The options after BF.INSERT's key.
pub const INSERT_WORDS: &[Word] = &[
    Word::Capacity,
    Word::Error,
    Word::Expansion,
    Word::Hash,
    Word::NoCreate,
    Word::NonScaling,
    Word::Counting,
    Word::Items,
];

/// What a filter that is made is to be, as far as a command says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// The capacity of the first layer.
    pub capacity: Option<u64>,
    /// The error rate.
    pub error_rate: Option<f64>,
    /// How many times larger the next layer is; 0 if the filter is not to scale.
    pub expansion: Option<u32>,
    /// The hash family.
    pub hash: Option<hash::Choice>,
    /// Whether items can be deleted.
    pub kind: Kind,
    /// A missing key is an error.
    pub no_create: bool,
    /// How many words there were up to ITEMS and with it; all of them if it is not there.
    pub words: usize,
}

impl Options {
    /// Reads options: whole words of `syntax`, any case and order, each at most once, until ITEMS.
    ///
    /// # Errors
    /// The word that is not known, stands twice, has no value or a bad one, or cannot stand beside another.
    pub fn parse<'a>(words: impl Iterator<Item = &'a [u8]>, syntax: &[Word]) -> Result<Self, Error> {
        let mut options = Options::default();
        let mut seen = Vec::new();
        let mut words = words.inspect(|_| options.words += 1);
        let mut factor = None;
        while let Some(text) = words.next() {
            let word = syntax.iter().find(|word| text.eq_ignore_ascii_case(word.name().as_bytes()));
            let &word = word.ok_or_else(|| Error::unknown_option(text))?;
            if seen.contains(&word) {
                return Err(Error::OptionTwice(word.name()));
            }
            seen.push(word);
            let mut value = || words.next().ok_or(Error::OptionWithoutValue(word.name()));
            match word {
                Word::Capacity => options.capacity = Some(capacity(value()?)?),
                Word::Error => options.error_rate = Some(error_rate(value()?)?),
                Word::Expansion => factor = Some(expansion(value()?)?),
                Word::Hash => options.hash = Some(hash(value()?)?),
                Word::Counting => options.kind = Kind::Counting,
                Word::NoCreate | Word::NonScaling => {}
                Word::Items => break,
            }
        }
        drop(words);
        let non_scaling = seen.contains(&Word::NonScaling);
        if non_scaling && factor.is_some() {
            return Err(Error::Exclusive(Word::NonScaling.name(), Word::Expansion.name()));
        }
        options.no_create = seen.contains(&Word::NoCreate);
        for word in [Word::Capacity, Word::Error, Word::Hash, Word::Counting] {
            if options.no_create && seen.contains(&word) {
                return Err(Error::Exclusive(Word::NoCreate.name(), word.name()));
            }
        }
        options.expansion = if non_scaling { Some(0) } else { factor };
        Ok(options)
    }
}

/// What RedisBloom's BF.RESERVE takes and passes on to its replicas and its AOF, where [`error_rate`] and [`Options::parse`]
/// are stricter: any rate between 0 and 1 as C writes numbers, any growth of 63 bits, and words between the options that it
/// does not know.
pub fn reserve_of_redisbloom(rate: &[u8], capacity: &[u8], words: &[&[u8]]) -> Result<Options, Error> {
    let at = |word: Word| words.iter().position(|text| text.eq_ignore_ascii_case(word.name().as_bytes()));
    let expansion = match (at(Word::NonScaling), at(Word::Expansion)) {
        (Some(_), _) => Some(0),
        (None, Some(at)) => {
            let value = words.get(at + 1).ok_or(Error::OptionWithoutValue(Word::Expansion.name()))?;
            Some(growth_of_redisbloom(value)?)
        }
        (None, None) => None,
    };
    let (error_rate, capacity) = (Some(rate_of_redisbloom(rate)?), Some(self::capacity(capacity)?));
    Ok(Options { capacity, error_rate, expansion, ..Options::default() })
}

/// The same of its BF.INSERT, which knows its options by their first letters; of several the last one counts.
pub fn insert_of_redisbloom<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Options, Error> {
    let (mut options, mut non_scaling) = (Options::default(), false);
    let mut words = words.inspect(|_| options.words += 1);
    let (mut capacity, mut rate, mut growth) = (None, None, None);
    while let Some(text) = words.next() {
        let letters = text.to_ascii_uppercase();
        let mut value = |word: Word| words.next().ok_or(Error::OptionWithoutValue(word.name()));
        match letters.as_slice() {
            [b'I', ..] => break,
            [b'C', ..] => capacity = Some(self::capacity(value(Word::Capacity)?)?),
            [b'E', b'R', ..] => rate = Some(rate_of_redisbloom(value(Word::Error)?)?),
            [b'E', ..] => growth = Some(growth_of_redisbloom(value(Word::Expansion)?)?),
            // A missing key was an error there, and nobody was told.
            [b'N', b'O', b'C', ..] => {}
            [b'N', ..] => non_scaling = true,
            _ => return Err(Error::unknown_option(text)),
        }
    }
    drop(words);
    options.expansion = if non_scaling { Some(0) } else { growth };
    (options.capacity, options.error_rate) = (capacity, rate);
    Ok(options)
}

fn rate_of_redisbloom(text: &[u8]) -> Result<f64, ArgError> {
    let unsigned = text.strip_prefix(b"+").unwrap_or(text);
    let rate = match unsigned {
        [b'0', b'x' | b'X', digits @ ..] => hexadecimal(digits),
        _ => decimal(unsigned),
    };
    rate.filter(|&rate| rate > 0.0 && rate < 1.0).ok_or(ArgError::ErrorRate)
}

#[expect(clippy::cast_possible_truncation, reason = "that is what is told below")]
fn growth_of_redisbloom(text: &[u8]) -> Result<u32, ArgError> {
    let factor = whole(text).filter(|&factor| (1..=i64::MAX as u64).contains(&factor)).ok_or(ArgError::Expansion)?;
    // RedisBloom keeps the lower 32 bits. They do not show before a second layer, so what cannot be here becomes the nearest
    // growth, and no item is lost: with 0 its second layer has no bits and takes none, while a growth of 1 goes on; with 2^31
    // and more a second layer, where memory has room for it at all, is smaller here, and takes the items beyond it too.
    Ok((factor as u32).clamp(1, MAX_GROWTH))
}

/// A whole number of at most 64 bits.
pub fn whole(text: &[u8]) -> Option<u64> {
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

/// What follows the `0x` of a number as C writes them: digits [. digits] [p [+|-] digits]. To the nearest double, as there.
fn hexadecimal(text: &[u8]) -> Option<f64> {
    let text = str::from_utf8(text).ok()?;
    let (digits, power) = text.split_once(['p', 'P']).unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut power = power.parse::<i64>().ok()?.checked_sub(4 * i64::try_from(fraction.len()).ok()?)?;
    let mut mantissa = 0;
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(digit.to_digit(16)?);
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
        } else {
            // Of digits beyond what a double holds the rounding asks no more than whether there is any but 0.
            mantissa |= u64::from(digit != 0);
            power = power.checked_add(4)?;
        }
    }
    // In two steps, since the smallest doubles are below the smallest power of two whose inverse is a double.
    let power = i32::try_from(power.clamp(-2000, 2000)).ok()?;
    Some(mantissa as f64 * 2f64.powi(power / 2) * 2f64.powi(power - power / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(line: &str) -> Result<Options, Error> {
        Options::parse(line.split(' ').map(str::as_bytes), INSERT_WORDS)
    }

    fn reserve(line: &str) -> Result<Options, Error> {
        Options::parse(line.split(' ').map(str::as_bytes), RESERVE_WORDS)
    }

    #[test]
    fn what_redisbloom_passes_on_is_read_as_it_reads_it() {
        let insert = |line: &str| insert_of_redisbloom(line.split(' ').map(str::as_bytes));
        let read = insert("CAPPCITY 10 e 3 er 0.5 ERROR 1e-13 items items").unwrap();
        assert_eq!((read.capacity, read.error_rate, read.expansion, read.words), (Some(10), Some(1e-13), Some(3), 9));
        assert_eq!(insert("NOTHING EXPANSION 2 I a").unwrap().expansion, Some(0));
        assert_eq!(insert("NOCREATE EXPANSION 40000 I a").unwrap().expansion, Some(40_000));
        assert!(insert("FOO ITEMS a").is_err() && insert("EXPANSION 0 ITEMS a").is_err());
        let reserve = |rate: &str, words: &[&str]| {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            reserve_of_redisbloom(rate.as_bytes(), b"10", &words)
        };
        assert_eq!(reserve("1e-320", &["FOO", "BAR"]).unwrap().expansion, None);
        assert_eq!(reserve("0.9", &["x", "expansion", "40000"]).unwrap().expansion, Some(40_000));
        assert_eq!(reserve("0.9", &["nonscaling"]).unwrap().expansion, Some(0));
        assert!(reserve("1", &[]).is_err() && reserve("0.1", &["EXPANSION"]).is_err());
    }

    /// As RedisBloom 2.8.2 answered each, on Redis 7.0.
    #[test]
    fn rates_of_redisbloom() {
        for (text, rate) in [
            ("+0.01", 0.01),
            ("0x1p-4", 0.0625),
            ("+0X1P-4", 0.0625),
            ("0x.8", 0.5),
            ("0x.8p+0", 0.5),
            ("0x1.8p-2", 0.375),
            ("0x0.00000000000000000000000000008p100", 2f64.powi(-13)),
            ("0x80000000000000000000000000000000p-130", 2f64.powi(-3)),
            // Half a unit of the last place: to the even one, unless anything follows.
            ("0x1.00000000000008p-4", 0.0625),
            ("0x1.00000000000008000000000001p-4", 0.0625 * (1.0 + f64::EPSILON)),
            ("0x1.fffffffffffffffffp-4", 0.125),
            ("0x1p-1074", 5e-324),
            ("1e-320", 1e-320),
        ] {
            assert_eq!(rate_of_redisbloom(text.as_bytes()), Ok(rate), "{text}");
        }
        for text in [
            "-0.1",
            "++0.1",
            "+-0.1",
            "+",
            " 0.01",
            "0.01 ",
            "0.01x",
            "",
            ".",
            "1.",
            "0x",
            "0x.",
            "0xp-4",
            "0x1",
            "0x1p",
            "0x1p-",
            "0x1p--4",
            "0x+1p-4",
            "0x1p-400000",
            "0x1p-99999999999999999999",
            "0x1p400000",
            "0x0p1",
            "0x1p-4 ",
            "0x1_0p-8",
            "0xgp-4",
            "x1p-4",
            "nan",
            "inf",
            "+inf",
            "1e-400",
            "0,1",
        ] {
            assert_eq!(rate_of_redisbloom(text.as_bytes()), Err(ArgError::ErrorRate), "{text:?}");
        }
    }

    #[test]
    fn growths_of_redisbloom() {
        for (text, growth) in [
            ("1", 1),
            ("40000", 40_000),
            ("2147483647", MAX_GROWTH),
            ("2147483648", MAX_GROWTH),
            ("4294967295", MAX_GROWTH),
            ("4294967296", 1),
            ("4294967297", 1),
            ("4294967299", 3),
            ("9223372036854775807", MAX_GROWTH),
        ] {
            assert_eq!(growth_of_redisbloom(text.as_bytes()), Ok(growth), "{text}");
        }
        for text in ["", "0", "-1", "+2", " 2", "2.0", "1e1", "9223372036854775808", "18446744073709551617"] {
            assert_eq!(growth_of_redisbloom(text.as_bytes()), Err(ArgError::Expansion), "{text:?}");
        }
    }

    #[test]
    fn options_are_read() {
        let read = insert("error .01 Capacity 7 hash SipHash counting expansion 4 ITEMS CAPACITY x").unwrap();
        let wanted = Options {
            capacity: Some(7),
            error_rate: Some(0.01),
            expansion: Some(4),
            hash: Some(hash::Choice::SipHash),
            kind: Kind::Counting,
            no_create: false,
            words: 10,
        };
        assert_eq!(read, wanted);
        assert_eq!(insert("NOCREATE ITEMS a").unwrap(), Options { no_create: true, words: 2, ..Options::default() });
        assert_eq!(reserve("nonScaling").unwrap().expansion, Some(0));
        assert_eq!(reserve("EXPANSION 0").unwrap().expansion, Some(0));
        assert_eq!(reserve("EXPANSION 1").unwrap().expansion, Some(1));
        assert_eq!(reserve("hash murmur3").unwrap().hash, Some(hash::Choice::Murmur3));
    }

    #[test]
    fn wrong_options_are_named() {
        let unknown = |word: &str| Err(Error::UnknownOption(word.to_owned()));
        assert_eq!(insert("NOTHING ITEMS a"), unknown("NOTHING"));
        assert_eq!(insert("C 10 I a"), unknown("C"));
        assert_eq!(insert("CAPPCITY 10 ITEMS a"), unknown("CAPPCITY"));
        assert_eq!(Options::parse([&b"CAPACITY 10"[..]].into_iter(), INSERT_WORDS), unknown("CAPACITY 10"));
        assert_eq!(reserve("FOO BAR"), unknown("FOO"));
        assert_eq!(reserve("NOSCALING"), unknown("NOSCALING"));
        assert_eq!(reserve("CAPACITY 10"), unknown("CAPACITY"));
        assert_eq!(reserve("NONSCALING nonscaling"), Err(Error::OptionTwice("NONSCALING")));
        assert_eq!(reserve("EXPANSION 2 EXPANSION 2"), Err(Error::OptionTwice("EXPANSION")));
        assert_eq!(reserve("EXPANSION"), Err(Error::OptionWithoutValue("EXPANSION")));
        assert_eq!(reserve("EXPANSION 32769"), Err(ArgError::Expansion.into()));
        for both in ["NONSCALING EXPANSION 0", "EXPANSION 2 NONSCALING"] {
            assert_eq!(reserve(both), Err(Error::Exclusive("NONSCALING", "EXPANSION")));
            assert_eq!(insert(both), Err(Error::Exclusive("NONSCALING", "EXPANSION")));
        }
        assert_eq!(insert("NOCREATE CAPACITY 10 ITEMS a"), Err(Error::Exclusive("NOCREATE", "CAPACITY")));
        assert_eq!(insert("ERROR 0.1 NOCREATE ITEMS a"), Err(Error::Exclusive("NOCREATE", "ERROR")));
        assert_eq!(insert("NOCREATE HASH siphash ITEMS a"), Err(Error::Exclusive("NOCREATE", "HASH")));
        for unknown in ["md5", "", "sip", "siphash-1-3", "murmur3\0"] {
            assert_eq!(reserve(&format!("HASH {unknown}")), Err(ArgError::Hash.into()));
        }
    }

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
        for (text, items) in
            [("1", 1), ("007", 7), ("5000000000", 5_000_000_000), ("9223372036854775807", MAX_CAPACITY)]
        {
            assert_eq!(capacity(text.as_bytes()), Ok(items), "{text}");
        }
        for text in [
            "",
            "0",
            "-1",
            "+1",
            "1e3",
            "1.0",
            " 1",
            "1 ",
            "1\n",
            "9223372036854775808",
            "18446744073709551616",
            "nan",
            "0x10",
            "1_000",
        ] {
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
        assert!(ArgError::Capacity.to_string().ends_with(&format!("from 1 to {MAX_CAPACITY}")));
    }
}
