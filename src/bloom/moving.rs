//! Moving memory: how the blocks of a filter get to places where they leave no holes between them.
//!
//! A server that frees many values of different sizes is left with pages of which it uses a little of each. One with
//! active defragmentation asks every value, from time to time and in small steps, to have its blocks moved to where they
//! fill pages. Who moves a block is a [`Mover`]; which blocks there are and who points to them is known where they are
//! kept ([`super::chunks`], [`super::chain`]), and nothing points to one but its owner.
//!
//! A step begins at a *place*, which counts the chunks of all layers, oldest first, whether they are made or not: layers
//! never change their number of chunks and new ones are appended, so a place means the same after growth. At place 0
//! the blocks come first that all layers share.

use std::alloc::Layout;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use super::layer::Layer;

/// Chunks between two questions whether to stop: at most 256 KiB are copied meanwhile.
pub const STRIDE: u32 = 64;

/// Who can move blocks of memory.
///
/// # Safety
/// [`Mover::move_block`] returns a block of the same layout with the same bytes, of Rust's global allocator: the one that
/// it was given, or another one, and then the one that it was given is freed. It does not unwind.
pub unsafe trait Mover {
    /// Moves a block to a better place, if there is one.
    ///
    /// # Safety
    /// `block` is a block of this layout from Rust's global allocator, and nobody uses the pointer any more.
    unsafe fn move_block(&mut self, block: NonNull<u8>, layout: Layout) -> NonNull<u8>;

    /// Whether it is time to stop, and to go on another time.
    fn should_stop(&mut self) -> bool;
}

/// Moves an array of `len` values that `array`, which is null or its only owner, points to.
///
/// # Safety
/// `array` is null or a block of `Layout::array::<T>(len)` from Rust's global allocator.
pub unsafe fn move_array<T>(array: &mut *mut T, len: usize, mover: &mut impl Mover) {
    if let (Some(block), Ok(layout)) = (NonNull::new(*array), Layout::array::<T>(len)) {
        // SAFETY: the caller's promise; the one pointer to the block is replaced.
        *array = unsafe { mover.move_block(block.cast(), layout) }.cast().as_ptr();
    }
}

/// Moves the value in a box.
pub fn move_box<T>(value: &mut Box<T>, mover: &mut impl Mover) {
    let mut block = ptr::from_mut(&mut **value);
    // SAFETY: the block of a box has its value's layout. It is the box's again, whichever it is, before anybody sees the
    // box; the old box owns nothing any more and is overwritten, not dropped.
    unsafe {
        move_array(&mut block, 1, mover);
        ptr::write(value, Box::from_raw(block));
    }
}

/// Moves the values of a vector.
pub fn move_vec<T>(values: &mut Vec<T>, mover: &mut impl Mover) {
    if values.capacity() == 0 || size_of::<T>() == 0 {
        // There is no block.
        return;
    }
    let mut owner = ManuallyDrop::new(std::mem::take(values));
    let (mut block, len, capacity) = (owner.as_mut_ptr(), owner.len(), owner.capacity());
    // SAFETY: the block of a vector is an array of its capacity, of which `len` values are there; `owner`, which owned it,
    // is not dropped.
    *values = unsafe {
        move_array(&mut block, capacity, mover);
        Vec::from_raw_parts(block, len, capacity)
    };
}

/// Moves the memory of layers, oldest first, from a place on; the place to go on from, if the mover was told to stop.
pub fn move_layers<'a>(layers: impl Iterator<Item = &'a mut Layer>, from: u64, mover: &mut impl Mover) -> Option<u64> {
    let mut begin = 0;
    for layer in layers {
        let end = begin + u64::from(layer.geometry().chunks());
        if from < end {
            // Below the layer's number of chunks.
            let chunk = u32::try_from(from.saturating_sub(begin)).unwrap_or(0);
            if let Some(next) = layer.move_memory(chunk, mover) {
                return Some(begin + u64::from(next));
            }
            if mover.should_stop() {
                return Some(end);
            }
        }
        begin = end;
    }
    None
}
