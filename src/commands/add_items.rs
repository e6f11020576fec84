//! Adding items: what BF.ADD, BF.MADD and BF.INSERT share. Filters are made and grow here, and others are told of what changed.
//!
//! What replicas and the AOF get is what changed, spelt out, in the order in which it happened: the records of a filter
//! that was made, the items that were new, the record of each further layer. So both sides end with the same bits,
//! whatever their defaults, releases, limits or random keys, and only the server that makes a layer computes its size.

use super::args::Options;
use super::errors::Error;
use super::{keys, limits};
use crate::bloom;
use crate::bloom::chain::{Chain, Head, Room, Stop};
use crate::bloom::flat::Flat;
use crate::bloom::geometry::Kind;
use crate::bloom::hash::Choice;
use crate::bloom::layer::GROUP;
use crate::bloom::whole::Whole;
use crate::codec::filter::{Filter, next_layer_record};
use crate::config;
use crate::host::ctx::random_bytes;
use crate::host::key::KeyMut;
use crate::host::load::Arg;
use crate::host::{Ctx, Str};
use crate::{keytype, metrics};

/// Whether the call tells what has happened elsewhere (a primary, an AOF), and may not be refused.
pub fn is_trusted(ctx: Ctx<'_>) -> bool {
    let flags = ctx.flags();
    flags.replicated() || flags.loading()
}

/// Makes an empty filter, to be put into the key `name`, and tells replicas and the AOF.
///
/// A primary or an AOF of our own tells of it by records. A command by which one is to be made there comes from RedisBloom:
/// then the filter is one in its layout, so that both sides agree.
///
/// # Errors
/// [`Error::Core`] or [`Error::OverMemory`]; nobody was told then.
pub fn make(ctx: Ctx<'_>, name: Str<'_>, head: Head) -> Result<Box<Filter>, Error> {
    let refused = |_: &_| metrics::REFUSED_FOR_MEMORY.add(1);
    let filter = if is_trusted(ctx) {
        Filter::Whole(Whole::Flat(Box::new(Flat::new(&head).inspect_err(refused)?)))
    } else {
        let plan = head.plan().inspect_err(refused)?;
        limits::check(ctx, 64 * plan.size.lines)?;
        Filter::from(Chain::new(head, plan)?)
    };
    let mut records = Vec::new();
    for record in filter.records() {
        records.extend(record?.1);
    }
    ctx.replicate_record(c"BF.LOADCHUNK", name, 1, &records);
    Ok(Box::new(filter))
}

/// The adds of one command to one key.
struct Adding<'a> {
    ctx: Ctx<'a>,
    name: Str<'a>,
    /// Items that were new (in a counting filter all, since each add counts), and that nobody was told of yet.
    untold: Vec<Str<'a>>,
    changed: bool,
    /// A growth that was refused stays so for the rest of the command: asking again costs more than the adds.
    refused: Option<Error>,
}

impl<'a> Adding<'a> {
    /// Opens the key, made with the defaults if it is missing, and has `add` add to it and tell replicas and the AOF.
    #[inline]
    fn run(
        ctx: Ctx<'a>,
        name: Str<'a>,
        missing: impl FnOnce() -> Result<Head, Error>,
        add: impl FnOnce(&mut Self, &mut Whole) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut adding = Adding { ctx, name, untold: Vec::new(), changed: false, refused: None };
        // SAFETY: the only key that is open, and nothing deletes it until it is closed below.
        let mut key = unsafe { KeyMut::open(ctx, name) };
        let mut made = false;
        let whole = match keys::filter_mut(&mut key, || is_trusted(ctx))? {
            Some(whole) => whole,
            None => {
                made = true;
                let filter = make(ctx, name, missing()?)?;
                keytype::set(&mut key, filter).whole_mut(|| true).ok_or(Error::Loading)?
            }
        };
        let before = whole.changes();
        let added = add(&mut adding, whole);
        metrics::ITEMS_ADDED.add(whole.changes().wrapping_sub(before));
        // Those who watch or listen are told once the key is closed: they may call commands of ours.
        drop(key);
        if made || adding.changed {
            ctx.signal_modified(name);
        }
        if made {
            ctx.notify(c"bf.reserve", name);
        }
        if adding.changed {
            ctx.notify(c"bf.add", name);
        }
        added
    }

    /// Makes room for the item that `stop` kept out, or says why not; how it is to be tried again, and nothing if it is not to
    /// be, since who told us of it refused it too.
    fn make_room(&mut self, whole: &mut Whole, stop: Stop) -> Result<Option<Room>, Error> {
        if stop == Stop::OutOfMemory {
            metrics::REFUSED_FOR_MEMORY.add(1);
            return Err(bloom::error::Error::OutOfMemory.into());
        }
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        let trusted = is_trusted(self.ctx);
        if whole.is_non_scaling() {
            return match whole {
                _ if !trusted => Err(Error::Full),
                Whole::Native(_) => Ok(Some(Room::Exceeded)),
                // RedisBloom sends on also what it answered with the full error.
                Whole::Flat(_) => Ok(None),
            };
        }
        match self.grow(whole, trusted) {
            Ok(()) => Ok(Some(Room::Kept)),
            // A replica may not refuse what its primary took: then the newest layer takes it.
            Err(_) if trusted => Ok(Some(Room::Exceeded)),
            Err(error) => {
                self.refused = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Appends a layer, and tells of it after the items before it.
    fn grow(&mut self, whole: &mut Whole, trusted: bool) -> Result<(), Error> {
        let plan = whole.plan_next().inspect_err(|_| metrics::REFUSED_FOR_MEMORY.add(1))?;
        if !trusted {
            limits::check(self.ctx, whole.full_bytes_with(plan))?;
        }
        let (iterator, record) = next_layer_record(whole, plan)?;
        whole.grow(plan)?;
        metrics::GROWTHS.add(1);
        self.changed = true;
        self.tell_untold();
        self.ctx.replicate_record(c"BF.LOADCHUNK", self.name, iterator.cast_signed(), &record);
        Ok(())
    }

    /// Sends the items noted so far.
    fn tell_untold(&mut self) {
        if self.untold.is_empty() {
            return;
        }
        let command = if self.untold.len() == 1 { c"BF.ADD" } else { c"BF.MADD" };
        self.untold.insert(0, self.name);
        self.ctx.replicate(command, &self.untold);
        self.untold.clear();
    }
}

/// The option HASH of the commands that make a filter.
pub const HASH: Arg = Arg {
    token: Some(c"HASH"),
    ..Arg::one_of(c"hash", &[Arg::word(c"murmur3", c"murmur3"), Arg::word(c"siphash", c"siphash")])
};

/// What a filter is made as: as the options say, and where they say nothing, as configured.
pub fn head_of(options: &Options) -> Head {
    let defaults = config::values();
    let key = match options.hash.unwrap_or(defaults.hash) {
        Choice::Murmur3 => None,
        Choice::SipHash => Some(random_bytes()),
    };
    Head {
        id: random_bytes(),
        rate: options.error_rate.unwrap_or(defaults.error_rate),
        capacity: options.capacity.unwrap_or(defaults.capacity),
        expansion: options.expansion.unwrap_or(defaults.expansion),
        key,
        kind: options.kind,
    }
}

/// Adds one item to a key and replies whether it was new: BF.ADD.
///
/// # Errors
/// Why it was not added.
pub fn add_one<'a>(ctx: Ctx<'a>, name: Str<'a>, item: Str<'a>) -> Result<(), Error> {
    let missing = || Ok(head_of(&Options::default()));
    Adding::run(ctx, name, missing, |adding, whole| {
        let bytes = item.bytes();
        let mut room = Room::Kept;
        let new = loop {
            match whole.add(bytes, room) {
                Ok(new) => break new,
                Err(stop) => match adding.make_room(whole, stop)? {
                    Some(more) => room = more,
                    None => break false,
                },
            }
        };
        if new || whole.kind() == Kind::Counting {
            adding.changed = true;
            ctx.replicate_verbatim();
        }
        ctx.reply_bool(new);
        Ok(())
    })
}

/// Adds items to a key and replies an array of answers, an error too in its item's place: BF.MADD and BF.INSERT.
/// `missing` says what a missing key is made as.
///
/// # Errors
/// What concerns the key as a whole.
pub fn add_many<'a>(
    ctx: Ctx<'a>,
    name: Str<'a>,
    items: &[Str<'a>],
    missing: impl FnOnce() -> Result<Head, Error>,
) -> Result<(), Error> {
    Adding::run(ctx, name, missing, |adding, whole| {
        // One more than the items: the key's name is put before them.
        adding.untold.try_reserve_exact(items.len() + 1).map_err(|_| bloom::error::Error::OutOfMemory)?;
        ctx.reply_array(items.len());
        let every_add_counts = whole.kind() == Kind::Counting;
        let mut room = Room::Kept;
        let mut rest = items;
        while !rest.is_empty() {
            let group = rest.get(..GROUP).unwrap_or(rest);
            let added = whole.add_group(keys::bytes_of(group).get(..group.len()).unwrap_or_default(), room);
            for (i, item) in group.iter().take(added.done).enumerate() {
                let new = added.new >> i & 1 == 1;
                ctx.reply_bool(new);
                if new || every_add_counts {
                    adding.changed = true;
                    adding.untold.push(*item);
                }
            }
            rest = rest.get(added.done..).unwrap_or_default();
            if let Some(stop) = added.stop {
                match adding.make_room(whole, stop) {
                    Ok(Some(more)) => room = more,
                    refused => {
                        match refused {
                            Err(error) => ctx.reply_error(error),
                            Ok(_) => ctx.reply_bool(false),
                        }
                        rest = rest.get(1..).unwrap_or_default();
                    }
                }
            }
        }
        if adding.untold.len() == items.len() {
            ctx.replicate_verbatim();
        } else {
            adding.tell_untold();
        }
        Ok(())
    })
}
