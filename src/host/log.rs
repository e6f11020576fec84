//! Lines in the server's log.

use std::ffi::CStr;
use std::fmt;
use std::panic;
use std::ptr::null_mut;

use super::text::Text;
use super::{Ctx, raw};

/// How much a line matters; the server's `loglevel` decides which are written.
#[derive(Clone, Copy, Debug)]
pub enum Level {
    /// For developers.
    Debug,
    /// Many rarely useful lines.
    Verbose,
    /// What an operator wants to know.
    Notice,
    /// Something is wrong.
    Warning,
}

impl Level {
    fn name(self) -> &'static CStr {
        match self {
            Self::Debug => c"debug",
            Self::Verbose => c"verbose",
            Self::Notice => c"notice",
            Self::Warning => c"warning",
        }
    }
}

/// The server cuts its lines at 1024 bytes.
type Line = Text<1024>;

/// Writes a line, headed by the module's name; nothing where there is no server.
pub fn log(ctx: Ctx<'_>, level: Level, message: fmt::Arguments<'_>) {
    // SAFETY: `ctx` is valid.
    unsafe { write(ctx.as_ptr(), level, message) }
}

/// As [`log`] where there is no context; the server heads the line with `<module>`.
pub fn log_anywhere(level: Level, message: fmt::Arguments<'_>) {
    // SAFETY: the server takes a null context.
    unsafe { write(null_mut(), level, message) }
}

/// # Safety
/// `ctx` is null or valid.
unsafe fn write(ctx: *mut raw::RedisModuleCtx, level: Level, message: fmt::Arguments<'_>) {
    let line = Line::new(message);
    // SAFETY: a format with one `%s`, whose argument is text ended by NUL. The server copies what it needs.
    unsafe {
        if let Some(log) = raw::RedisModule_Log {
            log(ctx, level.name().as_ptr(), c"%s".as_ptr(), line.as_ptr());
        }
    }
}

/// Writes a line about a value that is being loaded or saved.
///
/// # Safety
/// `io` is the one that the server gave to the running callback of the data type.
pub unsafe fn log_io(io: *mut raw::RedisModuleIO, level: Level, message: fmt::Arguments<'_>) {
    let line = Line::new(message);
    // SAFETY: as for `write`; `io` is valid by the caller's promise.
    unsafe {
        if let Some(log) = raw::RedisModule_LogIOError {
            log(io, level.name().as_ptr(), c"%s".as_ptr(), line.as_ptr());
        }
    }
}

/// Sends panics to the server's log. A panic is a fault of ours and ends the server, often with standard error going
/// nowhere: without this line nobody could tell why.
pub fn panics_to_log() {
    panic::set_hook(Box::new(|info| {
        log_anywhere(Level::Warning, format_args!("bloomgate, a fault of the module: {info}"));
    }));
}
