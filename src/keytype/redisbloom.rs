//! RDB of a filter in RedisBloom's layout: its own encoding, read and written (`codec::redisbloom`).

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::rdb::Buffer;
use super::{filter, give, saved};
use crate::bloom::whole::Whole;
use crate::codec::filter::Filter;
use crate::codec::record::Refused;
use crate::codec::redisbloom::{self, Fields, Saver};
use crate::host::log::{Level, log_io};
use crate::host::{api, raw};

/// The server's side of a callback that reads or writes a value.
struct Io(*mut raw::RedisModuleIO);

const UNREADABLE: Refused = Refused::Bad("the value is cut short or cannot be read");

impl Io {
    /// The field just read, unless that failed.
    fn checked<T>(&self, field: T) -> Result<T, Refused> {
        // SAFETY: the callback's `io`.
        if unsafe { api!(RedisModule_IsIOError)(self.0) } == 0 { Ok(field) } else { Err(UNREADABLE) }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Fields for Io {
    type Bytes = Buffer;

    fn unsigned(&mut self) -> Result<u64, Refused> {
        // SAFETY: the callback's `io`.
        self.checked(unsafe { api!(RedisModule_LoadUnsigned)(self.0) })
    }

    fn double(&mut self) -> Result<f64, Refused> {
        // SAFETY: the callback's `io`.
        self.checked(unsafe { api!(RedisModule_LoadDouble)(self.0) })
    }

    fn bytes(&mut self) -> Result<Buffer, Refused> {
        // SAFETY: the callback's `io`.
        unsafe { Buffer::load(self.0) }.ok_or(UNREADABLE)
    }
}

impl Saver for Io {
    fn unsigned(&mut self, value: u64) {
        // SAFETY: the callback's `io`; the server keeps errors to itself until the callback returns.
        unsafe { api!(RedisModule_SaveUnsigned)(self.0, value) }
    }

    fn double(&mut self, value: f64) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_SaveDouble)(self.0, value) }
    }

    fn bytes(&mut self, value: &[u8]) {
        // SAFETY: as above; the server copies the bytes.
        unsafe { api!(RedisModule_SaveStringBuffer)(self.0, value.as_ptr().cast(), value.len()) }
    }
}

/// Writes a value.
///
/// # Safety
/// The server calls it with a valid `io` and a value of the type.
pub unsafe extern "C" fn save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server's promise.
    let filter = unsafe { filter(value) };
    if let Some(flat) = filter.flat() {
        saved(redisbloom::write(flat, &mut Io(io)).map_err(Refused::from));
    }
}

/// Reads a value; null if it is not well-formed or cannot be read, and the log says why.
///
/// # Safety
/// The server calls it with a valid `io`.
pub unsafe extern "C" fn load(io: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    // No version is negative.
    match redisbloom::read(u64::try_from(encoding).unwrap_or(u64::MAX), &mut Io(io)) {
        Ok(flat) => give(Filter::Whole(Whole::Flat(Box::new(flat)))),
        Err(refused) => {
            // SAFETY: `io` is this callback's.
            unsafe { log_io(io, Level::Warning, format_args!("a filter of RedisBloom's is refused: {refused}")) };
            null_mut()
        }
    }
}
