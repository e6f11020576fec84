//! A filter that answers, whichever its layout: what commands work with.
//!
//! The choice is made once a call, so one of our own pays a branch for it that is always the same.

use super::chain::{Added, Chain, Head, Room, Stop};
use super::error::Error;
use super::flat::{Flat, FlatPlan};
use super::geometry::Kind;
use super::layer::{Layer, Mask, Plan};

/// A filter.
pub enum Whole {
    /// One of our own.
    Native(Chain),
    /// One that came from RedisBloom, in its layout.
    Flat(Box<Flat>),
}

/// What a layer that is still to be made is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextPlan {
    /// Of a filter of our own.
    Native(Plan),
    /// Of one in RedisBloom's layout.
    Flat(FlatPlan),
}

/// Calls the same method of either.
macro_rules! either {
    ($self:ident.$method:ident($($arg:expr),*)) => {
        match $self {
            Whole::Native(chain) => chain.$method($($arg),*),
            Whole::Flat(flat) => flat.$method($($arg),*),
        }
    };
}

impl Whole {
    /// Whether the item may be in the filter; `false` is certain.
    #[inline]
    pub fn contains(&self, item: &[u8]) -> bool {
        either!(self.contains(item))
    }

    /// Which items of a group may be in the filter.
    #[inline]
    pub fn contains_group(&self, group: &[&[u8]]) -> Mask {
        either!(self.contains_group(group))
    }

    /// Adds one item; whether it was new.
    ///
    /// # Errors
    /// [`Stop`]; the filter is unchanged then.
    #[inline]
    pub fn add(&mut self, item: &[u8], room: Room) -> Result<bool, Stop> {
        either!(self.add(item, room))
    }

    /// Adds a group of items, in order.
    #[inline]
    pub fn add_group(&mut self, group: &[&[u8]], room: Room) -> Added {
        either!(self.add_group(group, room))
    }

    /// Adds that were answered 1, as far as they are counted.
    pub fn items(&self) -> u64 {
        either!(self.items())
    }

    /// Adds answered 1, since the filter was made.
    pub fn changes(&self) -> u64 {
        match self {
            Whole::Native(chain) => chain.changes(),
            Whole::Flat(flat) => flat.items(),
        }
    }

    /// What the filter was asked to be.
    pub fn head(&self) -> Head {
        either!(self.head())
    }

    /// What its places are.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self {
            Whole::Native(chain) => chain.kind(),
            Whole::Flat(_) => Kind::Plain,
        }
    }

    /// Whether the filter never gets a second layer.
    pub fn is_non_scaling(&self) -> bool {
        self.head().expansion == 0
    }

    /// Its layers' memory and counts, oldest first.
    pub fn layers(&self) -> Box<dyn Iterator<Item = &Layer> + '_> {
        match self {
            Whole::Native(chain) => Box::new(chain.layers()),
            Whole::Flat(flat) => Box::new(flat.layers().iter().map(|layer| layer.cells())),
        }
    }

    /// What each layer is, oldest first.
    pub fn plans(&self) -> Box<dyn Iterator<Item = NextPlan> + '_> {
        match self {
            Whole::Native(chain) => Box::new(chain.layers().map(|layer| NextPlan::Native(layer.plan()))),
            Whole::Flat(flat) => Box::new(flat.layers().iter().map(|layer| NextPlan::Flat(layer.plan()))),
        }
    }

    /// The filter, if it is in RedisBloom's layout.
    pub fn flat(&self) -> Option<&Flat> {
        match self {
            Whole::Native(_) => None,
            Whole::Flat(flat) => Some(flat),
        }
    }

    /// As [`Whole::flat`], to be changed.
    pub fn flat_mut(&mut self) -> Option<&mut Flat> {
        match self {
            Whole::Native(_) => None,
            Whole::Flat(flat) => Some(flat),
        }
    }

    /// The filter, if it is one of our own.
    pub fn native(&self) -> Option<&Chain> {
        match self {
            Whole::Native(chain) => Some(chain),
            Whole::Flat(_) => None,
        }
    }

    /// As [`Whole::native`], to be changed.
    pub fn native_mut(&mut self) -> Option<&mut Chain> {
        match self {
            Whole::Native(chain) => Some(chain),
            Whole::Flat(_) => None,
        }
    }

    /// The name of its hash family.
    pub fn hash_name(&self) -> &'static str {
        match self {
            Whole::Native(chain) => chain.head().hash().name(),
            Whole::Flat(flat) if flat.flat_head().is_wide() => "murmurhash64a",
            Whole::Flat(_) => "murmurhash2",
        }
    }

    /// Bytes allocated for everything.
    pub fn bytes(&self) -> usize {
        size_of::<Whole>() + self.bytes_behind()
    }

    /// Bytes allocated for what lies behind it; its own fields are its owner's.
    pub fn bytes_behind(&self) -> usize {
        match self {
            Whole::Native(chain) => chain.bytes() - size_of::<Chain>(),
            Whole::Flat(flat) => flat.bytes(),
        }
    }

    /// Plans the layer after the newest.
    ///
    /// # Errors
    /// Why there is none.
    pub fn plan_next(&self) -> Result<NextPlan, Error> {
        match self {
            Whole::Native(chain) => chain.plan_next().map(NextPlan::Native),
            Whole::Flat(flat) => flat.plan_next().map(NextPlan::Flat),
        }
    }

    /// Bytes at full size, with a further layer of this plan.
    pub fn full_bytes_with(&self, plan: NextPlan) -> u64 {
        let more = match plan {
            NextPlan::Native(plan) => 64 * plan.size.lines,
            NextPlan::Flat(plan) => plan.bytes,
        };
        match self {
            Whole::Native(chain) => 64 * chain.lines() + more,
            Whole::Flat(flat) => flat.full_bytes() + more,
        }
    }

    /// Appends an empty layer.
    ///
    /// # Errors
    /// [`Error`]; the filter is unchanged then.
    pub fn grow(&mut self, plan: NextPlan) -> Result<(), Error> {
        match (self, plan) {
            (Whole::Native(chain), NextPlan::Native(plan)) => chain.grow(plan),
            (Whole::Flat(flat), NextPlan::Flat(plan)) => flat.grow(plan),
            _ => Err(OTHER_LAYOUT),
        }
    }
}

impl From<Chain> for Whole {
    fn from(chain: Chain) -> Whole {
        Whole::Native(chain)
    }
}

/// A layer of another layout than the filter's.
pub const OTHER_LAYOUT: Error = Error::Malformed("the layer's layout is not the filter's");
