//! What can be configured: names, defaults, ranges.
//!
//! | load argument      | Redis 8.0 and later | Redis 7.0–7.4, Valkey | default | range            |
//! |--------------------|---------------------|-----------------------|---------|------------------|
//! | `ERROR_RATE`       | bf-error-rate       | bf.error-rate         | 0.01    | 1e-12 to below 1 |
//! | `INITIAL_SIZE`     | bf-initial-size     | bf.initial-size       | 100     | 1 to 2³⁰         |
//! | `EXPANSION`        | bf-expansion-factor | bf.expansion-factor   | 2       | 0 to 32768       |
//! | `HASH`             | bf-hash             | bf.hash               | murmur3 | murmur3, siphash |
//! | `FILTER_MAX_BYTES` | bf-filter-max-bytes | bf.filter-max-bytes   | 0       | 0 to 2⁶⁴ − 1     |
//!
//! The first four are what a filter gets that a command makes without saying otherwise; the last is how many bytes of
//! lines a filter may have at its full size, 0 for no limit but the server's memory. A load argument beats the default; the
//! server's configuration, from its file or by CONFIG SET, beats the load argument. Redis 6.2 has load arguments alone.

use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::bloom::hash::Choice;
use crate::commands::args;
use crate::commands::errors::ArgError;
use crate::host::log::{Level, log};
use crate::host::{Ctx, Str, config};

/// What is configured: what a filter gets that is made without saying otherwise, and how large it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values {
    /// The error rate: from 1e-12 to below 1.
    pub error_rate: f64,
    /// The capacity of the first layer: from 1 to 2³⁰.
    pub capacity: u64,
    /// How many times as large each layer is as the one before; 0 for a filter that does not grow. At most 32768.
    pub expansion: u32,
    /// The hash family.
    pub hash: Choice,
    /// How many bytes a filter of a client's may have at its full size; 0 for no limit of this kind.
    pub filter_max_bytes: u64,
}

impl Values {
    /// Where nothing is configured.
    const NEW: Self =
        Self { error_rate: 0.01, capacity: 100, expansion: 2, hash: Choice::Murmur3, filter_max_bytes: 0 };
}

/// The values now. The server configures and runs commands in one thread, so nobody ever waits here.
static VALUES: Mutex<Values> = Mutex::new(Values::NEW);

fn lock() -> MutexGuard<'static, Values> {
    // Each value is good by itself, so a panic elsewhere leaves nothing half done.
    VALUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The values as they are configured now. To be read once a command.
pub fn values() -> Values {
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
    set: fn(&mut Values, &[u8]) -> Option<()>,
    /// The value as text.
    get: fn(&Values) -> String,
}

static SETTINGS: [Setting; 5] = [
    Setting {
        argument: "ERROR_RATE",
        name: c"bf-error-rate",
        name_after_dot: c"error-rate",
        allowed: ArgError::ErrorRate.allowed(),
        set: |values, text| {
            values.error_rate = args::error_rate(text).ok()?;
            Some(())
        },
        get: |values| values.error_rate.to_string(),
    },
    Setting {
        argument: "INITIAL_SIZE",
        name: c"bf-initial-size",
        name_after_dot: c"initial-size",
        allowed: "a whole number from 1 to 1073741824",
        set: |values, text| {
            values.capacity = args::capacity(text).ok().filter(|&items| items <= MAX_INITIAL_SIZE)?;
            Some(())
        },
        get: |values| values.capacity.to_string(),
    },
    Setting {
        argument: "EXPANSION",
        name: c"bf-expansion-factor",
        name_after_dot: c"expansion-factor",
        allowed: ArgError::Expansion.allowed(),
        set: |values, text| {
            values.expansion = args::expansion(text).ok()?;
            Some(())
        },
        get: |values| values.expansion.to_string(),
    },
    Setting {
        argument: "HASH",
        name: c"bf-hash",
        name_after_dot: c"hash",
        allowed: ArgError::Hash.allowed(),
        set: |values, text| {
            values.hash = args::hash(text).ok()?;
            Some(())
        },
        get: |values| values.hash.name().to_owned(),
    },
    Setting {
        argument: "FILTER_MAX_BYTES",
        name: c"bf-filter-max-bytes",
        name_after_dot: c"filter-max-bytes",
        allowed: "a whole number of bytes from 0, for no limit, to 18446744073709551615",
        set: |values, text| {
            values.filter_max_bytes = args::whole(text)?;
            Some(())
        },
        get: |values| values.filter_max_bytes.to_string(),
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
    let Arguments { values, without_effect } = read_arguments(&words)?;
    for name in without_effect {
        log(ctx, Level::Notice, format_args!("load argument {name} is without effect: it is for another data type"));
    }
    *lock() = values;
    config::register(ctx, &SETTINGS)
}

/// What load arguments say.
#[derive(Debug, PartialEq)]
struct Arguments {
    values: Values,
    without_effect: Vec<String>,
}

/// Reads load arguments: pairs of a name, in any case, and a value; each name at most once.
fn read_arguments(words: &[&[u8]]) -> Result<Arguments, String> {
    let mut read = Arguments { values: Values::NEW, without_effect: Vec::new() };
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
        (setting.set)(&mut read.values, value).ok_or_else(|| {
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
        assert_eq!(read(""), Ok(Arguments { values: Values::NEW, without_effect: vec![] }));
        let Arguments { values, without_effect } =
            read("error_rate 0.001 Initial_Size 1000 EXPANSION 4 HASH SipHash filter_max_bytes 1073741824 cf_max_expansions 16")
                .unwrap();
        let expected = Values {
            error_rate: 0.001,
            capacity: 1000,
            expansion: 4,
            hash: Choice::SipHash,
            filter_max_bytes: 1 << 30,
        };
        assert_eq!(values, expected);
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
            (
                "FILTER_MAX_BYTES 100mb",
                "load argument FILTER_MAX_BYTES '100mb': it must be a whole number of bytes from 0, for no limit, to \
                 18446744073709551615",
            ),
            ("HASH md5", "load argument HASH 'md5': it must be murmur3 or siphash"),
            ("EXPANSION", "load argument EXPANSION has no value"),
            ("EXPANSION 1 expansion 1", "load argument EXPANSION is given twice"),
            ("CF_MAX_EXPANSIONS 1 CF_MAX_EXPANSIONS 1", "load argument CF_MAX_EXPANSIONS is given twice"),
            ("ERROR 0.01", "unknown load argument 'ERROR'"),
        ] {
            assert_eq!(read(text), Err(error.to_string()));
        }
    }

    /// CONFIG REWRITE and the registered values write what CONFIG SET reads.
    #[test]
    fn what_is_shown_can_be_set() {
        let mut values = Values {
            error_rate: 1e-12,
            capacity: MAX_INITIAL_SIZE,
            expansion: crate::bloom::chain::MAX_EXPANSION,
            hash: Choice::SipHash,
            filter_max_bytes: u64::MAX,
        };
        let before = values;
        for setting in &SETTINGS {
            let text = (setting.get)(&before);
            assert_eq!((setting.set)(&mut values, text.as_bytes()), Some(()), "{text}");
        }
        assert_eq!(values, before);
        assert!(SETTINGS[1].allowed.ends_with(&MAX_INITIAL_SIZE.to_string()));
    }
}
