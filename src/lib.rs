//! Bloomgate: Bloom filters as a native data type for Redis and Valkey.

pub mod bloom;
pub mod host;

#[global_allocator]
static ALLOCATOR: host::alloc::HostAlloc = host::alloc::HostAlloc;
