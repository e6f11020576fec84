//! The Bloom filter itself: pure Rust that knows no Redis.

pub mod chain;
pub mod check;
pub mod chunks;
pub mod error;
pub mod geometry;
pub mod hash;
pub mod layer;
pub mod sizing;
