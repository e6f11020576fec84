//! The order of records: what a filter is written as, and what it makes of the next record.
//!
//! ```text
//! filter │ layer 0 │ bits [0, a) │ bits [a, C₀) │ layer 1 │ bits [0, C₁) │ … │ end
//! 0        P(0)=1    P(0)+1        P(0)+1+a       P(1)      P(1)+1             after the last chunk
//! ```
//!
//! Each record has a position, and a dump's iterator is the position of the record after it. The filter record stands
//! at 0; layer `i` at `P(i) = 1 + Σ_{j<i} (1 + C_j)` where `C_j` is the number of chunks of layer `j`; its chunk `c` at
//! `P(i) + 1 + c`; the end record after the last chunk, and its iterator is [`END`]. So positions depend on what a
//! filter is and not on how its bits were cut into records: any position can be asked for at any time, also after the
//! filter grew.
//!
//! A filter whose end record has not come yet is *being loaded* ([`Partial`]): it can be saved, copied and replicated,
//! and answers no question. Records must come in order and without a gap, so a lost one is always noticed. Layers
//! never change once made and all bits of an item lie in one chunk; so adds and growth on the other side while a dump
//! is taken leave it loadable, and whatever was in when the dump began is in. Not so with a counting filter, whose chunks
//! would be of different moments, and a count too low is a false negative later: its records must all tell of as many changes.

use super::record::{self, Bits, Body, FlatFilter, MAX_CHUNKS, Record, Refused};
use super::redisbloom::{self, Half};
use crate::bloom::chain::{Chain, Head};
use crate::bloom::check;
use crate::bloom::error::Error;
use crate::bloom::flat::{self, Flat, FlatLayer};
use crate::bloom::geometry::Kind;
use crate::bloom::layer::Layer;
use crate::bloom::moving::{self, Mover};
use crate::bloom::whole::{NextPlan, OTHER_LAYOUT, Whole};

/// The iterator of an end record: 14 digits, which JavaScript and Lua (also `tostring` and cjson) keep exactly.
pub const END: u64 = (1 << 46) - 1;

/// The value of a key.
pub enum Filter {
    /// A filter that answers.
    Whole(Whole),
    /// A filter whose end record has not come yet.
    Partial(Box<Partial>),
    /// A filter of RedisBloom's, the rest of whose own dump has not come yet.
    Half(Box<Half>),
}

/// A filter that is being loaded.
pub struct Partial {
    draft: Draft,
    /// `changes` of the filter record, which is saved as it was received.
    head_changes: u64,
    /// The highest `changes` of any record.
    changes: u64,
    /// Chunks of the newest layer that have come.
    next_chunk: u32,
}

/// What has come of a filter so far: what it was asked to be, and layers.
enum Draft {
    Native(Head, Vec<Layer>),
    Flat(FlatFilter, Vec<FlatLayer>),
}

/// What a filter was asked to be, as its records say it.
#[derive(Clone, Copy)]
enum AnyHead {
    Native(Head),
    Flat(FlatFilter),
}

/// A layer of either layout.
#[derive(Clone, Copy)]
enum AnyLayer<'a> {
    Native(&'a Layer),
    Flat(&'a FlatLayer),
}

impl AnyHead {
    fn id(&self) -> [u8; 8] {
        match self {
            AnyHead::Native(head) => head.id,
            AnyHead::Flat(_) => record::FLAT_ID,
        }
    }

    fn write(&self, changes: u64) -> Result<Vec<u8>, Refused> {
        match self {
            AnyHead::Native(head) => record::write_filter(head, changes),
            AnyHead::Flat(filter) => record::write_flat_filter(filter, changes),
        }
    }

    fn write_layer(&self, changes: u64, number: u16, plan: NextPlan) -> Result<Vec<u8>, Refused> {
        match (self, plan) {
            (AnyHead::Native(head), NextPlan::Native(plan)) => record::write_layer(head, changes, number, plan),
            (AnyHead::Flat(filter), NextPlan::Flat(plan)) => {
                record::write_flat_layer(filter.head, changes, number, plan)
            }
            _ => Err(OTHER_LAYOUT.into()),
        }
    }

    /// What a layer record says of a filter of this head: the number and the plan, and whether it is of the filter's kind and
    /// hash family. None if it is no layer record.
    fn layer_of(&self, body: &Body) -> Option<(u16, NextPlan, Result<(), Refused>)> {
        match (*body, self) {
            (Body::Layer { number, plan, kind, keyed }, AnyHead::Native(head)) => {
                Some((number, NextPlan::Native(plan), fits(head, kind, keyed)))
            }
            (Body::FlatLayer { number, plan, wide }, AnyHead::Flat(filter)) => {
                let fits = if wide == filter.head.is_wide() { Ok(()) } else { Err(OTHER_FAMILY) };
                Some((number, NextPlan::Flat(plan), fits))
            }
            (Body::Layer { number, plan, .. }, AnyHead::Flat(_)) => {
                Some((number, NextPlan::Native(plan), Err(OTHER_FAMILY)))
            }
            (Body::FlatLayer { number, plan, .. }, AnyHead::Native(_)) => {
                Some((number, NextPlan::Flat(plan), Err(OTHER_FAMILY)))
            }
            _ => None,
        }
    }
}

impl<'a> AnyLayer<'a> {
    /// Its memory and its count.
    fn cells(self) -> &'a Layer {
        match self {
            AnyLayer::Native(layer) => layer,
            AnyLayer::Flat(layer) => layer.cells(),
        }
    }

    fn plan(self) -> NextPlan {
        match self {
            AnyLayer::Native(layer) => NextPlan::Native(layer.plan()),
            AnyLayer::Flat(layer) => NextPlan::Flat(layer.plan()),
        }
    }

    /// Its bytes, missing chunks included.
    fn bytes(self) -> u64 {
        match self {
            AnyLayer::Native(layer) => 64 * layer.geometry().lines(),
            AnyLayer::Flat(layer) => layer.plan().bytes,
        }
    }

    fn chunks(self) -> u32 {
        self.cells().geometry().chunks()
    }
}

fn whole_head(whole: &Whole) -> AnyHead {
    match whole {
        Whole::Native(chain) => AnyHead::Native(chain.head()),
        Whole::Flat(flat) => {
            let Head { rate, capacity, .. } = flat.head();
            AnyHead::Flat(FlatFilter { rate, capacity, head: flat.flat_head(), rest: None })
        }
    }
}

fn half_head(half: &Half) -> AnyHead {
    match whole_head(half.whole()) {
        AnyHead::Flat(filter) => AnyHead::Flat(FlatFilter { rest: Some(half.rest()), ..filter }),
        head @ AnyHead::Native(_) => head,
    }
}

fn whole_layers(whole: &Whole) -> Box<dyn Iterator<Item = AnyLayer<'_>> + '_> {
    match whole {
        Whole::Native(chain) => Box::new(chain.layers().map(AnyLayer::Native)),
        Whole::Flat(flat) => Box::new(flat.layers().iter().map(AnyLayer::Flat)),
    }
}

impl Draft {
    fn head(&self) -> AnyHead {
        match self {
            Draft::Native(head, _) => AnyHead::Native(*head),
            Draft::Flat(filter, _) => AnyHead::Flat(*filter),
        }
    }

    fn layers(&self) -> Box<dyn Iterator<Item = AnyLayer<'_>> + '_> {
        match self {
            Draft::Native(_, layers) => Box::new(layers.iter().map(AnyLayer::Native)),
            Draft::Flat(_, layers) => Box::new(layers.iter().map(AnyLayer::Flat)),
        }
    }

    fn count(&self) -> usize {
        match self {
            Draft::Native(_, layers) => layers.len(),
            Draft::Flat(_, layers) => layers.len(),
        }
    }

    fn newest(&self) -> Option<AnyLayer<'_>> {
        match self {
            Draft::Native(_, layers) => layers.last().map(AnyLayer::Native),
            Draft::Flat(_, layers) => layers.last().map(AnyLayer::Flat),
        }
    }

    /// The newest layer's memory, to be written.
    fn newest_mut(&mut self) -> Option<&mut Layer> {
        match self {
            Draft::Native(_, layers) => layers.last_mut(),
            Draft::Flat(_, layers) => layers.last_mut().map(FlatLayer::cells_mut),
        }
    }

    /// Appends an empty layer; nothing has changed if it is refused.
    fn push(&mut self, plan: NextPlan, source: Source) -> Result<(), Refused> {
        let bytes: u64 = self.layers().map(AnyLayer::bytes).sum();
        match (self, plan) {
            (Draft::Native(head, layers), NextPlan::Native(plan)) => {
                source.allows(bytes.saturating_add(64 * plan.size.lines))?;
                let layer = Layer::new(plan, head.kind)?;
                layers.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
                layers.push(layer);
                Ok(check::check(head, layers).inspect_err(|_| _ = layers.pop())?)
            }
            (Draft::Flat(_, layers), NextPlan::Flat(plan)) => {
                source.allows(bytes.saturating_add(plan.bytes))?;
                Ok(flat::push(layers, FlatLayer::new(plan)?)?)
            }
            _ => Err(OTHER_LAYOUT.into()),
        }
    }

    /// The filter, once its end record has come; nothing has changed if that is refused.
    fn finish(&mut self, items: record::Counts, changes: u64) -> Result<Filter, Refused> {
        match self {
            Draft::Native(head, layers) => {
                check::check(head, layers)?;
                for (layer, items) in layers.iter_mut().zip(items.iter()) {
                    layer.set_items(items);
                }
                Ok(Filter::from(Chain::from_layers(*head, std::mem::take(layers), changes)?))
            }
            Draft::Flat(filter, layers) => {
                flat::check(filter.head, layers)?;
                if let Some(rest) = filter.rest {
                    redisbloom::check_rest(layers, rest)?;
                }
                for (layer, items) in layers.iter_mut().zip(items.iter()) {
                    layer.cells_mut().set_items(items);
                }
                let flat = Flat::from_layers(filter.head, std::mem::take(layers))?;
                Ok(match filter.rest {
                    None => Filter::Whole(Whole::Flat(Box::new(flat))),
                    Some(rest) => Filter::Half(Box::new(Half::resume(flat, rest))),
                })
            }
        }
    }

    fn try_clone(&self) -> Result<Draft, Error> {
        Ok(match self {
            Draft::Native(head, layers) => {
                Draft::Native(*head, layers.iter().map(Layer::try_clone).collect::<Result<_, _>>()?)
            }
            Draft::Flat(filter, layers) => Draft::Flat(*filter, flat::clones(layers)?),
        })
    }

    fn move_memory(&mut self, from: u64, mover: &mut impl Mover) -> Option<u64> {
        match self {
            Draft::Native(_, layers) => {
                if from == 0 {
                    moving::move_vec(layers, mover);
                }
                moving::move_layers(layers.iter_mut(), from, mover)
            }
            Draft::Flat(_, layers) => flat::move_memory(layers, from, mover),
        }
    }

    /// Bytes allocated for the layers.
    fn bytes_behind(&self) -> usize {
        let table = match self {
            Draft::Native(_, layers) => layers.capacity() * size_of::<Layer>(),
            Draft::Flat(_, layers) => layers.capacity() * size_of::<FlatLayer>(),
        };
        table + self.layers().map(|layer| layer.cells().bytes()).sum::<usize>()
    }
}

impl From<Chain> for Filter {
    fn from(chain: Chain) -> Filter {
        Filter::Whole(chain.into())
    }
}

/// Who sends a record, and so how much it may ask for.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A client: refused where this says so of the bytes that the filter needs at its full size.
    Client(&'a dyn Fn(u64) -> Result<(), Refused>),
    /// A primary, an AOF or an RDB, which tell what has happened: no limit, and a layer that the filter does not agree
    /// about is no error.
    Trusted,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The filter was made.
    Made,
    /// The filter changed.
    Changed,
    /// Everything was so already.
    Unchanged,
    /// A layer of this number was there already, with another plan; it was kept.
    KeptOwnLayer,
}

impl Source<'_> {
    pub(super) fn allows(self, bytes: u64) -> Result<(), Refused> {
        match self {
            Source::Client(limit) => limit(bytes),
            Source::Trusted => Ok(()),
        }
    }
}

/// Position of the record of layer `number`.
fn layer_position(layers: impl Iterator<Item = u32>, number: usize) -> u64 {
    1 + layers.take(number).map(|chunks| 1 + u64::from(chunks)).sum::<u64>()
}

impl Filter {
    /// Reads a filter from the records it begins with: at least the filter record, at most all of them.
    ///
    /// # Errors
    /// [`Refused`]; also where something follows the end record.
    pub fn read(mut bytes: &[u8], source: Source) -> Result<Filter, Refused> {
        let first = record::read(&mut bytes)?;
        if let (Body::FlatFilter(_), Source::Client(_)) = (first.body, source) {
            // Nobody sends one: BF.SCANDUMP gives RedisBloom's own bytes. And a forger would have a filter for some hundred
            // bytes that is saved as a string of its full length.
            return Err(Refused::Order(
                "records of a filter in RedisBloom's layout come from a primary or an AOF only: load what BF.SCANDUMP gives",
            ));
        }
        let mut filter = Filter::begin(first)?;
        while !bytes.is_empty() {
            filter.continue_with(record::read(&mut bytes)?, source)?;
        }
        Ok(filter)
    }

    /// A filter that is being loaded, from its first record.
    ///
    /// # Errors
    /// [`Refused::Order`] if it is not a filter record.
    pub fn begin(record: Record) -> Result<Filter, Refused> {
        let draft = match record.body {
            Body::Filter(head) => Draft::Native(head, Vec::new()),
            Body::FlatFilter(filter) => Draft::Flat(filter, Vec::new()),
            _ => return Err(Refused::Order("a filter's first record must be its filter record (iterator 1)")),
        };
        let (head_changes, changes) = (record.changes, record.changes);
        Ok(Filter::Partial(Box::new(Partial { draft, head_changes, changes, next_chunk: 0 })))
    }

    /// A filter from the first data of a dump, with which iterator 1 comes: records of ours, or a header of RedisBloom's.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn from_dump(bytes: &[u8], source: Source) -> Result<Filter, Refused> {
        if bytes.starts_with(&record::MAGIC) {
            return Filter::read(bytes, source);
        }
        Ok(Filter::Half(Box::new(Half::begin(bytes, source)?)))
    }

    /// Takes the next of a sequence of records, as an RDB value or a payload of several holds them.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn continue_with(&mut self, record: Record, source: Source) -> Result<(), Refused> {
        let Filter::Partial(partial) = self else { return Err(Refused::Order("a record follows the end record")) };
        if let (Taken::Changed, finished) = partial.take(None, record, source)? {
            if let Some(filter) = finished {
                *self = filter;
            }
            return Ok(());
        }
        Err(Refused::Order("a record stands twice"))
    }

    /// Takes one record that was sent with this iterator to a filter that is there.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn load(&mut self, iterator: u64, record: Record, source: Source) -> Result<Taken, Refused> {
        match self {
            Filter::Whole(whole) => load_into_whole(whole, iterator, record, source),
            Filter::Partial(partial) => {
                let (taken, finished) = partial.take(Some(iterator), record, source)?;
                if let Some(filter) = finished {
                    *self = filter;
                }
                Ok(taken)
            }
            // Its growth, which its own AOF tells; anything else is for a client to be told.
            Filter::Half(half) => match source {
                Source::Trusted => load_into_whole(half.whole_mut(), iterator, record, source),
                Source::Client(_) => Err(OTHER_FILTER),
            },
        }
    }

    /// Takes a piece of a dump of RedisBloom's that was sent with this iterator to a filter that is there. None if it is
    /// none: it is a record, or the filter is one of our own, or is being loaded from records.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn load_piece(&mut self, iterator: u64, piece: &[u8], source: Source) -> Result<Option<Taken>, Refused> {
        // Only the header comes with iterator 1: see `from_dump`.
        if iterator == 1 && !piece.starts_with(&record::MAGIC) {
            // The same bytes again, which a client sends that did not see our answer.
            let same = matches!(self, Filter::Half(half) if half.is_of(piece)?);
            return if same { Ok(Some(Taken::Unchanged)) } else { Err(EXISTS) };
        }
        // Told apart by content: no record's magic and checksum come about by chance.
        let is_record = || record::read(&mut &piece[..]).is_ok();
        match self {
            Filter::Half(half) if !is_record() => {
                let (taken, complete) = half.take(iterator, piece, source)?;
                if complete {
                    *self = Filter::Whole(half.take_whole());
                }
                Ok(Some(taken))
            }
            Filter::Whole(Whole::Flat(flat)) if !is_record() => {
                redisbloom::load_into_whole(flat, iterator, piece, source).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The record at this position and the position after it; nothing after the last.
    ///
    /// # Errors
    /// [`Refused::Order`] for a position at which no record begins, [`Error::OutOfMemory`].
    pub fn record_at(&self, position: u64) -> Result<Option<(u64, Vec<u8>)>, Refused> {
        let (head, changes, rest) = match self {
            Filter::Whole(whole) => (whole_head(whole), whole.changes(), None),
            Filter::Half(half) => (half_head(half), half.whole().changes(), None),
            Filter::Partial(partial) => (partial.draft.head(), partial.changes, Some(&**partial)),
        };
        if let Some(partial) = rest {
            if position == partial.next_position() {
                return Ok(None);
            }
            return write_at(&head, partial.head_changes, changes, self.any_layers(), position, partial.next_chunk);
        }
        if position == layer_position(self.any_layers().map(AnyLayer::chunks), usize::MAX) {
            let items: Vec<u64> = self.layers().map(Layer::items).collect();
            return Ok(Some((END, record::write_end(head.id(), changes, &items)?)));
        }
        if position == END {
            return Ok(None);
        }
        write_at(&head, changes, changes, self.any_layers(), position, u32::MAX)
    }

    /// All records, each with the position after it.
    pub fn records(&self) -> impl Iterator<Item = Result<(u64, Vec<u8>), Refused>> + '_ {
        let mut position = 0;
        std::iter::from_fn(move || {
            let record = self.record_at(position).transpose()?;
            position = record.as_ref().map_or(END, |(next, _)| *next);
            Some(record)
        })
    }

    /// Bytes allocated for everything.
    pub fn bytes(&self) -> usize {
        size_of::<Filter>()
            + match self {
                Filter::Whole(whole) => whole.bytes_behind(),
                Filter::Partial(partial) => size_of::<Partial>() + partial.draft.bytes_behind(),
                Filter::Half(half) => size_of::<Half>() + half.bytes_behind(),
            }
    }

    /// Moves the memory of everything, from a place on (see [`moving`]); the place to go on from, if the mover was told to
    /// stop.
    pub fn move_memory(&mut self, from: u64, mover: &mut impl Mover) -> Option<u64> {
        match self {
            Filter::Whole(Whole::Native(chain)) => chain.move_memory(from, mover),
            Filter::Whole(Whole::Flat(flat)) => {
                if from == 0 {
                    moving::move_box(flat, mover);
                }
                flat.move_memory(from, mover)
            }
            Filter::Partial(partial) => {
                if from == 0 {
                    moving::move_box(partial, mover);
                }
                partial.draft.move_memory(from, mover)
            }
            Filter::Half(half) => {
                if from == 0 {
                    moving::move_box(half, mover);
                }
                half.move_memory(from, mover)
            }
        }
    }

    /// A deep copy. A whole filter gets an id of its own, derived from the old one and the name of the key it goes to,
    /// so that replicas agree on it; a filter that is being loaded keeps its id, so that the rest of its dump fits it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self, to_key: &[u8]) -> Result<Filter, Error> {
        match self {
            Filter::Whole(Whole::Native(chain)) => {
                let name = [chain.head().id.as_slice(), to_key].concat();
                let id = xxhash_rust::xxh3::xxh3_64(&name).to_le_bytes();
                Ok(Filter::from(chain.try_clone(id)?))
            }
            Filter::Whole(Whole::Flat(flat)) => Ok(Filter::Whole(Whole::Flat(Box::new(flat.try_clone()?)))),
            Filter::Partial(partial) => {
                let Partial { head_changes, changes, next_chunk, .. } = **partial;
                let draft = partial.draft.try_clone()?;
                Ok(Filter::Partial(Box::new(Partial { draft, head_changes, changes, next_chunk })))
            }
            Filter::Half(half) => Ok(Filter::Half(Box::new(half.try_clone()?))),
        }
    }

    /// The filter, if all of it is there.
    #[inline]
    pub fn whole(&self) -> Option<&Whole> {
        match self {
            Filter::Whole(whole) => Some(whole),
            Filter::Partial(_) | Filter::Half(_) => None,
        }
    }

    /// The filter to add to, if all of it is there. RedisBloom knows no half-loaded filter: what it has added to one, and
    /// tells, is carried out; `trusted` says whether it is that.
    #[inline]
    pub fn whole_mut(&mut self, trusted: impl FnOnce() -> bool) -> Option<&mut Whole> {
        match self {
            Filter::Whole(whole) => Some(whole),
            Filter::Half(half) if trusted() => Some(half.whole_mut()),
            Filter::Partial(_) | Filter::Half(_) => None,
        }
    }

    /// The filter, if it is in RedisBloom's layout: all of it, or as far as it is there.
    pub fn flat(&self) -> Option<&Flat> {
        match self {
            Filter::Whole(whole) => whole.flat(),
            Filter::Half(half) => half.whole().flat(),
            Filter::Partial(_) => None,
        }
    }

    /// Moves the filter out; what stays behind is one without a layer.
    pub fn take(&mut self) -> Filter {
        std::mem::replace(self, Filter::Whole(Whole::Flat(Box::default())))
    }

    /// Whether it is all of a filter of RedisBloom's, and so is to be of its type.
    pub fn is_redisblooms(&self) -> bool {
        matches!(self, Filter::Whole(Whole::Flat(_)))
    }

    fn any_layers(&self) -> Box<dyn Iterator<Item = AnyLayer<'_>> + '_> {
        match self {
            Filter::Whole(whole) => whole_layers(whole),
            Filter::Partial(partial) => partial.draft.layers(),
            Filter::Half(half) => whole_layers(half.whole()),
        }
    }

    /// The layers' memory and counts, oldest first.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.any_layers().map(AnyLayer::cells)
    }

    /// What each layer is, oldest first.
    pub fn plans(&self) -> impl Iterator<Item = NextPlan> {
        self.any_layers().map(AnyLayer::plan)
    }

    /// Changes of the filter, or the most that a record of it has told of.
    pub fn changes(&self) -> u64 {
        match self {
            Filter::Whole(whole) => whole.changes(),
            Filter::Partial(partial) => partial.changes,
            Filter::Half(half) => half.whole().changes(),
        }
    }

    /// What the filter was asked to be.
    pub fn head(&self) -> Head {
        match self {
            Filter::Whole(whole) => whole.head(),
            Filter::Half(half) => half.whole().head(),
            Filter::Partial(partial) => match partial.draft {
                Draft::Native(head, _) => head,
                Draft::Flat(FlatFilter { rate, capacity, head, .. }, _) => {
                    let expansion = if head.is_non_scaling() { 0 } else { head.growth };
                    Head { id: record::FLAT_ID, rate, capacity, expansion, key: None, kind: Kind::Plain }
                }
            },
        }
    }

    /// What a filter being loaded waits for: the position of the next record, or the offset of the next byte of
    /// RedisBloom's dump.
    pub fn waits_for(&self) -> Option<u64> {
        match self {
            Filter::Whole(_) => None,
            Filter::Partial(partial) => Some(partial.next_position()),
            Filter::Half(half) => Some(half.rest().next),
        }
    }
}

const WRONG_ITERATOR: Refused =
    Refused::Order("the iterator must be the one that BF.SCANDUMP returned with this record");
const OTHER_FILTER: Refused = Refused::Order(
    "the record belongs to another filter (one that was deleted and made anew, a copy, or another key's): \
     delete the key and load a dump from its beginning",
);

const OTHER_FAMILY: Refused = Refused::Bad("its hash family is not the filter's");
const OTHER_KIND: Refused = Refused::Bad("a counting filter's layers have 4-bit places, and no other's have");

/// Whether a layer of this kind and hash family may be one of the filter's.
fn fits(head: &Head, kind: Kind, keyed: bool) -> Result<(), Refused> {
    if keyed != head.key.is_some() {
        return Err(OTHER_FAMILY);
    }
    if kind == head.kind { Ok(()) } else { Err(OTHER_KIND) }
}

/// What a whole filter makes of a record: only a further layer changes it.
fn load_into_whole(whole: &mut Whole, iterator: u64, record: Record, source: Source) -> Result<Taken, Refused> {
    let head = whole_head(whole);
    if let Some((number, plan, fits)) = head.layer_of(&record.body) {
        let number = usize::from(number);
        let position = layer_position(whole_layers(whole).map(AnyLayer::chunks), number);
        if let Source::Client(_) = source {
            if record.id != head.id() {
                return Err(OTHER_FILTER);
            }
            if iterator != position + 1 {
                return Err(WRONG_ITERATOR);
            }
        }
        let (own, count) = (whole_layers(whole).nth(number).map(AnyLayer::plan), whole_layers(whole).count());
        if let Some(own) = own {
            return match source {
                _ if fits.is_ok() && own == plan => Ok(Taken::Unchanged),
                Source::Trusted => Ok(Taken::KeptOwnLayer),
                Source::Client(_) => Err(Refused::Order("the filter has another layer of this number")),
            };
        }
        if number != count {
            return Err(Refused::Order("a layer before this one is missing"));
        }
        fits?;
        source.allows(whole.full_bytes_with(plan))?;
        whole.grow(plan)?;
        return Ok(Taken::Changed);
    }
    match record.body {
        Body::End(items) if record.id == head.id() => {
            if iterator != END {
                return Err(WRONG_ITERATOR);
            }
            if items.iter().eq(whole.layers().map(Layer::items)) {
                return Ok(Taken::Unchanged);
            }
            Err(COMPLETE)
        }
        Body::Filter(_) | Body::FlatFilter(_) => Err(EXISTS),
        _ => Err(COMPLETE),
    }
}

const EXISTS: Refused = Refused::Order("item exists: delete the key before loading a dump into it");
const COMPLETE: Refused = Refused::Order("the filter is complete and takes no further records of a dump");

/// The record of the layer that is to be the filter's next one, and its iterator.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn next_layer_record(whole: &Whole, plan: NextPlan) -> Result<(u64, Vec<u8>), Refused> {
    let chunks: Vec<u32> = whole_layers(whole).map(AnyLayer::chunks).collect();
    let number = chunks.len();
    let position = layer_position(chunks.into_iter(), number);
    let number = u16::try_from(number).map_err(|_| Error::TooManyLayers)?;
    Ok((position + 1, whole_head(whole).write_layer(whole.changes(), number, plan)?))
}

/// The record at `position`, of which `END` is not one; the newest layer's chunks end at `newest_to`.
fn write_at<'a>(
    head: &AnyHead,
    head_changes: u64,
    changes: u64,
    layers: impl Iterator<Item = AnyLayer<'a>>,
    position: u64,
    newest_to: u32,
) -> Result<Option<(u64, Vec<u8>)>, Refused> {
    if position == 0 {
        return Ok(Some((1, head.write(head_changes)?)));
    }
    let mut at = 1;
    let mut layers = layers.zip(0u16..).peekable();
    while let Some((layer, number)) = layers.next() {
        let chunks = layer.chunks();
        if position == at {
            return Ok(Some((at + 1, head.write_layer(changes, number, layer.plan())?)));
        }
        let to = if layers.peek().is_none() { newest_to.min(chunks) } else { chunks };
        if let Ok(from) = u32::try_from(position - at - 1)
            && from < to
        {
            let sized = (layer.bytes(), layer.cells());
            let (end, bytes) = record::write_bits(head.id(), changes, number, sized, from, to)?;
            return Ok(Some((at + 1 + u64::from(end), bytes)));
        }
        at += 1 + u64::from(chunks);
        if position < at {
            break;
        }
    }
    Err(Refused::Order("no record begins at this iterator: pass the one returned with the record before"))
}

impl Partial {
    fn newest_chunks(&self) -> u32 {
        self.draft.newest().map_or(0, AnyLayer::chunks)
    }

    /// Whether all bits of all layers so far have come.
    fn is_layer_complete(&self) -> bool {
        self.next_chunk == self.newest_chunks()
    }

    fn position_of(&self, layer: usize) -> u64 {
        layer_position(self.draft.layers().map(AnyLayer::chunks), layer)
    }

    /// The position of the record that comes next.
    fn next_position(&self) -> u64 {
        match self.draft.count() {
            0 => 1,
            n => self.position_of(n - 1) + 1 + u64::from(self.next_chunk),
        }
    }

    /// The iterator that goes with a record.
    fn position_after(&self, record: &Record) -> u64 {
        match record.body {
            Body::Filter(_) | Body::FlatFilter(_) => 1,
            Body::Layer { number, .. } | Body::FlatLayer { number, .. } => self.position_of(number.into()) + 1,
            Body::Bits(Bits { layer, to, .. }) => self.position_of(layer.into()) + 1 + u64::from(to),
            Body::End(_) => END,
        }
    }

    /// Takes the next record, or one that changes nothing; with the end record the filter is whole.
    fn take(
        &mut self,
        iterator: Option<u64>,
        record: Record,
        source: Source,
    ) -> Result<(Taken, Option<Filter>), Refused> {
        let head = self.draft.head();
        if record.id != head.id() {
            return Err(OTHER_FILTER);
        }
        if iterator.is_some_and(|iterator| iterator != self.position_after(&record)) {
            return Err(WRONG_ITERATOR);
        }
        let same_head = match (record.body, head) {
            (Body::Filter(sent), AnyHead::Native(own)) => Some(sent == own),
            (Body::FlatFilter(sent), AnyHead::Flat(own)) => Some(sent == own),
            (Body::Filter(_) | Body::FlatFilter(_), _) => Some(false),
            _ => None,
        };
        if let Some(same) = same_head {
            // The same bytes again, which a client sends that did not see our answer.
            if same && record.changes == self.head_changes {
                return Ok((Taken::Unchanged, None));
            }
            return Err(Refused::Order("another dump of this filter is being loaded: delete the key to begin again"));
        }
        let is_counting = matches!(head, AnyHead::Native(head) if head.kind == Kind::Counting);
        if is_counting && record.changes != self.changes {
            return Err(Refused::Order(
                "the counting filter was added to or deleted from while it was dumped: dump a copy of it (COPY key tmp, \
                 then BF.SCANDUMP tmp), and delete the key here to begin again",
            ));
        }
        if record.changes < self.changes {
            return Err(Refused::Order(
                "the record is older than the ones before it: it was dumped from an older copy, or a replica that lags",
            ));
        }
        let taken = match record.body {
            Body::Bits(bits) => {
                if let Source::Client(_) = source
                    && bits.present > MAX_CHUNKS
                {
                    return Err(Refused::Bad(
                        "it holds more than 8,192 chunks, the most that one record of a dump has",
                    ));
                }
                self.take_bits(bits)?
            }
            Body::End(items) => {
                if !self.is_layer_complete() {
                    return Err(Refused::Order("a record is missing before the end record"));
                }
                if items.len() != self.draft.count() {
                    return Err(Refused::Order("the end record is that of a filter with another number of layers"));
                }
                return Ok((Taken::Changed, Some(self.draft.finish(items, record.changes)?)));
            }
            _ => match head.layer_of(&record.body) {
                Some((number, plan, fits)) => {
                    fits?;
                    self.take_layer(number.into(), plan, source)?
                }
                None => return Err(OUT_OF_ORDER),
            },
        };
        let taken = if record.changes > self.changes { Taken::Changed } else { taken };
        self.changes = record.changes;
        Ok((taken, None))
    }

    fn take_layer(&mut self, number: usize, plan: NextPlan, source: Source) -> Result<Taken, Refused> {
        if number + 1 == self.draft.count() && self.next_chunk == 0 {
            let same = self.draft.newest().is_some_and(|own| own.plan() == plan);
            return if same {
                Ok(Taken::Unchanged)
            } else {
                Err(Refused::Order("another layer of this number came before"))
            };
        }
        if number != self.draft.count() || !self.is_layer_complete() {
            return Err(OUT_OF_ORDER);
        }
        self.draft.push(plan, source)?;
        self.next_chunk = 0;
        Ok(Taken::Changed)
    }

    fn take_bits(&mut self, bits: Bits) -> Result<Taken, Refused> {
        if self.draft.count() != usize::from(bits.layer) + 1 {
            return Err(OUT_OF_ORDER);
        }
        let bytes = self.draft.newest().map_or(0, AnyLayer::bytes);
        let Some(layer) = self.draft.newest_mut() else { return Err(OUT_OF_ORDER) };
        bits.check(bytes, layer.geometry().kind())?;
        if bits.from == self.next_chunk {
            bits.write_to(bytes, layer)?;
            self.next_chunk = bits.to;
            return Ok(Taken::Changed);
        }
        if bits.to == self.next_chunk && bits.equals(bytes, layer)? {
            return Ok(Taken::Unchanged);
        }
        Err(OUT_OF_ORDER)
    }
}

const OUT_OF_ORDER: Refused = Refused::Order("the record is not the next one: records must come in order, each once");
