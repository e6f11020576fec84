//! The data types: what the server calls for a value of ours.
//!
//! | type | its values |
//! |---|---|
//! | `bloomgate` | filters of our own, and whatever is still being loaded |
//! | `MBbloom--` | filters in RedisBloom's layout: read as RedisBloom saves them, and saved so that it reads them |
//!
//! The home of `extern "C"`. Each callback turns the server's pointer into a [`Filter`], does one thing with it, and
//! gives the server what it asks for; the order and bytes of what is saved are the codec's.

mod aof;
mod defrag;
mod memory;
mod rdb;
mod redisbloom;

use std::ffi::{c_int, c_void};

use crate::codec::record::{Refused, VERSION};
use crate::codec::{self, filter::Filter};
use crate::host::key::{DataType, KeyMut};
use crate::host::{Ctx, raw};
use crate::metrics;

static OURS: DataType<Filter> = DataType::new(c"bloomgate");
static REDISBLOOMS: DataType<Filter> = DataType::new(c"MBbloom--");

/// The types, as their values are opened by commands.
pub static FILTERS: [&DataType<Filter>; 2] = [&OURS, &REDISBLOOMS];

/// The number of the saved format: the highest version of records that a reader must know.
const ENCODING: c_int = VERSION as c_int;

/// The version of the table of callbacks with those whose names end in 2, which 7.0 and later call in the place of the
/// older ones. 6.2 knows version 3 and reads no further.
const METHODS_VERSION: u64 = 4;

/// Creates the types. Errors: the text for the log.
pub fn create(ctx: Ctx<'_>) -> Result<(), String> {
    // SAFETY: a struct of integers and nullable function pointers, for all of which zero is a value.
    let none: raw::RedisModuleTypeMethods = unsafe { std::mem::zeroed() };
    let ours = raw::RedisModuleTypeMethods {
        version: METHODS_VERSION,
        rdb_load: Some(rdb::load),
        rdb_save: Some(rdb::save),
        aof_rewrite: Some(aof::rewrite),
        mem_usage: Some(memory::usage),
        free: Some(memory::free),
        free_effort: Some(memory::free_effort),
        copy: Some(memory::copy),
        defrag: Some(defrag::defrag),
        mem_usage2: Some(memory::usage2),
        free_effort2: Some(memory::free_effort2),
        copy2: Some(memory::copy2),
        // No `unlink`: nothing of ours knows which key a value belongs to.
        digest: Some(memory::digest),
        ..none
    };
    let redisblooms =
        raw::RedisModuleTypeMethods { rdb_load: Some(redisbloom::load), rdb_save: Some(redisbloom::save), ..ours };
    // SAFETY: the context is OnLoad's; the callbacks take and give boxed filters.
    unsafe {
        OURS.create(ctx, ENCODING, ours)?;
        REDISBLOOMS.create(ctx, codec::redisbloom::ENCODING.into(), redisblooms)
    }
}

/// The filter behind the server's pointer.
///
/// # Safety
/// `value` is a value of this type, neither freed nor changed during `'a`.
unsafe fn filter<'a>(value: *const c_void) -> &'a Filter {
    // SAFETY: a value of this type is a pointer from `Box::<Filter>::into_raw`; the rest is the caller's promise.
    unsafe { &*value.cast::<Filter>() }
}

/// A value for the server, which owns it from now on.
fn give(filter: Filter) -> *mut c_void {
    metrics::filter_given();
    Box::into_raw(Box::new(filter)).cast()
}

/// Makes `filter` the value of an open key.
pub fn set<'k>(key: &'k mut KeyMut<'_>, filter: Box<Filter>) -> &'k mut Filter {
    metrics::filter_given();
    key.set(if filter.is_redisblooms() { &REDISBLOOMS } else { &OURS }, filter)
}

/// Gives the value of an open key its type, once the last part of a filter of RedisBloom's has come. The key keeps its
/// expiry.
pub fn settle(key: &mut KeyMut<'_>) {
    if let Ok(Some(filter)) = key.get_mut(&[&OURS])
        && filter.is_redisblooms()
    {
        let filter = Box::new(filter.take());
        metrics::filter_given();
        key.set_and_keep_expiry(&REDISBLOOMS, filter);
    }
}

/// A record for callbacks that cannot report an error. Where there is no memory for one, of at most 1 MiB or as long as a layer
/// in RedisBloom's layout, the process, which mostly is a saving child, ends.
#[expect(clippy::panic, reason = "a file without the record would have lost a filter in silence")]
fn saved<T>(record: Result<T, Refused>) -> T {
    record.unwrap_or_else(|refused| panic!("a filter cannot be saved: {refused}"))
}
