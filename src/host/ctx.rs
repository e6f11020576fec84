//! One call of a command: its arguments, replies, replication, events.

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong};
use std::fmt;
use std::marker::PhantomData;
use std::slice;

use super::text::Text;
use super::{api, raw};

/// The server's context of a running call; `'a` is the time until the call returns.
///
/// As small as a pointer, to be passed by value. Its methods are the server's functions of the same names, and as these
/// they may be called in the thread that runs the command alone, which the type ensures (it is neither `Send` nor
/// `Sync`).
#[derive(Clone, Copy)]
pub struct Ctx<'a>(*mut raw::RedisModuleCtx, PhantomData<&'a ()>);

/// A string of the server's: an argument. It is alive for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Str<'a>(*mut raw::RedisModuleString, PhantomData<&'a ()>);

impl<'a> Str<'a> {
    /// # Safety
    /// `string` is valid and is neither freed nor changed during `'a`.
    pub unsafe fn new(string: *mut raw::RedisModuleString) -> Self {
        Self(string, PhantomData)
    }

    /// The arguments of a call, without a copy.
    ///
    /// # Safety
    /// `argv` points to `argc` strings that are valid and not changed during `'a`; with no strings it may be null.
    pub unsafe fn slice(argv: *mut *mut raw::RedisModuleString, argc: c_int) -> &'a [Self] {
        match usize::try_from(argc) {
            // SAFETY: `Str` has the layout of the pointer; the rest is the caller's promise.
            Ok(len @ 1..) if !argv.is_null() => unsafe { slice::from_raw_parts(argv.cast(), len) },
            _ => &[],
        }
    }

    /// The string's bytes: any bytes at all, possibly none.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        let mut len = 0;
        // SAFETY: the string is valid and not changed during 'a, so neither are its bytes.
        unsafe {
            let bytes = api!(RedisModule_StringPtrLen)(self.0, &raw mut len);
            slice::from_raw_parts(bytes.cast(), len)
        }
    }

    /// The server's pointer.
    pub fn as_ptr(self) -> *mut raw::RedisModuleString {
        self.0
    }
}

/// What the server says about a call, as its `REDISMODULE_CTX_FLAGS_*` bits.
#[derive(Clone, Copy)]
pub struct Flags(c_int);

impl Flags {
    fn has(self, bit: u32) -> bool {
        self.0.cast_unsigned() & bit != 0
    }

    /// The command came from the primary.
    pub fn replicated(self) -> bool {
        self.has(raw::REDISMODULE_CTX_FLAGS_REPLICATED)
    }

    /// The server is loading an RDB or AOF file.
    pub fn loading(self) -> bool {
        self.has(raw::REDISMODULE_CTX_FLAGS_LOADING)
    }

    /// The client speaks RESP3, and the server lets modules reply in it (not 6.2).
    pub fn resp3(self) -> bool {
        self.has(raw::REDISMODULE_CTX_FLAGS_RESP3)
    }
}

impl<'a> Ctx<'a> {
    /// # Safety
    /// `ctx` is the server's, valid during `'a`, in this thread.
    pub unsafe fn new(ctx: *mut raw::RedisModuleCtx) -> Self {
        Self(ctx, PhantomData)
    }

    /// The server's pointer.
    pub fn as_ptr(self) -> *mut raw::RedisModuleCtx {
        self.0
    }

    /// The call's flags. The server works them all out at each call, so ask where it matters, not for every command.
    pub fn flags(self) -> Flags {
        // SAFETY: the context is valid.
        Flags(unsafe { api!(RedisModule_GetContextFlags)(self.0) })
    }
}

/// Replies. Each command replies once; an array or map of `n` is followed by its elements. The server's functions fail
/// only when there is no client to answer, which is no concern of ours.
impl Ctx<'_> {
    /// An integer.
    #[inline]
    pub fn reply_integer(self, n: i64) {
        // SAFETY: the context is valid.
        unsafe { api!(RedisModule_ReplyWithLongLong)(self.0, n as c_longlong) };
    }

    /// A yes or no: a boolean in RESP3, 1 or 0 in RESP2 and on 6.2, which has no booleans for modules.
    #[inline]
    pub fn reply_bool(self, yes: bool) {
        // SAFETY: the context is valid.
        match unsafe { raw::RedisModule_ReplyWithBool } {
            // SAFETY: as above. The server itself sends 1 or 0 to a client of RESP2.
            Some(reply) => _ = unsafe { reply(self.0, c_int::from(yes)) },
            None => self.reply_integer(i64::from(yes)),
        }
    }

    /// A floating-point number: a double in RESP3, its text in RESP2.
    pub fn reply_double(self, x: f64) {
        // SAFETY: the context is valid.
        unsafe { api!(RedisModule_ReplyWithDouble)(self.0, x) };
    }

    /// Nothing.
    pub fn reply_null(self) {
        // SAFETY: the context is valid.
        unsafe { api!(RedisModule_ReplyWithNull)(self.0) };
    }

    /// A short status such as `OK`.
    pub fn reply_simple(self, status: &'static CStr) {
        // SAFETY: the context is valid, the text ends in NUL.
        unsafe { api!(RedisModule_ReplyWithSimpleString)(self.0, status.as_ptr()) };
    }

    /// A string of any bytes.
    pub fn reply_bytes(self, bytes: &[u8]) {
        // SAFETY: the context is valid; the server copies the bytes.
        unsafe { api!(RedisModule_ReplyWithStringBuffer)(self.0, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// An error. `text` is all of it, its code first (`ERR …`); control characters become spaces, and it is cut at 511
    /// bytes.
    pub fn reply_error(self, text: impl fmt::Display) {
        let text = Text::<512>::new(format_args!("{text}"));
        // SAFETY: the context is valid, the text ends in NUL and has no line breaks; the server copies it.
        unsafe { api!(RedisModule_ReplyWithError)(self.0, text.as_ptr()) };
    }

    /// The server's own words for a wrong number of arguments.
    pub fn reply_wrong_arity(self) {
        // SAFETY: the context is valid, and is that of a command.
        unsafe { api!(RedisModule_WrongArity)(self.0) };
    }

    /// The head of an array of `len` elements.
    #[inline]
    pub fn reply_array(self, len: usize) {
        // SAFETY: the context is valid. No reply of ours has 2⁶³ elements.
        unsafe { api!(RedisModule_ReplyWithArray)(self.0, len.cast_signed() as c_long) };
    }

    /// The head of a map of `len` pairs; in RESP2, and on 6.2, of an array of twice as many elements.
    pub fn reply_map(self, len: usize) {
        // SAFETY: the context is valid.
        match unsafe { raw::RedisModule_ReplyWithMap } {
            // SAFETY: as above. The server itself sends an array to a client of RESP2.
            Some(reply) => _ = unsafe { reply(self.0, len.cast_signed() as c_long) },
            None => self.reply_array(2 * len),
        }
    }
}

/// What others are told: replicas and the AOF, watchers, subscribers.
///
/// Other modules may listen and call commands of ours from there, so no key may be open then.
impl Ctx<'_> {
    /// Sends the call as it is.
    pub fn replicate_verbatim(self) {
        // SAFETY: the context is valid, and is that of a command.
        unsafe { api!(RedisModule_ReplicateVerbatim)(self.0) };
    }

    /// Sends `command` with `args`. The server drops it if there is no such command.
    pub fn replicate(self, command: &'static CStr, args: &[Str<'_>]) {
        // SAFETY: the context is valid. The format's `v` takes a pointer to strings of the server's, which `Str` is,
        // and their number as size_t.
        unsafe { api!(RedisModule_Replicate)(self.0, command.as_ptr(), c"v".as_ptr(), args.as_ptr(), args.len()) };
    }

    /// Sends `command key number data`, likewise.
    pub fn replicate_record(self, command: &'static CStr, key: Str<'_>, number: i64, data: &[u8]) {
        let (bytes, len) = (data.as_ptr().cast::<c_char>(), data.len());
        // SAFETY: the context is valid. The format's `s` takes a string of the server's, `l` a long long, `b` bytes and
        // their number as size_t; the server copies them.
        unsafe {
            let replicate = api!(RedisModule_Replicate);
            replicate(self.0, command.as_ptr(), c"slb".as_ptr(), key.as_ptr(), number as c_longlong, bytes, len);
        }
    }

    /// Tells the server that the value of `key` changed: clients that WATCH or track it are told.
    pub fn signal_modified(self, key: Str<'_>) {
        // SAFETY: context and string are valid.
        unsafe { api!(RedisModule_SignalModifiedKey)(self.0, key.as_ptr()) };
    }

    /// Publishes the keyspace event `event` of the class for modules (`d`) about `key`.
    pub fn notify(self, event: &'static CStr, key: Str<'_>) {
        // SAFETY: context and string are valid, the name ends in NUL.
        unsafe {
            let notify = api!(RedisModule_NotifyKeyspaceEvent);
            notify(self.0, raw::REDISMODULE_NOTIFY_MODULE, event.as_ptr(), key.as_ptr());
        }
    }
}

/// Random bytes from the server's generator, good enough to tell filters apart and to key a hash.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: N bytes may be written.
    unsafe { api!(RedisModule_GetRandomBytes)(bytes.as_mut_ptr(), N) };
    bytes
}
