//! The Bloom filter itself: pure Rust that knows no Redis.

pub mod sizing;
