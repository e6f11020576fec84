//! Tests on a real server, one file a topic. A row of the list of faults that other implementations have shown is tested
//! under its number, `f08_…`. How a server is had: `harness`.

mod acl;
mod arguments;
mod clients;
mod cluster;
mod commands;
mod config;
mod counting;
mod defrag;
mod differential;
mod documents;
mod events;
mod fixtures;
mod harness;
mod huge;
mod info;
mod insert;
mod keyed;
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
mod torture;
mod tracking;
mod types;
