//! Settings that CONFIG GET and CONFIG SET reach, where the server lets modules have some (7.0 and later).
//!
//! All are registered as text, so that one grammar serves configuration files, CONFIG SET and load arguments.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use super::server::Server;
use super::{Ctx, ERR, OK, Str, api, raw};

/// A setting, kept in a static.
pub trait Setting: Sync + 'static {
    /// Its whole name, for servers that let modules choose it (Redis 8.0 and later).
    fn name(&self) -> &'static CStr;

    /// Its name for servers that put the module's and a dot before it.
    fn name_after_dot(&self) -> &'static CStr;

    /// Its value as text that [`Self::set`] takes.
    fn get(&self) -> String;

    /// Sets it. Errors: what it has to be, for the client.
    fn set(&self, text: &[u8]) -> Result<(), String>;
}

/// Registers `settings`, whose values now are their defaults, and has the server set those that its configuration
/// names. Does nothing on a server without module configurations. Errors: the text for the log.
pub fn register<S: Setting>(ctx: Ctx<'_>, settings: &'static [S]) -> Result<(), String> {
    // SAFETY: reads of pointers set at load.
    let (Some(register), Some(load)) =
        (unsafe { (raw::RedisModule_RegisterStringConfig, raw::RedisModule_LoadConfigs) })
    else {
        return Ok(());
    };
    let unprefixed = Server::find(ctx).has_unprefixed_configs();
    for setting in settings {
        let (name, flags) = if unprefixed {
            (setting.name(), raw::REDISMODULE_CONFIG_UNPREFIXED)
        } else {
            (setting.name_after_dot(), raw::REDISMODULE_CONFIG_DEFAULT)
        };
        let default = CString::new(setting.get()).map_err(|error| format!("{name:?}: {error}"))?;
        // SAFETY: the context is OnLoad's, the texts end in NUL and are copied; the callbacks get back `setting`, which
        // is static and shared (`Sync`), and never write through the pointer.
        let status = unsafe {
            let setting = (&raw const *setting).cast_mut().cast::<c_void>();
            register(
                ctx.as_ptr(),
                name.as_ptr(),
                default.as_ptr(),
                flags,
                Some(get::<S>),
                Some(set::<S>),
                None,
                setting,
            )
        };
        if status != OK {
            return Err(format!("cannot register the configuration {name:?}: the name is taken"));
        }
    }
    // SAFETY: the context is OnLoad's.
    match unsafe { load(ctx.as_ptr()) } {
        OK => Ok(()),
        _ => Err("a configuration has a value that is refused".to_string()),
    }
}

/// What [`get`] returned last: the server copies it at once, but leaves it to us to free.
static SHOWN: AtomicPtr<raw::RedisModuleString> = AtomicPtr::new(null_mut());

/// # Safety
/// The server calls it, with the setting that was registered.
unsafe extern "C" fn get<S: Setting>(_name: *const c_char, setting: *mut c_void) -> *mut raw::RedisModuleString {
    // SAFETY: the pointer that `register` gave, to a static.
    let text = unsafe { &*setting.cast_const().cast::<S>() }.get();
    let shown = new_string(&text);
    let before = SHOWN.swap(shown, Relaxed);
    if !before.is_null() {
        // SAFETY: made by `new_string`; it was in SHOWN, so nobody else frees it, and the server has done with it.
        unsafe { api!(RedisModule_FreeString)(null_mut(), before) };
    }
    shown
}

/// # Safety
/// The server calls it, with the setting that was registered, a string and a place for an error, which it frees.
unsafe extern "C" fn set<S: Setting>(
    _name: *const c_char,
    value: *mut raw::RedisModuleString,
    setting: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: the pointer that `register` gave, to a static; the string is valid during the call.
    let (setting, text) = unsafe { (&*setting.cast_const().cast::<S>(), Str::new(value).bytes()) };
    match setting.set(text) {
        Ok(()) => OK,
        Err(reason) => {
            // SAFETY: the server's place for it.
            unsafe { *error = new_string(&reason) };
            ERR
        }
    }
}

/// A string of the server's that belongs to no call.
fn new_string(text: &str) -> *mut raw::RedisModuleString {
    // SAFETY: the server copies the text, and takes a null context for this.
    unsafe { api!(RedisModule_CreateString)(null_mut(), text.as_ptr().cast(), text.len()) }
}
