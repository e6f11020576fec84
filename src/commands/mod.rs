//! The commands, a file each.

pub mod args;
pub mod errors;
