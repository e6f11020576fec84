//! Active defragmentation: the server asks for a value's blocks to be moved together.
//!
//! A small value is moved in one go. For one that is large by `free_effort` the server keeps a cursor, calls until it hears
//! that all was done, and in between runs commands, which may have changed the filter, or put another one in its place.

use std::alloc::Layout;
use std::ffi::{c_int, c_ulong, c_void};
use std::ptr::NonNull;

use crate::bloom::moving::{Mover, move_array};
use crate::codec::filter::Filter;
use crate::host::{alloc, api, raw};

/// Moves the value's blocks, as many as there is time for; 0 if all were looked at, 1 if there are more.
///
/// # Safety
/// The server calls it with a valid `step`, and where it keeps its pointer to a value of the type, which nothing else uses.
pub unsafe extern "C" fn defrag(
    step: *mut raw::RedisModuleDefragCtx,
    _key: *mut raw::RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    let mut mover = Server { step };
    let mut from: c_ulong = 0;
    // SAFETY: `step` is valid. Without a cursor, as for a small value, the place stays 0.
    unsafe { api!(RedisModule_DefragCursorGet)(step, &raw mut from) };
    // SAFETY: the server's promise: the pointer is that of a box (`DataType::create`), ours alone during the call.
    let filter = unsafe {
        let value = &mut *value.cast::<*mut Filter>();
        if from == 0 {
            move_array(value, 1, &mut mover);
        }
        &mut **value
    };
    let Some(next) = filter.move_memory(from, &mut mover) else { return 0 };
    // SAFETY: `step` is valid.
    unsafe { api!(RedisModule_DefragCursorSet)(step, next) };
    1
}

/// The server as it defragments, during one step.
struct Server {
    step: *mut raw::RedisModuleDefragCtx,
}

// SAFETY: the server moves the bytes of a block of its own to another one and frees the old one, or returns null and leaves
// it; Rust's allocator is the server's where `is_the_servers` says so, and other blocks are left alone.
unsafe impl Mover for Server {
    unsafe fn move_block(&mut self, block: NonNull<u8>, layout: Layout) -> NonNull<u8> {
        if !alloc::is_the_servers(layout) {
            return block;
        }
        // SAFETY: the step is running, and the block the server's, by the caller's promise and the question above.
        let moved = unsafe { api!(RedisModule_DefragAlloc)(self.step, block.as_ptr().cast()) };
        NonNull::new(moved.cast()).unwrap_or(block)
    }

    fn should_stop(&mut self) -> bool {
        // SAFETY: the step is running.
        unsafe { api!(RedisModule_DefragShouldStop)(self.step) != 0 }
    }
}
