//! Which server this is, found once when the module is loaded.
//!
//! Most differences need no question here: a function that a server lacks is a null pointer. What is left are those
//! that no pointer tells.

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use super::{Ctx, api, raw};

/// The server that loaded the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Valkey, rather than Redis or something that calls itself so.
    pub valkey: bool,
    /// Major, minor, patch: Valkey's own if it is one (it tells older clients that it is Redis 7.2.4), Redis's
    /// otherwise.
    pub version: (u32, u32, u32),
}

static SERVER: OnceLock<Server> = OnceLock::new();

impl Server {
    /// Asks the server what it is, unless that is known; `ctx` is OnLoad's.
    pub fn find(ctx: Ctx<'_>) -> Self {
        *SERVER.get_or_init(|| {
            let info = Info::read(ctx, c"server");
            let valkey = info.text(c"server_name") == Some(c"valkey");
            let version = info.text(if valkey { c"valkey_version" } else { c"redis_version" });
            Self { valkey, version: version.map_or((0, 0, 0), parse_version) }
        })
    }

    /// Module configurations may have names without the module's as a prefix.
    pub fn has_unprefixed_configs(self) -> bool {
        !self.valkey && self.version >= (8, 0, 0)
    }

    /// It knows the option by which a module says that its values may be replaced while a replica still answers reads.
    pub fn has_async_load(self) -> bool {
        self.valkey || self.version >= (7, 0, 0)
    }
}

/// `7.0.15` as numbers; what is not a number (`9.1.0-rc1`, `255.255.255`) counts as far as its digits go.
fn parse_version(text: &CStr) -> (u32, u32, u32) {
    let mut parts = text.to_bytes().split(|&b| b == b'.').map(|part| {
        let digits = part.iter().take_while(|b| b.is_ascii_digit());
        digits.fold(0u32, |number, digit| number.saturating_mul(10).saturating_add(u32::from(digit - b'0')))
    });
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

/// One section of the server's INFO, read without a client; freed when dropped.
pub struct Info<'a> {
    ctx: Ctx<'a>,
    data: *mut raw::RedisModuleServerInfoData,
}

impl<'a> Info<'a> {
    /// Reads `section`.
    pub fn read(ctx: Ctx<'a>, section: &CStr) -> Self {
        // SAFETY: `ctx` is valid, the name ends in NUL; the result is freed once, by `drop`.
        let data = unsafe { api!(RedisModule_GetServerInfo)(ctx.as_ptr(), section.as_ptr()) };
        Self { ctx, data }
    }

    /// The value of `field` as text, if there is such a field.
    pub fn text(&self, field: &CStr) -> Option<&CStr> {
        // SAFETY: the data are valid; the server's text ends in NUL and lives as long as the data.
        unsafe {
            let text = api!(RedisModule_ServerInfoGetFieldC)(self.data, field.as_ptr());
            (!text.is_null()).then(|| CStr::from_ptr(text))
        }
    }

    /// The value of `field` as a number, if there is such a field and it is one.
    pub fn number(&self, field: &CStr) -> Option<u64> {
        let mut error: c_int = 0;
        // SAFETY: the data are valid, the name ends in NUL, `error` can be written.
        let number = unsafe { api!(RedisModule_ServerInfoGetFieldUnsigned)(self.data, field.as_ptr(), &raw mut error) };
        (error == 0).then_some(number)
    }
}

impl Drop for Info<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `read` in the same context, freed once.
        unsafe { api!(RedisModule_FreeServerInfo)(self.ctx.as_ptr(), self.data) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(parse_version(c"7.0.15"), (7, 0, 15));
        assert_eq!(parse_version(c"9.1.0-rc1"), (9, 1, 0));
        assert_eq!(parse_version(c"8"), (8, 0, 0));
        assert_eq!(parse_version(c""), (0, 0, 0));
    }
}
