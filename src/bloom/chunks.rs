//! The memory of a layer: chunks of 4096 bytes, each made when a bit in it is first set.
//!
//! ```text
//!  1 chunk            Store ─▶ lines                      (64 · lines bytes)
//!  2 … 512 chunks     Store ─▶ node ─▶ lines              (a node: a pointer for each chunk)
//!  more               Store ─▶ root ─▶ node ─▶ lines      (nodes of 512 pointers; the last as long as needed)
//! ```
//!
//! A missing chunk, node or root is all zeros, so an empty filter of 10⁹ items costs eight bytes here, and what was
//! never written is never saved. The store is one pointer: how deep it points follows from the layer's [`Geometry`],
//! which the layer passes to each call (kept once, not twice). This is the only file of the core with `unsafe` for
//! memory; everything it hands out is a slice of [`Line`]s.
//!
//! Alignment: nothing relies on more than 8 bytes. jemalloc puts a 4096-byte chunk on a page, other allocators need not.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bitvec::order::Lsb0;
use bitvec::slice::BitSlice;

use super::error::Error;
use super::geometry::{CHUNK_LINES, Geometry, Line, NOTHING};
use super::hash::Hash;
use super::moving::{Mover, STRIDE, move_array};

/// Pointers in a full node.
const NODE: usize = 512;

type Chunk = *mut Line;
type Node = *mut Chunk;

/// The chunks of one layer. It must be given the same geometry in every call, that of its layer, and only chunks which
/// that has: [`super::layer::Layer`] keeps the two together and lets nobody else at them.
#[derive(Debug)]
pub(super) struct Store {
    /// Null, or a chunk, a node or a root: by the number of chunks.
    top: *mut u8,
}

// SAFETY: the store owns all that it points to, alone; nothing in it is bound to a thread.
unsafe impl Send for Store {}
// SAFETY: through `&Store` memory is only read.
unsafe impl Sync for Store {}

/// Chunks of all stores of the process. Stores may be dropped in any thread.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// How many chunks there are in all stores of the process.
pub fn made_in_all() -> usize {
    MADE.load(Relaxed)
}

/// A store opened for a group of lookups: the depth is decided here once.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    /// The table of a layer of up to 512 chunks: its node, or where it has one chunk, the store's own pointer. Of larger
    /// ones the root. Null if nothing was made yet.
    table: *const *mut u8,
    geometry: Geometry,
    store: PhantomData<&'a Store>,
}

impl Default for Store {
    /// An empty store: all zeros.
    fn default() -> Store {
        Store { top: ptr::null_mut() }
    }
}

impl Store {
    /// Opens the store for reading.
    #[inline]
    pub fn view(&self, geometry: Geometry) -> View<'_> {
        let is_single = geometry.chunks() == 1 && !self.top.is_null();
        let table = if is_single { &raw const self.top } else { self.top.cast_const().cast() };
        View { table, geometry, store: PhantomData }
    }

    /// The chunk, made if it is missing.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; the bits are unchanged then.
    pub fn make(&mut self, geometry: Geometry, chunk: u32) -> Result<&mut [Line], Error> {
        let lines = geometry.chunk_lines(chunk) as usize;
        let slot = self.slot(geometry, chunk)?;
        if slot.is_null() {
            *slot = zeroed::<Line>(lines)?;
            MADE.fetch_add(1, Relaxed);
        }
        // SAFETY: a chunk that is there has as many lines as the geometry says, and `&mut self` makes it ours alone.
        Ok(unsafe { std::slice::from_raw_parts_mut(*slot, lines) })
    }

    /// The place of the chunk's pointer; tables on the way are made.
    fn slot(&mut self, geometry: Geometry, chunk: u32) -> Result<&mut Chunk, Error> {
        debug_assert!(chunk < geometry.chunks());
        let chunks = geometry.chunks() as usize;
        let (node, at) = (chunk as usize / NODE, chunk as usize % NODE);
        let top = ptr::from_mut(&mut self.top);
        if chunks == 1 {
            // SAFETY: `top` is `self.top`, which holds the one chunk's pointer; the types are both thin pointers.
            return Ok(unsafe { &mut *top.cast::<Chunk>() });
        }
        let node_slot: *mut Node = if chunks <= NODE {
            top.cast()
        } else {
            if self.top.is_null() {
                self.top = zeroed::<Node>(chunks.div_ceil(NODE))?.cast();
            }
            // SAFETY: the root has an entry for each node, and `node` < their number since `chunk` < `chunks`.
            unsafe { self.top.cast::<Node>().add(node) }
        };
        // SAFETY: `node_slot` is `self.top` or an entry of the root: valid and ours while `self` is borrowed.
        let node_slot = unsafe { &mut *node_slot };
        if node_slot.is_null() {
            *node_slot = zeroed::<Chunk>(node_len(chunks, node))?;
        }
        // SAFETY: the node has an entry for each of its chunks, `at` among them.
        Ok(unsafe { &mut *node_slot.add(at) })
    }

    /// Bytes allocated: chunks and tables.
    pub fn bytes(&self, geometry: Geometry) -> usize {
        let chunks: usize = self.made(geometry).map(|chunk| geometry.chunk_bytes(chunk)).sum();
        let all = geometry.chunks() as usize;
        let nodes = if all == 1 { 0 } else { self.slots(geometry) * 8 };
        let root = if all > NODE && !self.top.is_null() { all.div_ceil(NODE) * 8 } else { 0 };
        chunks + nodes + root
    }

    /// Pointers in the nodes that are there: at least as many as chunks, and counted without looking at each.
    pub fn slots(&self, geometry: Geometry) -> usize {
        let (view, all) = (self.view(geometry), geometry.chunks() as usize);
        (0..all.div_ceil(NODE)).filter(|&node| !view.node(node).is_null()).map(|node| node_len(all, node)).sum()
    }

    /// Indexes of the chunks that are there, ascending. Nodes that are missing are skipped as a whole.
    pub fn made(&self, geometry: Geometry) -> impl Iterator<Item = u32> + '_ {
        self.made_from(geometry, 0)
    }

    /// As [`Store::made`], beginning at chunk `from`.
    pub fn made_from(&self, geometry: Geometry, from: u32) -> impl Iterator<Item = u32> + '_ {
        let view = self.view(geometry);
        let all = geometry.chunks();
        let mut next = from;
        std::iter::from_fn(move || {
            while next < all {
                let node = next as usize / NODE;
                if view.node(node).is_null() {
                    next = u32::try_from((node + 1) * NODE).ok()?;
                    continue;
                }
                let chunk = next;
                next += 1;
                if view.chunk(chunk).is_some() {
                    return Some(chunk);
                }
            }
            None
        })
    }

    /// Moves tables and chunks, from this chunk on; the chunk to go on from, if the mover was told to stop.
    pub fn move_memory(&mut self, geometry: Geometry, from: u32, mover: &mut impl Mover) -> Option<u32> {
        let (all, mut chunk) = (geometry.chunks() as usize, from as usize);
        let top = ptr::from_mut(&mut self.top);
        if all > NODE && from == 0 {
            // SAFETY: `top` is ours, and holds null or a root of this length.
            unsafe { move_array(&mut *top.cast::<*mut Node>(), all.div_ceil(NODE), mover) };
        }
        for turn in 1u32.. {
            // SAFETY: `top` is ours.
            if chunk >= all || unsafe { *top }.is_null() {
                return None;
            }
            let (node, at) = (chunk / NODE, chunk % NODE);
            // SAFETY: `top`, or the entry that the root has for each node; and what it points to, in a layer of one chunk
            // the chunk itself.
            let slot: *mut Chunk = unsafe {
                let node_slot: *mut Node = if all > NODE { (*top).cast::<Node>().add(node) } else { top.cast() };
                if all > 1 && at == 0 {
                    move_array(&mut *node_slot, node_len(all, node), mover);
                }
                if all == 1 { node_slot.cast() } else { *node_slot }
            };
            if slot.is_null() {
                chunk = (node + 1) * NODE;
            } else {
                // SAFETY: the table has this entry: null, or a chunk with as many lines as the geometry says.
                unsafe { move_array(&mut *slot.add(at), geometry.chunk_lines(chunk as u32) as usize, mover) };
                chunk += 1;
            }
            if turn.is_multiple_of(STRIDE) && chunk < all && mover.should_stop() {
                return u32::try_from(chunk).ok();
            }
        }
        None
    }

    /// Gives all memory back; the store is empty then.
    pub fn clear(&mut self, geometry: Geometry) {
        let all = geometry.chunks() as usize;
        let view = self.view(geometry);
        let mut freed = 0;
        for node in 0..if self.top.is_null() { 0 } else { all.div_ceil(NODE) } {
            let table = view.node(node).cast_mut();
            if table.is_null() {
                continue;
            }
            for at in 0..node_len(all, node) {
                // SAFETY: the node has `node_len` entries; each is null or a chunk of this length made by `zeroed`.
                unsafe {
                    let chunk = *table.add(at);
                    freed += usize::from(!chunk.is_null());
                    free::<Line>(chunk, geometry.chunk_lines((node * NODE + at) as u32) as usize);
                }
            }
            if all > 1 {
                // SAFETY: made by `zeroed` with this length; its chunks are gone, and nothing points to it any more.
                unsafe { free::<Chunk>(table, node_len(all, node)) };
            }
        }
        if all > NODE {
            // SAFETY: the root was made by `zeroed` with this length (or is null); its nodes are gone.
            unsafe { free::<Node>(self.top.cast(), all.div_ceil(NODE)) };
        }
        self.top = ptr::null_mut();
        MADE.fetch_sub(freed, Relaxed);
    }
}

impl<'a> View<'a> {
    /// Whether nothing was made yet, so that there is nothing to look for.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.table.is_null()
    }

    /// Whether the table is a root of nodes.
    #[inline]
    pub fn is_deep(&self) -> bool {
        self.geometry.chunks() as usize > NODE
    }

    /// The node's table, or null.
    #[inline]
    fn node(&self, node: usize) -> *const Chunk {
        debug_assert!(node < (self.geometry.chunks() as usize).div_ceil(NODE));
        if !self.is_deep() || self.is_empty() {
            return self.table.cast();
        }
        // SAFETY: the table is a root with an entry for each node.
        unsafe { (*self.table.add(node)).cast() }
    }

    /// The first of an item's lines, or an empty one if its chunk is missing. `DEEP` is [`View::is_deep`], and the view is
    /// not empty: both are decided once for a group.
    #[inline(always)]
    pub fn first_line<const DEEP: bool>(&self, hash: Hash) -> &'a Line {
        debug_assert!(DEEP == self.is_deep() && !self.is_empty());
        // SAFETY: the geometry, which is the store's, names a line that the layer has.
        unsafe { self.line_unchecked::<DEEP>(self.geometry.line(hash)) }
    }

    /// The line of this number in the layer, or an empty one if its chunk is missing or there is none. `DEEP` as in
    /// [`View::first_line`].
    #[inline(always)]
    pub fn line<const DEEP: bool>(&self, line: u64) -> &'a Line {
        debug_assert!(DEEP == self.is_deep());
        if self.is_empty() || line >= self.geometry.lines() {
            return &NOTHING;
        }
        // SAFETY: just checked.
        unsafe { self.line_unchecked::<DEEP>(line) }
    }

    /// # Safety
    /// The view is not empty, `DEEP` is [`View::is_deep`], and the layer has the line.
    #[inline(always)]
    unsafe fn line_unchecked<const DEEP: bool>(&self, line: u64) -> &'a Line {
        let (chunk, at) = ((line / u64::from(CHUNK_LINES)) as usize, (line % u64::from(CHUNK_LINES)) as usize);
        // SAFETY: the table is a root with an entry for each node, or a node. The layer has the line and so its chunk: so the
        // node has the entry, and a chunk that is there has the line. All of it lives as long as the store.
        unsafe {
            let (node, entry): (*const Chunk, usize) =
                if DEEP { ((*self.table.add(chunk / NODE)).cast(), chunk % NODE) } else { (self.table.cast(), chunk) };
            if DEEP && node.is_null() {
                return &NOTHING;
            }
            let lines = *node.add(entry);
            if lines.is_null() { &NOTHING } else { &*lines.add(at) }
        }
    }

    /// The lines of the chunk, if it is there.
    #[inline]
    pub fn chunk(&self, chunk: u32) -> Option<&'a [Line]> {
        debug_assert!(chunk < self.geometry.chunks());
        let table = self.node(chunk as usize / NODE);
        if table.is_null() {
            return None;
        }
        // SAFETY: `chunk` < the number of chunks, so the node has this entry.
        let lines = unsafe { *table.add(chunk as usize % NODE) };
        if lines.is_null() {
            return None;
        }
        // SAFETY: a chunk that is there has as many lines as the geometry says and lives as long as the store.
        Some(unsafe { std::slice::from_raw_parts(lines, self.geometry.chunk_lines(chunk) as usize) })
    }
}

/// The bits of a chunk's places in order, line after line: for encoding and decoding. (The probe reads words.)
pub fn places(chunk: &[Line]) -> &BitSlice<u64, Lsb0> {
    BitSlice::from_slice(chunk.as_flattened())
}

/// As [`places`], to be written.
pub fn places_mut(chunk: &mut [Line]) -> &mut BitSlice<u64, Lsb0> {
    BitSlice::from_slice_mut(chunk.as_flattened_mut())
}

/// Entries in this node of a table of `chunks` chunks.
fn node_len(chunks: usize, node: usize) -> usize {
    (chunks - node * NODE).min(NODE)
}

/// An array of `len` >= 1 values, all bytes zero (which each type used here takes for "nothing").
fn zeroed<T>(len: usize) -> Result<*mut T, Error> {
    let layout = Layout::array::<T>(len).map_err(|_| Error::OutOfMemory)?;
    // SAFETY: `len` is at least 1 and T is not zero-sized.
    let memory = unsafe { alloc_zeroed(layout) };
    NonNull::new(memory).map(|p| p.as_ptr().cast()).ok_or(Error::OutOfMemory)
}

/// Gives back what `zeroed` made; null is left alone.
///
/// # Safety
/// `array` is null or came from `zeroed::<T>(len)`, and nothing uses it any more.
unsafe fn free<T>(array: *mut T, len: usize) {
    if array.is_null() {
        return;
    }
    if let Ok(layout) = Layout::array::<T>(len) {
        // SAFETY: as the caller promises.
        unsafe { dealloc(array.cast(), layout) };
    }
}

/// Asks the processor for the cache line of `address`; a hint that may name any address.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults and changes nothing that a program can see.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; the instruction is part of the base architecture.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::super::geometry::Kind;
    use super::super::sizing::Size;
    use super::*;

    fn geometry(lines: u64) -> Geometry {
        Geometry::new(Size { lines, bits: 1, spread: 1 }, Kind::Plain).unwrap()
    }

    /// Every depth, and both sides of each border between depths and nodes.
    const LINES: [u64; 10] = [1, 3, 64, 65, 128, 64 * 512, 64 * 512 + 1, 64 * 1024, 64 * 1500 + 7, 1 << 34];

    #[test]
    fn chunks_are_made_on_demand_and_are_as_long_as_the_geometry_says() {
        for lines in LINES {
            let g = geometry(lines);
            let mut store = Store::default();
            assert_eq!((store.bytes(g), store.made(g).count()), (0, 0));
            let wanted: std::collections::BTreeSet<u32> = [0, 1, 511, 512, 1023, g.chunks() / 2, g.chunks() - 1]
                .into_iter()
                .filter(|&c| c < g.chunks())
                .collect();
            for &chunk in &wanted {
                assert!(store.view(g).chunk(chunk).is_none());
                let made = store.make(g, chunk).unwrap();
                assert_eq!(made.len(), g.chunk_lines(chunk) as usize);
                assert!(made.iter().flatten().all(|&word| word == 0));
                made[made.len() - 1][7] = u64::from(chunk) + 1;
            }
            for &chunk in &wanted {
                assert_eq!(store.view(g).chunk(chunk).unwrap().last().unwrap()[7], u64::from(chunk) + 1);
            }
            assert_eq!(store.made(g).collect::<Vec<_>>(), wanted.iter().copied().collect::<Vec<_>>());
            store.clear(g);
            assert_eq!(store.bytes(g), 0);
        }
    }

    #[test]
    fn bytes_count_chunks_nodes_and_root() {
        let mut store = Store::default();
        let g = geometry(3);
        store.make(g, 0).unwrap();
        assert_eq!(store.bytes(g), 192);
        store.clear(g);
        let g = geometry(64 * 3);
        store.make(g, 1).unwrap();
        assert_eq!(store.bytes(g), 4096 + 3 * 8);
        store.clear(g);
        let g = geometry(64 * 513 + 1);
        store.make(g, 513).unwrap();
        assert_eq!((store.bytes(g), store.slots(g)), (64 + 2 * 8 + 2 * 8, 2));
        store.clear(g);
    }
}
