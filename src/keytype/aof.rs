//! The rewritten AOF: a BF.LOADCHUNK for each record.

use std::ffi::c_void;

use super::{filter, saved};
use crate::host::{api, raw};

/// Writes the commands that make the value. (Without this callback a rewrite without RDB preamble ends the child.)
///
/// # Safety
/// The server calls it with a valid `io` and `key`, and a value of the type.
pub unsafe extern "C" fn rewrite(io: *mut raw::RedisModuleIO, key: *mut raw::RedisModuleString, value: *mut c_void) {
    // SAFETY: the server's promise.
    let filter = unsafe { filter(value) };
    for record in filter.records() {
        let (iterator, bytes) = saved(record);
        // SAFETY: the format's `s` takes a string of the server's, `l` a long long, `b` bytes and their number.
        unsafe {
            api!(RedisModule_EmitAOF)(
                io,
                c"BF.LOADCHUNK".as_ptr(),
                c"slb".as_ptr(),
                key,
                iterator.cast_signed(),
                bytes.as_ptr(),
                bytes.len(),
            );
        }
    }
}
