//! Bloomgate: Bloom filters as a native data type for Redis and Valkey.

pub mod bloom;
