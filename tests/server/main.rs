//! Tests on a real server, one file a topic. A row of the list of faults that other implementations have shown is tested
//! under its number, `f08_…`. How a server is had: `harness`.

mod acl;
mod arguments;
mod clients;
mod cluster;
mod commands;
mod config;
mod differential;
mod documents;
mod events;
mod fixtures;
mod harness;
mod info;
mod insert;
mod limits;
mod load;
mod loadchunk;
mod memory;
mod metadata;
mod metrics;
mod persistence;
mod redisbloom;
mod replication;
mod scandump;
mod scripts;
mod selftest;
mod stats;
mod tracking;
mod types;
