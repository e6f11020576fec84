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

use std::slice;

use super::record::{self, Bits, Body, Record, Refused};
use crate::bloom::chain::{Chain, Head};
use crate::bloom::check;
use crate::bloom::error::Error;
use crate::bloom::geometry::Kind;
use crate::bloom::layer::{Layer, Plan};
use crate::bloom::moving::{self, Mover};

/// The iterator of an end record: 14 digits, which JavaScript and Lua (also `tostring` and cjson) keep exactly.
pub const END: u64 = (1 << 46) - 1;

/// The value of a key.
pub enum Filter {
    /// A filter that answers.
    Whole(Chain),
    /// A filter whose end record has not come yet.
    Partial(Box<Partial>),
}

/// A filter that is being loaded.
pub struct Partial {
    head: Head,
    /// `changes` of the filter record, which is saved as it was received.
    head_changes: u64,
    /// The highest `changes` of any record.
    changes: u64,
    layers: Vec<Layer>,
    /// Chunks of the newest layer that have come.
    next_chunk: u32,
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
    fn allows(self, bytes: u64) -> Result<(), Refused> {
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
        let mut filter = Filter::begin(record::read(&mut bytes)?)?;
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
        let Body::Filter(head) = record.body else {
            return Err(Refused::Order("a filter's first record must be its filter record (iterator 1)"));
        };
        let (head_changes, changes) = (record.changes, record.changes);
        Ok(Filter::Partial(Box::new(Partial { head, head_changes, changes, layers: Vec::new(), next_chunk: 0 })))
    }

    /// Takes the next of a sequence of records, as an RDB value or a payload of several holds them.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn continue_with(&mut self, record: Record, source: Source) -> Result<(), Refused> {
        let Filter::Partial(partial) = self else { return Err(Refused::Order("a record follows the end record")) };
        if let (Taken::Changed, whole) = partial.take(None, record, source)? {
            if let Some(chain) = whole {
                *self = Filter::Whole(chain);
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
            Filter::Whole(chain) => load_into_whole(chain, iterator, record, source),
            Filter::Partial(partial) => {
                let (taken, whole) = partial.take(Some(iterator), record, source)?;
                if let Some(chain) = whole {
                    *self = Filter::Whole(chain);
                }
                Ok(taken)
            }
        }
    }

    /// The record at this position and the position after it; nothing after the last.
    ///
    /// # Errors
    /// [`Refused::Order`] for a position at which no record begins, [`Error::OutOfMemory`].
    pub fn record_at(&self, position: u64) -> Result<Option<(u64, Vec<u8>)>, Refused> {
        match self {
            Filter::Whole(chain) => {
                let layers = || chain.layers();
                if position == layer_position(layers().map(|l| l.geometry().chunks()), chain.layer_count()) {
                    let items: Vec<u64> = layers().map(Layer::items).collect();
                    return Ok(Some((END, record::write_end(&chain.head(), chain.changes(), &items)?)));
                }
                if position == END {
                    return Ok(None);
                }
                write_at(&chain.head(), chain.changes(), chain.changes(), layers(), position, u32::MAX)
            }
            Filter::Partial(partial) => {
                let Partial { head, head_changes, changes, layers, next_chunk } = &**partial;
                if position == partial.next_position() {
                    return Ok(None);
                }
                write_at(head, *head_changes, *changes, layers.iter(), position, *next_chunk)
            }
        }
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
        // The chain counts its own fields; what the enum and the box add is counted here.
        match self {
            Filter::Whole(chain) => chain.bytes() - size_of::<Chain>() + size_of::<Filter>(),
            Filter::Partial(partial) => {
                let layers: usize = partial.layers.iter().map(Layer::bytes).sum();
                let table = partial.layers.capacity() * size_of::<Layer>();
                size_of::<Filter>() + size_of::<Partial>() + table + layers
            }
        }
    }

    /// Moves the memory of everything, from a place on (see [`moving`]); the place to go on from, if the mover was told to
    /// stop.
    pub fn move_memory(&mut self, from: u64, mover: &mut impl Mover) -> Option<u64> {
        match self {
            Filter::Whole(chain) => chain.move_memory(from, mover),
            Filter::Partial(partial) => {
                if from == 0 {
                    moving::move_box(partial, mover);
                    moving::move_vec(&mut partial.layers, mover);
                }
                moving::move_layers(partial.layers.iter_mut(), from, mover)
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
            Filter::Whole(chain) => {
                let name = [chain.head().id.as_slice(), to_key].concat();
                let id = xxhash_rust::xxh3::xxh3_64(&name).to_le_bytes();
                Ok(Filter::Whole(chain.try_clone(id)?))
            }
            Filter::Partial(partial) => {
                let layers = partial.layers.iter().map(Layer::try_clone).collect::<Result<_, _>>()?;
                let Partial { head, head_changes, changes, next_chunk, .. } = **partial;
                Ok(Filter::Partial(Box::new(Partial { head, head_changes, changes, layers, next_chunk })))
            }
        }
    }

    /// The filter, if all of it is there.
    #[inline]
    pub fn whole_mut(&mut self) -> Option<&mut Chain> {
        match self {
            Filter::Whole(chain) => Some(chain),
            Filter::Partial(_) => None,
        }
    }

    /// The layers, oldest first.
    pub fn layers(&self) -> Box<dyn Iterator<Item = &Layer> + '_> {
        match self {
            Filter::Whole(chain) => Box::new(chain.layers()),
            Filter::Partial(partial) => Box::new(partial.layers.iter()),
        }
    }

    /// Changes of the filter, or the most that a record of it has told of.
    pub fn changes(&self) -> u64 {
        match self {
            Filter::Whole(chain) => chain.changes(),
            Filter::Partial(partial) => partial.changes,
        }
    }

    /// What the filter was asked to be.
    pub fn head(&self) -> Head {
        match self {
            Filter::Whole(chain) => chain.head(),
            Filter::Partial(partial) => partial.head,
        }
    }

    /// The position of the record that a filter being loaded waits for.
    pub fn waits_for(&self) -> Option<u64> {
        match self {
            Filter::Whole(_) => None,
            Filter::Partial(partial) => Some(partial.next_position()),
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
fn load_into_whole(chain: &mut Chain, iterator: u64, record: Record, source: Source) -> Result<Taken, Refused> {
    match record.body {
        Body::Layer { number, plan, kind, keyed } => {
            let number = usize::from(number);
            let position = layer_position(chain.layers().map(|layer| layer.geometry().chunks()), number);
            let fits = fits(&chain.head(), kind, keyed);
            if let Source::Client(_) = source {
                if record.id != chain.head().id {
                    return Err(OTHER_FILTER);
                }
                if iterator != position + 1 {
                    return Err(WRONG_ITERATOR);
                }
            }
            if let Some(own) = chain.layers().nth(number) {
                return match source {
                    _ if fits.is_ok() && own.plan() == plan => Ok(Taken::Unchanged),
                    Source::Trusted => Ok(Taken::KeptOwnLayer),
                    Source::Client(_) => Err(Refused::Order("the filter has another layer of this number")),
                };
            }
            if number != chain.layer_count() {
                return Err(Refused::Order("a layer before this one is missing"));
            }
            fits?;
            source.allows(chain.full_bytes_with(plan))?;
            chain.grow(plan)?;
            Ok(Taken::Changed)
        }
        Body::End(items) if record.id == chain.head().id => {
            if iterator != END {
                return Err(WRONG_ITERATOR);
            }
            if items.iter().eq(chain.layers().map(Layer::items)) {
                return Ok(Taken::Unchanged);
            }
            Err(COMPLETE)
        }
        Body::Filter(_) => Err(Refused::Order("item exists: delete the key before loading a dump into it")),
        Body::Bits(_) | Body::End(_) => Err(COMPLETE),
    }
}

const COMPLETE: Refused = Refused::Order("the filter is complete and takes no further records of a dump");

/// The record of the layer that is to be the filter's next one, and its iterator.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn next_layer_record(chain: &Chain, plan: Plan) -> Result<(u64, Vec<u8>), Refused> {
    let number = chain.layer_count();
    let position = layer_position(chain.layers().map(|layer| layer.geometry().chunks()), number);
    let number = u16::try_from(number).map_err(|_| Error::TooManyLayers)?;
    Ok((position + 1, record::write_layer(&chain.head(), chain.changes(), number, plan)?))
}

/// The record at `position`, of which `END` is not one; the newest layer's chunks end at `newest_to`.
fn write_at<'a>(
    head: &Head,
    head_changes: u64,
    changes: u64,
    layers: impl Iterator<Item = &'a Layer>,
    position: u64,
    newest_to: u32,
) -> Result<Option<(u64, Vec<u8>)>, Refused> {
    if position == 0 {
        return Ok(Some((1, record::write_filter(head, head_changes)?)));
    }
    let mut at = 1;
    let mut layers = layers.zip(0u16..).peekable();
    while let Some((layer, number)) = layers.next() {
        let chunks = layer.geometry().chunks();
        if position == at {
            return Ok(Some((at + 1, record::write_layer(head, changes, number, layer.plan())?)));
        }
        let to = if layers.peek().is_none() { newest_to.min(chunks) } else { chunks };
        if let Ok(from) = u32::try_from(position - at - 1)
            && from < to
        {
            let (end, bytes) = record::write_bits(head, changes, number, layer, from, to)?;
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
        self.layers.last().map_or(0, |layer| layer.geometry().chunks())
    }

    /// Whether all bits of all layers so far have come.
    fn is_layer_complete(&self) -> bool {
        self.next_chunk == self.newest_chunks()
    }

    fn position_of(&self, layer: usize) -> u64 {
        layer_position(self.layers.iter().map(|layer| layer.geometry().chunks()), layer)
    }

    /// The position of the record that comes next.
    fn next_position(&self) -> u64 {
        match self.layers.len() {
            0 => 1,
            n => self.position_of(n - 1) + 1 + u64::from(self.next_chunk),
        }
    }

    /// The iterator that goes with a record.
    fn position_after(&self, record: &Record) -> u64 {
        match record.body {
            Body::Filter(_) => 1,
            Body::Layer { number, .. } => self.position_of(number.into()) + 1,
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
    ) -> Result<(Taken, Option<Chain>), Refused> {
        if record.id != self.head.id {
            return Err(OTHER_FILTER);
        }
        if iterator.is_some_and(|iterator| iterator != self.position_after(&record)) {
            return Err(WRONG_ITERATOR);
        }
        if let Body::Filter(head) = record.body {
            // The same bytes again, which a client sends that did not see our answer.
            if head == self.head && record.changes == self.head_changes {
                return Ok((Taken::Unchanged, None));
            }
            return Err(Refused::Order("another dump of this filter is being loaded: delete the key to begin again"));
        }
        if self.head.kind == Kind::Counting && record.changes != self.changes {
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
            Body::Filter(_) => Taken::Unchanged,
            Body::Layer { number, plan, kind, keyed } => {
                fits(&self.head, kind, keyed)?;
                self.take_layer(number.into(), plan, source)?
            }
            Body::Bits(bits) => self.take_bits(bits)?,
            Body::End(items) => {
                if !self.is_layer_complete() {
                    return Err(Refused::Order("a record is missing before the end record"));
                }
                if items.len() != self.layers.len() {
                    return Err(Refused::Order("the end record is that of a filter with another number of layers"));
                }
                check::check(&self.head, &self.layers)?;
                for (layer, items) in self.layers.iter_mut().zip(items.iter()) {
                    layer.set_items(items);
                }
                let layers = std::mem::take(&mut self.layers);
                return Ok((Taken::Changed, Some(Chain::from_layers(self.head, layers, record.changes)?)));
            }
        };
        let taken = if record.changes > self.changes { Taken::Changed } else { taken };
        self.changes = record.changes;
        Ok((taken, None))
    }

    fn take_layer(&mut self, number: usize, plan: Plan, source: Source) -> Result<Taken, Refused> {
        if number + 1 == self.layers.len() && self.next_chunk == 0 {
            let same = self.layers.last().is_some_and(|own| own.plan() == plan);
            return if same {
                Ok(Taken::Unchanged)
            } else {
                Err(Refused::Order("another layer of this number came before"))
            };
        }
        if number != self.layers.len() || !self.is_layer_complete() {
            return Err(OUT_OF_ORDER);
        }
        let layer = Layer::new(plan, self.head.kind)?;
        let lines =
            self.layers.iter().chain(slice::from_ref(&layer)).map(|layer| layer.geometry().lines()).sum::<u64>();
        source.allows(lines.saturating_mul(64))?;
        self.layers.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
        self.layers.push(layer);
        if let Err(error) = check::check(&self.head, &self.layers) {
            self.layers.pop();
            return Err(error.into());
        }
        self.next_chunk = 0;
        Ok(Taken::Changed)
    }

    fn take_bits(&mut self, bits: Bits) -> Result<Taken, Refused> {
        let newest = self.layers.len().checked_sub(1);
        let Some(layer) = self.layers.last_mut().filter(|_| newest == Some(bits.layer.into())) else {
            return Err(OUT_OF_ORDER);
        };
        bits.check(layer.geometry())?;
        if bits.from == self.next_chunk {
            bits.write_to(layer)?;
            self.next_chunk = bits.to;
            return Ok(Taken::Changed);
        }
        if bits.to == self.next_chunk && bits.equals(layer)? {
            return Ok(Taken::Unchanged);
        }
        Err(OUT_OF_ORDER)
    }
}

const OUT_OF_ORDER: Refused = Refused::Order("the record is not the next one: records must come in order, each once");
