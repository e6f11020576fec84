//! One record: its bytes and their meaning. Integers are little endian.
//!
//! ```text
//!  0  magic    8   42 4c 4f 4f 4d 47 54 f6
//!  8  version  u16 1
//! 10  kind     u8  1 filter, 2 layer, 3 bits, 4 end          11  reserved u8
//! 12  length   u32 of the whole record, at most 1 MiB
//! 16  id       8   of the filter
//! 24  changes  u64 of the filter when the record was made
//! 32  body
//! −8  sum      u64 XXH3-64, seed 0, of all bytes before it
//! ```
//!
//! What is not described is refused; what is described and not yet implemented (layers of other modules) is refused too, by
//! name.

use std::fmt;

use bitvec::field::BitField;
use xxhash_rust::xxh3::xxh3_64;

use crate::bloom::chain::Head;
use crate::bloom::chunks::{places, places_mut};
use crate::bloom::error::Error;
use crate::bloom::geometry::{Geometry, Kind, Line};
use crate::bloom::hash::Key;
use crate::bloom::layer::{Layer, Plan};
use crate::bloom::sizing::Size;

/// First bytes of every record.
pub const MAGIC: [u8; 8] = *b"BLOOMGT\xf6";
/// The version that is written, and the highest that is read.
pub const VERSION: u16 = 1;
/// The longest record, in bytes.
pub const MAX_RECORD: usize = 1 << 20;

const BODY_AT: usize = 32;
const SUM: usize = 8;

const KIND_FILTER: u8 = 1;
const KIND_LAYER: u8 = 2;
const KIND_BITS: u8 = 3;
const KIND_END: u8 = 4;

const FLAG_NON_SCALING: u32 = 1;
const FLAG_COUNTING: u32 = 2;
const FLAG_KEYED: u32 = 4;
const FLAG_FOREIGN: u32 = 8;
const FLAG_FOREIGN_PART: u32 = 16;

const FAMILY_MURMUR3: u8 = 1;
const FAMILY_SIPHASH: u8 = 2;

/// In the place of a number of positions: the chunk follows as it is.
const RAW: u16 = u16::MAX;

/// Why a record was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The bytes are not a record of this format.
    Bad(&'static str),
    /// A record of a kind that this release does not read; the text names it.
    Unknown(String),
    /// The record is sound and does not belong here.
    Order(&'static str),
    /// The filter would be larger than memory allows; the text has both figures.
    Limit(String),
    /// The core refused what the record says.
    Core(Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Bad(why) => write!(f, "bad record: {why}"),
            Refused::Unknown(what) => write!(f, "this release does not read {what}"),
            Refused::Order(why) => f.write_str(why),
            Refused::Limit(text) => f.write_str(text),
            Refused::Core(error) => write!(f, "bad record: {error}"),
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Core(error)
    }
}

/// A record, taken apart. Its checksum held; whether it fits a filter is for [`super::filter`] to say.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The id of the filter it belongs to.
    pub id: [u8; 8],
    /// The filter's changes when it was made.
    pub changes: u64,
    /// What it says.
    pub body: Body<'a>,
}

/// What a record says.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// What the filter was asked to be. The id is the record's.
    Filter(Head),
    /// A layer: its position from the oldest (0), its plan, its kind, and whether its hash family is the keyed one.
    Layer {
        /// Position from the oldest, 0.
        number: u16,
        /// What the layer is to be.
        plan: Plan,
        /// What its places are.
        kind: Kind,
        /// Whether its hash family is the keyed one.
        keyed: bool,
    },
    /// Chunks of one layer.
    Bits(Bits<'a>),
    /// Items of each layer, oldest first: u64 each.
    End(Counts<'a>),
}

/// Chunks `from .. to` of a layer, of which those that follow in `chunks` hold bits.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    /// The layer's number.
    pub layer: u16,
    /// First chunk of the range.
    pub from: u32,
    /// The chunk after the range; above `from`.
    pub to: u32,
    present: u32,
    chunks: &'a [u8],
}

/// The numbers of items in an end record.
#[derive(Clone, Copy, Debug)]
pub struct Counts<'a>(&'a [u8]);

impl Counts<'_> {
    /// Number of layers.
    pub fn len(&self) -> usize {
        self.0.len() / 8
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Items of each layer, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

/// Takes the first `N` bytes off a slice; one that is too short is refused.
fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N], Refused> {
    let (head, rest) = bytes.split_first_chunk::<N>().ok_or(Refused::Bad("it is shorter than what it announces"))?;
    *bytes = rest;
    Ok(head)
}

fn u8_of(bytes: &mut &[u8]) -> Result<u8, Refused> {
    Ok(u8::from_le_bytes(*take(bytes)?))
}

fn u16_of(bytes: &mut &[u8]) -> Result<u16, Refused> {
    Ok(u16::from_le_bytes(*take(bytes)?))
}

fn u32_of(bytes: &mut &[u8]) -> Result<u32, Refused> {
    Ok(u32::from_le_bytes(*take(bytes)?))
}

fn u64_of(bytes: &mut &[u8]) -> Result<u64, Refused> {
    Ok(u64::from_le_bytes(*take(bytes)?))
}

fn f64_of(bytes: &mut &[u8]) -> Result<f64, Refused> {
    Ok(f64::from_le_bytes(*take(bytes)?))
}

/// Reserved bytes are zero.
fn zeros<const N: usize>(bytes: &mut &[u8]) -> Result<(), Refused> {
    if *take::<N>(bytes)? == [0; N] { Ok(()) } else { Err(Refused::Bad("a reserved byte is not 0")) }
}

/// Reads the first record of `bytes` and moves past it.
///
/// # Errors
/// [`Refused::Bad`] or [`Refused::Unknown`].
pub fn read<'a>(bytes: &mut &'a [u8]) -> Result<Record<'a>, Refused> {
    let whole = *bytes;
    let Some(mut head) = whole.strip_prefix(&MAGIC) else {
        return Err(Refused::Bad("it does not begin as a record of Bloomgate's"));
    };
    let version = u16_of(&mut head)?;
    let kind = u8_of(&mut head)?;
    let reserved = u8_of(&mut head)?;
    let length = u32_of(&mut head)? as usize;
    if !(BODY_AT + SUM..=MAX_RECORD).contains(&length) || length > whole.len() {
        return Err(Refused::Bad("its length is not that of its bytes, or over 1 MiB"));
    }
    if version == 0 || version > VERSION {
        return Err(Refused::Unknown(format!("records of version {version} (it reads version {VERSION})")));
    }
    let (record, rest) = whole.split_at(length);
    let (covered, sum) = record.split_at(length - SUM);
    if xxh3_64(covered).to_le_bytes() != sum {
        return Err(Refused::Bad("its checksum does not match: the bytes were damaged on the way"));
    }
    if reserved != 0 {
        return Err(Refused::Bad("a reserved byte is not 0"));
    }
    let id = *take::<8>(&mut head)?;
    let changes = u64_of(&mut head)?;
    let (_, body) = covered.split_at(BODY_AT);
    let body = match kind {
        KIND_FILTER => Body::Filter(read_filter(id, body)?),
        KIND_LAYER => read_layer(body)?,
        KIND_BITS => Body::Bits(read_bits(body)?),
        KIND_END => Body::End(read_end(body)?),
        _ => return Err(Refused::Unknown(format!("records of kind {kind}"))),
    };
    *bytes = rest;
    Ok(Record { id, changes, body })
}

/// What must be left of a body once all its fields are read.
fn nothing_left(body: &[u8]) -> Result<(), Refused> {
    if body.is_empty() { Ok(()) } else { Err(Refused::Bad("it is longer than what it announces")) }
}

fn read_filter(id: [u8; 8], mut body: &[u8]) -> Result<Head, Refused> {
    let flags = u32_of(&mut body)?;
    let expansion = u32_of(&mut body)?;
    let rate = f64_of(&mut body)?;
    let capacity = u64_of(&mut body)?;
    for (flag, name) in [
        (FLAG_FOREIGN, "filters in another module's layout (flag 8)"),
        (FLAG_FOREIGN_PART, "parts of another module's dump (flag 16)"),
    ] {
        if flags & flag != 0 {
            return Err(Refused::Unknown(name.to_owned()));
        }
    }
    if flags & !(FLAG_NON_SCALING | FLAG_COUNTING | FLAG_KEYED) != 0 {
        return Err(Refused::Unknown(format!("filters with flags {flags:#x}")));
    }
    if (flags & FLAG_NON_SCALING != 0) != (expansion == 0) {
        return Err(Refused::Bad("its expansion is 0 without the non-scaling flag, or the other way round"));
    }
    let key: Option<Key> = if flags & FLAG_KEYED != 0 { Some(*take(&mut body)?) } else { None };
    let kind = if flags & FLAG_COUNTING != 0 { Kind::Counting } else { Kind::Plain };
    nothing_left(body)?;
    let head = Head { id, rate, capacity, expansion, key, kind };
    crate::bloom::check::check_head(&head)?;
    Ok(head)
}

fn read_layer<'a>(mut body: &[u8]) -> Result<Body<'a>, Refused> {
    let number = u16_of(&mut body)?;
    let layout = u8_of(&mut body)?;
    let family = u8_of(&mut body)?;
    let width = u8_of(&mut body)?;
    let spread = u8_of(&mut body)?;
    let bits = u16_of(&mut body)?;
    let lines = u64_of(&mut body)?;
    let capacity = u64_of(&mut body)?;
    let rate = f64_of(&mut body)?;
    let kind = match layout {
        1 => Kind::Plain,
        2 => Kind::Counting,
        128 => return Err(Refused::Unknown("layers of layout 128 (another module's)".to_owned())),
        _ => return Err(Refused::Unknown(format!("layers of layout {layout}"))),
    };
    let keyed = match family {
        FAMILY_MURMUR3 => false,
        FAMILY_SIPHASH => true,
        128 | 129 => return Err(Refused::Unknown(format!("layers of hash family {family} (another module's)"))),
        _ => return Err(Refused::Unknown(format!("layers of hash family {family}"))),
    };
    if ![Kind::Plain, Kind::Counting].iter().any(|kind| kind.width() == width) {
        return Err(Refused::Unknown(format!("layers of width {width}")));
    }
    if kind.width() != width {
        return Err(Refused::Bad("its layout and width do not fit together"));
    }
    nothing_left(body)?;
    let bits = u8::try_from(bits).map_err(|_| Error::Malformed("a layer has at most 64 bits an item"))?;
    let plan = Plan { capacity, rate, size: Size { lines, bits, spread } };
    // Here already, so that nobody reckons with numbers out of their ranges.
    plan.geometry(kind)?;
    Ok(Body::Layer { number, plan, kind, keyed })
}

fn read_bits(mut body: &[u8]) -> Result<Bits<'_>, Refused> {
    let layer = u16_of(&mut body)?;
    zeros::<2>(&mut body)?;
    let from = u32_of(&mut body)?;
    let to = u32_of(&mut body)?;
    let present = u32_of(&mut body)?;
    if from >= to {
        return Err(Refused::Bad("its range of chunks is empty or runs backwards"));
    }
    Ok(Bits { layer, from, to, present, chunks: body })
}

fn read_end(mut body: &[u8]) -> Result<Counts<'_>, Refused> {
    let layers = u16_of(&mut body)?;
    zeros::<6>(&mut body)?;
    if body.len() != usize::from(layers) * 8 {
        return Err(Refused::Bad("its length is not that of its number of layers"));
    }
    Ok(Counts(body))
}

/// One chunk of a bits record.
enum Content<'a> {
    /// As many bytes as the chunk has.
    Raw(&'a [u8]),
    /// Positions of the places that are not 0, ascending, and their values: none in a plain layer, whose places are 1 then,
    /// and two a byte in a counting one.
    Places(Kind, &'a [[u8; 2]], &'a [u8]),
}

/// Bytes of `count` places as positions and values.
fn places_bytes(kind: Kind, count: usize) -> usize {
    match kind {
        Kind::Plain => 2 * count,
        Kind::Counting => 2 * count + count.div_ceil(2),
    }
}

/// The `i`-th of two values a byte.
fn value_of(values: &[u8], i: usize) -> u8 {
    values.get(i / 2).map_or(0, |byte| byte >> (i % 2 * 4) & 15)
}

impl<'a> Bits<'a> {
    /// Calls `each` for the chunks that are present, in order, once each was found sound and to lie in a layer of this
    /// structure.
    fn each_chunk(
        &self,
        geometry: Geometry,
        mut each: impl FnMut(u32, Content<'a>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        if self.to > geometry.chunks() {
            return Err(Refused::Bad("its range of chunks ends beyond the layer"));
        }
        let mut rest = self.chunks;
        let mut at_least = self.from;
        for _ in 0..self.present {
            let index = u32_of(&mut rest)?;
            if !(at_least..self.to).contains(&index) {
                return Err(Refused::Bad("its chunks do not ascend within its range"));
            }
            at_least = index + 1;
            let count = u16_of(&mut rest)?;
            let content = if count == RAW {
                let bytes =
                    rest.split_off(..geometry.chunk_bytes(index)).ok_or(Refused::Bad("a chunk is cut short"))?;
                if bytes.iter().all(|&byte| byte == 0) {
                    return Err(Refused::Bad("a chunk that it holds has no bit set"));
                }
                Content::Raw(bytes)
            } else {
                let (kind, count) = (geometry.kind(), usize::from(count));
                let places = rest.split_off(..places_bytes(kind, count)).ok_or(Refused::Bad("a chunk is cut short"))?;
                let (positions, values) = places.split_at(2 * count);
                let positions = positions.as_chunks::<2>().0;
                let ascending = positions.is_sorted_by(|a, b| u16::from_le_bytes(*a) < u16::from_le_bytes(*b));
                let places = geometry.chunk_lines(index) * kind.line_places();
                let inside = positions.last().is_some_and(|last| u32::from(u16::from_le_bytes(*last)) < places);
                if !ascending || !inside {
                    return Err(Refused::Bad("a chunk's positions are none, not ascending or outside of it"));
                }
                // Each is 1 to 15, and what is left over of the last byte is 0.
                if kind == Kind::Counting && (0..2 * values.len()).any(|i| (value_of(values, i) > 0) != (i < count)) {
                    return Err(Refused::Bad("a value of a chunk is 0, or there is one more than positions"));
                }
                Content::Places(kind, positions, values)
            };
            each(index, content)?;
        }
        nothing_left(rest)
    }

    /// Checks everything against the structure of the layer it is for.
    ///
    /// # Errors
    /// [`Refused::Bad`].
    pub fn check(&self, geometry: Geometry) -> Result<(), Refused> {
        self.each_chunk(geometry, |_, _| Ok(()))
    }

    /// Writes the chunks into the layer, which has nothing in this range yet.
    ///
    /// # Errors
    /// As [`Bits::check`], and [`Error::OutOfMemory`].
    pub fn write_to(&self, layer: &mut Layer) -> Result<(), Refused> {
        self.each_chunk(layer.geometry(), |index, content| {
            content.write(layer.make_chunk(index)?);
            Ok(())
        })
    }

    /// Whether the layer holds exactly this in the range.
    ///
    /// # Errors
    /// As [`Bits::check`].
    pub fn equals(&self, layer: &Layer) -> Result<bool, Refused> {
        let mut buffer = [[0; 8]; 64];
        let mut equal = true;
        let mut stored = holding_bits(layer, self.from, self.to);
        self.each_chunk(layer.geometry(), |index, content| {
            equal = equal
                && stored.next().is_some_and(|(at, lines)| match buffer.get_mut(..lines.len()) {
                    Some(read) if at == index => {
                        content.write(read);
                        read == lines
                    }
                    _ => false,
                });
            Ok(())
        })?;
        Ok(equal && stored.next().is_none())
    }
}

impl Content<'_> {
    /// Makes the chunk hold exactly this.
    fn write(&self, chunk: &mut [Line]) {
        match self {
            Content::Raw(bytes) => {
                for (word, bytes) in chunk.as_flattened_mut().iter_mut().zip(bytes.as_chunks::<8>().0) {
                    *word = u64::from_le_bytes(*bytes);
                }
            }
            Content::Places(kind, positions, values) => {
                chunk.fill([0; 8]);
                let (bits, width) = (places_mut(chunk), usize::from(kind.width()));
                for (i, position) in positions.iter().enumerate() {
                    let at = usize::from(u16::from_le_bytes(*position)) * width;
                    if let Some(place) = bits.get_mut(at..at + width) {
                        match kind {
                            Kind::Plain => place.fill(true),
                            Kind::Counting => place.store_le(value_of(values, i)),
                        }
                    }
                }
            }
        }
    }
}

/// The chunks of a range that hold a bit, ascending; those that were made and are all zero are passed over.
pub fn holding_bits(layer: &Layer, from: u32, to: u32) -> impl Iterator<Item = (u32, &[Line])> {
    layer
        .made_from(from)
        .take_while(move |&index| index < to)
        .filter_map(|index| Some((index, layer.chunk(index)?)))
        .filter(|(_, lines)| lines.as_flattened().iter().any(|&word| word != 0))
}

/// The places of a chunk that are not 0, ascending, each with its value.
fn occupied(kind: Kind, lines: &[Line]) -> impl Iterator<Item = (usize, u8)> + '_ {
    let (bits, width) = (places(lines), usize::from(kind.width()));
    let mut next = 0;
    bits.iter_ones().map(move |bit| bit / width).filter_map(move |place| {
        // A counter has up to four bits that are set.
        let first = place >= next;
        next = place + 1;
        first.then(|| (place, bits[place * width..][..width].load_le()))
    })
}

/// A record being written.
struct Writer(Vec<u8>);

impl Writer {
    /// Reserves `body` bytes for the body at once, so that no write after it can fail.
    fn new(kind: u8, id: [u8; 8], changes: u64, body: usize) -> Result<Writer, Refused> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(BODY_AT + body + SUM).map_err(|_| Error::OutOfMemory)?;
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([kind, 0]);
        bytes.extend([0; 4]);
        bytes.extend(id);
        bytes.extend(changes.to_le_bytes());
        Ok(Writer(bytes))
    }

    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> &mut Writer {
        self.0.extend(bytes);
        self
    }

    /// Fills in the length and appends the checksum.
    #[expect(clippy::cast_possible_truncation, reason = "at most MAX_RECORD: the callers bound what they write")]
    fn finish(mut self) -> Vec<u8> {
        let length = (self.0.len() + SUM) as u32;
        for (byte, value) in self.0.iter_mut().skip(12).zip(length.to_le_bytes()) {
            *byte = value;
        }
        let sum = xxh3_64(&self.0);
        self.0.extend(sum.to_le_bytes());
        self.0
    }
}

/// The filter record.
///
/// # Errors
/// [`Error::OutOfMemory`], as all writers here.
pub fn write_filter(head: &Head, changes: u64) -> Result<Vec<u8>, Refused> {
    let mut record = Writer::new(KIND_FILTER, head.id, changes, 24 + 16)?;
    let non_scaling = if head.expansion == 0 { FLAG_NON_SCALING } else { 0 };
    let keyed = if head.key.is_some() { FLAG_KEYED } else { 0 };
    let counting = if head.kind == Kind::Counting { FLAG_COUNTING } else { 0 };
    record.put((non_scaling | counting | keyed).to_le_bytes()).put(head.expansion.to_le_bytes());
    record.put(head.rate.to_le_bytes()).put(head.capacity.to_le_bytes());
    if let Some(key) = head.key {
        record.put(key);
    }
    Ok(record.finish())
}

/// The record of layer `number`.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn write_layer(head: &Head, changes: u64, number: u16, plan: Plan) -> Result<Vec<u8>, Refused> {
    let mut record = Writer::new(KIND_LAYER, head.id, changes, 32)?;
    let family = if head.key.is_some() { FAMILY_SIPHASH } else { FAMILY_MURMUR3 };
    record.put(number.to_le_bytes()).put([head.kind.layout(), family, head.kind.width(), plan.size.spread]);
    record.put(u16::from(plan.size.bits).to_le_bytes()).put(plan.size.lines.to_le_bytes());
    record.put(plan.capacity.to_le_bytes()).put(plan.rate.to_le_bytes());
    Ok(record.finish())
}

/// A bits record of layer `number` from chunk `from` on, as far as `to` and 1 MiB allow; and where its range ends.
///
/// # Errors
/// [`Error::OutOfMemory`].
#[expect(clippy::cast_possible_truncation, reason = "a chunk has 32,768 places: their number and positions fit")]
pub fn write_bits(
    head: &Head,
    changes: u64,
    number: u16,
    layer: &Layer,
    from: u32,
    to: u32,
) -> Result<(u32, Vec<u8>), Refused> {
    /// Layer, reserved, from, to, present.
    const FIXED: usize = 16;
    /// Index and number of positions.
    const CHUNK_FIXED: usize = 6;
    let kind = layer.geometry().kind();
    // How many places of a chunk are not 0, and its bytes as positions or raw, whichever is shorter.
    let content = |lines: &[Line]| {
        let words = lines.as_flattened().iter();
        let count = words.map(|&word| kind.occupied(word).count_ones() as usize).sum();
        (count, places_bytes(kind, count).min(size_of_val(lines)))
    };

    // Measured first, so that the record is reserved at its true size: most are far below 1 MiB.
    let mut body = FIXED;
    let mut end = to;
    let mut present = 0u32;
    for (index, lines) in holding_bits(layer, from, to) {
        let chunk = CHUNK_FIXED + content(lines).1;
        if BODY_AT + body + chunk + SUM > MAX_RECORD {
            end = index;
            break;
        }
        body += chunk;
        present += 1;
    }
    let mut record = Writer::new(KIND_BITS, head.id, changes, body)?;
    record.put(number.to_le_bytes()).put([0, 0]);
    record.put(from.to_le_bytes()).put(end.to_le_bytes()).put(present.to_le_bytes());
    for (index, lines) in holding_bits(layer, from, end) {
        record.put(index.to_le_bytes());
        let (count, bytes) = content(lines);
        if bytes < size_of_val(lines) {
            // A chunk has 32,768 places at most: both numbers fit.
            record.put((count as u16).to_le_bytes());
            for (position, _) in occupied(kind, lines) {
                record.put((position as u16).to_le_bytes());
            }
            if kind == Kind::Counting {
                let mut values = occupied(kind, lines).map(|(_, value)| value);
                while let Some(low) = values.next() {
                    record.put([low | values.next().unwrap_or(0) << 4]);
                }
            }
        } else {
            record.put(RAW.to_le_bytes());
            for word in lines.as_flattened() {
                record.put(word.to_le_bytes());
            }
        }
    }
    Ok((end, record.finish()))
}

/// The end record: items of each layer, oldest first.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::TooManyLayers`].
pub fn write_end(head: &Head, changes: u64, items: &[u64]) -> Result<Vec<u8>, Refused> {
    let mut record = Writer::new(KIND_END, head.id, changes, 8 + 8 * items.len())?;
    let layers = u16::try_from(items.len()).map_err(|_| Error::TooManyLayers)?;
    record.put(layers.to_le_bytes()).put([0; 6]);
    for count in items {
        record.put(count.to_le_bytes());
    }
    Ok(record.finish())
}
