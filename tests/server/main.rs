//! Tests on a real server, one file a topic. A row of the list of faults that other implementations have shown is tested
//! under its number, `f08_…`. How a server is had: `harness`.

mod arguments;
mod clients;
mod commands;
mod differential;
mod documents;
mod fixtures;
mod harness;
mod limits;
mod load;
mod loadchunk;
mod memory;
mod persistence;
mod replication;
mod scripts;
mod selftest;
mod types;
