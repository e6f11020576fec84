//! `BF.RESERVE key error_rate capacity [EXPANSION n] [NONSCALING] [COUNTING] [HASH murmur3|siphash]`
//!
//! Makes an empty filter. `error_rate`, from 1e-12 to below 1: the false-positive rate after `capacity` adds that were
//! answered 1 (and, in a scaling filter, ever after). `capacity`: from 1 as far as memory goes. EXPANSION: how many
//! times larger each further layer is, 1 to 32768, 2 unless configured; 0 means NONSCALING: one layer, full after
//! `capacity` items. COUNTING: counters of four bits in the place of bits, which take four times the memory, so that items can
//! be deleted (BF.DEL) and counted (BF.COUNT). HASH: murmur3 unless configured; siphash with a secret key of the filter's own, for
//! items that an attacker may choose, costs more time an item (see `docs/operators.md`). Options in any order and case, each once.
//!
//! Reply: OK. Errors: `ERR item exists`; a bad argument, naming its range; a filter that memory could never hold, naming
//! both figures. Nothing is made then.
//!
//! From a primary or an AOF the command comes from RedisBloom alone: it makes a filter in RedisBloom's layout then.
//!
//! Complexity: O(1): chunks are made when they are first written. As RedisBloom's BF.RESERVE, except that unknown words
//! and repeated options are refused.

use super::add_items::{HASH, head_of, is_trusted, make};
use super::args::{self, Options, RESERVE_WORDS};
use super::errors::Error;
use crate::host::key::KeyMut;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};
use crate::keytype::{self, FILTERS};

/// The command.
pub struct Reserve;

impl Command for Reserve {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.reserve",
        arity: -4,
        access: Access::Insert,
        fast: true,
        summary: c"Makes an empty Bloom filter",
        complexity: c"O(1)",
        since: c"0.1.0",
        args: &[
            Arg::one(c"key", Kind::Key),
            Arg::one(c"error_rate", Kind::Double),
            Arg::one(c"capacity", Kind::Integer),
            Arg::option(c"expansion", Kind::Integer, c"EXPANSION"),
            Arg::option(c"nonscaling", Kind::Token, c"NONSCALING"),
            Arg::option(c"counting", Kind::Token, c"COUNTING"),
            HASH,
        ],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name, rate, capacity, options @ ..] = args else { return Ok(()) };
        let words: Vec<_> = options.iter().map(|word| word.bytes()).collect();
        let options = match parse(rate.bytes(), capacity.bytes(), &words) {
            Err(_) if is_trusted(ctx) => args::reserve_of_redisbloom(rate.bytes(), capacity.bytes(), &words)?,
            options => options?,
        };
        let head = head_of(&options);
        // SAFETY: the only key that is open, and nothing deletes it until it is closed below.
        let mut key = unsafe { KeyMut::open(ctx, *name) };
        if key.get_mut(&FILTERS)?.is_some() {
            return Err(Error::Exists);
        }
        let filter = make(ctx, *name, head)?;
        keytype::set(&mut key, filter);
        drop(key);
        ctx.signal_modified(*name);
        ctx.notify(c"bf.reserve", *name);
        ctx.reply_simple(c"OK");
        Ok(())
    }
}

fn parse(rate: &[u8], capacity: &[u8], words: &[&[u8]]) -> Result<Options, Error> {
    let (error_rate, capacity) = (Some(args::error_rate(rate)?), Some(args::capacity(capacity)?));
    Ok(Options { capacity, error_rate, ..Options::parse(words.iter().copied(), RESERVE_WORDS)? })
}
