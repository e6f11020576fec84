//! `BF.INSERT key [CAPACITY n] [ERROR rate] [EXPANSION n] [NOCREATE] [NONSCALING] [COUNTING] [HASH murmur3|siphash] ITEMS item
//! [item …]`
//!
//! Adds items, in order; a missing key is made as the options say, and where they say nothing, with the defaults. Ranges
//! are those of BF.RESERVE. NOCREATE: a missing key is an error, and so are CAPACITY, ERROR, HASH and COUNTING beside it. On a filter
//! that is there the options are checked and have no effect.
//!
//! Reply: an array with one element for each item, as BF.MADD answers it. Errors: `ERR not found` with NOCREATE; a bad
//! option, naming it.
//!
//! Complexity: O(n · k · l) for n items, k bits an item and l layers. As RedisBloom's BF.INSERT, except that options are
//! whole words, each once, NONSCALING excludes EXPANSION, and a full filter does not end the array.

use super::add_items::{HASH, add_many, head_of, is_trusted};
use super::args::{self, INSERT_WORDS, Options};
use super::errors::Error;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};

/// The command.
pub struct Insert;

impl Command for Insert {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.insert",
        arity: -4,
        access: Access::Insert,
        fast: true,
        summary: c"Adds items to a Bloom filter, which is made as the options say if the key is missing",
        complexity: c"O(n * k * l), where n is the number of items, k of bits an item and l of layers",
        since: c"0.1.0",
        args: &[
            Arg::one(c"key", Kind::Key),
            Arg::option(c"capacity", Kind::Integer, c"CAPACITY"),
            Arg::option(c"error", Kind::Double, c"ERROR"),
            Arg::option(c"expansion", Kind::Integer, c"EXPANSION"),
            Arg::option(c"nocreate", Kind::Token, c"NOCREATE"),
            Arg::option(c"nonscaling", Kind::Token, c"NONSCALING"),
            Arg::option(c"counting", Kind::Token, c"COUNTING"),
            HASH,
            Arg { token: Some(c"ITEMS"), ..Arg::many(c"item", Kind::String) },
        ],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name, words @ ..] = args else { return Ok(()) };
        let texts = || words.iter().map(|word| word.bytes());
        let options = match Options::parse(texts(), INSERT_WORDS) {
            Err(_) if is_trusted(ctx) => args::insert_of_redisbloom(texts())?,
            options => options?,
        };
        let items = words.get(options.words..).filter(|items| !items.is_empty()).ok_or(Error::ItemsMissing)?;
        add_many(ctx, *name, items, || if options.no_create { Err(Error::NotFound) } else { Ok(head_of(&options)) })
    }
}
