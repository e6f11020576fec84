//! `BF.CARD key`
//!
//! Reply: how many adds were answered 1, which is the number of distinct items less those few that were false positives
//! when they were added. Of a counting filter: adds less deletes, so an item that was added twice counts twice. A missing key:
//! 0.
//!
//! Complexity: O(l) for l layers. As RedisBloom's BF.CARD.

use super::errors::Error;
use super::keys;
use crate::bloom::whole::Whole;
use crate::host::key::Key;
use crate::host::load::{Access, Arg, Command, Info, Kind};
use crate::host::{Ctx, Str};

/// The command.
pub struct Card;

impl Command for Card {
    type Error = Error;

    const INFO: Info = Info {
        name: c"bf.card",
        arity: 2,
        access: Access::Look,
        fast: true,
        summary: c"Returns how many items were added to a Bloom filter",
        complexity: c"O(l), where l is the number of layers",
        since: c"0.1.0",
        args: &[Arg::one(c"key", Kind::Key)],
    };

    fn run(ctx: Ctx<'_>, args: &[Str<'_>]) -> Result<(), Error> {
        let [name] = args else { return Ok(()) };
        // SAFETY: the only key that is open.
        let key = unsafe { Key::open(ctx, *name) };
        let items = keys::filter(&key)?.map_or(0, Whole::items);
        ctx.reply_integer(i64::try_from(items).unwrap_or(i64::MAX));
        Ok(())
    }
}
