//! Bloomgate: Bloom filters as a native data type for Redis and Valkey.
//!
//! ```text
//! argv ─ parse ─ open key ─ Whole ─ reply ─ tell (replicate, notify)
//!                             │
//!          Whole  = a Chain, or a filter that came from RedisBloom, in its layout (`bloom::flat`)
//!          Chain  = layers, oldest … newest; only the newest takes new items
//!          Layer  = capacity, rate → k bits, s lines an item, L lines in all; items; Store
//!          Store  = chunks of 4096 bytes, made when first written; the last may be shorter
//!          Chunk  = 64 lines; Line = 64 bytes = 512 bits = one cache line
//! ```
//!
//! | room | what is in it |
//! |---|---|
//! | [`commands`] | one file a command, named after it: `bf_add.rs` |
//! | [`keytype`] | the data types, our own and RedisBloom's: RDB, AOF, copy, memory, digest, defragmentation |
//! | [`host`] | what the server offers, and its calls |
//! | [`metrics`] | what INFO shows |
//! | [`config`] | defaults and limits: load arguments and module configurations |
//! | [`codec`] | bytes ↔ filters |
//! | [`bloom`] | the filter itself, which knows no Redis |
//!
//! Imports point down this table only; `make lint` checks it.

// What meets bytes from outside must not panic, nor lose a part of a number. Where it is right all the same, the place says
// why. (Tests may.)
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss
    )
)]

use std::ffi::c_int;

use commands::bf_add::Add;
use commands::bf_card::Card;
use commands::bf_count::CountOf;
use commands::bf_debug::Debug;
use commands::bf_del::Del;
use commands::bf_exists::Exists;
use commands::bf_info::Info;
use commands::bf_insert::Insert;
use commands::bf_loadchunk::LoadChunk;
use commands::bf_madd::MAdd;
use commands::bf_mdel::MDel;
use commands::bf_mexists::MExists;
use commands::bf_reserve::Reserve;
use commands::bf_scandump::ScanDump;
use commands::bf_stats::StatsOf;
use host::load::{Row, load, register, row};
use host::{Ctx, Str, raw};

#[cfg_attr(
    not(test),
    expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "the core reckons with numbers that `check` has found within their ranges, in tables of fixed sizes"
    )
)]
pub mod bloom;
pub mod codec;
pub mod commands;
pub mod config;
pub mod host;
pub mod keytype;
pub mod metrics;

#[global_allocator]
static ALLOCATOR: host::alloc::HostAlloc = host::alloc::HostAlloc;

/// The release, as MODULE LIST shows it: major · 10000 + minor · 100 + patch.
const MODULE_VERSION: c_int = 100;

/// Every command. The name is in its file.
const COMMANDS: &[Row] = &[
    row::<Reserve>(),
    row::<Add>(),
    row::<MAdd>(),
    row::<Insert>(),
    row::<Exists>(),
    row::<MExists>(),
    row::<Del>(),
    row::<MDel>(),
    row::<CountOf>(),
    row::<Info>(),
    row::<Card>(),
    row::<StatsOf>(),
    row::<Debug>(),
    row::<ScanDump>(),
    row::<LoadChunk>(),
];

fn setup(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), String> {
    keytype::create(ctx)?;
    register(ctx, Some(c"bloom"), COMMANDS)?;
    host::info::register(ctx, &metrics::FIELDS);
    config::load(ctx, args)
}

/// The module's entry. Its name is `bf`, which clients look for.
///
/// # Safety
/// Called by the server.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: what the server gave.
    unsafe { load(ctx, argv, argc, c"bf", MODULE_VERSION, setup) }
}
