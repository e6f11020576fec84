//! What the server asks about a value in memory: its size, a copy, its digest, its end.

use std::ffi::{c_longlong, c_void};
use std::ptr::null_mut;

use super::{filter, give};
use crate::bloom::geometry::Kind;
use crate::bloom::layer::Layer;
use crate::bloom::whole::NextPlan;
use crate::codec::filter::Filter;
use crate::codec::record::holding_bits;
use crate::host::{Str, api, raw};
use crate::metrics;

/// Bytes allocated for the value, all of them.
///
/// # Safety
/// The server calls it with a value of the type.
pub unsafe extern "C" fn usage(value: *const c_void) -> usize {
    // SAFETY: the server's promise.
    unsafe { filter(value) }.bytes()
}

/// As [`usage`], from 7.0 on. The samples that MEMORY USAGE may ask for are not needed: the tables tell it all.
///
/// # Safety
/// The server calls it with a value of the type.
pub unsafe extern "C" fn usage2(_key: *mut raw::RedisModuleKeyOptCtx, value: *const c_void, _samples: usize) -> usize {
    // SAFETY: the server's promise.
    unsafe { usage(value) }
}

/// Frees the value; also in another thread, when the server frees lazily.
///
/// # Safety
/// The server calls it once, with a value of the type that nothing uses any more.
pub unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: a value of this type came from `Box::into_raw`, and the server gives it back here.
    drop(unsafe { Box::from_raw(value.cast::<Filter>()) });
    metrics::filter_freed();
}

/// How many allocations freeing takes at most: the server frees large values in another thread. Counted by the tables of
/// chunks, since the one who unlinks a value of a million chunks waits for this.
///
/// # Safety
/// The server calls it with a value of the type.
pub unsafe extern "C" fn free_effort(_key: *mut raw::RedisModuleString, value: *const c_void) -> usize {
    // SAFETY: the server's promise.
    let filter = unsafe { filter(value) };
    1 + filter.layers().map(|layer| 1 + layer.slots()).sum::<usize>()
}

/// As [`free_effort`], from 7.0 on.
///
/// # Safety
/// The server calls it with a value of the type.
pub unsafe extern "C" fn free_effort2(_key: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) -> usize {
    // SAFETY: the server's promise; the key's name is not looked at.
    unsafe { free_effort(null_mut(), value) }
}

/// A deep copy, or null if there is no memory for it (the server then answers an error).
///
/// # Safety
/// The server calls it with valid key names and a value of the type.
pub unsafe extern "C" fn copy(
    _from: *mut raw::RedisModuleString,
    to: *mut raw::RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: the server's promises.
    let (filter, to) = unsafe { (filter(value), Str::new(to)) };
    filter.try_clone(to.bytes()).map_or(null_mut(), give)
}

/// As [`copy`], from 7.0 on.
///
/// # Safety
/// The server calls it with a valid `keys` and a value of the type.
pub unsafe extern "C" fn copy2(keys: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) -> *mut c_void {
    // SAFETY: the server's promises; whoever calls this has the function. The name is only read.
    unsafe { copy(null_mut(), api!(RedisModule_GetToKeyNameFromOptCtx)(keys).cast_mut(), value) }
}

/// What DEBUG DIGEST-VALUE compares: everything that an answer, now or after growth, depends on.
///
/// Left out is what two servers with the same answers may differ in: the id, the count of changes (but that of a counting
/// filter tells whether the records of a dump fit together), and chunks that were made but hold no bit.
///
/// # Safety
/// The server calls it with a valid `digest` and a value of the type.
pub unsafe extern "C" fn digest(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: the server's promise.
    let filter = unsafe { filter(value) };
    // SAFETY: `digest` is valid; a number, or bytes that are read at once.
    let number = |n: u64| unsafe { api!(RedisModule_DigestAddLongLong)(digest, n.cast_signed() as c_longlong) };
    let bytes = |bytes: &[u8]| {
        // SAFETY: as above. (The binding's `uchar` pointer is not written through.)
        unsafe { api!(RedisModule_DigestAddStringBuffer)(digest, bytes.as_ptr().cast_mut().cast(), bytes.len()) }
    };
    // SAFETY: as above.
    let end = || unsafe { api!(RedisModule_DigestEndSequence)(digest) };

    let head = filter.head();
    number(head.rate.to_bits());
    number(head.capacity);
    number(head.expansion.into());
    bytes(head.key.as_ref().map_or(&[], |key| key));
    number(filter.waits_for().unwrap_or(0));
    if let Some(flat) = filter.flat() {
        let head = flat.flat_head();
        number(head.options.into());
        number(head.growth.into());
        number(head.items);
    }
    if head.kind == Kind::Counting {
        number(head.kind.layout().into());
        number(filter.changes());
    }
    end();
    for (layer, plan) in filter.layers().zip(filter.plans()) {
        match plan {
            NextPlan::Native(plan) => {
                number(plan.capacity);
                number(plan.rate.to_bits());
                number(plan.size.lines);
                number(plan.size.bits.into());
                number(plan.size.spread.into());
            }
            NextPlan::Flat(plan) => {
                number(plan.capacity);
                number(plan.rate.to_bits());
                number(plan.bits_per_item.to_bits());
                number(plan.hashes.into());
                number(plan.bytes);
                number(plan.bits);
                number(plan.log2.into());
            }
        }
        digest_cells(layer, number, bytes);
        end();
    }
}

fn digest_cells(layer: &Layer, number: impl Fn(u64), bytes: impl Fn(&[u8])) {
    number(layer.items());
    for (index, lines) in holding_bits(layer, 0, layer.geometry().chunks()) {
        number(index.into());
        for line in lines {
            bytes(line.map(u64::to_le_bytes).as_flattened());
        }
    }
}
