//! One layer: a Bloom filter of fixed size, blocked by chunk.

use super::chunks::{Store, View, prefetch};
use super::error::Error;
use super::geometry::{
    FourBit, Geometry, Kind, Line, Lines, MAX_SPREAD, NOTHING, OneBit, Places, covers, first_places, places,
    places_in_first,
};
use super::hash::{Family, Hash};
use super::moving::Mover;
use super::sizing::{self, Size};

/// Items that are hashed, prefetched and tested together. Measured: 16 cost up to 15 % more in filters of many layers or many
/// items; 48 and 64 cost less in no case by more than 5 %, and more in some.
pub const GROUP: usize = 32;

/// A set of items of one group: bit `i` is item `i`.
pub type Mask = u64;

/// Evaluates the expression with the constant `S` the layer's spread: chosen once a call, not once a bit.
macro_rules! by_spread {
    ($spread:expr, $S:ident => $call:expr) => {
        match $spread {
            1 => by_spread!(@ $S = 1, $call),
            2 => by_spread!(@ $S = 2, $call),
            4 => by_spread!(@ $S = 4, $call),
            _ => by_spread!(@ $S = MAX_SPREAD, $call),
        }
    };
    (@ $S:ident = $value:expr, $call:expr) => {{
        const $S: usize = $value;
        $call
    }};
}

/// The first line of each item of a group in one layer.
pub type FirstLines<'a> = [&'a Line; GROUP];

/// With fewer layers to go than this, laying out a group's places takes longer than testing them one by one.
const LAYERS_TO_LAY_OUT_FOR: usize = 5;

/// Items that are looked for together.
pub struct Group {
    hashes: [Hash; GROUP],
    /// The first places of each item's first line, marked, to be laid over the lines of layers of this spread; 0 if there are
    /// none.
    first_places: [Line; GROUP],
    spread: u8,
    /// How many places each has.
    count: u8,
}

impl Group {
    /// Hashes at most [`GROUP`] items. More are a fault of the caller's.
    #[inline]
    pub fn new(family: impl Family, items: &[&[u8]]) -> Group {
        debug_assert!(items.len() <= GROUP);
        let mut hashes = [Hash::default(); GROUP];
        for (hash, item) in hashes.iter_mut().zip(items) {
            *hash = family.hash(item);
        }
        Group { hashes, first_places: [NOTHING; GROUP], spread: 0, count: 0 }
    }

    /// The hash of item `i`.
    #[inline]
    pub fn hash(&self, i: usize) -> Hash {
        self.hashes[i % GROUP]
    }

    /// Lays out places of the `wanted` items for the last of these layers, which is looked into next, and those before it of
    /// its spread: as many as all of them have in a first line. It pays where several layers follow, since nearly all
    /// of a filter have the same spread.
    #[inline]
    pub fn lay_out<P: Places>(&mut self, layers: &[Layer], wanted: Mask) {
        let Some(spread) = layers.last().map(|last| last.geometry.spread()) else { return };
        if self.spread == spread || layers.len() < LAYERS_TO_LAY_OUT_FOR {
            return;
        }
        let same = layers.iter().map(Layer::geometry).filter(|geometry| geometry.spread() == spread);
        (self.spread, self.count) = (spread, same.map(Geometry::bits_in_first).min().unwrap_or(0));
        by_spread!(spread, S => for i in items_of(wanted) {
            first_places::<P, S>(self.hashes[i], self.count, &mut self.first_places[i]);
        });
    }

    /// Whether places are laid out that lie in the first lines of layers of this structure.
    #[inline]
    fn fits(&self, geometry: Geometry) -> bool {
        self.spread == geometry.spread() && self.count <= geometry.bits_in_first()
    }
}

/// What a layer is to be: decided once, by the server that makes it, then stored and never computed again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// How many adds answered 1 it takes; in a counting filter, adds less deletes.
    pub capacity: u64,
    /// The false-positive rate it may have after them.
    pub rate: f64,
    /// Its size in lines, bits an item and lines an item.
    pub size: Size,
}

impl Plan {
    /// Sizes a layer of a filter of this kind.
    ///
    /// # Errors
    /// [`Error::TooLarge`] where it would pass the 2³⁴ lines of a filter.
    pub fn new(capacity: u64, rate: f64, kind: Kind) -> Result<Plan, Error> {
        let size = sizing::choose(capacity, rate, kind).ok_or(Error::TooLarge)?;
        Ok(Plan { capacity, rate, size })
    }

    /// The structure of a layer of this plan in a filter of this kind.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the rule that the plan breaks.
    pub fn geometry(self, kind: Kind) -> Result<Geometry, Error> {
        super::check::check_capacity(self.capacity)?;
        super::check::check_rate(self.rate)?;
        Geometry::new(self.size, kind).ok_or(Error::Malformed(
            "a layer has 1 to 2^34 lines, 1 to 64 bits an item, and 1, 2, 4 or 8 lines an item, not more than bits",
        ))
    }
}

/// Which items are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Whether they are there or not.
    Any,
    /// Those that are there.
    There,
}

/// A layer: its plan, what was put in, and its bits.
pub struct Layer {
    geometry: Geometry,
    store: Store,
    capacity: u64,
    rate: f64,
    items: u64,
}

impl Layer {
    /// An empty layer.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the rule that the plan breaks.
    pub fn new(plan: Plan, kind: Kind) -> Result<Layer, Error> {
        Ok(Layer {
            geometry: plan.geometry(kind)?,
            store: Store::default(),
            capacity: plan.capacity,
            rate: plan.rate,
            items: 0,
        })
    }

    /// What the layer was planned to be.
    pub fn plan(&self) -> Plan {
        Plan { capacity: self.capacity, rate: self.rate, size: self.geometry.size() }
    }

    /// The layer's structure.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// How many adds answered 1 it was made for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The false-positive rate it was made for.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Adds to it that were answered 1; in a counting filter, adds less deletes.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Sets the number of items, as a saved filter states it.
    pub fn set_items(&mut self, items: u64) {
        self.items = items;
    }

    /// Counts one add.
    #[inline]
    pub fn count(&mut self) {
        self.items = self.items.saturating_add(1);
    }

    /// Counts one delete.
    #[inline]
    fn uncount(&mut self) {
        // A loaded filter may state fewer items than its counters hold.
        self.items = self.items.saturating_sub(1);
    }

    /// Whether it has taken as many items as it was made for.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.items >= self.capacity
    }

    /// Bytes allocated for bits and tables.
    pub fn bytes(&self) -> usize {
        self.store.bytes(self.geometry)
    }

    /// At least the number of chunks made, without looking at each.
    pub fn slots(&self) -> usize {
        self.store.slots(self.geometry)
    }

    /// The lines of a chunk, if it was made.
    pub fn chunk(&self, chunk: u32) -> Option<&[Line]> {
        if chunk < self.geometry.chunks() { self.store.view(self.geometry).chunk(chunk) } else { None }
    }

    /// The lines of a chunk, made if missing.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Malformed`] for a chunk beyond the last.
    pub fn make_chunk(&mut self, chunk: u32) -> Result<&mut [Line], Error> {
        if chunk >= self.geometry.chunks() {
            return Err(Error::Malformed("a chunk lies within its layer"));
        }
        self.store.make(self.geometry, chunk)
    }

    /// The chunks, opened for a group of lookups.
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        self.store.view(self.geometry)
    }

    /// Indexes of the chunks made, ascending, beginning at `from`.
    pub fn made_from(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        self.store.made_from(self.geometry, from)
    }

    /// Moves tables and chunks, from this chunk on; the chunk to go on from, if the mover was told to stop.
    pub fn move_memory(&mut self, from: u32, mover: &mut impl Mover) -> Option<u32> {
        self.store.move_memory(self.geometry, from, mover)
    }

    /// A copy with chunks of its own.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Layer, Error> {
        let mut copy = Layer::new(self.plan(), self.geometry.kind())?;
        copy.items = self.items;
        for chunk in self.store.made(self.geometry) {
            if let Some(lines) = self.chunk(chunk) {
                copy.make_chunk(chunk)?.copy_from_slice(lines);
            }
        }
        Ok(copy)
    }

    /// Whether no place of the item is 0. `P` is that of the layer's kind.
    #[inline]
    pub fn contains<P: Places>(&self, hash: Hash) -> bool {
        debug_assert_eq!(P::WIDTH, self.geometry.kind().width());
        by_spread!(self.geometry.spread(), S => self.contains_in::<P, S>(hash))
    }

    /// Finds and asks for the first of the item's lines.
    #[inline]
    pub fn first_line(&self, hash: Hash) -> &Line {
        let view = self.store.view(self.geometry);
        let first = if view.is_empty() {
            &NOTHING
        } else if view.is_deep() {
            view.first_line::<true>(hash)
        } else {
            view.first_line::<false>(hash)
        };
        prefetch(first);
        first
    }

    /// Asks for all of the item's lines.
    #[inline]
    pub fn ask_for_lines(&self, hash: Hash) {
        let view = self.store.view(self.geometry);
        by_spread!(self.geometry.spread(), S => self.lines_of::<S>(&view, hash).into_iter().for_each(|line| prefetch(line)));
    }

    /// Whether the item's first line leaves it possible that the layer holds it. `P` is that of the layer's kind.
    #[inline]
    pub fn may_hold<P: Places>(&self, first: &Line, hash: Hash) -> bool {
        by_spread!(self.geometry.spread(), S => may_hold::<P, S>(first, hash, self.geometry.bits()))
    }

    /// Sets the item's bits in a plain layer; whether any of them was not set before. Nothing is written if none was.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; no bit was set then.
    #[inline]
    pub fn insert(&mut self, hash: Hash) -> Result<bool, Error> {
        debug_assert_eq!(self.geometry.kind(), Kind::Plain);
        by_spread!(self.geometry.spread(), S => self.insert_in::<OneBit, S>(hash))
    }

    /// Counts the item up in a counting layer.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing has changed then.
    #[inline]
    pub fn up(&mut self, hash: Hash) -> Result<(), Error> {
        by_spread!(self.geometry.spread(), S => self.step::<S>(hash, FourBit::up, Which::Any))?;
        self.count();
        Ok(())
    }

    /// Counts the item up in a counting layer, if it is there; whether it was.
    #[inline]
    pub fn up_if_there(&mut self, hash: Hash) -> bool {
        let was = self.step_if_there(hash, FourBit::up);
        if was {
            self.count();
        }
        was
    }

    /// Counts the item down in a counting layer, if it is there; whether it was.
    #[inline]
    pub fn down_if_there(&mut self, hash: Hash) -> bool {
        let was = self.step_if_there(hash, FourBit::down);
        if was {
            self.uncount();
        }
        was
    }

    #[inline]
    fn step_if_there(&mut self, hash: Hash, step: fn(&mut Line, &Line)) -> bool {
        // Most that are absent are ruled out before their places are laid out. (In a chunk that is missing all are, so
        // none is made.)
        by_spread!(self.geometry.spread(), S => {
            let first = self.first_line(hash);
            may_hold::<FourBit, S>(first, hash, self.geometry.bits())
                && self.step::<S>(hash, step, Which::There) == Ok(true)
        })
    }

    /// How often the item was added to a counting layer and not deleted, at most; 15 also stands for more.
    #[inline]
    pub fn times(&self, hash: Hash) -> u8 {
        by_spread!(self.geometry.spread(), S => self.times_in::<S>(hash))
    }

    /// Finds and asks for the first line of each `wanted` item, so that all are on their way before the first is tested.
    #[inline]
    pub fn first_lines(&self, group: &Group, wanted: Mask) -> FirstLines<'_> {
        let view = self.store.view(self.geometry);
        let mut first = [&NOTHING; GROUP];
        if view.is_deep() {
            find::<true>(&view, &group.hashes, wanted, &mut first);
        } else {
            find::<false>(&view, &group.hashes, wanted, &mut first);
        }
        first
    }

    /// Which of the `wanted` items of a group are in the layer; `first` are their first lines. `P` is that of the layer's kind.
    #[inline]
    pub fn probe<P: Places>(&self, group: &Group, first: &FirstLines<'_>, wanted: Mask) -> Mask {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { self.probe_avx2::<P>(group, first, wanted) };
        }
        by_spread!(self.geometry.spread(), S => self.probe_in::<P, S>(group, first, wanted))
    }

    /// [`Layer::probe`] compiled for processors of the last ten years: a shift by a variable takes one step there and not
    /// three, and a line is two vectors and not four.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn probe_avx2<P: Places>(&self, group: &Group, first: &FirstLines<'_>, wanted: Mask) -> Mask {
        by_spread!(self.geometry.spread(), S => self.probe_in::<P, S>(group, first, wanted))
    }

    fn contains_in<P: Places, const S: usize>(&self, hash: Hash) -> bool {
        let (lines, bits) = (self.lines_of::<S>(&self.store.view(self.geometry), hash), self.geometry.bits());
        if S > 1 {
            // On their way while the first one is looked at, which rules out most items that are absent.
            lines[1..].iter().for_each(|line| prefetch(*line));
            if !may_hold::<P, S>(lines[0], hash, bits) {
                return false;
            }
        }
        all_set::<P, S>(&lines, hash, bits)
    }

    fn insert_in<P: Places, const S: usize>(&mut self, hash: Hash) -> Result<bool, Error> {
        let spot = self.geometry.spot(hash);
        let lines = self.geometry.lines_at::<S>(spot);
        let bits = self.geometry.bits();
        let chunk = self.store.make(self.geometry, spot.chunk)?;
        // Tested before anything is written: an add that changes nothing must not dirty a page that a saving child
        // shares with us.
        if all_set::<P, S>(&in_chunk(chunk, &lines), hash, bits) {
            return Ok(false);
        }
        let bits = usize::from(bits);
        for (block, four) in places::<P>(hash).take(bits.div_ceil(4)).enumerate() {
            for (i, place) in (block * 4..bits).zip(four) {
                if let Some(line) = chunk.get_mut(lines.of_place(i) as usize) {
                    P::mark(line, place);
                }
            }
        }
        Ok(true)
    }

    /// Steps the counters of the item's places, each once, also where several of its places are one; whether it did.
    fn step<const S: usize>(&mut self, hash: Hash, step: fn(&mut Line, &Line), which: Which) -> Result<bool, Error> {
        let spot = self.geometry.spot(hash);
        let lines = self.geometry.lines_at::<S>(spot);
        let lines = lines.indexes();
        let mut marks = [NOTHING; S];
        for (i, place) in places::<FourBit>(hash).flatten().take(self.geometry.bits().into()).enumerate() {
            FourBit::mark(&mut marks[i % lines.len() % S], place);
        }
        let chunk = self.store.make(self.geometry, spot.chunk)?;
        let marked = || lines.iter().map(|line| *line as usize).zip(&marks);
        let there = |(line, marks)| chunk.get(line).is_some_and(|line| covers::<FourBit>(line, marks));
        if which == Which::There && !marked().all(there) {
            return Ok(false);
        }
        for (line, marks) in marked() {
            if let Some(line) = chunk.get_mut(line) {
                step(line, marks);
            }
        }
        Ok(true)
    }

    fn times_in<const S: usize>(&self, hash: Hash) -> u8 {
        let lines = self.lines_of::<S>(&self.store.view(self.geometry), hash);
        let places = places::<FourBit>(hash).flatten().take(self.geometry.bits().into());
        places.enumerate().map(|(i, place)| FourBit::count(lines[i % S], place)).min().unwrap_or(0)
    }

    /// Pass by pass over the group, so that no item waits for the one before. An item's other lines are asked for only when
    /// its first one does not rule it out, as it does for most that are absent.
    #[inline(always)]
    fn probe_in<P: Places, const S: usize>(&self, group: &Group, first: &FirstLines<'_>, wanted: Mask) -> Mask {
        let (view, hashes, bits) = (self.store.view(self.geometry), &group.hashes, self.geometry.bits());
        let (mut possible, mut found) = (0, 0);
        if S == 1 {
            // There are no other lines.
            for i in items_of(wanted) {
                found |= Mask::from(all_set::<P, S>(&[first[i]; S], hashes[i], bits)) << i;
            }
            return found;
        }
        if group.fits(self.geometry) {
            for i in items_of(wanted) {
                possible |= Mask::from(covers::<P>(first[i], &group.first_places[i])) << i;
            }
        } else {
            for i in items_of(wanted) {
                possible |= Mask::from(may_hold::<P, S>(first[i], hashes[i], bits)) << i;
            }
        }
        for i in items_of(possible) {
            self.lines_of::<S>(&view, hashes[i]).into_iter().for_each(|line| prefetch(line));
        }
        for i in items_of(possible) {
            found |= Mask::from(self.holds::<P, S>(&view, hashes[i])) << i;
        }
        found
    }

    /// Whether no place is 0, in all lines.
    #[inline]
    fn holds<P: Places, const S: usize>(&self, view: &View, hash: Hash) -> bool {
        all_set::<P, S>(&self.lines_of(view, hash), hash, self.geometry.bits())
    }

    /// The lines that an item's places are in, by `place number mod S`; empty ones where the chunk is missing.
    #[inline]
    fn lines_of<'a, const S: usize>(&self, view: &View<'a>, hash: Hash) -> [&'a Line; S] {
        let spot = self.geometry.spot(hash);
        match view.chunk(spot.chunk) {
            Some(chunk) => in_chunk(chunk, &self.geometry.lines_at(spot)),
            None => [&NOTHING; S],
        }
    }
}

#[inline(always)]
fn find<'a, const DEEP: bool>(view: &View<'a>, hashes: &[Hash; GROUP], wanted: Mask, first: &mut FirstLines<'a>) {
    if view.is_empty() {
        return;
    }
    for i in items_of(wanted) {
        first[i] = view.first_line::<DEEP>(hashes[i]);
        prefetch(first[i]);
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        self.store.clear(self.geometry);
    }
}

/// The positions in a mask, ascending.
#[inline]
pub fn items_of(mut mask: Mask) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let i = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(i % GROUP)
    })
}

/// The lines themselves, by `place number mod S`.
#[inline]
fn in_chunk<'a, const S: usize>(chunk: &'a [Line], lines: &Lines<S>) -> [&'a Line; S] {
    std::array::from_fn(|i| chunk.get(lines.of_place(i) as usize).unwrap_or(&NOTHING))
}

/// Whether the item's first line leaves it possible that no place is 0: tests up to four places of it.
#[inline]
fn may_hold<P: Places, const S: usize>(first: &Line, hash: Hash, bits: u8) -> bool {
    let place = places_in_first::<P, S>(hash);
    let test = |j: usize| P::test(first, place[j]);
    let all = match usize::from(bits).div_ceil(S) {
        1 => test(0),
        2 => test(0) & test(1),
        3 => test(0) & test(1) & test(2),
        _ => test(0) & test(1) & test(2) & test(3),
    };
    all & 1 == 1
}

/// Whether none of the item's places is 0.
///
/// Four at a time without a branch: of an item that is not there, each place is set about every second time, so a branch
/// a place would be mispredicted more often than not.
#[inline]
fn all_set<P: Places, const S: usize>(lines: &[&Line; S], hash: Hash, bits: u8) -> bool {
    let mut i = 0;
    for four in places::<P>(hash) {
        let test = |j: usize| P::test(lines[(i + j) % S], four[j]);
        let all = match usize::from(bits) - i {
            0 => return true,
            1 => return test(0) & 1 == 1,
            2 => return test(0) & test(1) & 1 == 1,
            3 => return test(0) & test(1) & test(2) & 1 == 1,
            _ => test(0) & test(1) & test(2) & test(3),
        };
        if all & 1 == 0 {
            return false;
        }
        i += 4;
    }
    true
}
