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
//! What is not described is refused.

use std::fmt;

use bitvec::field::BitField;
use xxhash_rust::xxh3::xxh3_64;

use crate::bloom::chain::Head;
use crate::bloom::check::{check_capacity, check_head, check_rate};
use crate::bloom::chunks::{places, places_mut};
use crate::bloom::error::Error;
use crate::bloom::flat::{FlatHead, FlatPlan};
use crate::bloom::geometry::{Kind, Line};
use crate::bloom::hash::Key;
use crate::bloom::layer::{Layer, Plan};
use crate::bloom::sizing::Size;

/// First bytes of every record.
pub const MAGIC: [u8; 8] = *b"BLOOMGT\xf6";
/// The version that is written, and the highest that is read.
pub const VERSION: u16 = 1;
/// The longest record, in bytes.
pub const MAX_RECORD: usize = 1 << 20;
/// The most chunks that a record is written with, and that a client's may hold: 32 MiB of memory. Of chunks with one bit each
/// 1 MiB could name 131,000, which are 512 MiB.
pub const MAX_CHUNKS: u32 = 8192;

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
/// RedisBloom's: one array of bits, and its two hash families.
const LAYOUT_FLAT: u8 = 128;
const FAMILY_MURMUR64A: u8 = 128;
const FAMILY_MURMUR2: u8 = 129;

/// Bytes of a full chunk.
const CHUNK_BYTES: u64 = 4096;

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
    /// As [`Body::Filter`], of a filter in RedisBloom's layout.
    FlatFilter(FlatFilter),
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
    /// A layer in RedisBloom's layout.
    FlatLayer {
        /// Position from the oldest, 0.
        number: u16,
        /// What the layer is to be.
        plan: FlatPlan,
        /// Whether its hash family is the one of 64 bits.
        wide: bool,
    },
    /// Chunks of one layer.
    Bits(Bits<'a>),
    /// Items of each layer, oldest first: u64 each.
    End(Counts<'a>),
}

/// What a filter record says of a filter in RedisBloom's layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlatFilter {
    /// The rate of the filter, as far as its first layer tells it.
    pub rate: f64,
    /// The capacity of its first layer.
    pub capacity: u64,
    /// What it states itself.
    pub head: FlatHead,
    /// Where a dump of RedisBloom's goes on, of which a part has come.
    pub rest: Option<Rest>,
}

/// The part of a dump of RedisBloom's that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The offset of its first byte, of all layers' arrays laid end to end.
    pub next: u64,
    /// How many of the filter's layers were not there when the dump began: their bytes are not part of it.
    pub later: u16,
}

/// In the field of the next offset the layers that came later stand above the offset, which is at most 2⁴⁰.
const LATER_SHIFT: u32 = 48;

/// Chunks `from .. to` of a layer, of which those that follow in `chunks` hold bits.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    /// The layer's number.
    pub layer: u16,
    /// First chunk of the range.
    pub from: u32,
    /// The chunk after the range; above `from`.
    pub to: u32,
    /// How many of them hold bits.
    pub present: u32,
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
        KIND_FILTER => read_filter(id, body)?,
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

fn read_filter<'a>(id: [u8; 8], mut body: &[u8]) -> Result<Body<'a>, Refused> {
    let flags = u32_of(&mut body)?;
    let expansion = u32_of(&mut body)?;
    let rate = f64_of(&mut body)?;
    let capacity = u64_of(&mut body)?;
    let foreign = flags & FLAG_FOREIGN != 0;
    let own = if foreign { FLAG_FOREIGN | FLAG_FOREIGN_PART } else { FLAG_COUNTING | FLAG_KEYED };
    if flags & !(FLAG_NON_SCALING | own) != 0 {
        return Err(Refused::Unknown(format!("filters with flags {flags:#x}")));
    }
    if (flags & FLAG_NON_SCALING != 0) != (expansion == 0) {
        return Err(Refused::Bad("its expansion is 0 without the non-scaling flag, or the other way round"));
    }
    if foreign {
        let non_scaling = expansion == 0;
        let head = FlatHead { options: u32_of(&mut body)?, growth: u32_of(&mut body)?, items: u64_of(&mut body)? };
        let rest = if flags & FLAG_FOREIGN_PART != 0 { Some(read_rest(u64_of(&mut body)?)) } else { None };
        nothing_left(body)?;
        head.check()?;
        check_rate(rate)?;
        check_capacity(capacity)?;
        if non_scaling != head.is_non_scaling() || !(non_scaling || expansion == head.growth) || id != [0; 8] {
            return Err(Refused::Bad("what it says twice differs, or its id is not 0"));
        }
        return Ok(Body::FlatFilter(FlatFilter { rate, capacity, head, rest }));
    }
    let key: Option<Key> = if flags & FLAG_KEYED != 0 { Some(*take(&mut body)?) } else { None };
    let kind = if flags & FLAG_COUNTING != 0 { Kind::Counting } else { Kind::Plain };
    nothing_left(body)?;
    let head = Head { id, rate, capacity, expansion, key, kind };
    check_head(&head)?;
    Ok(Body::Filter(head))
}

fn read_rest(field: u64) -> Rest {
    // Sixteen bits are left by the shift.
    Rest { next: field & ((1 << LATER_SHIFT) - 1), later: (field >> LATER_SHIFT) as u16 }
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
    let flat = layout == LAYOUT_FLAT;
    let kind = match layout {
        1 | LAYOUT_FLAT => Kind::Plain,
        2 => Kind::Counting,
        _ => return Err(Refused::Unknown(format!("layers of layout {layout}"))),
    };
    if ![Kind::Plain, Kind::Counting].iter().any(|kind| kind.width() == width) {
        return Err(Refused::Unknown(format!("layers of width {width}")));
    }
    if kind.width() != width {
        return Err(Refused::Bad("its layout and width do not fit together"));
    }
    if flat {
        let wide = match family {
            FAMILY_MURMUR64A => true,
            FAMILY_MURMUR2 => false,
            _ => return Err(Refused::Unknown(format!("layers of layout {layout} with hash family {family}"))),
        };
        if spread != 0 || lines != 0 {
            return Err(Refused::Bad("a layer in RedisBloom's layout has no lines"));
        }
        let (bytes, modulus) = (u64_of(&mut body)?, u64_of(&mut body)?);
        let (bits_per_item, log2) = (f64_of(&mut body)?, u8_of(&mut body)?);
        zeros::<7>(&mut body)?;
        nothing_left(body)?;
        let plan = FlatPlan { capacity, rate, bits_per_item, hashes: bits.into(), bytes, bits: modulus, log2 };
        plan.check()?;
        return Ok(Body::FlatLayer { number, plan, wide });
    }
    let keyed = match family {
        FAMILY_MURMUR3 => false,
        FAMILY_SIPHASH => true,
        _ => return Err(Refused::Unknown(format!("layers of hash family {family}"))),
    };
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
    /// Calls `each` for the chunks that are present, in order, once each was found sound and to lie in a layer of so many
    /// bytes.
    fn each_chunk(
        &self,
        (bytes, kind): (u64, Kind),
        mut each: impl FnMut(u32, Content<'a>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        if u64::from(self.to) > bytes.div_ceil(CHUNK_BYTES) {
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
            let length = chunk_length(bytes, index);
            let content = if count == RAW {
                let bytes = rest.split_off(..length).ok_or(Refused::Bad("a chunk is cut short"))?;
                if bytes.iter().all(|&byte| byte == 0) {
                    return Err(Refused::Bad("a chunk that it holds has no bit set"));
                }
                Content::Raw(bytes)
            } else {
                let count = usize::from(count);
                let places = rest.split_off(..places_bytes(kind, count)).ok_or(Refused::Bad("a chunk is cut short"))?;
                let (positions, values) = places.split_at(2 * count);
                let positions = positions.as_chunks::<2>().0;
                let ascending = positions.is_sorted_by(|a, b| u16::from_le_bytes(*a) < u16::from_le_bytes(*b));
                let places = length * 8 / usize::from(kind.width());
                let inside = positions.last().is_some_and(|last| usize::from(u16::from_le_bytes(*last)) < places);
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

    /// Checks everything against the layer it is for, which has so many bytes and is of this kind.
    ///
    /// # Errors
    /// [`Refused::Bad`].
    pub fn check(&self, bytes: u64, kind: Kind) -> Result<(), Refused> {
        self.each_chunk((bytes, kind), |_, _| Ok(()))
    }

    /// Writes the chunks into the layer of so many bytes, which has nothing in this range yet.
    ///
    /// # Errors
    /// As [`Bits::check`], and [`Error::OutOfMemory`].
    pub fn write_to(&self, bytes: u64, layer: &mut Layer) -> Result<(), Refused> {
        self.each_chunk((bytes, layer.geometry().kind()), |index, content| {
            content.write(layer.make_chunk(index)?);
            Ok(())
        })
    }

    /// Whether the layer, of so many bytes, holds exactly this in the range.
    ///
    /// # Errors
    /// As [`Bits::check`].
    pub fn equals(&self, bytes: u64, layer: &Layer) -> Result<bool, Refused> {
        let mut buffer = [[0; 8]; 64];
        let mut equal = true;
        let mut stored = holding_bits(layer, self.from, self.to);
        self.each_chunk((bytes, layer.geometry().kind()), |index, content| {
            equal = equal
                && stored.next().is_some_and(|(at, lines)| match buffer.get_mut(..lines.len()) {
                    Some(read) if at == index => {
                        read.fill([0; 8]);
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
            Content::Raw(bytes) => write_bytes(chunk.as_flattened_mut(), bytes),
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

/// The bytes of this chunk of a layer of so many: 4096, or fewer of the last.
pub fn chunk_length(bytes: u64, chunk: u32) -> usize {
    // At most 4096.
    bytes.saturating_sub(u64::from(chunk) * CHUNK_BYTES).min(CHUNK_BYTES) as usize
}

/// Makes words, from the first on, hold these bytes; what a last word has beyond them becomes 0.
pub fn write_bytes(words: &mut [u64], bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<8>();
    let last = (!rest.is_empty()).then(|| std::array::from_fn(|i| rest.get(i).copied().unwrap_or(0)));
    for (word, bytes) in words.iter_mut().zip(whole.iter().copied().chain(last)) {
        *word = u64::from_le_bytes(bytes);
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
        let value = bits.get(place * width..(place + 1) * width).filter(|_| first)?;
        Some((place, value.load_le()))
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

/// The filter record of one in RedisBloom's layout.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn write_flat_filter(filter: &FlatFilter, changes: u64) -> Result<Vec<u8>, Refused> {
    let FlatFilter { rate, capacity, head, rest } = *filter;
    let mut record = Writer::new(KIND_FILTER, FLAT_ID, changes, 24 + 16 + 8)?;
    let scaling = if head.is_non_scaling() { FLAG_NON_SCALING } else { 0 };
    let part = if rest.is_some() { FLAG_FOREIGN_PART } else { 0 };
    let expansion = if head.is_non_scaling() { 0 } else { head.growth };
    record.put((FLAG_FOREIGN | scaling | part).to_le_bytes()).put(expansion.to_le_bytes());
    record.put(rate.to_le_bytes()).put(capacity.to_le_bytes());
    record.put(head.options.to_le_bytes()).put(head.growth.to_le_bytes()).put(head.items.to_le_bytes());
    if let Some(Rest { next, later }) = rest {
        record.put((next | u64::from(later) << LATER_SHIFT).to_le_bytes());
    }
    Ok(record.finish())
}

/// The record of layer `number` of a filter in RedisBloom's layout.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub fn write_flat_layer(head: FlatHead, changes: u64, number: u16, plan: FlatPlan) -> Result<Vec<u8>, Refused> {
    let mut record = Writer::new(KIND_LAYER, FLAT_ID, changes, 64)?;
    let family = if head.is_wide() { FAMILY_MURMUR64A } else { FAMILY_MURMUR2 };
    record.put(number.to_le_bytes()).put([LAYOUT_FLAT, family, 1, 0]);
    let hashes = u16::try_from(plan.hashes).map_err(|_| Error::TooLarge)?;
    record.put(hashes.to_le_bytes()).put([0; 8]);
    record.put(plan.capacity.to_le_bytes()).put(plan.rate.to_le_bytes());
    record.put(plan.bytes.to_le_bytes()).put(plan.bits.to_le_bytes()).put(plan.bits_per_item.to_le_bytes());
    record.put([plan.log2, 0, 0, 0, 0, 0, 0, 0]);
    Ok(record.finish())
}

/// The id of filters in RedisBloom's layout, which has none.
pub const FLAT_ID: [u8; 8] = [0; 8];

/// A bits record of layer `number`, which has so many bytes, from chunk `from` on, as far as `to` and 1 MiB allow; and where its range ends.
///
/// # Errors
/// [`Error::OutOfMemory`].
#[expect(clippy::cast_possible_truncation, reason = "a chunk has 32,768 places: their number and positions fit")]
pub fn write_bits(
    id: [u8; 8],
    changes: u64,
    number: u16,
    (bytes, layer): (u64, &Layer),
    from: u32,
    to: u32,
) -> Result<(u32, Vec<u8>), Refused> {
    /// Layer, reserved, from, to, present.
    const FIXED: usize = 16;
    /// Index and number of positions.
    const CHUNK_FIXED: usize = 6;
    let kind = layer.geometry().kind();
    // How many places of a chunk are not 0, and its bytes as positions or raw, whichever is shorter.
    let content = |index: u32, lines: &[Line]| {
        let words = lines.as_flattened().iter();
        let count = words.map(|&word| kind.occupied(word).count_ones() as usize).sum();
        (count, places_bytes(kind, count).min(chunk_length(bytes, index)))
    };

    // Measured first, so that the record is reserved at its true size: most are far below 1 MiB.
    let mut body = FIXED;
    let mut end = to;
    let mut present = 0u32;
    for (index, lines) in holding_bits(layer, from, to) {
        let chunk = CHUNK_FIXED + content(index, lines).1;
        if BODY_AT + body + chunk + SUM > MAX_RECORD || present == MAX_CHUNKS {
            end = index;
            break;
        }
        body += chunk;
        present += 1;
    }
    let mut record = Writer::new(KIND_BITS, id, changes, body)?;
    record.put(number.to_le_bytes()).put([0, 0]);
    record.put(from.to_le_bytes()).put(end.to_le_bytes()).put(present.to_le_bytes());
    for (index, lines) in holding_bits(layer, from, end) {
        record.put(index.to_le_bytes());
        let (count, size) = content(index, lines);
        let length = chunk_length(bytes, index);
        if size < length {
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
            let words = lines.as_flattened().iter().map(|word| word.to_le_bytes());
            record.0.extend(words.flatten().take(length));
        }
    }
    Ok((end, record.finish()))
}

/// The end record: items of each layer, oldest first.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::TooManyLayers`].
pub fn write_end(id: [u8; 8], changes: u64, items: &[u64]) -> Result<Vec<u8>, Refused> {
    let mut record = Writer::new(KIND_END, id, changes, 8 + 8 * items.len())?;
    let layers = u16::try_from(items.len()).map_err(|_| Error::TooManyLayers)?;
    record.put(layers.to_le_bytes()).put([0; 6]);
    for count in items {
        record.put(count.to_le_bytes());
    }
    Ok(record.finish())
}
