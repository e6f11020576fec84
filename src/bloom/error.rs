//! What can go wrong in the core. The commands turn these into replies, the loaders into log lines.

use std::fmt;

use super::sizing::MAX_LINES;

/// Why the core refused; the filter it was asked of is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The layers together would need more than [`MAX_LINES`] lines.
    TooLarge,
    /// The filter has as many layers as the saved format can number.
    TooManyLayers,
    /// RedisBloom could not read the filter with a further layer.
    CannotGrow,
    /// The allocator had no memory for a chunk or a table of chunks.
    OutOfMemory,
    /// A value breaks a rule of the format; the text names the rule.
    Malformed(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooLarge => {
                let most = MAX_LINES * 64;
                write!(f, "the filter needs more than {most} bytes (1 TiB), the most that one filter may have")
            }
            Error::TooManyLayers => write!(f, "a filter has at most {} layers", super::chain::MAX_LAYERS),
            Error::CannotGrow => f.write_str(
                "the filter came from RedisBloom, which could not read it with a further layer: \
                 reserve a new filter beside it, add to that one and ask both",
            ),
            Error::OutOfMemory => f.write_str("out of memory"),
            Error::Malformed(rule) => f.write_str(rule),
        }
    }
}

impl std::error::Error for Error {}
