//! What happens when the server loads the module: from rows of data to commands.

use std::ffi::{CStr, c_int};
use std::fmt;
use std::io;
use std::ptr::{null, null_mut};

use super::log::{Level, log, log_anywhere, panics_to_log};
use super::server::Server;
use super::{Ctx, ERR, OK, Str, api, raw};

/// A command: what the server is told about it, and what it does.
pub trait Command {
    /// Its text is the whole error reply, its code first.
    type Error: fmt::Display;

    /// Its row.
    const INFO: Info;

    /// Answers one call. `args` are those after the command's name; their number fits [`Info::arity`].
    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Self::Error>;
}

/// What a command does with the one key it takes, its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Tells about the value, without giving away what is in it.
    Look,
    /// Reads what is in the value.
    Read,
    /// Adds to the value, or makes it: refused by the server where memory is short.
    Insert,
    /// Takes from the value.
    Delete,
}

impl Access {
    /// As flags of the command.
    fn flags(self) -> &'static str {
        match self {
            Self::Look | Self::Read => "readonly",
            Self::Insert => "write deny-oom",
            Self::Delete => "write",
        }
    }

    /// As a category of the ACL.
    fn category(self) -> &'static str {
        match self {
            Self::Look | Self::Read => "read",
            Self::Insert | Self::Delete => "write",
        }
    }

    /// As flags of the key's specification.
    fn key_flags(self) -> u64 {
        u64::from(match self {
            Self::Look => raw::REDISMODULE_CMD_KEY_RO,
            Self::Read => raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
            Self::Insert => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_INSERT,
            Self::Delete => raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_DELETE,
        })
    }
}

/// What COMMAND INFO and COMMAND DOCS tell about a command.
pub struct Info {
    /// `bf.add`, in lower case as the names of the server's own commands: COMMAND, INFO commandstats and errors show it.
    pub name: &'static CStr,
    /// How many words a call has, the name included; −n means n or more.
    pub arity: c_int,
    /// What it does with its key.
    pub access: Access,
    /// It takes constant or logarithmic time in the size of the value.
    pub fast: bool,
    /// One sentence, without a full stop.
    pub summary: &'static CStr,
    /// `O(k), where k is …`.
    pub complexity: &'static CStr,
    /// The release of ours that had it first.
    pub since: &'static CStr,
    /// All its arguments, the key included.
    pub args: &'static [Arg],
}

/// An argument, for COMMAND DOCS.
pub struct Arg {
    /// Its name in the syntax.
    pub name: &'static CStr,
    /// What it is.
    pub kind: Kind,
    /// The word before it, or the word that it is.
    pub token: Option<&'static CStr>,
    /// It may be left out.
    pub optional: bool,
    /// It may be repeated.
    pub multiple: bool,
    /// What it is one of, if it is a [`Kind::OneOf`]; these have none themselves.
    pub choices: &'static [Arg],
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The key.
    Key,
    /// Any bytes.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Double,
    /// Nothing but its token.
    Token,
    /// One of [`Arg::choices`].
    OneOf,
}

impl Arg {
    /// One that is always there, once.
    pub const fn one(name: &'static CStr, kind: Kind) -> Self {
        Self { name, kind, token: None, optional: false, multiple: false, choices: &[] }
    }

    /// One that is there once or more.
    pub const fn many(name: &'static CStr, kind: Kind) -> Self {
        Self { multiple: true, ..Self::one(name, kind) }
    }

    /// An option: a word, followed by a value unless it is a [`Kind::Token`].
    pub const fn option(name: &'static CStr, kind: Kind, token: &'static CStr) -> Self {
        Self { token: Some(token), optional: true, ..Self::one(name, kind) }
    }

    /// A word that is always there.
    pub const fn word(name: &'static CStr, token: &'static CStr) -> Self {
        Self { token: Some(token), ..Self::one(name, Kind::Token) }
    }

    /// One of several, or none of them.
    pub const fn one_of(name: &'static CStr, choices: &'static [Arg]) -> Self {
        Self { optional: true, choices, ..Self::one(name, Kind::OneOf) }
    }
}

/// A command as the server is to be told of it: see [`row`].
pub struct Row {
    info: &'static Info,
    handler: unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut *mut raw::RedisModuleString, c_int) -> c_int,
}

/// The row of `C`, for the table of commands.
pub const fn row<C: Command>() -> Row {
    Row { info: &C::INFO, handler: call::<C> }
}

/// What the server calls. The one place where the number of arguments is checked: 6.2 leaves it to the module, and
/// nothing keeps a later server from it.
///
/// # Safety
/// The server calls it, with a valid context and `argc` valid strings that live until it returns.
unsafe extern "C" fn call<C: Command>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: the server's promises, as above.
    let (ctx, words) = unsafe { (Ctx::new(ctx), Str::slice(argv, argc)) };
    let arity = C::INFO.arity;
    let fits = if arity < 0 { argc >= -arity } else { argc == arity };
    match words {
        [_name, args @ ..] if fits => {
            if let Err(error) = C::run(ctx, args) {
                ctx.reply_error(error);
            }
        }
        _ => ctx.reply_wrong_arity(),
    }
    OK
}

/// Loads the module `name`: takes the server's functions, then has `setup` make of the load arguments what the module
/// is. Returns what OnLoad is to return. Whatever fails is said in the log.
///
/// # Safety
/// Called by OnLoad with what the server gave it, before anything else.
pub unsafe fn load(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
    name: &'static CStr,
    version: c_int,
    setup: fn(Ctx<'_>, &[Str<'_>]) -> Result<(), String>,
) -> c_int {
    // SAFETY: the context is OnLoad's. Nothing of ours was allocated before: the allocator finds the server's
    // functions.
    let status =
        unsafe { raw::Export_RedisModule_Init(ctx, name.as_ptr(), version, raw::REDISMODULE_APIVER_1.cast_signed()) };
    if status != OK {
        // The one reason it has. The context knows no module yet.
        log_anywhere(Level::Warning, format_args!("cannot load: a module named {name:?} is loaded already"));
        return ERR;
    }
    panics_to_log();
    // SAFETY: the server's promises to OnLoad.
    let (ctx, args) = unsafe { (Ctx::new(ctx), Str::slice(argv, argc)) };
    set_options(ctx, Server::find(ctx));
    match setup(ctx, args) {
        Ok(()) => OK,
        Err(reason) => {
            log(ctx, Level::Warning, format_args!("cannot load: {reason}"));
            ERR
        }
    }
}

/// Valkey's option by which a module says that it copes with slots that move while it runs. Without it `CLUSTER
/// MIGRATESLOTS` is refused.
const VALKEY_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;

/// Tells the server what we take care of.
fn set_options(ctx: Ctx<'_>, server: Server) {
    // Errors while a value is read are ours to handle; and only a real change wakes up those who watch a key.
    let mut options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED;
    if server.has_async_load() {
        options |= raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD;
    }
    if server.valkey {
        options |= VALKEY_ATOMIC_SLOT_MIGRATION;
    }
    // SAFETY: the context is valid.
    unsafe { api!(RedisModule_SetModuleOptions)(ctx.as_ptr(), options.cast_signed()) }
}

/// Registers commands, in the ACL category `category` too where the server lets a module have one. Errors: the text for
/// the log.
pub fn register(ctx: Ctx<'_>, category: Option<&'static CStr>, rows: &[Row]) -> Result<(), String> {
    let category = category.filter(|category| add_category(ctx, category));
    rows.iter().try_for_each(|row| register_one(ctx, category, row))
}

/// Whether there is an ACL category of this name, of which commands of ours may be part.
fn add_category(ctx: Ctx<'_>, category: &CStr) -> bool {
    // SAFETY: reads of pointers set at load; the context is valid and the name ends in NUL.
    unsafe {
        raw::RedisModule_AddACLCategory.is_some_and(|add| {
            add(ctx.as_ptr(), category.as_ptr()) == OK
                // Another module, or the server, has it already: just as good.
                || io::Error::last_os_error().kind() == io::ErrorKind::ResourceBusy
        })
    }
}

fn register_one(ctx: Ctx<'_>, category: Option<&CStr>, row: &Row) -> Result<(), String> {
    let info = row.info;
    let name = info.name.as_ptr();
    let failed = |what| format!("cannot register {:?}: {what}", info.name);
    let flags = format!("{}{}\0", info.access.flags(), if info.fast { " fast" } else { "" });
    // The key is the first argument of every command: first, last, step.
    // SAFETY: the context is valid, the texts end in NUL, the handler is what the server calls.
    let status = unsafe {
        api!(RedisModule_CreateCommand)(ctx.as_ptr(), name, Some(row.handler), flags.as_ptr().cast(), 1, 1, 1)
    };
    if status != OK {
        return Err(failed("another module owns the command"));
    }
    // SAFETY: reads of pointers set at load. 6.2 has none of the three.
    let (get, set_info, set_categories) = unsafe {
        (raw::RedisModule_GetCommand, raw::RedisModule_SetCommandInfo, raw::RedisModule_SetCommandACLCategories)
    };
    let Some(get) = get else { return Ok(()) };
    // SAFETY: the context is valid, the name ends in NUL.
    let command = unsafe { get(ctx.as_ptr(), name) };
    if let Some(set_info) = set_info
        && !describe(info, |told| {
            // SAFETY: the command is valid; the server copies what it is told.
            unsafe { set_info(command, told) == OK }
        })
    {
        return Err(failed("the server refuses its description"));
    }
    if let Some(set_categories) = set_categories {
        // As with the server's own commands, what is not fast is slow.
        let speed = if info.fast { "fast" } else { "slow" };
        let own = category.map_or(String::new(), |category| format!(" {}", category.to_string_lossy()));
        let categories = format!("{} {speed}{own}\0", info.access.category());
        // SAFETY: the command is valid, the text ends in NUL and is copied.
        if unsafe { set_categories(command, categories.as_ptr().cast()) } != OK {
            return Err(failed("the server refuses its ACL categories"));
        }
    }
    Ok(())
}

/// Calls `tell` with the server's form of `info`, which is valid during that call.
fn describe(info: &Info, tell: impl FnOnce(*const raw::RedisModuleCommandInfo) -> bool) -> bool {
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    // SAFETY: integers, pointers and unions of these, for all of which zero is a value; all zero is also how the lists
    // end.
    let (mut key, key_end, arg_end): (raw::RedisModuleCommandKeySpec, raw::RedisModuleCommandKeySpec, _) =
        unsafe { std::mem::zeroed() };
    // One key, at argument 1, and none after it.
    key.flags = info.access.key_flags();
    key.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    key.bs.index.pos = 1;
    key.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
    key.fk.range = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 { lastkey: 0, keystep: 1, limit: 0 };
    let mut keys = [key, key_end];
    let list =
        |args: &[Arg]| -> Vec<raw::RedisModuleCommandArg> { args.iter().map(describe_arg).chain([arg_end]).collect() };
    let mut args = list(info.args);
    let mut choices: Vec<_> = info.args.iter().map(|arg| list(arg.choices)).collect();
    for (arg, choices) in args.iter_mut().zip(&mut choices).filter(|(_, choices)| choices.len() > 1) {
        arg.subargs = choices.as_mut_ptr();
    }
    tell(&raw::RedisModuleCommandInfo {
        version: &raw const version,
        summary: info.summary.as_ptr(),
        complexity: info.complexity.as_ptr(),
        since: info.since.as_ptr(),
        history: null_mut(),
        tips: null(),
        arity: info.arity,
        key_specs: keys.as_mut_ptr(),
        args: args.as_mut_ptr(),
    })
}

/// The server's form of `arg`, without its choices.
fn describe_arg(arg: &Arg) -> raw::RedisModuleCommandArg {
    let mut flags = raw::REDISMODULE_CMD_ARG_NONE;
    if arg.optional {
        flags |= raw::REDISMODULE_CMD_ARG_OPTIONAL;
    }
    if arg.multiple {
        flags |= raw::REDISMODULE_CMD_ARG_MULTIPLE;
    }
    raw::RedisModuleCommandArg {
        name: arg.name.as_ptr(),
        type_: match arg.kind {
            Kind::Key => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
            Kind::String => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
            Kind::Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
            Kind::Double => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE,
            Kind::Token => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
            Kind::OneOf => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF,
        },
        // The first and only key specification, or none.
        key_spec_index: if arg.kind == Kind::Key { 0 } else { -1 },
        token: arg.token.map_or(null(), CStr::as_ptr),
        summary: null(),
        since: null(),
        flags: flags.cast_signed(),
        deprecated_since: null(),
        subargs: null_mut(),
        display_text: null(),
    }
}
