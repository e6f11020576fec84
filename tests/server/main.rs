//! Tests on a real server, one file a topic. A row of the list of faults that other implementations have shown is tested
//! under its number, `f08_…`. How a server is had: `harness`.

mod arguments;
mod commands;
mod harness;
mod persistence;
mod selftest;
mod types;
