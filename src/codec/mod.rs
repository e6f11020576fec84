//! Bytes ↔ filters.
//!
//! A filter is a sequence of checksummed records, and everything that leaves the server is made of them: an RDB value,
//! a dump, the rewritten AOF, what replicas are sent. [`record`] knows a single record byte by byte; [`filter`] knows
//! their order and what a filter makes of the next one. `docs/format.md` is the same for people, with an example.
//! [`redisbloom`] reads and writes that module's own encodings.
//!
//! Every byte that is read here is hostile: length first, then version, bounds, checked arithmetic, checksum, and only
//! then memory, in proportion to the bytes that are really there.

pub mod filter;
pub mod record;
pub mod redisbloom;
