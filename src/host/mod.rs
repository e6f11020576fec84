//! Everything between the server and us: what it offers, its memory, its log, its calls.
//!
//! ```text
//!     load      OnLoad: API, options, data type, commands, from rows of data
//!     ctx       one call of a command: arguments, replies, replication, events
//!     key       an open key and the value of our type in it
//!     config    settings for CONFIG GET and CONFIG SET
//!     info      a section of INFO
//!     server    which server this is (found once)
//!     memory    how much memory a value could ever have
//!     alloc     Rust's allocator on the server's memory
//!     log       lines in the server's log, the panic hook
//!     text      bounded text without control characters, for replies and log lines
//! ```
//!
//! The server hands a module its functions by name when it loads it; the binding crate keeps each as a nullable pointer
//! in a global of its own. Only this directory (and the data type's callbacks) touches those globals, through [`api!`]
//! for what every server since 6.2 has, and through a null test for what only some have. The crate's safe wrappers are
//! not used: its macros refuse to load on 6.2 and 7.0, and its argument and reply types cost more than a filter's
//! answer.

pub mod alloc;
pub mod config;
pub mod ctx;
pub mod info;
pub mod key;
pub mod load;
pub mod log;
pub mod memory;
pub mod server;
pub mod text;

use std::ffi::c_int;

pub use ctx::{Ctx, Str};
pub use redis_module::raw;

/// What the server answers where a call did what it should, and what it is answered.
#[expect(clippy::cast_possible_truncation, reason = "0")]
pub(crate) const OK: c_int = raw::REDISMODULE_OK as c_int;
/// What it is answered otherwise.
#[expect(clippy::cast_possible_truncation, reason = "1")]
pub(crate) const ERR: c_int = raw::REDISMODULE_ERR as c_int;

/// The server's function `$name`, which every server from 6.2 on has.
///
/// Reading the pointer is `unsafe` because it is a mutable global; it is written once, by [`load::load`], before any
/// code of ours can run.
macro_rules! api {
    ($name:ident) => {
        match $crate::host::raw::$name {
            Some(function) => function,
            None => $crate::host::missing(stringify!($name)),
        }
    };
}
pub(crate) use api;

/// Ends the process: `name` should have been there.
#[cold]
#[inline(never)]
#[expect(clippy::panic, reason = "nothing can be done without a server")]
pub fn missing(name: &str) -> ! {
    panic!("the server does not offer {name}, or the module was not loaded by a server");
}
