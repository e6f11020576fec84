//! What the targets do with an input. `tests/core/seeds.rs` does the same with those in `tests/seeds`, so this names
//! nothing of libFuzzer.

pub mod args;
pub mod decode;
pub mod load;
pub mod operations;
mod records;
