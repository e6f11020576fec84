//! A filter as RedisBloom lays it out: the classic Bloom filter, one flat array of bits a layer.
//!
//! Filters of one's own are never made like this. It is for those that come from RedisBloom, whose items nobody has any
//! more: they answer here as they did there, bit for bit, take adds, and can be given back.
//!
//! ```text
//! a = hash(item, seed)        b = hash(item, a)             MurmurHash64A, or MurmurHash2 in filters of old releases
//! x_i = (a + i · b) mod 2⁶⁴ mod m      0 ≤ i < hashes       m: the layer's bits, or 2^n where an old one states n
//! bit x is bit x mod 8, least significant first, of byte x / 8
//! ```
//!
//! The array is kept in the chunks of every other layer ([`FlatLayer::cells`]), so it costs memory where bits are set, and
//! is copied, saved and compared as they are. Bit x of it is place x mod 32,768 of chunk x / 32,768.
//!
//! # Growing
//!
//! A full filter gets a layer of `capacity · growth` items at half the rate of the one before, as in RedisBloom, and of the
//! same size to the bit, so that both sides of a replication agree:
//!
//! ```text
//! bits an item = −ln(rate) / ln² 2        hashes = ⌈ln 2 · bits an item⌉
//! bits         = ⌊capacity · bits an item⌋, at least 1, in whole words of 64
//! ```
//!
//! Filters of old releases round up to a power of two instead, 2^n, and their capacity with it. Where RedisBloom could not
//! read what would come of it, the filter refuses to grow ([`Error::CannotGrow`]).

use super::chain::{Added, Head, Room, Stop, add_absent, mask_of};
use super::chunks::{View, prefetch};
use super::error::Error;
use super::geometry::{CHUNK_LINES, Kind, LINE_WORDS, Line, NOTHING};
use super::hash::{Family, Hash, Murmur2, Murmur64A};
use super::layer::{self, GROUP, Layer, Mask, items_of};
use super::moving::{self, Mover};
use super::sizing::{MAX_LINES, Size};

/// The most layers that are read. RedisBloom makes some more than a thousand before its rates end at zero.
pub const MAX_FLAT_LAYERS: usize = 1_100;
/// The most layers that RedisBloom reads: a file with more ends it.
const MAX_GROWN_LAYERS: usize = 999;
/// The most bits an item: those of the least rate above zero are some fewer.
const MAX_HASHES: u32 = 1_100;
/// The largest growth. RedisBloom takes what fits into 32 bits, and newer releases 32,768.
pub const MAX_GROWTH: u32 = i32::MAX as u32;
/// The growth that RedisBloom takes where nothing is said, and states also of filters that never grow.
pub const USUAL_GROWTH: u32 = 2;
/// Bits in a line.
const LINE_PLACES: u32 = Kind::Plain.line_places();
/// Bytes of a full chunk.
const CHUNK_BYTES: u64 = 4096;

/// ln 2 and its square, to the digits that RedisBloom reckons with: sizes must agree to the bit.
#[allow(clippy::approx_constant, reason = "the digits are those of the other side")]
const LN_2: f64 = 0.693_147_180_559_945;
const LN_2_SQUARED: f64 = 0.480_453_013_918_201;

/// Options of a filter, as bits.
pub mod options {
    /// Sizes are not rounded up to powers of two.
    pub const NO_ROUNDING: u32 = 1;
    /// The capacity of a layer to be made states n of its 2^n bits.
    pub const CAPACITY_IS_LOG: u32 = 2;
    /// The hash is MurmurHash64A, not MurmurHash2.
    pub const HASH_64: u32 = 4;
    /// There is never a second layer.
    pub const NON_SCALING: u32 = 8;
    /// All there are.
    pub const ALL: u32 = 15;
    /// Those of a filter that is made today, before it is said to be non-scaling.
    pub const TODAY: u32 = NO_ROUNDING | HASH_64;
}

/// What a filter states about itself as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlatHead {
    /// See [`options`].
    pub options: u32,
    /// How many times larger the next layer is.
    pub growth: u32,
    /// Adds that were answered 1, in all.
    pub items: u64,
}

impl FlatHead {
    /// Whether the filter never gets a second layer.
    pub fn is_non_scaling(self) -> bool {
        self.options & options::NON_SCALING != 0
    }

    /// Whether its hash family is MurmurHash64A.
    pub fn is_wide(self) -> bool {
        self.options & options::HASH_64 != 0
    }

    /// Checks it.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the rule that it breaks.
    pub fn check(self) -> Result<(), Error> {
        if self.options & !options::ALL != 0 {
            return Err(Error::Malformed("a RedisBloom filter has no other options than 1, 2, 4 and 8"));
        }
        let least = u32::from(!self.is_non_scaling());
        if !(least..=MAX_GROWTH).contains(&self.growth) {
            return Err(Error::Malformed("a RedisBloom filter's growth is from 1 to 2^31 - 1"));
        }
        Ok(())
    }
}

/// What a layer is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlatPlan {
    /// Items it was made for.
    pub capacity: u64,
    /// The false-positive rate it was made for.
    pub rate: f64,
    /// As its maker reckoned them from the rate.
    pub bits_per_item: f64,
    /// Bits that an item sets.
    pub hashes: u32,
    /// The length of its array.
    pub bytes: u64,
    /// The modulus, where `log2` is 0.
    pub bits: u64,
    /// n of a modulus of 2^n; 0 if there is none.
    pub log2: u8,
}

/// Bits an item for this rate.
fn bits_per_item(rate: f64) -> f64 {
    rate.ln().abs() / LN_2_SQUARED
}

/// Bits for so many items, rounded down, and to the largest number where they are beyond it.
pub fn bits_for(capacity: u64, bits_per_item: f64) -> u64 {
    (capacity as f64 * bits_per_item) as u64
}

/// Bits that an item sets. A number out of range becomes the nearest of the type, which is refused.
fn hashes_of(bits_per_item: f64) -> u32 {
    (LN_2 * bits_per_item).ceil() as u32
}

impl FlatPlan {
    /// What RedisBloom makes for so many items at this rate.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Malformed`].
    pub fn new(capacity: u64, rate: f64, options: u32) -> Result<FlatPlan, Error> {
        super::check::check_capacity(capacity)?;
        super::check::check_rate(rate)?;
        let bits_per_item = bits_per_item(rate);
        let most = MAX_LINES * u64::from(LINE_PLACES);
        let power = |log2: u64| u32::try_from(log2).ok().and_then(|log2| 1u64.checked_shl(log2)).ok_or(Error::TooLarge);
        let (capacity, bits, log2) = if options & options::CAPACITY_IS_LOG != 0 {
            let bits = power(capacity)?;
            ((bits as f64 / bits_per_item) as u64, bits, capacity)
        } else if options & options::NO_ROUNDING != 0 {
            (capacity, bits_for(capacity, bits_per_item).max(1), 0)
        } else {
            let wanted = bits_for(capacity, bits_per_item).max(1);
            let log2 = u64::from(wanted.ilog2()) + 1;
            let bits = power(log2)?;
            // What the rounding gave goes to further items.
            let spare = (bits as f64 - capacity as f64 * bits_per_item) as u64;
            (capacity.saturating_add((spare as f64 / bits_per_item) as u64), bits, log2)
        };
        if bits > most {
            return Err(Error::TooLarge);
        }
        let bytes = bits.div_ceil(64) * 8;
        let log2 = u8::try_from(log2).map_err(|_| Error::TooLarge)?;
        let plan =
            FlatPlan { capacity, rate, bits_per_item, hashes: hashes_of(bits_per_item), bytes, bits: bytes * 8, log2 };
        plan.check()?;
        Ok(plan)
    }

    /// What an item's places are reduced by.
    fn modulus(&self) -> u64 {
        if self.log2 > 0 { 1u64.checked_shl(self.log2.into()).unwrap_or(u64::MAX) } else { self.bits }
    }

    /// Chunks of the array, missing ones included. (At most 2²⁸, once it was checked.)
    pub fn chunks(&self) -> u32 {
        u32::try_from(self.bytes.div_ceil(CHUNK_BYTES)).unwrap_or(u32::MAX)
    }

    /// Checks it. The number of bytes is not computed again: rounding has differed between releases.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the rule that it breaks.
    pub fn check(&self) -> Result<(), Error> {
        super::check::check_capacity(self.capacity)?;
        super::check::check_rate(self.rate)?;
        let expected = bits_per_item(self.rate);
        // NaN is within no range.
        if !(0.0..=1e-9 * expected).contains(&(self.bits_per_item - expected).abs()) {
            return Err(Error::Malformed("bits an item are not those of the layer's error rate"));
        }
        if self.hashes != hashes_of(self.bits_per_item) || !(1..=MAX_HASHES).contains(&self.hashes) {
            return Err(Error::Malformed("the number of hashes is not that of the bits an item, or not 1 to 1100"));
        }
        if !(1..=MAX_LINES * 64).contains(&self.bytes) {
            return Err(Error::Malformed("a layer has 1 byte to 1 TiB"));
        }
        let most = self.bytes * 8;
        if self.log2 >= 64 || !(1..=most).contains(&self.bits) || self.modulus() > most {
            return Err(Error::Malformed("a layer's bits are none, or more than it has bytes for"));
        }
        Ok(())
    }
}

/// One layer.
pub struct FlatLayer {
    plan: FlatPlan,
    /// What an item's places are reduced by.
    modulus: u64,
    /// ⌊(2⁶⁴ − 1) / modulus⌋: a multiplication with it stands for the division.
    reciprocal: u64,
    cells: Layer,
}

impl FlatLayer {
    /// An empty layer.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the rule that the plan breaks.
    pub fn new(plan: FlatPlan) -> Result<FlatLayer, Error> {
        plan.check()?;
        // The number of bits an item and of lines are of no use here: `cells` is never asked for an item.
        let size = Size { lines: plan.bytes.div_ceil(64), bits: 1, spread: 1 };
        let cells = Layer::new(layer::Plan { capacity: plan.capacity, rate: plan.rate, size }, Kind::Plain)?;
        let modulus = plan.modulus();
        Ok(FlatLayer { plan, modulus, reciprocal: u64::MAX / modulus, cells })
    }

    /// What the layer is.
    pub fn plan(&self) -> FlatPlan {
        self.plan
    }

    /// What an item's places are reduced by: the bits that are in use.
    pub fn modulus(&self) -> u64 {
        self.modulus
    }

    /// Its array in chunks, and its number of items. The last chunk is filled up to a whole line; no bit is set there.
    pub fn cells(&self) -> &Layer {
        &self.cells
    }

    /// As [`FlatLayer::cells`], to be written.
    pub fn cells_mut(&mut self) -> &mut Layer {
        &mut self.cells
    }

    fn try_clone(&self) -> Result<FlatLayer, Error> {
        Ok(FlatLayer { cells: self.cells.try_clone()?, ..*self })
    }

    /// `x` mod the modulus.
    ///
    /// The quotient by the reciprocal is the true one or 1 less, so what remains is below twice the modulus (which is at most
    /// 2⁴³): the second subtraction wraps to a huge number where it is not due.
    #[inline]
    fn reduce(&self, x: u64) -> u64 {
        let quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = x.wrapping_sub(quotient.wrapping_mul(self.modulus));
        rest.min(rest.wrapping_sub(self.modulus))
    }

    /// Place `i` of an item.
    #[inline]
    fn place(&self, hash: Hash, i: u32) -> u64 {
        self.reduce(hash.h1.wrapping_add(hash.h2.wrapping_mul(i.into())))
    }

    /// An item's places from this one on.
    #[inline]
    fn places(&self, hash: Hash, from: u32) -> impl Iterator<Item = u64> {
        (from..self.plan.hashes).map(move |i| self.place(hash, i))
    }

    #[inline]
    fn contains(&self, hash: Hash) -> bool {
        let view = self.cells.view();
        if view.is_deep() {
            self.places(hash, 0).all(|place| is_set::<true>(&view, place))
        } else {
            self.places(hash, 0).all(|place| is_set::<false>(&view, place))
        }
    }

    /// Asks the processor for an item's lines, those of its places from this one on.
    #[inline]
    fn prefetch<const DEEP: bool>(&self, view: &View<'_>, hash: Hash, from: u32) {
        for place in self.places(hash, from) {
            prefetch(line_of::<DEEP>(view, place));
        }
    }

    /// Asks for all lines of items that are to be added.
    fn prefetch_all(&self, hashes: impl Iterator<Item = Hash>) {
        let view = self.cells.view();
        for hash in hashes {
            if view.is_deep() {
                self.prefetch::<true>(&view, hash, 0);
            } else {
                self.prefetch::<false>(&view, hash, 0);
            }
        }
    }

    /// Sets the item's bits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], after which some of its bits may be set: it may be found, and nothing that was is lost.
    fn insert(&mut self, hash: Hash) -> Result<(), Error> {
        for i in 0..self.plan.hashes {
            let place = self.place(hash, i);
            let line = place / u64::from(LINE_PLACES);
            // A place is below 2⁴³.
            let (chunk, at) = ((line / u64::from(CHUNK_LINES)) as u32, line as usize % CHUNK_LINES as usize);
            if let Some(line) = self.cells.make_chunk(chunk)?.get_mut(at) {
                line[word_of(place)] |= 1 << (place % 64);
            }
        }
        Ok(())
    }

    /// Which of the `wanted` items of a group are in the layer.
    ///
    /// An absent item is ruled out by each place with an even chance, and the branch is mispredicted as often: so the first
    /// places of the whole group are asked for before any is tested. Those who pass are mostly there, and all their other
    /// places are asked for.
    fn probe(&self, hashes: &[Hash; GROUP], wanted: Mask) -> Mask {
        let view = self.cells.view();
        if view.is_deep() {
            self.probe_in::<true>(&view, hashes, wanted)
        } else {
            self.probe_in::<false>(&view, hashes, wanted)
        }
    }

    fn probe_in<const DEEP: bool>(&self, view: &View<'_>, hashes: &[Hash; GROUP], wanted: Mask) -> Mask {
        let near = self.plan.bytes <= NEAR;
        let first = self.plan.hashes.min(if near { 1 } else { FIRST_PLACES });
        let mut lines = [&NOTHING; GROUP];
        let mut places = [0; GROUP];
        let mut found = wanted;
        for round in 0..first {
            for i in items_of(found) {
                places[i] = self.place(hashes[i], round);
                lines[i] = line_of::<DEEP>(view, places[i]);
                prefetch(lines[i]);
            }
            for i in items_of(found) {
                let missing = !lines[i][word_of(places[i])] >> (places[i] % 64) & 1;
                found &= !(missing << i);
            }
        }
        if !near {
            for i in items_of(found) {
                self.prefetch::<DEEP>(view, hashes[i], first);
            }
        }
        for i in items_of(found) {
            let all = self.places(hashes[i], first).all(|place| is_set::<DEEP>(view, place));
            found &= !(Mask::from(!all) << i);
        }
        found
    }
}

/// Places of each item of a group that are asked for before they are tested; in a layer that is near, one.
const FIRST_PLACES: u32 = 2;
/// A layer of so many bytes lies in a core's own cache, where asking for its lines costs more than waiting. (Measured: present
/// items of a layer of 1.4 MB 10 % dearer with it, those of one of 8 MB 10 to 30 % dearer without it.)
const NEAR: u64 = 2 << 20;

/// The line of a place.
#[inline(always)]
fn line_of<'a, const DEEP: bool>(view: &View<'a>, place: u64) -> &'a Line {
    view.line::<DEEP>(place / u64::from(LINE_PLACES))
}

/// Where in its line the word of a place is.
#[inline]
fn word_of(place: u64) -> usize {
    (place / 64) as usize % LINE_WORDS
}

#[inline(always)]
fn is_set<const DEEP: bool>(view: &View<'_>, place: u64) -> bool {
    line_of::<DEEP>(view, place)[word_of(place)] >> (place % 64) & 1 == 1
}

/// A whole filter: its layers, oldest first. The default is what is left of one that was moved: it has none.
#[derive(Default)]
pub struct Flat {
    head: FlatHead,
    layers: Vec<FlatLayer>,
}

/// Runs `$self.$f(family, …)` with the filter's hash family, so that the choice is made once a group.
macro_rules! by_family {
    ($self:ident.$f:ident($($arg:expr),*)) => {
        if $self.head.is_wide() {
            $self.$f(Murmur64A, $($arg),*)
        } else {
            $self.$f(Murmur2, $($arg),*)
        }
    };
}

impl Flat {
    /// An empty filter as RedisBloom makes one: at half the rate, unless it is non-scaling.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Malformed`].
    pub fn new(asked: &Head) -> Result<Flat, Error> {
        let (scaling, growth, rate) = match asked.expansion {
            0 => (options::NON_SCALING, USUAL_GROWTH, asked.rate),
            growth => (0, growth, asked.rate / 2.0),
        };
        let options = options::TODAY | scaling;
        let head = FlatHead { options, growth, items: 0 };
        let first = FlatLayer::new(FlatPlan::new(asked.capacity, rate, options)?)?;
        Flat::from_layers(head, vec![first])
    }

    /// A filter of these layers, oldest first.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the rule that it breaks.
    pub fn from_layers(head: FlatHead, layers: Vec<FlatLayer>) -> Result<Flat, Error> {
        check(head, &layers)?;
        Ok(Flat { head, layers })
    }

    /// What the filter states about itself.
    pub fn flat_head(&self) -> FlatHead {
        self.head
    }

    /// What it was asked to be, as far as that can be told.
    pub fn head(&self) -> Head {
        let (rate, capacity) = self.layers.first().map_or((0.0, 0), |first| (first.plan.rate, first.plan.capacity));
        let non_scaling = self.head.is_non_scaling();
        Head {
            id: [0; 8],
            // Of scaling filters the first layer has half the rate; one that was forged may have any.
            rate: if non_scaling || rate >= 0.5 { rate } else { rate * 2.0 },
            capacity,
            expansion: if non_scaling { 0 } else { self.head.growth },
            key: None,
            kind: Kind::Plain,
        }
    }

    /// All layers, oldest first.
    pub fn layers(&self) -> &[FlatLayer] {
        &self.layers
    }

    /// As [`Flat::layers`], for their bits and counts to be written.
    pub fn layers_mut(&mut self) -> &mut [FlatLayer] {
        &mut self.layers
    }

    /// Adds that were answered 1.
    pub fn items(&self) -> u64 {
        self.head.items
    }

    /// Bytes allocated for everything, the filter's own fields included.
    pub fn bytes(&self) -> usize {
        let layers: usize = self.layers.iter().map(|layer| layer.cells.bytes()).sum();
        size_of::<Flat>() + self.layers.capacity() * size_of::<FlatLayer>() + layers
    }

    /// Bytes of all arrays, missing chunks included.
    pub fn full_bytes(&self) -> u64 {
        // At most 1 TiB each, and few of them.
        self.layers.iter().map(|layer| layer.plan.bytes).sum()
    }

    /// Plans the layer after the newest.
    ///
    /// # Errors
    /// [`Error::CannotGrow`] where RedisBloom could not read it.
    pub fn plan_next(&self) -> Result<FlatPlan, Error> {
        let newest = self.layers.last().map(FlatLayer::plan).ok_or(Error::CannotGrow)?;
        let capacity = newest.capacity.checked_mul(self.head.growth.into()).ok_or(Error::CannotGrow)?;
        let plan = FlatPlan::new(capacity, newest.rate * 0.5, self.head.options).map_err(|_| Error::CannotGrow)?;
        let fits = self.full_bytes() + plan.bytes <= MAX_LINES * 64;
        if fits && self.layers.len() < MAX_GROWN_LAYERS { Ok(plan) } else { Err(Error::CannotGrow) }
    }

    /// Appends an empty layer, which takes the new items from now on.
    ///
    /// # Errors
    /// [`Error`]; the filter is unchanged then.
    pub fn grow(&mut self, plan: FlatPlan) -> Result<(), Error> {
        let layer = FlatLayer::new(plan)?;
        push(&mut self.layers, layer)
    }

    /// A deep copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Flat, Error> {
        Ok(Flat { head: self.head, layers: clones(&self.layers)? })
    }

    /// Moves the memory of everything but the filter itself, from a place on: see [`moving`].
    pub fn move_memory(&mut self, from: u64, mover: &mut impl Mover) -> Option<u64> {
        move_memory(&mut self.layers, from, mover)
    }

    /// Whether the item may be in the filter; `false` is certain.
    #[inline]
    pub fn contains(&self, item: &[u8]) -> bool {
        by_family!(self.contains_by(item))
    }

    /// Which items of a group of at most [`GROUP`] may be in the filter.
    #[inline]
    pub fn contains_group(&self, group: &[&[u8]]) -> Mask {
        by_family!(self.contains_group_by(group))
    }

    /// Adds one item; whether it was new.
    ///
    /// # Errors
    /// [`Stop`]; the filter is unchanged then.
    #[inline]
    pub fn add(&mut self, item: &[u8], room: Room) -> Result<bool, Stop> {
        by_family!(self.add_by(item, room))
    }

    /// Adds a group of at most [`GROUP`] items, in order: an item that stands in it twice is new once.
    #[inline]
    pub fn add_group(&mut self, group: &[&[u8]], room: Room) -> Added {
        by_family!(self.add_group_by(group, room))
    }

    fn contains_by(&self, family: impl Family, item: &[u8]) -> bool {
        let hash = family.hash(item);
        self.layers.iter().rev().any(|layer| layer.contains(hash))
    }

    fn contains_group_by(&self, family: impl Family, items: &[&[u8]]) -> Mask {
        self.probe(&hashes(family, items), mask_of(items.len()))
    }

    fn add_by(&mut self, family: impl Family, item: &[u8], room: Room) -> Result<bool, Stop> {
        let hash = family.hash(item);
        if self.layers.iter().rev().any(|layer| layer.contains(hash)) {
            return Ok(false);
        }
        self.layers.last().inspect(|newest| newest.prefetch_all(std::iter::once(hash)));
        self.insert(hash, room).map(|()| true)
    }

    fn add_group_by(&mut self, family: impl Family, items: &[&[u8]], room: Room) -> Added {
        let hashes = hashes(family, items);
        let all = mask_of(items.len());
        let absent = all & !self.probe(&hashes, all);
        // There is always one.
        if let Some(newest) = self.layers.last() {
            newest.prefetch_all(items_of(absent).map(|i| hashes[i]));
        }
        add_absent(items.len(), absent, |i| {
            // One that stands twice in the group has come meanwhile.
            if self.layers.last().is_some_and(|newest| newest.contains(hashes[i])) {
                return Ok(false);
            }
            self.insert(hashes[i], room).map(|()| true)
        })
    }

    /// Adds an item that no layer holds.
    fn insert(&mut self, hash: Hash, room: Room) -> Result<(), Stop> {
        let Some(newest) = self.layers.last_mut() else { return Err(Stop::Full) };
        if newest.cells.is_full() && room == Room::Kept {
            return Err(Stop::Full);
        }
        newest.insert(hash).map_err(|_| Stop::OutOfMemory)?;
        newest.cells.count();
        self.head.items = self.head.items.saturating_add(1);
        Ok(())
    }

    /// Which of the `wanted` items are there, newest layer first.
    fn probe(&self, hashes: &[Hash; GROUP], wanted: Mask) -> Mask {
        let mut found = 0;
        for layer in self.layers.iter().rev() {
            if found == wanted {
                break;
            }
            found |= layer.probe(hashes, wanted & !found);
        }
        found
    }
}

/// Checks a filter of these layers, each of which was checked when it was made.
///
/// # Errors
/// [`Error::Malformed`] with the rule that it breaks.
pub fn check(head: FlatHead, layers: &[FlatLayer]) -> Result<(), Error> {
    head.check()?;
    if layers.is_empty() {
        return Err(Error::Malformed("a filter has at least one layer"));
    }
    check_number(layers)
}

/// Checks that there are not too many layers, nor too large ones together.
fn check_number(layers: &[FlatLayer]) -> Result<(), Error> {
    if layers.len() > MAX_FLAT_LAYERS {
        return Err(Error::Malformed("a RedisBloom filter has at most 1100 layers"));
    }
    if layers.iter().map(|layer| layer.plan.bytes).sum::<u64>() > MAX_LINES * 64 {
        return Err(Error::Malformed("a filter's layers have at most 1 TiB together"));
    }
    Ok(())
}

/// Appends a layer, if there may be so many.
///
/// # Errors
/// [`Error::Malformed`], [`Error::OutOfMemory`]; nothing has changed then.
pub fn push(layers: &mut Vec<FlatLayer>, layer: FlatLayer) -> Result<(), Error> {
    // Most filters stay small, with few layers.
    layers.try_reserve_exact(1).map_err(|_| Error::OutOfMemory)?;
    layers.push(layer);
    check_number(layers).inspect_err(|_| _ = layers.pop())
}

/// Moves the memory of layers, from a place on: see [`moving`].
pub fn move_memory(layers: &mut Vec<FlatLayer>, from: u64, mover: &mut impl Mover) -> Option<u64> {
    if from == 0 {
        moving::move_vec(layers, mover);
    }
    moving::move_layers(layers.iter_mut().map(FlatLayer::cells_mut), from, mover)
}

/// Deep copies.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn clones(layers: &[FlatLayer]) -> Result<Vec<FlatLayer>, Error> {
    layers.iter().map(FlatLayer::try_clone).collect()
}

/// The hashes of at most [`GROUP`] items.
#[inline]
fn hashes(family: impl Family, items: &[&[u8]]) -> [Hash; GROUP] {
    let mut hashes = [Hash::default(); GROUP];
    for (hash, item) in hashes.iter_mut().zip(items) {
        *hash = family.hash(item);
    }
    hashes
}
