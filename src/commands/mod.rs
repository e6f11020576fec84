//! The commands: one file each, named after it, and what they share.
//!
//! Every command does the same five things in the same order: parse its arguments, open the key, do, tell (replicas,
//! AOF, watchers, subscribers), reply. Only replies of several elements are sent on the way, so that nothing is kept.

pub mod add_items;
pub mod args;
pub mod bf_add;
pub mod bf_card;
pub mod bf_count;
pub mod bf_debug;
pub mod bf_del;
pub mod bf_exists;
pub mod bf_info;
pub mod bf_insert;
pub mod bf_loadchunk;
pub mod bf_madd;
pub mod bf_mdel;
pub mod bf_mexists;
pub mod bf_reserve;
pub mod bf_scandump;
pub mod bf_stats;
pub mod delete_items;
pub mod errors;
pub mod keys;
pub mod limits;
