//! An open key and the value of our type in it.

use std::ffi::{CStr, c_int, c_longlong, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use super::{Ctx, OK, Str, api, raw};

/// A data type of ours, whose values the server holds as pointers to `T`. To be kept in a static.
pub struct DataType<T> {
    name: &'static CStr,
    /// Null until it is created.
    handle: AtomicPtr<raw::RedisModuleType>,
    values: PhantomData<fn() -> T>,
}

impl<T> DataType<T> {
    /// A type that is still to be created; its name has nine characters of `A-Za-z0-9-_`.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, handle: AtomicPtr::new(null_mut()), values: PhantomData }
    }

    /// Creates the type in the server. `encoding` (0 to 1023) is the number of the saved format. Errors: the text for
    /// the log.
    ///
    /// # Safety
    /// `ctx` is OnLoad's. Every value that the callbacks hand to the server is a pointer from `Box::<T>::into_raw`, and
    /// they take what the server hands them for that.
    pub unsafe fn create(
        &self,
        ctx: Ctx<'_>,
        encoding: c_int,
        mut methods: raw::RedisModuleTypeMethods,
    ) -> Result<(), String> {
        // SAFETY: the context is valid, the name ends in NUL, the server copies the methods.
        let handle =
            unsafe { api!(RedisModule_CreateDataType)(ctx.as_ptr(), self.name.as_ptr(), encoding, &raw mut methods) };
        if handle.is_null() {
            return Err(format!("cannot create the data type {:?}: another module owns the name", self.name));
        }
        self.handle.store(handle, Relaxed);
        Ok(())
    }

    fn handle(&self) -> *mut raw::RedisModuleType {
        self.handle.load(Relaxed)
    }
}

/// The key holds a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The words of every other command for this.
        f.write_str("WRONGTYPE Operation against a key holding the wrong kind of value")
    }
}

impl std::error::Error for WrongType {}

/// A key opened for reading; closed when dropped.
pub struct Key<'a> {
    /// Null if there is no such key.
    key: *mut raw::RedisModuleKey,
    call: PhantomData<Ctx<'a>>,
}

impl<'a> Key<'a> {
    /// Opens `name`; an expired key counts as missing, and the key's access time is touched.
    ///
    /// # Safety
    /// While it is open, nothing else opens the same key for writing, and the key is not deleted.
    #[inline]
    pub unsafe fn open(ctx: Ctx<'a>, name: Str<'_>) -> Self {
        // SAFETY: context and name are valid.
        unsafe { Self::open_with(ctx, name, raw::REDISMODULE_READ) }
    }

    /// # Safety
    /// As [`Key::open`], or [`KeyMut::open`] if `mode` has the bit for writing.
    unsafe fn open_with(ctx: Ctx<'a>, name: Str<'_>, mode: u32) -> Self {
        // SAFETY: context and name are valid.
        let key = unsafe { api!(RedisModule_OpenKey)(ctx.as_ptr(), name.as_ptr(), mode.cast_signed()) };
        Self { key, call: PhantomData }
    }

    /// The value, which is of one of these types, or none if the key is missing.
    #[inline]
    pub fn get<T, const N: usize>(&self, of: &[&DataType<T>; N]) -> Result<Option<&T>, WrongType> {
        let value = self.pointer(of)?;
        // SAFETY: a value of this type is a pointer to a T (`DataType::create`), alive and not written to while the key
        // is open.
        Ok(unsafe { value.as_ref() })
    }

    /// The value's pointer; null if the key is missing.
    #[inline]
    fn pointer<T, const N: usize>(&self, of: &[&DataType<T>; N]) -> Result<*mut T, WrongType> {
        // SAFETY: the key is open or null. The server takes null for a missing key, and knows no type of ours for any
        // value but a module's.
        unsafe {
            // The common case first: each of these is a call into the server.
            let found = api!(RedisModule_ModuleTypeGetType)(self.key);
            if of.iter().any(|own| found == own.handle()) {
                return Ok(api!(RedisModule_ModuleTypeGetValue)(self.key).cast());
            }
            match api!(RedisModule_KeyType)(self.key) as isize {
                raw::REDISMODULE_KEYTYPE_EMPTY => Ok(null_mut()),
                _ => Err(WrongType),
            }
        }
    }
}

impl Drop for Key<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed once; the server ignores null.
        unsafe { api!(RedisModule_CloseKey)(self.key) }
    }
}

/// A key opened for writing; closed when dropped.
pub struct KeyMut<'a>(Key<'a>);

impl<'a> KeyMut<'a> {
    /// Opens `name`, which need not exist.
    ///
    /// # Safety
    /// While it is open, nothing else opens the same key, nor deletes it.
    #[inline]
    pub unsafe fn open(ctx: Ctx<'a>, name: Str<'_>) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { Key::open_with(ctx, name, raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) })
    }

    /// The value, which is of one of these types, or none if the key is missing.
    #[inline]
    pub fn get_mut<T, const N: usize>(&mut self, of: &[&DataType<T>; N]) -> Result<Option<&mut T>, WrongType> {
        let value = self.0.pointer(of)?;
        // SAFETY: as in `Key::get`; and nothing else has the key open, so the value is borrowed through `self` alone.
        Ok(unsafe { value.as_mut() })
    }

    /// Makes `value` the key's, in place of what it held.
    pub fn set<T>(&mut self, of: &DataType<T>, value: Box<T>) -> &mut T {
        let value = Box::into_raw(value);
        // SAFETY: the key is open for writing, and the value one of the type; the server owns it from now on, and it
        // stays where it is.
        unsafe {
            let status = api!(RedisModule_ModuleTypeSetValue)(self.0.key, of.handle(), value.cast::<c_void>());
            assert_eq!(status, OK, "a key open for writing takes a value");
            &mut *value
        }
    }

    /// As [`KeyMut::set`], and the key keeps its expiry, which the server would drop.
    pub fn set_and_keep_expiry<T>(&mut self, of: &DataType<T>, value: Box<T>) {
        // SAFETY: the key is open.
        let left = unsafe { api!(RedisModule_GetExpire)(self.0.key) };
        self.set(of, value);
        if left != c_longlong::from(raw::REDISMODULE_NO_EXPIRE) {
            // SAFETY: the key is open for writing and has a value.
            unsafe { api!(RedisModule_SetExpire)(self.0.key, left) };
        }
    }

    /// Deletes the key.
    pub fn delete(&mut self) {
        // SAFETY: the key is open for writing, and `self` is borrowed by no value.
        unsafe { api!(RedisModule_DeleteKey)(self.0.key) };
    }
}
