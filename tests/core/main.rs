//! Tests of the pure core: no server, no network.

mod accuracy;
mod against_twin;
mod codec;
mod counting;
mod flat;
mod growth;
mod laws;
mod memory;
mod oom;
mod seeds;
mod sizing;
mod stats;
mod twin;
