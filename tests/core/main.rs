//! Tests of the pure core: no server, no network.

mod sizing;
