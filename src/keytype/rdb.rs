//! RDB (also DUMP, RESTORE and full syncs): all records, one string buffer each, and an empty one at the end.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::slice;

use super::{ENCODING, filter, give, saved};
use crate::codec::filter::{Filter, Source};
use crate::codec::record::{self, Refused};
use crate::host::log::{Level, log_io};
use crate::host::{api, raw};

/// Writes a value.
///
/// # Safety
/// The server calls it with a valid `io` and a value of the type.
pub unsafe extern "C" fn save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server's promise.
    let filter = unsafe { filter(value) };
    let write = |bytes: &[u8]| {
        // SAFETY: `io` is valid; the server copies the bytes, and keeps errors to itself until the callback returns.
        unsafe { api!(RedisModule_SaveStringBuffer)(io, bytes.as_ptr().cast(), bytes.len()) }
    };
    for record in filter.records() {
        write(&saved(record).1);
    }
    // An empty string, and not an empty slice: 6.2 looks at the byte where short strings end.
    write(c"".to_bytes());
}

/// Reads a value; null if it is not well-formed or cannot be read, and the log says why.
///
/// # Safety
/// The server calls it with a valid `io`.
pub unsafe extern "C" fn load(io: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    if encoding != ENCODING {
        let why = format_args!("a filter of format {encoding}: this release of Bloomgate reads format {ENCODING}");
        // SAFETY: `io` is this callback's.
        unsafe { log_io(io, Level::Warning, why) };
        return null_mut();
    }
    // SAFETY: `io` is this callback's.
    match unsafe { read(io) } {
        Ok(filter) => give(filter),
        Err(refused) => {
            // SAFETY: `io` is this callback's.
            unsafe { log_io(io, Level::Warning, format_args!("a Bloomgate filter is refused: {refused}")) };
            null_mut()
        }
    }
}

/// # Safety
/// `io` is that of the running load callback.
unsafe fn read(io: *mut raw::RedisModuleIO) -> Result<Filter, Refused> {
    let mut filter: Option<Filter> = None;
    loop {
        // SAFETY: the caller's promise.
        let Some(buffer) = (unsafe { Buffer::load(io) }) else {
            return Err(Refused::Bad("the value is cut short or cannot be read"));
        };
        let mut bytes = buffer.bytes();
        if bytes.is_empty() {
            let filter = filter.ok_or(Refused::Bad("the value holds no record"))?;
            // It would be of another type.
            let fits = !filter.is_redisblooms();
            return if fits { Ok(filter) } else { Err(Refused::Bad("a whole filter of RedisBloom's is not saved so")) };
        }
        let record = record::read(&mut bytes)?;
        if !bytes.is_empty() {
            return Err(Refused::Bad("a buffer is longer than its record"));
        }
        match &mut filter {
            None => filter = Some(Filter::begin(record)?),
            Some(filter) => filter.continue_with(record, Source::Trusted)?,
        }
    }
}

/// A string buffer that the server read for us; freed when dropped.
pub(super) struct Buffer {
    start: *mut u8,
    len: usize,
}

impl Buffer {
    /// None if the server could not read one.
    ///
    /// # Safety
    /// `io` is that of the running load callback.
    pub(super) unsafe fn load(io: *mut raw::RedisModuleIO) -> Option<Buffer> {
        let mut len = 0;
        // SAFETY: the caller's promise.
        unsafe {
            let start: *mut u8 = api!(RedisModule_LoadStringBuffer)(io, &raw mut len).cast();
            let buffer = (!start.is_null()).then_some(Buffer { start, len });
            if api!(RedisModule_IsIOError)(io) != 0 { None } else { buffer }
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the server gave `len` bytes, which are ours until they are freed.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the server's block, freed once.
        unsafe { api!(RedisModule_Free)(self.start.cast()) }
    }
}
