//! RedisBloom's own encodings of a filter: its RDB value, and the dump that its BF.SCANDUMP gives.
//!
//! ```text
//! RDB value   size, layers, [options], [growth], then of each layer, oldest first
//!             capacity, rate, hashes, bits an item, [bits, log2], array, size
//! ```
//!
//! Integers and doubles as the server's module interface saves them, the array as one string. Versions 0 to 4 are read:
//! bits and log2 since 1, options since 2, growth since 4. Version 4 is written.
//!
//! ```text
//! dump        header, then the arrays of all layers laid end to end, in pieces of any length
//! header      size u64, layers u32, options u32, growth u32, then of each layer, packed, little endian
//!             bytes u64, bits u64, size u64, rate f64, bits an item f64, hashes u32, capacity u64, log2 u8
//! iterator    of the header 1; of a piece the offset of the byte after it, plus 1
//! ```
//!
//! As everywhere here each byte is hostile: what RedisBloom could not have written is refused before memory is taken, and
//! memory is taken where bits are set.

use super::filter::{Source, Taken};
use super::record::{Refused, Rest, write_bytes};
use crate::bloom::error::Error;
use crate::bloom::flat::{Flat, FlatHead, FlatLayer, FlatPlan, MAX_FLAT_LAYERS, USUAL_GROWTH, bits_for};
use crate::bloom::moving::Mover;
use crate::bloom::whole::Whole;

/// The version of the RDB value that is written, and the highest that is read.
pub const ENCODING: u8 = 4;
/// The versions from which on a value states these.
const WITH_BITS: u64 = 1;
const WITH_OPTIONS: u64 = 2;
const WITH_GROWTH: u64 = 4;

/// The longest piece of a dump that is given at once.
const MAX_PIECE: u64 = 1 << 20;
/// Bytes of a full chunk.
const CHUNK_LEN: usize = 4096;
const CHUNK: u64 = CHUNK_LEN as u64;

/// Where the fields of an RDB value come from, one after the other.
pub trait Fields {
    /// A string of the value.
    type Bytes: AsRef<[u8]>;
    /// The next field, an integer.
    ///
    /// # Errors
    /// The value is cut short or cannot be read; likewise below.
    fn unsigned(&mut self) -> Result<u64, Refused>;
    /// The next field, a double.
    ///
    /// # Errors
    /// As above.
    fn double(&mut self) -> Result<f64, Refused>;
    /// The next field, a string.
    ///
    /// # Errors
    /// As above.
    fn bytes(&mut self) -> Result<Self::Bytes, Refused>;
}

/// Where the fields of an RDB value go.
pub trait Saver {
    /// The next field, an integer.
    fn unsigned(&mut self, value: u64);
    /// The next field, a double.
    fn double(&mut self, value: f64);
    /// The next field, a string.
    fn bytes(&mut self, value: &[u8]);
}

/// Reads an RDB value of this version.
///
/// # Errors
/// [`Refused`].
pub fn read(version: u64, fields: &mut impl Fields) -> Result<Flat, Refused> {
    if version > ENCODING.into() {
        return Err(Refused::Unknown(format!("filters of RedisBloom's of version {version}")));
    }
    let items = fields.unsigned()?;
    let layers = fields.unsigned()?;
    let options = if version >= WITH_OPTIONS { narrow(fields.unsigned()?)? } else { 0 };
    let growth = if version >= WITH_GROWTH { narrow(fields.unsigned()?)? } else { USUAL_GROWTH };
    let head = FlatHead { options, growth, items };
    head.check()?;
    let mut read = Vec::new();
    for _ in 0..checked_number(layers)? {
        let capacity = fields.unsigned()?;
        let rate = fields.double()?;
        let hashes = narrow(fields.unsigned()?)?;
        let bits_per_item = fields.double()?;
        let (bits, log2) = if version >= WITH_BITS {
            (fields.unsigned()?, narrow(fields.unsigned()?)?)
        } else {
            // Rounded down, as it was when it was made.
            (bits_for(capacity, bits_per_item), 0)
        };
        let log2 = u8::try_from(log2).map_err(|_| OUT_OF_RANGE)?;
        let array = fields.bytes()?;
        let array = array.as_ref();
        let bytes = array.len() as u64;
        let mut layer = FlatLayer::new(FlatPlan { capacity, rate, bits_per_item, hashes, bytes, bits, log2 })?;
        merge_into(&mut layer, 0, array)?;
        layer.cells_mut().set_items(fields.unsigned()?);
        crate::bloom::flat::push(&mut read, layer)?;
    }
    Ok(Flat::from_layers(head, read)?)
}

/// Writes an RDB value of version [`ENCODING`].
///
/// # Errors
/// [`Error::OutOfMemory`] for the copy of an array, after which the value is not whole.
pub fn write(flat: &Flat, to: &mut impl Saver) -> Result<(), Error> {
    let head = flat.flat_head();
    to.unsigned(head.items);
    to.unsigned(flat.layers().len() as u64);
    to.unsigned(head.options.into());
    to.unsigned(head.growth.into());
    for layer in flat.layers() {
        let plan = layer.plan();
        to.unsigned(plan.capacity);
        to.double(plan.rate);
        to.unsigned(plan.hashes.into());
        to.double(plan.bits_per_item);
        to.unsigned(plan.bits);
        to.unsigned(plan.log2.into());
        to.bytes(&copied(layer, 0, plan.bytes)?);
        to.unsigned(layer.cells().items());
    }
    Ok(())
}

const OUT_OF_RANGE: Refused = Refused::Bad("a number of a RedisBloom filter is out of its range");

fn narrow(number: u64) -> Result<u32, Refused> {
    u32::try_from(number).map_err(|_| OUT_OF_RANGE)
}

fn checked_number(layers: u64) -> Result<usize, Refused> {
    let number = usize::try_from(layers).ok().filter(|layers| (1..=MAX_FLAT_LAYERS).contains(layers));
    number.ok_or(Refused::Bad("a RedisBloom filter has 1 to 1100 layers"))
}

/// The header of a filter's dump.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn header(flat: &Flat) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(HEADER + LAYER * flat.layers().len()).map_err(|_| Error::OutOfMemory)?;
    let head = flat.flat_head();
    bytes.extend(head.items.to_le_bytes());
    let layers = u32::try_from(flat.layers().len()).map_err(|_| Error::TooManyLayers)?;
    bytes.extend(layers.to_le_bytes());
    bytes.extend(head.options.to_le_bytes());
    bytes.extend(head.growth.to_le_bytes());
    for layer in flat.layers() {
        let plan = layer.plan();
        bytes.extend(plan.bytes.to_le_bytes());
        bytes.extend(plan.bits.to_le_bytes());
        bytes.extend(layer.cells().items().to_le_bytes());
        bytes.extend(plan.rate.to_le_bytes());
        bytes.extend(plan.bits_per_item.to_le_bytes());
        bytes.extend(plan.hashes.to_le_bytes());
        bytes.extend(plan.capacity.to_le_bytes());
        bytes.push(plan.log2);
    }
    Ok(bytes)
}

/// Bytes of a header before its layers, and of each layer.
const HEADER: usize = 20;
const LAYER: usize = 53;

/// An empty filter as a header describes it.
fn read_header(bytes: &[u8]) -> Result<Flat, Refused> {
    const NEITHER: Refused =
        Refused::Bad("it begins neither as a record of Bloomgate's nor is it a header of RedisBloom's");
    let mut rest = bytes;
    let items = number(&mut rest, u64::from_le_bytes).ok_or(NEITHER)?;
    let layers = number(&mut rest, u32::from_le_bytes).ok_or(NEITHER)?;
    let options = number(&mut rest, u32::from_le_bytes).ok_or(NEITHER)?;
    let growth = number(&mut rest, u32::from_le_bytes).ok_or(NEITHER)?;
    // Length first.
    if u64::from(layers).checked_mul(LAYER as u64) != Some(rest.len() as u64) {
        return Err(NEITHER);
    }
    let head = FlatHead { options, growth, items };
    head.check()?;
    let mut read = Vec::new();
    for _ in 0..checked_number(layers.into())? {
        let bytes = number(&mut rest, u64::from_le_bytes).ok_or(NEITHER)?;
        let bits = number(&mut rest, u64::from_le_bytes).ok_or(NEITHER)?;
        let items = number(&mut rest, u64::from_le_bytes).ok_or(NEITHER)?;
        let rate = number(&mut rest, f64::from_le_bytes).ok_or(NEITHER)?;
        let bits_per_item = number(&mut rest, f64::from_le_bytes).ok_or(NEITHER)?;
        let hashes = number(&mut rest, u32::from_le_bytes).ok_or(NEITHER)?;
        let capacity = number(&mut rest, u64::from_le_bytes).ok_or(NEITHER)?;
        let log2 = number(&mut rest, u8::from_le_bytes).ok_or(NEITHER)?;
        let mut layer = FlatLayer::new(FlatPlan { capacity, rate, bits_per_item, hashes, bytes, bits, log2 })?;
        layer.cells_mut().set_items(items);
        crate::bloom::flat::push(&mut read, layer)?;
    }
    Ok(Flat::from_layers(head, read)?)
}

/// Takes the next number off some bytes, if they are there.
fn number<T, const N: usize>(bytes: &mut &[u8], from: fn([u8; N]) -> T) -> Option<T> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(from(*head))
}

/// The piece of a dump that begins at this iterator, and the iterator of the next one: the header at 0, nothing after the
/// last byte.
///
/// # Errors
/// [`Refused::Order`] for an iterator beyond the end, [`Error::OutOfMemory`].
pub fn piece_at(flat: &Flat, iterator: u64) -> Result<Option<(u64, Vec<u8>)>, Refused> {
    let Some(offset) = iterator.checked_sub(1) else { return Ok(Some((1, header(flat)?))) };
    let mut begin = 0;
    for layer in flat.layers() {
        let end = begin + layer.plan().bytes;
        if offset < end {
            let length = (end - offset).min(MAX_PIECE);
            return Ok(Some((iterator + length, copied(layer, offset - begin, length)?)));
        }
        begin = end;
    }
    if offset == begin { Ok(None) } else { Err(WRONG_ITERATOR) }
}

/// A filter of whose dump only a part has come. Until the last byte comes it is no filter of RedisBloom's.
pub struct Half {
    /// Always a [`Whole::Flat`]: what adds that a primary sends are carried out on.
    whole: Whole,
    /// The offset of the next byte.
    next: u64,
    /// Layers of the header. Those after them are not part of the dump.
    dumped: usize,
}

const WRONG_ITERATOR: Refused =
    Refused::Order("the iterator must be the one that BF.SCANDUMP returned with this piece of the dump");

impl Half {
    /// An empty filter, from the header of a dump.
    ///
    /// # Errors
    /// [`Refused`]: what RedisBloom could not have written, or more than the source may ask for.
    pub fn begin(header: &[u8], source: Source) -> Result<Half, Refused> {
        let flat = read_header(header)?;
        source.allows(flat.full_bytes())?;
        let dumped = flat.layers().len();
        Ok(Half { whole: Whole::Flat(Box::new(flat)), next: 0, dumped })
    }

    /// One that was saved, of which so much is still to come: see [`check_rest`].
    pub fn resume(flat: Flat, rest: Rest) -> Half {
        let dumped = flat.layers().len().saturating_sub(rest.later.into());
        Half { whole: Whole::Flat(Box::new(flat)), next: rest.next, dumped }
    }

    /// The filter, as far as it is there.
    pub fn whole(&self) -> &Whole {
        &self.whole
    }

    fn layers(&self) -> &[FlatLayer] {
        self.whole.flat().map_or(&[], Flat::layers)
    }

    /// The filter, for what a primary or an AOF has added to it.
    pub fn whole_mut(&mut self) -> &mut Whole {
        &mut self.whole
    }

    /// The filter's memory, without its own fields.
    pub fn bytes_behind(&self) -> usize {
        self.whole.bytes_behind()
    }

    /// Moves the memory of everything but its own fields, from a place on (see `bloom::moving`).
    pub fn move_memory(&mut self, from: u64, mover: &mut impl Mover) -> Option<u64> {
        self.whole.flat_mut()?.move_memory(from, mover)
    }

    /// Whether it is as this header of a dump describes it.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn is_of(&self, header: &[u8]) -> Result<bool, Error> {
        Ok(self.whole.flat().map(self::header).transpose()?.is_some_and(|own| own == header))
    }

    /// What is still to come.
    pub fn rest(&self) -> Rest {
        let later = self.layers().len().saturating_sub(self.dumped);
        Rest { next: self.next, later: u16::try_from(later).unwrap_or(u16::MAX) }
    }

    /// Moves the filter out, once all of it is there.
    pub fn take_whole(&mut self) -> Whole {
        std::mem::replace(&mut self.whole, Whole::Flat(Box::default()))
    }

    /// A deep copy.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn try_clone(&self) -> Result<Half, Error> {
        let flat = self.whole.flat().map(Flat::try_clone).transpose()?.unwrap_or_default();
        Ok(Half { whole: Whole::Flat(Box::new(flat)), ..*self })
    }

    /// The offset after the last byte of the dump.
    fn end(&self) -> u64 {
        self.layers().iter().take(self.dumped).map(|layer| layer.plan().bytes).sum()
    }

    /// Takes a piece of the dump; whether it was the last one.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn take(&mut self, iterator: u64, piece: &[u8], source: Source) -> Result<(Taken, bool), Refused> {
        let (from, to) = range(iterator, piece, self.end())?;
        let next = self.next;
        if from != next && matches!(source, Source::Client(_)) {
            // What a client sends again that did not see our answer.
            let same = to <= next && holds(self.layers(), from, piece)?;
            return if same { Ok((Taken::Unchanged, false)) } else { Err(OUT_OF_ORDER) };
        }
        merge(self.whole.flat_mut().map_or(&mut [], Flat::layers_mut), from, piece)?;
        // RedisBloom takes pieces in any order; what it was sent and sent on counts as told in order.
        self.next = next.max(to);
        Ok((Taken::Changed, to == self.end()))
    }
}

/// Whether so much of a filter of these layers can be still to come.
///
/// # Errors
/// [`Refused::Bad`].
pub fn check_rest(layers: &[FlatLayer], rest: Rest) -> Result<(), Refused> {
    let dumped = layers.len().saturating_sub(rest.later.into());
    if rest.next < layers.iter().take(dumped).map(|layer| layer.plan().bytes).sum() {
        Ok(())
    } else {
        Err(Refused::Bad("the next offset of its dump lies outside of it"))
    }
}

const OUT_OF_ORDER: Refused = Refused::Order(
    "the piece is not the next one of the dump: pieces come in order, each with the iterator that BF.SCANDUMP returned",
);

/// What a filter that is there makes of a piece of a dump: from a client nothing, unless it holds all of it already.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
pub fn load_into_whole(flat: &mut Flat, iterator: u64, piece: &[u8], source: Source) -> Result<Taken, Refused> {
    let (from, _) = range(iterator, piece, flat.full_bytes())?;
    let same = holds(flat.layers(), from, piece)?;
    match source {
        _ if same => Ok(Taken::Unchanged),
        Source::Client(_) => Err(Refused::Order("the filter is complete and takes no further pieces of a dump")),
        // RedisBloom knows no half-loaded filter, and sends the rest of a dump also after a full sync amid it.
        Source::Trusted => {
            merge(flat.layers_mut(), from, piece)?;
            Ok(Taken::Changed)
        }
    }
}

/// The range of bytes of a piece, in a dump of so many.
fn range(iterator: u64, piece: &[u8], end: u64) -> Result<(u64, u64), Refused> {
    let to = iterator.checked_sub(1).filter(|&to| to <= end).ok_or(WRONG_ITERATOR)?;
    let from = to.checked_sub(piece.len() as u64).filter(|_| !piece.is_empty()).ok_or(WRONG_ITERATOR)?;
    Ok((from, to))
}

/// The parts of a piece at `from` by layer: number of the layer, offset in it, bytes.
fn by_layer<'a>(
    lengths: impl Iterator<Item = u64> + 'a,
    from: u64,
    piece: &'a [u8],
) -> impl Iterator<Item = (usize, u64, &'a [u8])> + 'a {
    let (mut rest, mut at, mut begin) = (piece, from, 0);
    lengths.enumerate().filter_map(move |(number, length)| {
        let end = begin + length;
        let offset = at - begin.min(at);
        begin = end;
        if at >= end || rest.is_empty() {
            return None;
        }
        let take = usize::try_from(end - at).unwrap_or(usize::MAX).min(rest.len());
        let (part, others) = rest.split_at(take);
        rest = others;
        at += take as u64;
        Some((number, offset, part))
    })
}

fn lengths(layers: &[FlatLayer]) -> Vec<u64> {
    layers.iter().map(|layer| layer.plan().bytes).collect()
}

/// Whether the arrays hold exactly this at the offset.
fn holds(layers: &[FlatLayer], from: u64, piece: &[u8]) -> Result<bool, Error> {
    for (number, offset, part) in by_layer(lengths(layers).into_iter(), from, piece) {
        let Some(layer) = layers.get(number) else { return Ok(false) };
        if copied(layer, offset, part.len() as u64)? != part {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sets the bits of a piece in the arrays.
fn merge(layers: &mut [FlatLayer], from: u64, piece: &[u8]) -> Result<(), Error> {
    for (number, offset, part) in by_layer(lengths(layers).into_iter(), from, piece) {
        if let Some(layer) = layers.get_mut(number) {
            merge_into(layer, offset, part)?;
        }
    }
    Ok(())
}

/// The parts of a range of bytes by chunk: chunk, offset in it, range in the bytes.
#[expect(clippy::cast_possible_truncation, reason = "what lies in memory fits a usize, a chunk's number a u32")]
fn by_chunk(from: u64, length: u64) -> impl Iterator<Item = (u32, usize, std::ops::Range<usize>)> {
    let (mut at, end) = (from, from + length);
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let to = (at / CHUNK * CHUNK + CHUNK).min(end);
        let part = ((at / CHUNK) as u32, (at % CHUNK) as usize, (at - from) as usize..(to - from) as usize);
        at = to;
        Some(part)
    })
}

/// A range of bytes that lies within them.
fn part_of<'a>(bytes: &'a [u8], part: &std::ops::Range<usize>) -> &'a [u8] {
    bytes.get(part.clone()).unwrap_or_default()
}

/// Sets the bits of some bytes, which lie at an offset of the layer's array. Chunks are made first, so that nothing has
/// changed if memory ends.
fn merge_into(layer: &mut FlatLayer, offset: u64, bytes: &[u8]) -> Result<(), Error> {
    let cells = layer.cells_mut();
    let holding = |part: &std::ops::Range<usize>| part_of(bytes, part).iter().any(|&byte| byte != 0);
    for (chunk, _, part) in by_chunk(offset, bytes.len() as u64) {
        if holding(&part) {
            cells.make_chunk(chunk)?;
        }
    }
    for (chunk, at, part) in by_chunk(offset, bytes.len() as u64) {
        if !holding(&part) {
            continue;
        }
        // The bytes at their place in words of zeros, which are then laid over the chunk.
        let mut shifted = [0; CHUNK_LEN];
        for (to, from) in shifted.iter_mut().skip(at).zip(part_of(bytes, &part)) {
            *to = *from;
        }
        let mut words = [0; CHUNK_LEN / 8];
        write_bytes(&mut words, &shifted);
        for (own, word) in cells.make_chunk(chunk)?.as_flattened_mut().iter_mut().zip(words) {
            *own |= word;
        }
    }
    Ok(())
}

/// Bytes of the layer's array.
fn copied(layer: &FlatLayer, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let length = usize::try_from(length).map_err(|_| Error::OutOfMemory)?;
    bytes.try_reserve_exact(length).map_err(|_| Error::OutOfMemory)?;
    bytes.resize(length, 0);
    for (chunk, at, part) in by_chunk(offset, length as u64) {
        if let Some(lines) = layer.cells().chunk(chunk) {
            let mut own = [[0; 8]; CHUNK_LEN / 8];
            for (own, word) in own.iter_mut().zip(lines.as_flattened()) {
                *own = word.to_le_bytes();
            }
            let own = own.as_flattened().get(at..).unwrap_or_default();
            for (to, from) in bytes.get_mut(part).unwrap_or_default().iter_mut().zip(own) {
                *to = *from;
            }
        }
    }
    Ok(bytes)
}
