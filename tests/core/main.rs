//! Tests of the pure core: no server, no network.

mod codec;
mod sizing;
