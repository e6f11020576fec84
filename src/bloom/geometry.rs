//! Where an item's bits go: layouts 1 and 2.
//!
//! ```text
//! h1 · L  =  line (high 64 bits)  and  rest (low 64 bits)
//!            │                         └─ rest · C = one more draw for each further line
//!            ├─ chunk = line / 64            (all bits of an item lie in this one chunk)
//!            └─ first = line mod 64          (line_0; line_j is drawn from the j-th of s′ strata after it)
//! h2 · Cⁱ⁺¹ =  place_i = top 9 bits          (0 … 511, in line_(i mod s′))
//! ```
//!
//! That is layout 1, of plain filters, whose places are bits. Layout 2, of counting filters, differs in one thing: a place is
//! a counter of four bits, so a line has 128 of them, and place_i is the top 7 bits.
//!
//! The number of this rule is saved with each layer as its layout; it names the whole function from `(h1, h2)` to
//! places. It was chosen by simulation, and what looks as good is not: places from an odd multiple of `h2`, the same
//! places used again in the second line, or lines cut as six-bit slices from one product made measured rates from twice
//! to thousands of times the rate asked. So nothing here may change without a new number.

use std::num::NonZeroU32;

use super::hash::Hash;
use super::sizing::Size;

/// Lines in a full chunk, which is 4096 bytes: one page.
pub const CHUNK_LINES: u32 = 64;
/// 64-bit words in a line.
pub const LINE_WORDS: usize = 8;
/// The largest number of lines that an item's bits are spread over.
pub const MAX_SPREAD: usize = 8;
/// The largest number of bits an item.
pub const MAX_BITS: u8 = 64;

/// One cache line of places of w bits; place `p` is bits `w·p mod 64` and up of word `w·p / 64`.
pub type Line = [u64; LINE_WORDS];

/// What the places of a filter are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Bits, 512 a line: layout 1.
    #[default]
    Plain,
    /// Counters of four bits, 128 a line: layout 2. Items can be deleted.
    Counting,
}

impl Kind {
    /// Bits a place.
    #[inline]
    pub const fn width(self) -> u8 {
        match self {
            Kind::Plain => OneBit::WIDTH,
            Kind::Counting => FourBit::WIDTH,
        }
    }

    /// Places in a line.
    #[inline]
    pub const fn line_places(self) -> u32 {
        LINE_BITS / self.width() as u32
    }

    /// The number of the rule by which an item's bits are placed.
    pub const fn layout(self) -> u8 {
        match self {
            Kind::Plain => 1,
            Kind::Counting => 2,
        }
    }

    /// A word with one bit for each place of `word` that is not 0: the lowest of the place.
    #[inline]
    pub fn occupied(self, word: u64) -> u64 {
        match self {
            Kind::Plain => word,
            Kind::Counting => FourBit::lowest(word) & EACH_COUNTER,
        }
    }
}

/// A line without a bit set: what a missing chunk consists of.
pub static NOTHING: Line = [0; LINE_WORDS];

/// Bits in a line.
const LINE_BITS: u32 = 512;
/// 1 in each counter of a word.
const EACH_COUNTER: u64 = 0x1111_1111_1111_1111;

/// The multiplier of the draws: a full-period constant for a 64-bit multiplicative generator (Steele, Vigna 2021).
const C: u64 = 0xd134_2543_de82_ef95;

/// The fixed structure of a layer, in eight bytes: all that is needed to find an item's bits.
///
/// `lines = 64 · (chunks − 1) + last`, with `last` from 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Never 0, which leaves the compiler a value to tell a whole filter from a partial one without a further byte.
    chunks: NonZeroU32,
    last: u8,
    bits: u8,
    spread: u8,
    kind: Kind,
}

/// The chunk that holds an item's bits, and what is left of `h1` to choose lines in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spot {
    /// Index of the chunk in the layer.
    pub chunk: u32,
    /// The first of the item's lines, in the chunk.
    pub first: u32,
    rest: u64,
}

/// The lines of an item within its chunk; `count` of them are valid.
#[derive(Clone, Copy, Debug)]
pub struct Lines<const S: usize> {
    index: [u32; S],
    count: usize,
}

impl Geometry {
    /// `None` unless the size is well-formed: 1 … 2³⁴ lines, 1 … 64 bits, spread 1, 2, 4 or 8 and at most the bits.
    pub fn new(size: Size, kind: Kind) -> Option<Geometry> {
        let Size { lines, bits, spread } = size;
        let spread_fits = matches!(spread, 1 | 2 | 4 | 8) && spread <= bits;
        if !(1..=super::sizing::MAX_LINES).contains(&lines) || !(1..=MAX_BITS).contains(&bits) || !spread_fits {
            return None;
        }
        let chunks = NonZeroU32::new(u32::try_from(lines.div_ceil(u64::from(CHUNK_LINES))).ok()?)?;
        let last = u8::try_from((lines - 1) % u64::from(CHUNK_LINES) + 1).ok()?;
        Some(Geometry { chunks, last, bits, spread, kind })
    }

    /// The size this geometry was made from.
    pub fn size(self) -> Size {
        Size { lines: self.lines(), bits: self.bits, spread: self.spread }
    }

    /// What its places are.
    #[inline]
    pub fn kind(self) -> Kind {
        self.kind
    }

    /// Lines in all chunks.
    #[inline]
    pub fn lines(self) -> u64 {
        u64::from(self.chunks() - 1) * u64::from(CHUNK_LINES) + u64::from(self.last)
    }

    /// Number of chunks, missing ones included.
    #[inline]
    pub fn chunks(self) -> u32 {
        self.chunks.get()
    }

    /// Bits an item.
    #[inline]
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// Lines an item, where the chunk has that many.
    #[inline]
    pub fn spread(self) -> u8 {
        self.spread
    }

    /// Bits of an item that lie in the first of its lines.
    #[inline]
    pub fn bits_in_first(self) -> u8 {
        self.bits.div_ceil(self.spread)
    }

    /// Lines in this chunk: 64, or fewer in the last one.
    #[inline]
    pub fn chunk_lines(self, chunk: u32) -> u32 {
        if chunk + 1 == self.chunks() { u32::from(self.last) } else { CHUNK_LINES }
    }

    /// Bytes of this chunk.
    #[inline]
    pub fn chunk_bytes(self, chunk: u32) -> usize {
        self.chunk_lines(chunk) as usize * LINE_WORDS * 8
    }

    /// The first line of an item, counted in the layer.
    #[inline]
    pub fn line(self, hash: Hash) -> u64 {
        ((u128::from(hash.h1) * u128::from(self.lines())) >> 64) as u64
    }

    /// The chunk of an item.
    #[inline]
    pub fn spot(self, hash: Hash) -> Spot {
        let x = u128::from(hash.h1) * u128::from(self.lines());
        let line = (x >> 64) as u64;
        // Narrowing is exact: line < lines <= 2^34, so line / 64 < 2^28.
        Spot { chunk: (line / u64::from(CHUNK_LINES)) as u32, first: line as u32 % CHUNK_LINES, rest: x as u64 }
    }

    /// The item's lines: distinct for every chunk length, since each comes from a stratum of its own.
    ///
    /// `S` is the layer's spread; a chunk of fewer lines spreads over the largest power of two that it has.
    #[inline]
    pub fn lines_at<const S: usize>(self, spot: Spot) -> Lines<S> {
        let mut index = [spot.first; S];
        if S == 1 {
            return Lines { index, count: 1 };
        }
        // The common case apart: with 64 lines every product below is a shift by a constant, and the loop unrolls.
        let c = self.chunk_lines(spot.chunk);
        if c == CHUNK_LINES {
            draw(&mut index, spot, CHUNK_LINES, S);
            return Lines { index, count: S };
        }
        let count = S.min(1 << c.ilog2());
        draw(&mut index, spot, c, count);
        Lines { index, count }
    }
}

/// One line from each of `count` strata of a chunk of `c` lines, a power of two; the first of them is `spot.first`.
#[allow(
    clippy::needless_range_loop,
    reason = "with iterators it kept their state in memory and took four times as long"
)]
#[inline(always)]
fn draw<const S: usize>(index: &mut [u32; S], spot: Spot, c: u32, count: usize) {
    let shift = count.ilog2();
    let mut rest = spot.rest;
    for j in 1..count.min(S) {
        rest = rest.wrapping_mul(C);
        // 64 lines and 8 strata at most: all of this fits in a u32.
        let low = (j as u32 * c) >> shift;
        let high = ((j as u32 + 1) * c) >> shift;
        let drawn = ((u128::from(rest) * u128::from(high - low)) >> 64) as u32;
        let at = spot.first + low + drawn;
        // `at mod c`, since `at` < 2c: the subtraction wraps to a huge number where it is not due. (As a branch it would
        // be mispredicted every second time.)
        index[j] = at.min(at.wrapping_sub(c));
    }
}

impl<const S: usize> Default for Lines<S> {
    fn default() -> Self {
        Lines { index: [0; S], count: 1 }
    }
}

impl<const S: usize> Lines<S> {
    /// Index in the chunk of each line, the first one first.
    #[inline]
    pub fn indexes(&self) -> &[u32] {
        &self.index[..self.count]
    }

    /// The line that the `i`-th place lies in.
    #[inline]
    pub fn of_place(&self, i: usize) -> u32 {
        // `count` is a power of two and at most S.
        self.index[i & (self.count - 1) & (S - 1)]
    }
}

/// How a line stores its places: what the probe is generic over, beside the hash family.
pub trait Places: Copy {
    /// Bits a place, a power of two.
    const WIDTH: u8;
    /// `place = x >> SHIFT`, so `2^(64 − SHIFT)` places a line.
    const SHIFT: u32 = 64 - (LINE_BITS / Self::WIDTH as u32).ilog2();

    /// A word whose lowest bit in each place says whether the place is not 0. The other bits mean nothing: so the words of
    /// several places can be combined before anything is decided.
    fn lowest(word: u64) -> u64;

    /// A word whose lowest bit says whether the place is not 0.
    #[inline]
    fn test(line: &Line, place: usize) -> u64 {
        Self::lowest(line[Self::word(place)]) >> Self::shift(place)
    }

    /// Sets the lowest bit of the place.
    #[inline]
    fn mark(line: &mut Line, place: usize) {
        line[Self::word(place)] |= 1 << Self::shift(place);
    }

    /// The word that the place lies in.
    #[inline]
    fn word(place: usize) -> usize {
        place / (64 / Self::WIDTH as usize) % LINE_WORDS
    }

    /// Where it begins there.
    #[inline]
    fn shift(place: usize) -> usize {
        place % (64 / Self::WIDTH as usize) * Self::WIDTH as usize
    }
}

/// Layout 1: one bit a place, 512 places a line.
#[derive(Clone, Copy)]
pub struct OneBit;

impl Places for OneBit {
    const WIDTH: u8 = 1;

    #[inline]
    fn lowest(word: u64) -> u64 {
        word
    }
}

/// Layout 2: a counter of four bits a place, 128 places a line. One that has come to 15 stays there: what it stands for is no
/// longer known.
#[derive(Clone, Copy)]
pub struct FourBit;

impl Places for FourBit {
    const WIDTH: u8 = 4;

    #[inline]
    fn lowest(word: u64) -> u64 {
        word | word >> 1 | word >> 2 | word >> 3
    }
}

impl FourBit {
    /// The counter of a place.
    #[inline]
    pub fn count(line: &Line, place: usize) -> u8 {
        (line[Self::word(place)] >> Self::shift(place) & 15) as u8
    }

    /// Adds 1 to each marked counter of the line.
    #[inline]
    pub fn up(line: &mut Line, marks: &Line) {
        for (word, marks) in line.iter_mut().zip(marks) {
            // None of them is 15, so nothing is carried.
            *word += marks & !Self::stuck(*word);
        }
    }

    /// Takes 1 from each marked counter of the line. None of them is 0.
    #[inline]
    pub fn down(line: &mut Line, marks: &Line) {
        for (word, marks) in line.iter_mut().zip(marks) {
            *word -= marks & !Self::stuck(*word);
        }
    }

    /// A word whose lowest bit in each counter says whether it is 15.
    #[inline]
    fn stuck(word: u64) -> u64 {
        word & word >> 1 & word >> 2 & word >> 3
    }
}

/// `C^n`.
const fn power(n: usize) -> u64 {
    let (mut x, mut i) = (1u64, 0);
    while i < n {
        x = x.wrapping_mul(C);
        i += 1;
    }
    x
}

/// The places of an item, four at a time, without end: place `i` is in line `i mod s′`.
///
/// Four draws that each jump over the other three, so that no multiplication waits for the one before.
#[inline]
pub fn places<P: Places>(hash: Hash) -> impl Iterator<Item = [usize; 4]> {
    let mut x = const { [power(1), power(2), power(3), power(4)] }.map(|power| hash.h2.wrapping_mul(power));
    std::iter::repeat_with(move || {
        let four = x.map(|x| (x >> P::SHIFT) as usize);
        x = x.map(|x| x.wrapping_mul(const { power(4) }));
        four
    })
}

/// The places 0, S, 2S and 3S, which lie in the first line (also of a chunk that has fewer lines than S).
#[inline]
pub fn places_in_first<P: Places, const S: usize>(hash: Hash) -> [usize; 4] {
    const { [power(1), power(1 + S), power(1 + 2 * S), power(1 + 3 * S)] }
        .map(|power| (hash.h2.wrapping_mul(power) >> P::SHIFT) as usize)
}

/// Makes `line` the marks of the places 0, S, 2S, … of an item, `count` of them, which lie in its first line, and nothing else:
/// to be laid over the stored ones.
///
/// In its final place, since a copy would read as vectors what was just written as words, which stalls.
#[inline]
pub fn first_places<P: Places, const S: usize>(hash: Hash, count: u8, line: &mut Line) {
    *line = NOTHING;
    let mut x = hash.h2.wrapping_mul(C);
    for _ in 0..count {
        P::mark(line, (x >> P::SHIFT) as usize);
        x = x.wrapping_mul(const { power(S) });
    }
}

/// Whether no marked place of the line is 0: no branch, and a few instructions on vectors of any width.
#[inline]
pub fn covers<P: Places>(line: &Line, marks: &Line) -> bool {
    line.iter().zip(marks).fold(0, |missing, (line, marks)| missing | (marks & !P::lowest(*line))) == 0
}

#[cfg(test)]
mod tests {
    use super::super::hash::{Family, Murmur3};
    use super::*;

    /// Chunk, its lines, the lines used, the places: of one item in a layer of `lines` lines.
    fn found<const S: usize>(item: &str, lines: u64, bits: u8) -> (u32, u32, Vec<u32>, Vec<usize>) {
        let geometry = Geometry::new(Size { lines, bits, spread: S as u8 }, Kind::Plain).unwrap();
        let hash = Murmur3.hash(item.as_bytes());
        let spot = geometry.spot(hash);
        let used = geometry.lines_at::<S>(spot).indexes().to_vec();
        (
            spot.chunk,
            geometry.chunk_lines(spot.chunk),
            used,
            places::<OneBit>(hash).flatten().take(bits.into()).collect(),
        )
    }

    #[test]
    fn vectors_of_layout_1() {
        assert_eq!(found::<1>("hello", 3, 3), (0, 3, vec![1], vec![171, 239, 33]));
        let hello = (1, 64, vec![22, 50, 56, 17], vec![171, 239, 33, 174, 9, 481]);
        assert_eq!(found::<4>("hello", 131, 6), hello);
        let empty = (1, 64, vec![45, 10, 25, 32], vec![148, 129, 42, 67, 441, 147]);
        assert_eq!(found::<4>("", 131, 6), empty);
        let item44 = (2, 3, vec![2, 0], vec![33, 100, 219, 47, 231, 181]);
        assert_eq!(found::<4>("item44", 131, 6), item44);
    }

    #[test]
    fn lines_are_distinct_and_inside_the_chunk_for_every_length() {
        for lines in 1..=64u64 {
            let geometry = Geometry::new(Size { lines, bits: 8, spread: 8 }, Kind::Plain).unwrap();
            for i in 0..200u64 {
                let spot = geometry.spot(Murmur3.hash(&i.to_le_bytes()));
                let used = geometry.lines_at::<8>(spot);
                let mut sorted = used.indexes().to_vec();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), (1 << lines.ilog2()).min(8), "{lines} lines");
                assert!(sorted.iter().all(|&line| u64::from(line) < lines));
            }
        }
    }

    #[test]
    fn a_size_is_well_formed_or_refused() {
        let size = |lines, bits, spread| Size { lines, bits, spread };
        for good in [size(1, 1, 1), size(1 << 34, 64, 8), size(65, 8, 8), size(64, 2, 2)] {
            assert_eq!(Geometry::new(good, Kind::Plain).map(Geometry::size), Some(good));
        }
        for bad in [size(0, 1, 1), size((1 << 34) + 1, 1, 1), size(1, 0, 1), size(1, 65, 1), size(1, 8, 3)] {
            assert_eq!(Geometry::new(bad, Kind::Plain), None);
        }
        for bad in [size(1, 3, 4), size(1, 8, 0), size(1, 64, 16)] {
            assert_eq!(Geometry::new(bad, Kind::Plain), None);
        }
    }
}
