//! The text of every error that a command answers with.
//!
//! Each starts with its code (`ERR`), and one about an argument names it and its range.

use std::fmt;

use crate::bloom;
use crate::codec::record::Refused;
use crate::host::key::WrongType;
use crate::host::memory::Limit;

/// An argument that is not what it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgError {
    /// The error rate.
    ErrorRate,
    /// The capacity.
    Capacity,
    /// The expansion.
    Expansion,
    /// The hash family.
    Hash,
}

impl ArgError {
    /// What the argument has to be.
    pub const fn allowed(self) -> &'static str {
        match self {
            Self::ErrorRate => "a number from 1e-12 to below 1",
            Self::Capacity => "a whole number from 1 to 9223372036854775807",
            Self::Expansion => "a whole number from 0 to 32768",
            Self::Hash => "murmur3 or siphash",
        }
    }
}

impl fmt::Display for ArgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::ErrorRate => "error rate",
            Self::Capacity => "capacity",
            Self::Expansion => "expansion",
            Self::Hash => "hash",
        };
        write!(f, "ERR bad {name}: it must be {}", self.allowed())
    }
}

impl std::error::Error for ArgError {}

/// Why a command did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An argument is not what it has to be.
    Argument(ArgError),
    /// The syntax does not have this word in this place.
    UnknownOption(String),
    /// An option stands twice.
    OptionTwice(&'static str),
    /// An option has no value after it.
    OptionWithoutValue(&'static str),
    /// BF.INSERT without ITEMS, or without an item after it.
    ItemsMissing,
    /// Two options that exclude one another.
    Exclusive(&'static str, &'static str),
    /// The key holds a value of another type.
    WrongType(WrongType),
    /// BF.RESERVE of a key that exists.
    Exists,
    /// The key is missing, where one is needed.
    NotFound,
    /// A delete or a count of a filter that has bits.
    NotCounting,
    /// A new item for a filter that has taken its capacity and does not grow.
    Full,
    /// The filter waits for the rest of its dump.
    Loading,
    /// The filter at its full size would not fit into memory.
    OverMemory {
        /// Bytes it needs.
        needs: u64,
        /// Bytes there could be, and where that is set.
        limit: Limit,
    },
    /// The core refused.
    Core(bloom::error::Error),
    /// A record that does not fit.
    Record(Refused),
    /// The iterator is no number.
    Iterator,
    /// The key is missing, and the record is not the first one of a dump.
    FirstRecordMissing,
    /// Several records for a filter that is there.
    SeveralRecords,
}

impl Error {
    /// An unknown option, with as much of the word as shows what was meant.
    pub fn unknown_option(word: &[u8]) -> Self {
        Self::UnknownOption(String::from_utf8_lossy(word.get(..64).unwrap_or(word)).into_owned())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Argument(error) => return write!(f, "{error}"),
            Self::WrongType(error) => return write!(f, "{error}"),
            Self::UnknownOption(word) => return write!(f, "ERR syntax error: unknown option '{word}'"),
            Self::OptionTwice(word) => return write!(f, "ERR syntax error: {word} stands twice"),
            Self::OptionWithoutValue(word) => return write!(f, "ERR syntax error: {word} needs a value after it"),
            Self::Exclusive(one, other) => return write!(f, "ERR syntax error: {one} and {other} exclude one another"),
            Self::OverMemory { needs, limit } => {
                return write!(
                    f,
                    "ERR the filter needs {needs} bytes at its full size, more than the {} bytes of {}",
                    limit.bytes, limit.source
                );
            }
            Self::Core(error) => return write!(f, "ERR {error}"),
            // The text of a limit is that of `OverMemory`, its code included.
            Self::Record(Refused::Limit(text)) => return f.write_str(text),
            Self::Record(refused) => return write!(f, "ERR {refused}"),
            Self::ItemsMissing => "ERR syntax error: ITEMS with at least one item after it is missing",
            Self::Exists => "ERR item exists",
            Self::NotFound => "ERR not found",
            Self::NotCounting => {
                "ERR the filter cannot delete or count items: reserve it with COUNTING (BF.RESERVE, BF.INSERT)"
            }
            Self::Full => "ERR non scaling filter is full",
            Self::Loading => {
                "ERR the filter is being loaded: send the rest of its dump with BF.LOADCHUNK, or delete the key"
            }
            Self::Iterator => "ERR bad iterator: it must be 0 or the number that BF.SCANDUMP returned",
            Self::FirstRecordMissing => {
                "ERR not found: a dump is loaded from its first record on; pass each iterator with the record that \
                 BF.SCANDUMP returned it with, 1 with the first"
            }
            Self::SeveralRecords => "ERR item exists: a filter that is there takes one record at a time",
        };
        f.write_str(text)
    }
}

impl std::error::Error for Error {}

impl From<ArgError> for Error {
    fn from(error: ArgError) -> Self {
        Self::Argument(error)
    }
}

impl From<WrongType> for Error {
    fn from(error: WrongType) -> Self {
        Self::WrongType(error)
    }
}

impl From<bloom::error::Error> for Error {
    fn from(error: bloom::error::Error) -> Self {
        Self::Core(error)
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::Record(refused)
    }
}
