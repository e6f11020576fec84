//! Rust's allocator on the server's memory, so that `used_memory`, `maxmemory` and eviction see every byte of a filter.
//!
//! Which of the server's functions are used is a question of what happens when memory is short:
//!
//! | server        | functions                       | no memory                                |
//! |---------------|---------------------------------|------------------------------------------|
//! | 7.0 and later | `RM_TryAlloc` and its relatives | null, so `try_reserve` and others report |
//! | 6.2           | `RM_Alloc`, Calloc, Realloc     | the server ends, as for any other value  |
//! | none (tests)  | the system's                    | null                                     |
//!
//! **A block is freed where it came from.** The first allocation of all decides between server and system, and the
//! decision stands until the process ends. `OnLoad` takes the server's functions before it allocates anything, so
//! inside a server it is the server; a block that something had made earlier would make it the system for good: not
//! counted by the server, but never given to the wrong `free`.
//!
//! **Alignment.** Of the server's blocks we trust only an alignment of 8 (builds whose malloc cannot tell a block's
//! size put a prefix of 8 bytes before it). Larger ones are rare here (SIMD hash tables of `HashMap`); their block is
//! `align` bytes longer, and the distance from its start is kept in the 8 bytes before what the caller sees:
//!
//! ```text
//!     start            start + distance = a multiple of align
//!     │ unused │ distance │ the caller's bytes … │
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{null_mut, write_bytes};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use super::raw;

/// The allocator; a crate declares one static of it as `#[global_allocator]`.
pub struct HostAlloc;

/// What every block of the server's is aligned to, in bytes.
const SERVER_ALIGN: usize = align_of::<usize>();

const UNDECIDED: u8 = 0;
const SERVER: u8 = 1;
const SYSTEM: u8 = 2;

/// Where all blocks come from.
static SOURCE: AtomicU8 = AtomicU8::new(UNDECIDED);

/// Bytes asked for and not given back, by any thread.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the module has allocated, as it asked for them: without what the server's allocator adds.
pub fn allocated() -> usize {
    ALLOCATED.load(Relaxed)
}

/// Counts a new block, unless there is none.
#[inline]
fn counted(block: *mut u8, size: usize) -> *mut u8 {
    recounted(block, 0, size)
}

/// Counts a block that took the place of one of `old` bytes, unless there is none.
#[inline]
fn recounted(block: *mut u8, old: usize, new: usize) -> *mut u8 {
    if !block.is_null() {
        // Wraps where it shrinks, as the addition does.
        ALLOCATED.fetch_add(new.wrapping_sub(old), Relaxed);
    }
    block
}

/// Whether blocks are the server's; decides it at the first call.
#[inline]
fn on_server() -> bool {
    match SOURCE.load(Relaxed) {
        UNDECIDED => decide(),
        source => source == SERVER,
    }
}

#[cold]
fn decide() -> bool {
    // SAFETY: a plain read of a pointer that is written only while the module is loaded, by the thread that loads it,
    // before any other code of ours runs.
    let found = if unsafe { raw::RedisModule_Alloc }.is_some() { SERVER } else { SYSTEM };
    match SOURCE.compare_exchange(UNDECIDED, found, Relaxed, Relaxed) {
        Ok(_) => found == SERVER,
        Err(first) => first == SERVER,
    }
}

/// Whether a block of this layout is, from its first byte on, one that the server gave: then the server may move it.
pub fn is_the_servers(layout: Layout) -> bool {
    on_server() && layout.align() <= SERVER_ALIGN
}

/// Whether the server reports a lack of memory (7.0 and later) rather than ending.
#[inline]
fn reports() -> bool {
    // SAFETY: as in `decide`.
    unsafe { raw::RedisModule_TryAlloc }.is_some()
}

/// `size` bytes of the server's memory, aligned to [`SERVER_ALIGN`], or null.
///
/// # Safety
/// [`on_server`] was true.
#[inline]
unsafe fn take(size: usize) -> *mut u8 {
    // SAFETY: reads of pointers set at load; the functions take any size and may be called by any thread.
    unsafe {
        match (raw::RedisModule_TryAlloc, raw::RedisModule_Alloc) {
            (Some(allocate), _) | (None, Some(allocate)) => allocate(size).cast(),
            (None, None) => null_mut(),
        }
    }
}

/// As [`take`], all bytes zero.
///
/// # Safety
/// [`on_server`] was true.
#[inline]
unsafe fn take_zeroed(size: usize) -> *mut u8 {
    // SAFETY: as for `take`; the bytes that are written were just taken.
    unsafe {
        let calloc = if reports() { raw::RedisModule_TryCalloc } else { raw::RedisModule_Calloc };
        if let Some(calloc) = calloc {
            return calloc(1, size).cast();
        }
        // 7.0 has TryAlloc alone.
        let block = take(size);
        if !block.is_null() {
            write_bytes(block, 0, size);
        }
        block
    }
}

/// Gives back a block of [`take`] or [`take_zeroed`].
///
/// # Safety
/// `block` came from one of them and is not used again.
#[inline]
unsafe fn give_back(block: *mut u8) {
    // SAFETY: read of a pointer set at load; the block is the server's by the caller's promise.
    unsafe {
        if let Some(free) = raw::RedisModule_Free {
            free(block.cast());
        }
    }
}

/// The bytes to ask for so that [`align_within`] finds room, or none if that overflows.
fn padded(layout: Layout) -> Option<usize> {
    layout.size().checked_add(layout.align())
}

/// Moves from the start of a block to the first multiple of `align` that leaves 8 bytes before it, and notes the
/// distance there.
///
/// # Safety
/// `start` is null or a block of [`padded`] bytes aligned to [`SERVER_ALIGN`]; `align` is above [`SERVER_ALIGN`].
unsafe fn align_within(start: *mut u8, align: usize) -> *mut u8 {
    if start.is_null() {
        return start;
    }
    // Between 8 and `align`, since start is a multiple of 8: there is room for the note, and for the caller's bytes
    // after.
    let distance = align - start.addr() % align;
    // SAFETY: within the block as just said; the note's place is a multiple of 8.
    unsafe {
        let aligned = start.add(distance);
        aligned.cast::<usize>().sub(1).write(distance);
        aligned
    }
}

/// The start of the block of which `aligned` is a part.
///
/// # Safety
/// `aligned` came from [`align_within`] and was not null.
unsafe fn start_of(aligned: *mut u8) -> *mut u8 {
    // SAFETY: `align_within` wrote the distance there.
    unsafe { aligned.sub(aligned.cast::<usize>().sub(1).read()) }
}

// SAFETY: blocks come from malloc-like functions that are thread-safe and never unwind; each is freed by the family
// that made it, since the source never changes; sizes and alignments are honoured as the comments above say.
unsafe impl GlobalAlloc for HostAlloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises about the layout are handed on; `take` only on the server.
        let block = unsafe {
            if !on_server() {
                System.alloc(layout)
            } else if layout.align() <= SERVER_ALIGN {
                take(layout.size())
            } else {
                padded(layout).map_or(null_mut(), |size| align_within(take(size), layout.align()))
            }
        };
        counted(block, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        let block = unsafe {
            if !on_server() {
                System.alloc_zeroed(layout)
            } else if layout.align() <= SERVER_ALIGN {
                take_zeroed(layout.size())
            } else {
                padded(layout).map_or(null_mut(), |size| align_within(take_zeroed(size), layout.align()))
            }
        };
        counted(block, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the block came from `alloc` with this layout, so from the same branch there.
        unsafe {
            if !on_server() {
                System.dealloc(block, layout);
            } else if layout.align() <= SERVER_ALIGN {
                give_back(block);
            } else {
                give_back(start_of(block));
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the block came from `alloc` with this layout; the new layout is valid by the caller's promise; both
        // blocks hold the bytes that are copied, and do not overlap.
        unsafe {
            if !on_server() {
                return recounted(System.realloc(block, layout, new_size), layout.size(), new_size);
            }
            let resize = if reports() { raw::RedisModule_TryRealloc } else { raw::RedisModule_Realloc };
            match resize {
                Some(resize) if layout.align() <= SERVER_ALIGN => {
                    recounted(resize(block.cast(), new_size).cast(), layout.size(), new_size)
                }
                // 7.0 has TryAlloc alone; an aligned block could land at another distance.
                _ => {
                    let moved = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, layout.size().min(new_size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `align_within` promises, at every start that the server may give and for every alignment.
    #[test]
    fn aligned_blocks_keep_their_start_and_fit() {
        let mut memory = vec![0u64; 4096];
        let base = memory.as_mut_ptr().cast::<u8>();
        for align in [16, 32, 64, 4096] {
            let layout = Layout::from_size_align(100, align).unwrap();
            for skip in (0..align).step_by(SERVER_ALIGN) {
                // SAFETY: 32 KiB hold skip + 100 + align bytes for each of these; the start is a multiple of 8.
                unsafe {
                    let start = base.add(skip);
                    let aligned = align_within(start, align);
                    assert!(aligned.addr().is_multiple_of(align));
                    assert!(aligned.addr() >= start.addr() + size_of::<usize>());
                    assert!(aligned.addr() + layout.size() <= start.addr() + padded(layout).unwrap());
                    assert_eq!(start_of(aligned), start);
                }
            }
        }
    }

    /// Without a server everything works, zeroed and aligned blocks too.
    #[test]
    fn works_without_a_server() {
        let layout = Layout::from_size_align(100, 64).unwrap();
        // SAFETY: a layout of some size, used as `GlobalAlloc` asks.
        unsafe {
            let block = HostAlloc.alloc_zeroed(layout);
            assert!(!block.is_null() && block.addr().is_multiple_of(64));
            assert!((0..100).all(|i| *block.add(i) == 0));
            let block = HostAlloc.realloc(block, layout, 5000);
            assert!(block.addr().is_multiple_of(64));
            HostAlloc.dealloc(block, Layout::from_size_align(5000, 64).unwrap());
        }
    }

    #[test]
    fn a_size_that_overflows_is_refused() {
        // The largest that Layout allows.
        let layout = Layout::from_size_align(isize::MAX as usize - 4095, 4096).unwrap();
        assert!(padded(layout).is_some());
        assert!(Vec::<u8>::new().try_reserve_exact(isize::MAX as usize).is_err());
    }
}
