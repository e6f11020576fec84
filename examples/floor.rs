//! What a command costs before it does anything: the floor that the benchmarks measure filters against.
//!
//! A module of its own, `floor`, on the same host layer as Bloomgate: each command opens its key and answers 0 for each
//! item.
//!
//! ```text
//!     cargo build --release --example floor
//!     redis-server --loadmodule target/release/examples/libfloor.so
//! ```

use std::convert::Infallible;
use std::ffi::c_int;

// As a file, not through the library: that one has an OnLoad of its own, and a shared object can export one only.
#[path = "../src/host/mod.rs"]
#[allow(dead_code, reason = "the floor needs a part of it")]
mod host;

use host::load::{Access, Arg, Command, Info, Kind, load, register, row};
use host::{Ctx, Str, key, raw};

#[global_allocator]
static ALLOCATOR: host::alloc::HostAlloc = host::alloc::HostAlloc;

/// The arguments of all four.
const ARGS: &[Arg] = &[Arg::one(c"key", Kind::Key), Arg::many(c"item", Kind::String)];

/// Reads each item and answers 0 for it, in an array if there may be several.
fn answer(ctx: Ctx<'_>, items: &[Str<'_>], array: bool) {
    if array {
        ctx.reply_array(items.len());
    }
    for item in items {
        std::hint::black_box(item.bytes());
        ctx.reply_integer(0);
    }
}

/// A command of the floor: its name, its arity, what it does with its key, how it opens it, whether it answers with an
/// array.
macro_rules! floor_command {
    ($type:ident, $name:literal, $arity:literal, $access:expr, $key:ty, $array:literal) => {
        struct $type;

        impl Command for $type {
            type Error = Infallible;

            const INFO: Info = Info {
                name: $name,
                arity: $arity,
                access: $access,
                fast: true,
                summary: c"Opens the key and answers 0 for each item",
                complexity: c"O(n), where n is the number of items",
                since: c"0.1.0",
                args: ARGS,
            };

            fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Infallible> {
                if let [name, items @ ..] = args {
                    // SAFETY: the only key that is opened.
                    let _key = unsafe { <$key>::open(ctx, *name) };
                    answer(ctx, items, $array);
                }
                Ok(())
            }
        }
    };
}

floor_command!(Exists, c"FLOOR.EXISTS", 3, Access::Read, key::Key, false);
floor_command!(MExists, c"FLOOR.MEXISTS", -3, Access::Read, key::Key, true);
floor_command!(Add, c"FLOOR.ADD", 3, Access::Insert, key::KeyMut, false);
floor_command!(MAdd, c"FLOOR.MADD", -3, Access::Insert, key::KeyMut, true);

fn setup(ctx: Ctx<'_>, _args: &[Str<'_>]) -> Result<(), String> {
    register(ctx, None, &[row::<Exists>(), row::<MExists>(), row::<Add>(), row::<MAdd>()])
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
    unsafe { load(ctx, argv, argc, c"floor", 1, setup) }
}
