//! A section of ours in the server's INFO.

use std::ffi::{CStr, c_int};
use std::ptr::null;
use std::sync::OnceLock;

use super::{Ctx, OK, api, raw};

/// A line of the section.
pub struct Field {
    /// Its name; the server puts the module's and an underscore before it.
    pub name: &'static CStr,
    /// Its value now. Asked at any moment, also for the report of a crash: it must neither wait nor allocate.
    pub value: fn() -> u64,
}

static FIELDS: OnceLock<&'static [Field]> = OnceLock::new();

/// Adds a section named after the module.
pub fn register(ctx: Ctx<'_>, fields: &'static [Field]) {
    FIELDS.get_or_init(|| fields);
    // SAFETY: the context is OnLoad's, which is all that it asks.
    unsafe { api!(RedisModule_RegisterInfoFunc)(ctx.as_ptr(), Some(show)) };
}

/// # Safety
/// The server calls it with a valid context.
unsafe extern "C" fn show(info: *mut raw::RedisModuleInfoCtx, _for_crash_report: c_int) {
    // SAFETY: the context is valid; without a name the section is the module's own.
    let wanted = unsafe { api!(RedisModule_InfoAddSection)(info, null()) } == OK;
    for field in FIELDS.get().copied().filter(|_| wanted).unwrap_or_default() {
        // SAFETY: as above; the name ends in NUL.
        unsafe { api!(RedisModule_InfoAddFieldULongLong)(info, field.name.as_ptr(), (field.value)()) };
    }
}
