//! What can be configured: names, defaults, ranges.
//!
//! | load argument  | Redis 8.0 and later | Redis 7.0–7.4, Valkey | default | range            |
//! |----------------|---------------------|-----------------------|---------|------------------|
//! | `ERROR_RATE`   | bf-error-rate       | bf.error-rate         | 0.01    | 1e-12 to below 1 |
//! | `INITIAL_SIZE` | bf-initial-size     | bf.initial-size       | 100     | 1 to 2³⁰         |
//! | `EXPANSION`    | bf-expansion-factor | bf.expansion-factor   | 2       | 0 to 32768       |
//!
//! They are what a filter gets that a command makes without saying otherwise. A load argument beats the default; the
//! server's configuration, from its file or by CONFIG SET, beats the load argument. Redis 6.2 has load arguments alone.

use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::commands::args;
use crate::commands::errors::ArgError;
use crate::host::log::{Level, log};
use crate::host::{Ctx, Str, config};

/// What a filter gets that is made without saying otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defaults {
    /// The error rate: from 1e-12 to below 1.
    pub error_rate: f64,
    /// The capacity of the first layer: from 1 to 2³⁰.
    pub capacity: u64,
    /// How many times as large each layer is as the one before; 0 for a filter that does not grow. At most 32768.
    pub expansion: u32,
}

impl Defaults {
    /// Where nothing is configured.
    const NEW: Self = Self { error_rate: 0.01, capacity: 100, expansion: 2 };
}

/// The values now. The server configures and runs commands in one thread, so nobody ever waits here.
static DEFAULTS: Mutex<Defaults> = Mutex::new(Defaults::NEW);

fn lock() -> MutexGuard<'static, Defaults> {
    // Each value is good by itself, so a panic elsewhere leaves nothing half done.
    DEFAULTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The defaults as they are configured now. To be read once a command.
pub fn defaults() -> Defaults {
    *lock()
}

/// The largest initial size that can be configured: filters of this size appear by themselves, and their memory with
/// them.
const MAX_INITIAL_SIZE: u64 = 1 << 30;

/// One setting: a row of the table above.
struct Setting {
    argument: &'static str,
    name: &'static CStr,
    name_after_dot: &'static CStr,
    /// What its value has to be.
    allowed: &'static str,
    /// Takes the value from text; none, and no change, if it is not allowed.
    set: fn(&mut Defaults, &[u8]) -> Option<()>,
    /// The value as text.
    get: fn(&Defaults) -> String,
}

static SETTINGS: [Setting; 3] = [
    Setting {
        argument: "ERROR_RATE",
        name: c"bf-error-rate",
        name_after_dot: c"error-rate",
        allowed: ArgError::ErrorRate.allowed(),
        set: |defaults, text| {
            defaults.error_rate = args::error_rate(text).ok()?;
            Some(())
        },
        get: |defaults| defaults.error_rate.to_string(),
    },
    Setting {
        argument: "INITIAL_SIZE",
        name: c"bf-initial-size",
        name_after_dot: c"initial-size",
        allowed: "a whole number from 1 to 1073741824",
        set: |defaults, text| {
            defaults.capacity = args::capacity(text).ok().filter(|&items| items <= MAX_INITIAL_SIZE)?;
            Some(())
        },
        get: |defaults| defaults.capacity.to_string(),
    },
    Setting {
        argument: "EXPANSION",
        name: c"bf-expansion-factor",
        name_after_dot: c"expansion-factor",
        allowed: ArgError::Expansion.allowed(),
        set: |defaults, text| {
            defaults.expansion = args::expansion(text).ok()?;
            Some(())
        },
        get: |defaults| defaults.expansion.to_string(),
    },
];

/// Load arguments that RedisBloom has for its other types: accepted, so that a configuration written for it loads this
/// module.
const WITHOUT_EFFECT: [&str; 5] =
    ["CF_BUCKET_SIZE", "CF_EXPANSION_FACTOR", "CF_INITIAL_SIZE", "CF_MAX_EXPANSIONS", "CF_MAX_ITERATIONS"];

impl config::Setting for Setting {
    fn name(&self) -> &'static CStr {
        self.name
    }

    fn name_after_dot(&self) -> &'static CStr {
        self.name_after_dot
    }

    fn get(&self) -> String {
        (self.get)(&lock())
    }

    fn set(&self, text: &[u8]) -> Result<(), String> {
        (self.set)(&mut lock(), text).ok_or_else(|| format!("it must be {}", self.allowed))
    }
}

/// Configures the module when it is loaded: the load arguments `words`, then the server's configuration. Errors: the
/// text for the log.
pub fn load(ctx: Ctx<'_>, words: &[Str<'_>]) -> Result<(), String> {
    let words: Vec<_> = words.iter().map(|word| word.bytes()).collect();
    let Arguments { defaults, without_effect } = read_arguments(&words)?;
    for name in without_effect {
        log(ctx, Level::Notice, format_args!("load argument {name} is without effect: it is for another data type"));
    }
    *lock() = defaults;
    config::register(ctx, &SETTINGS)
}

/// What load arguments say.
#[derive(Debug, PartialEq)]
struct Arguments {
    defaults: Defaults,
    without_effect: Vec<String>,
}

/// Reads load arguments: pairs of a name, in any case, and a value; each name at most once.
fn read_arguments(words: &[&[u8]]) -> Result<Arguments, String> {
    let mut read = Arguments { defaults: Defaults::NEW, without_effect: Vec::new() };
    let mut seen = Vec::new();
    for pair in words.chunks(2) {
        let [name, value @ ..] = pair else { continue };
        let name = String::from_utf8_lossy(&name.to_ascii_uppercase()).into_owned();
        let setting = SETTINGS.iter().find(|setting| setting.argument == name);
        if setting.is_none() && !WITHOUT_EFFECT.contains(&name.as_str()) {
            return Err(format!("unknown load argument '{name}'"));
        }
        let [value] = value else { return Err(format!("load argument {name} has no value")) };
        if seen.contains(&name) {
            return Err(format!("load argument {name} is given twice"));
        }
        seen.push(name.clone());
        let Some(setting) = setting else {
            read.without_effect.push(name);
            continue;
        };
        (setting.set)(&mut read.defaults, value).ok_or_else(|| {
            format!("load argument {name} '{}': it must be {}", String::from_utf8_lossy(value), setting.allowed)
        })?;
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Arguments, String> {
        read_arguments(&text.split(' ').filter(|word| !word.is_empty()).map(str::as_bytes).collect::<Vec<_>>())
    }

    #[test]
    fn load_arguments_are_whole_words_in_any_case() {
        assert_eq!(read(""), Ok(Arguments { defaults: Defaults::NEW, without_effect: vec![] }));
        let Arguments { defaults, without_effect } =
            read("error_rate 0.001 Initial_Size 1000 EXPANSION 4 cf_max_expansions 16").unwrap();
        assert_eq!(defaults, Defaults { error_rate: 0.001, capacity: 1000, expansion: 4 });
        assert_eq!(without_effect, ["CF_MAX_EXPANSIONS"]);
    }

    #[test]
    fn bad_load_arguments_are_named() {
        for (text, error) in [
            ("ERROR_RATE 5%", "load argument ERROR_RATE '5%': it must be a number from 1e-12 to below 1"),
            (
                "INITIAL_SIZE 1073741825",
                "load argument INITIAL_SIZE '1073741825': it must be a whole number from 1 to 1073741824",
            ),
            ("expansion 32769", "load argument EXPANSION '32769': it must be a whole number from 0 to 32768"),
            ("EXPANSION", "load argument EXPANSION has no value"),
            ("EXPANSION 1 expansion 1", "load argument EXPANSION is given twice"),
            ("CF_MAX_EXPANSIONS 1 CF_MAX_EXPANSIONS 1", "load argument CF_MAX_EXPANSIONS is given twice"),
            ("ERROR 0.01", "unknown load argument 'ERROR'"),
        ] {
            assert_eq!(read(text), Err(error.to_string()));
        }
    }

    /// CONFIG REWRITE and the registered defaults write what CONFIG SET reads.
    #[test]
    fn what_is_shown_can_be_set() {
        let mut defaults =
            Defaults { error_rate: 1e-12, capacity: MAX_INITIAL_SIZE, expansion: crate::bloom::chain::MAX_EXPANSION };
        let before = defaults;
        for setting in &SETTINGS {
            let text = (setting.get)(&before);
            assert_eq!((setting.set)(&mut defaults, text.as_bytes()), Some(()), "{text}");
        }
        assert_eq!(defaults, before);
        assert!(SETTINGS[1].allowed.ends_with(&MAX_INITIAL_SIZE.to_string()));
    }
}
