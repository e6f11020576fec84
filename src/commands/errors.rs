//! The text of every error that a command answers with.
//!
//! Each starts with its code (`ERR`), and one about an argument names it and its range.

use std::fmt;

/// An argument that is not what it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgError {
    /// The error rate.
    ErrorRate,
    /// The capacity.
    Capacity,
    /// The expansion.
    Expansion,
}

impl ArgError {
    /// What the argument has to be.
    pub const fn allowed(self) -> &'static str {
        match self {
            Self::ErrorRate => "a number from 1e-12 to below 1",
            Self::Capacity => "a whole number from 1 to 18446744073709551615",
            Self::Expansion => "a whole number from 0 to 32768",
        }
    }
}

impl fmt::Display for ArgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::ErrorRate => "error rate",
            Self::Capacity => "capacity",
            Self::Expansion => "expansion",
        };
        write!(f, "ERR bad {name}: it must be {}", self.allowed())
    }
}

impl std::error::Error for ArgError {}
