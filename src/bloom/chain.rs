//! A filter: a chain of layers, of which only the newest takes new items.
//!
//! An item is in the filter if any layer holds it. When the newest layer is full, a scaling filter gets another, larger
//! and stricter one (Almeida, Baquero, Preguiça, Hutchison 2007). Here layer `i` holds `capacity · expansionⁱ` items
//! (from the 17th layer on at least twice the one before, so that no filter grows thousands of layers) at the rate
//! `p · 6 / (π² (i+1)²)`. Since Σ 1/(i+1)² = π²/6, the rates of all layers sum to at most `p` for ever, and they fall
//! so slowly that deep layers stay small: at 1 % the 14th takes 21.6 bits an item, where halving takes 29.8.

use std::f64::consts::PI;

use super::error::Error;
use super::geometry::{FourBit, Kind, Line, NOTHING, OneBit, Places};
use super::hash::{Choice, Family, Hash, Key, Murmur3, SipHash};
use super::layer::{GROUP, Group, Layer, Mask, Plan, items_of};
use super::moving::{self, Mover};
use super::sizing::MAX_LINES;

/// The most layers of one filter.
pub const MAX_LAYERS: usize = 128;
/// From this layer on (counted from 0) each is at least twice as large as the one before.
const DOUBLING_FROM: usize = 16;

/// So many older layers' lines are asked for before the first is tested, when one item is looked for.
const LAYERS_AHEAD: usize = 16;

/// What a filter was asked to be, and the identity it was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head {
    /// Random, made with the filter: tells one filter from another of the same name.
    pub id: [u8; 8],
    /// The false-positive rate asked, above 0 and below 1.
    pub rate: f64,
    /// The capacity asked, at least 1.
    pub capacity: u64,
    /// How many times larger the next layer is; 0: the filter does not scale.
    pub expansion: u32,
    /// The key of the keyed hash family.
    pub key: Option<Key>,
    /// Whether items can be deleted.
    pub kind: Kind,
}

/// The largest expansion.
pub const MAX_EXPANSION: u32 = 32_768;

/// A whole Bloom filter.
pub struct Chain {
    id: [u8; 8],
    rate: f64,
    capacity: u64,
    changes: u64,
    newest: Layer,
    /// What most filters do not have, so that they need not pay for it.
    rest: Option<Box<Rest>>,
    expansion: u32,
}

/// The older layers, oldest first, and the key.
#[derive(Default)]
struct Rest {
    older: Vec<Layer>,
    key: Option<Key>,
}

/// Whether a filter that cannot grow takes items beyond its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It stops there: [`Stop::Full`].
    Kept,
    /// It takes them, since somebody else has already said yes: a primary, or the log of a former run.
    Exceeded,
}

/// Why adding a group stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The next item is new and the newest layer is full.
    Full,
    /// The next item is new and there is no memory for its chunk.
    OutOfMemory,
}

/// What became of a group of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// How many items, from the first, were dealt with.
    pub done: usize,
    /// Which of them were not there before.
    pub new: Mask,
    /// What keeps the next one out, if not all were dealt with.
    pub stop: Option<Stop>,
}

/// Runs `$self.$f(family, …)` with the filter's hash family, so that the choice is made once a group.
macro_rules! by_family {
    ($self:ident.$f:ident$(::<$P:ty>)?($($arg:expr),*)) => {
        match $self.key() {
            None => $self.$f$(::<$P>)?(Murmur3, $($arg),*),
            Some(key) => $self.$f$(::<$P>)?(SipHash(&key), $($arg),*),
        }
    };
}

impl Head {
    /// Plans the first layer.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn plan(&self) -> Result<Plan, Error> {
        Plan::new(self.capacity, self.layer_rate(0), self.kind)
    }

    /// The filter's hash family.
    pub fn hash(&self) -> Choice {
        if self.key.is_some() { Choice::SipHash } else { Choice::Murmur3 }
    }

    /// The rate of layer `number`, counted from 0.
    fn layer_rate(&self, number: usize) -> f64 {
        if self.expansion == 0 {
            return self.rate;
        }
        let position = (number + 1) as f64;
        self.rate * 6.0 / (PI * PI * position * position)
    }
}

impl Chain {
    /// An empty filter with its first layer.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the rule that head or plan break.
    pub fn new(head: Head, first: Plan) -> Result<Chain, Error> {
        Chain::from_layers(head, vec![Layer::new(first, head.kind)?], 0)
    }

    /// A filter of these layers, oldest first: how a saved one is put together.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the rule that it breaks.
    pub fn from_layers(head: Head, mut layers: Vec<Layer>, changes: u64) -> Result<Chain, Error> {
        super::check::check(&head, &layers)?;
        let Some(newest) = layers.pop() else { return Err(Error::Malformed("a filter has at least one layer")) };
        let has_rest = !layers.is_empty() || head.key.is_some();
        let rest = has_rest.then(|| Box::new(Rest { older: layers, key: head.key }));
        let Head { id, rate, capacity, expansion, .. } = head;
        Ok(Chain { id, rate, capacity, changes, newest, rest, expansion })
    }

    /// What the filter was asked to be.
    pub fn head(&self) -> Head {
        let Chain { id, rate, capacity, expansion, .. } = *self;
        Head { id, rate, capacity, expansion, key: self.key(), kind: self.kind() }
    }

    #[inline]
    fn key(&self) -> Option<Key> {
        self.rest.as_ref().and_then(|rest| rest.key)
    }

    /// Whether items can be deleted.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.newest.geometry().kind()
    }

    #[inline]
    fn older(&self) -> &[Layer] {
        self.rest.as_ref().map_or(&[], |rest| &rest.older)
    }

    /// All layers, oldest first.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = &Layer> {
        self.older().iter().chain(std::iter::once(&self.newest))
    }

    /// How many layers there are.
    pub fn layer_count(&self) -> usize {
        self.older().len() + 1
    }

    /// Adds answered 1, since the filter was made; in a counting filter, adds and deletes that took effect.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Items in all layers: adds that were answered 1; in a counting filter, adds less deletes.
    pub fn items(&self) -> u64 {
        self.layers().fold(0, |sum, layer| sum.saturating_add(layer.items()))
    }

    /// Bytes allocated for everything, the filter's own fields included.
    pub fn bytes(&self) -> usize {
        let layers: usize = self.layers().map(Layer::bytes).sum();
        let rest = self.rest.as_ref().map_or(0, |rest| size_of::<Rest>() + rest.older.capacity() * size_of::<Layer>());
        size_of::<Chain>() + rest + layers
    }

    /// Lines of all layers, missing chunks included.
    pub fn lines(&self) -> u64 {
        self.layers().map(|layer| layer.geometry().lines()).sum()
    }

    /// Whether the filter never gets a second layer.
    pub fn is_non_scaling(&self) -> bool {
        self.expansion == 0
    }

    /// Plans the layer after the newest.
    ///
    /// # Errors
    /// [`Error::TooLarge`] or [`Error::TooManyLayers`].
    pub fn plan_next(&self) -> Result<Plan, Error> {
        let number = self.layer_count();
        if number >= MAX_LAYERS {
            return Err(Error::TooManyLayers);
        }
        let capacity = if number < DOUBLING_FROM {
            (0..number).fold(self.capacity, |capacity, _| capacity.saturating_mul(self.expansion.max(1).into()))
        } else {
            self.newest.plan().capacity.saturating_mul(self.expansion.max(2).into())
        };
        let plan = Plan::new(capacity, self.head().layer_rate(number), self.kind())?;
        if self.lines() + plan.size.lines > MAX_LINES { Err(Error::TooLarge) } else { Ok(plan) }
    }

    /// Appends an empty layer, which takes the new items from now on.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::TooLarge`], [`Error::TooManyLayers`] or [`Error::OutOfMemory`]; the filter is
    /// unchanged then.
    pub fn grow(&mut self, plan: Plan) -> Result<(), Error> {
        if self.layer_count() >= MAX_LAYERS {
            return Err(Error::TooManyLayers);
        }
        let layer = Layer::new(plan, self.kind())?;
        if self.lines() + plan.size.lines > MAX_LINES {
            return Err(Error::TooLarge);
        }
        let rest = self.rest.get_or_insert_default();
        rest.older.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
        rest.older.push(std::mem::replace(&mut self.newest, layer));
        Ok(())
    }

    /// Moves the filter's memory, from a place on; the place to go on from, if the mover was told to stop.
    pub fn move_memory(&mut self, from: u64, mover: &mut impl Mover) -> Option<u64> {
        if let Some(rest) = self.rest.as_mut().filter(|_| from == 0) {
            moving::move_box(rest, mover);
            moving::move_vec(&mut rest.older, mover);
        }
        let older = self.rest.iter_mut().flat_map(|rest| &mut rest.older);
        moving::move_layers(older.chain(std::iter::once(&mut self.newest)), from, mover)
    }

    /// A deep copy under another id.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self, id: [u8; 8]) -> Result<Chain, Error> {
        let layers = self.layers().map(Layer::try_clone).collect::<Result<_, _>>()?;
        Chain::from_layers(Head { id, ..self.head() }, layers, self.changes)
    }

    /// Whether the item may be in the filter; `false` is certain.
    #[inline]
    pub fn contains(&self, item: &[u8]) -> bool {
        match self.kind() {
            Kind::Plain => by_family!(self.contains_by::<OneBit>(item)),
            Kind::Counting => by_family!(self.contains_by::<FourBit>(item)),
        }
    }

    /// Which items of a group of at most [`GROUP`] may be in the filter.
    #[inline]
    pub fn contains_group(&self, group: &[&[u8]]) -> Mask {
        match self.kind() {
            Kind::Plain => by_family!(self.contains_group_by::<OneBit>(group)),
            Kind::Counting => by_family!(self.contains_group_by::<FourBit>(group)),
        }
    }

    /// Adds a group of at most [`GROUP`] items, in order: an item that stands in it twice is new once, and counts twice if
    /// the filter is a counting one.
    #[inline]
    pub fn add_group(&mut self, group: &[&[u8]], room: Room) -> Added {
        match self.kind() {
            Kind::Plain => by_family!(self.add_group_by(group, room)),
            Kind::Counting => self.count_up_group(group, room),
        }
    }

    /// Adds one item; whether it was new.
    ///
    /// # Errors
    /// [`Stop`]; the filter is unchanged then.
    #[inline]
    pub fn add(&mut self, item: &[u8], room: Room) -> Result<bool, Stop> {
        match self.kind() {
            Kind::Plain => by_family!(self.add_by(item, room)),
            Kind::Counting => self.count_up(item, room),
        }
    }

    /// The item's hash.
    #[inline]
    pub(super) fn hash(&self, item: &[u8]) -> Hash {
        match self.key() {
            None => Murmur3.hash(item),
            Some(key) => SipHash(&key).hash(item),
        }
    }

    /// The items' hashes, of at most [`GROUP`].
    #[inline]
    pub(super) fn group(&self, items: &[&[u8]]) -> Group {
        match self.key() {
            None => Group::new(Murmur3, items),
            Some(key) => Group::new(SipHash(&key), items),
        }
    }

    /// The layer of this number, or the newest one.
    #[inline]
    pub(super) fn layer_mut(&mut self, number: usize) -> &mut Layer {
        let older = self.rest.as_mut().and_then(|rest| rest.older.get_mut(number));
        older.unwrap_or(&mut self.newest)
    }

    /// Counts one change.
    #[inline]
    pub(super) fn count_change(&mut self) {
        self.changes = self.changes.saturating_add(1);
    }

    fn contains_by<P: Places>(&self, family: impl Family, item: &[u8]) -> bool {
        let hash = family.hash(item);
        let first = self.older_first_lines(hash);
        self.newest.contains::<P>(hash) || self.older_contain::<P>(hash, &first)
    }

    fn contains_group_by<P: Places>(&self, family: impl Family, items: &[&[u8]]) -> Mask {
        self.probe::<P>(&mut Group::new(family, items), mask_of(items.len()))
    }

    fn add_by(&mut self, family: impl Family, item: &[u8], room: Room) -> Result<bool, Stop> {
        let hash = family.hash(item);
        let first = self.older_first_lines(hash);
        if self.older_contain::<OneBit>(hash, &first) { Ok(false) } else { self.insert(hash, room) }
    }

    fn add_group_by(&mut self, family: impl Family, items: &[&[u8]], room: Room) -> Added {
        let (mut group, all) = (Group::new(family, items), mask_of(items.len()));
        // What is there before the group is there at its item's turn too, since bits only get set. The rest is tried
        // in order, against the newest layer alone: only that one changes, and its lines are in the cache now.
        let present = self.probe::<OneBit>(&mut group, all);
        add_absent(items.len(), all & !present, |i| self.insert(group.hash(i), room))
    }

    /// Adds an item that no older layer holds.
    #[inline]
    fn insert(&mut self, hash: Hash, room: Room) -> Result<bool, Stop> {
        if self.newest.is_full() && room == Room::Kept {
            return if self.newest.contains::<OneBit>(hash) { Ok(false) } else { Err(Stop::Full) };
        }
        let new = self.newest.insert(hash).map_err(|_| Stop::OutOfMemory)?;
        if new {
            self.newest.count();
            self.count_change();
        }
        Ok(new)
    }

    /// One item's first lines in the older layers, on their way before the first is tested.
    #[inline]
    fn older_first_lines(&self, hash: Hash) -> [&Line; LAYERS_AHEAD] {
        let mut first = [&NOTHING; LAYERS_AHEAD];
        for (first, layer) in first.iter_mut().zip(self.older().iter().rev()) {
            *first = layer.first_line(hash);
        }
        first
    }

    /// Whether an older layer holds the item, newest first.
    #[inline]
    fn older_contain<P: Places>(&self, hash: Hash, first: &[&Line; LAYERS_AHEAD]) -> bool {
        let mut ahead = first.iter();
        self.older().iter().rev().any(|layer| {
            let first = ahead.next().copied().unwrap_or_else(|| layer.first_line(hash));
            layer.may_hold::<P>(first, hash) && layer.contains::<P>(hash)
        })
    }

    /// Which of the `wanted` items are there. Newest layer first: it is the largest and holds most items.
    fn probe<P: Places>(&self, group: &mut Group, mut wanted: Mask) -> Mask {
        let (mut layer, mut rest) = (&self.newest, self.older());
        let mut first = layer.first_lines(group, wanted);
        let mut found = 0;
        loop {
            // The next layer's lines come while this one's are tested.
            let next = rest.last().map(|next| (next, next.first_lines(group, wanted)));
            let here = layer.probe::<P>(group, &first, wanted);
            (found, wanted) = (found | here, wanted & !here);
            match next {
                Some(next) if wanted != 0 => (layer, first) = next,
                _ => return found,
            }
            group.lay_out::<P>(rest, wanted);
            rest = &rest[..rest.len() - 1];
        }
    }
}

/// Adds the `absent` items of a group of `len`, in order.
#[inline]
pub(super) fn add_absent(len: usize, absent: Mask, mut insert: impl FnMut(usize) -> Result<bool, Stop>) -> Added {
    let mut new = 0;
    for i in items_of(absent) {
        match insert(i) {
            Ok(was_new) => new |= u64::from(was_new) << i,
            Err(stop) => return Added { done: i, new, stop: Some(stop) },
        }
    }
    Added { done: len, new, stop: None }
}

/// The mask of the first `len` items of a group.
#[inline]
pub(super) fn mask_of(len: usize) -> Mask {
    if len >= GROUP { Mask::MAX >> (Mask::BITS as usize - GROUP) } else { (1 << len) - 1 }
}
