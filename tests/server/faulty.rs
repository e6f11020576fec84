//! A module with a fault, for the test of what the log says of one: FAULTY.PANIC panics. It stands on the same host layer
//! as Bloomgate, which has no command that does.

use std::convert::Infallible;
use std::ffi::c_int;

// As a file: the library has an OnLoad of its own.
#[path = "../../src/host/mod.rs"]
#[allow(dead_code, reason = "a part of it is needed")]
mod host;

use host::load::{Access, Arg, Command, Info, Kind, load, register, row};
use host::{Ctx, Str, raw};

#[global_allocator]
static ALLOCATOR: host::alloc::HostAlloc = host::alloc::HostAlloc;

struct Panic;

impl Command for Panic {
    type Error = Infallible;

    const INFO: Info = Info {
        name: c"faulty.panic",
        arity: 2,
        access: Access::Read,
        fast: true,
        summary: c"Panics as if by a fault of the code's",
        complexity: c"O(1)",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key)],
    };

    fn run(_ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Infallible> {
        let found: Option<&Str<'_>> = args.get(7);
        // What no code of the module's does.
        found.expect("the eighth argument of two");
        Ok(())
    }
}

fn setup(ctx: Ctx<'_>, _args: &[Str<'_>]) -> Result<(), String> {
    register(ctx, None, &[row::<Panic>()])
}

/// # Safety
/// Called by the server.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: what the server gave.
    unsafe { load(ctx, argv, argc, c"faulty", 1, setup) }
}
