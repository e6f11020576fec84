//! A module for the tests of loading: its argument says what it takes before ours can: `name` (it calls itself bf),
//! `type` (a data type bloomgate) or `command` (BF.ADD). Written against the server's C interface alone, so that nothing
//! of ours is in it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::null;

type Context = *mut c_void;
type Command = extern "C" fn(Context, *mut *mut c_void, c_int) -> c_int;

const OK: c_int = 0;
const ERROR: c_int = 1;
const API_VERSION: c_int = 1;

/// The fields of RedisModuleTypeMethods that make a type without callbacks: its version, and the callbacks of version 1.
#[repr(C)]
struct Methods {
    version: u64,
    callbacks: [*const c_void; 6],
}

extern "C" fn nothing(_: Context, _: *mut *mut c_void, _: c_int) -> c_int {
    OK
}

/// # Safety
/// Only the server calls it, with a context and `count` strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedisModule_OnLoad(context: Context, arguments: *mut *mut c_void, count: c_int) -> c_int {
    // SAFETY: a context begins with the address of the function that finds all others by name; each is given the type
    // that redismodule.h declares; there is an argument if `count` says so; names end with NUL.
    unsafe {
        let find: extern "C" fn(*const c_char, *mut *const c_void) -> c_int =
            transmute(*context.cast::<*const c_void>());
        let function = |name: &CStr| {
            let mut address = null();
            find(name.as_ptr(), &mut address);
            assert!(!address.is_null(), "{name:?} is in every server");
            address
        };
        if count != 1 {
            return ERROR;
        }
        let text: extern "C" fn(*mut c_void, *mut usize) -> *const c_char =
            transmute(function(c"RedisModule_StringPtrLen"));
        let owns = CStr::from_ptr(text(*arguments, std::ptr::null_mut()));
        let name = if owns == c"name" { c"bf" } else { c"rival" };
        let announce: extern "C" fn(Context, *const c_char, c_int, c_int) =
            transmute(function(c"RedisModule_SetModuleAttribs"));
        announce(context, name.as_ptr(), 1, API_VERSION);
        if owns == c"type" {
            let create: extern "C" fn(Context, *const c_char, c_int, *const Methods) -> *const c_void =
                transmute(function(c"RedisModule_CreateDataType"));
            let methods = Methods { version: 1, callbacks: [null(); 6] };
            return if create(context, c"bloomgate".as_ptr(), 0, &methods).is_null() { ERROR } else { OK };
        }
        if owns == c"command" {
            let create: extern "C" fn(Context, *const c_char, Command, *const c_char, c_int, c_int, c_int) -> c_int =
                transmute(function(c"RedisModule_CreateCommand"));
            return create(context, c"bf.add".as_ptr(), nothing, c"readonly".as_ptr(), 0, 0, 0);
        }
        OK
    }
}
