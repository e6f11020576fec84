//! What a filter has become: how full it is, how often it errs by now, how many items were put in.
//!
//! All of it is read off the bits, so it holds for what is there, however it came there: items beyond the capacity, items
//! that were false positives when they were added and that nobody counted. Of a layer at most [`SAMPLE`] of the chunks made
//! are looked at, evenly spread and always the same ones, so that what is read does not grow with the filter. (The chunks made
//! are counted, not sampled.) What that leaves open is one in the square root of the items in the sample: of a full layer
//! for 1 %, with some 3,400 items a chunk, 0.2 % of its items; of one that is a hundredth full, 2 %.
//!
//! *The rate.* A random item is found if all its places are set. It falls on every line with the same chance and its places
//! are uniform within a line, so with f the share of places set in a line, c lines in the chunk and s′ lines an item
//!
//! ```text
//! rate = Σ over chunks of c/L · Π_{j<s′} M(q_j)        M(q) = mean over the chunk's lines of f^q
//! ```
//!
//! where q_j of the k places lie in the item's j-th line. (The fill of the layer to the power of k would be too small: lines
//! fill unevenly, and it is the fullest that err.) A filter of several layers errs if one of them does: 1 − Π (1 − r_i).
//!
//! *The items.* One place stays empty under an item with the chance 1 − a/L, where a = Σ_{j<s′} (1 − (1 − 1/512)^q_j), so
//! (with 128 for 512 in a counting filter)
//! under n items with (1 − a/L)ⁿ. From the share of places that are set follows
//!
//! ```text
//! n = ln(1 − fill) / ln(1 − a/L)
//! ```
//!
//! which for a classic filter of m bits, where the chance is (1 − 1/m)^k, is the estimate −(m/k) · ln(1 − X/m) of S. J.
//! Swamidass and P. Baldi, Mathematical correction for fingerprint similarity measures to improve chemical retrieval,
//! Journal of Chemical Information and Modeling 47 (2007). Items that an older layer took for known never reached this
//! one, so its n is divided by the share that the older ones let pass.

use super::chain::Chain;
use super::flat::{Flat, FlatLayer};
use super::geometry::{CHUNK_LINES, Kind, Line};
use super::layer::{Layer, Plan};

/// The most chunks of a layer that are looked at.
pub const SAMPLE: usize = 64;

/// What a layer has become.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerStats {
    /// Items it was made for.
    pub capacity: u64,
    /// The rate it was made for.
    pub asked: f64,
    /// Bits that an item sets.
    pub hashes: u32,
    /// Cache lines that they lie in.
    pub lines_per_item: u32,
    /// Adds that were answered 1.
    pub items: u64,
    /// Bits of all chunks, missing ones included.
    pub bits: u64,
    /// The share of places that are set (in a counting filter: are not 0), 0 to 1.
    pub fill: f64,
    /// The chance, by now, that an item which was never added is found in it.
    pub rate: f64,
    /// Distinct items that reached it, counted or not.
    pub distinct: f64,
    /// Chunks made.
    pub made: u64,
    /// Chunks there can be.
    pub chunks: u64,
    /// Bytes allocated for bits and tables.
    pub bytes: u64,
}

/// What a filter has become.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Its layers, oldest first.
    pub layers: Vec<LayerStats>,
    /// The chance, by now, that an item which was never added is found.
    pub rate: f64,
    /// Distinct items that were added, those included that were false positives and not counted.
    pub distinct: f64,
}

impl Stats {
    /// Reads them off a filter.
    pub fn of(chain: &Chain) -> Stats {
        Stats::of_layers(chain.layers().map(LayerStats::of).collect())
    }

    /// Reads them off a filter in RedisBloom's layout.
    pub fn of_flat(flat: &Flat) -> Stats {
        Stats::of_layers(flat.layers().iter().map(LayerStats::of_flat).collect())
    }

    fn of_layers(layers: Vec<LayerStats>) -> Stats {
        // As logarithms: the rates may be far below the precision of 1 − r.
        let (mut distinct, mut passed) = (0.0, 0.0_f64);
        for layer in &layers {
            // A full layer of nothing but set places lets nothing pass, and nothing came then.
            distinct += layer.distinct / passed.exp().max(f64::MIN_POSITIVE);
            passed += (-layer.rate).ln_1p();
        }
        // From 0, since -0 is not a rate.
        Stats { layers, rate: 0.0 - passed.exp_m1(), distinct }
    }
}

impl LayerStats {
    /// Reads them off a layer.
    fn of(layer: &Layer) -> LayerStats {
        let geometry = layer.geometry();
        let kind = geometry.kind();
        let plan = layer.plan();
        let (made, lines_made) = layer.made_from(0).fold((0, 0), |(made, lines), chunk| {
            let more: u64 = geometry.chunk_lines(chunk).into();
            (made + 1, lines + more)
        });
        let step = (made as usize).div_ceil(SAMPLE).max(1);
        let (mut set, mut rate, mut lines_seen) = (0, 0.0, 0);
        for lines in layer.made_from(0).step_by(step).filter_map(|chunk| layer.chunk(chunk)) {
            set += lines.iter().map(|line| u64::from(set_in(line, kind))).sum::<u64>();
            rate += lines.len() as f64 * chunk_rate(lines, plan, kind);
            lines_seen += lines.len() as u64;
        }
        // Of all lines, the missing ones hold nothing; those seen stand for those made.
        let share = lines_made as f64 / (geometry.lines() * lines_seen.max(1)) as f64;
        let fill = share * set as f64 / f64::from(kind.line_places());
        LayerStats {
            capacity: plan.capacity,
            asked: plan.rate,
            hashes: plan.size.bits.into(),
            lines_per_item: plan.size.spread.into(),
            items: layer.items(),
            bits: 512 * geometry.lines(),
            fill,
            rate: share * rate,
            distinct: distinct(plan, kind, fill),
            made,
            chunks: geometry.chunks().into(),
            bytes: layer.bytes() as u64,
        }
    }

    /// Reads them off a layer in RedisBloom's layout: a classic filter, whose places lie anywhere, each for itself. So its
    /// rate is fill^k and its items are −(m/k) · ln(1 − fill).
    fn of_flat(layer: &FlatLayer) -> LayerStats {
        let plan = layer.plan();
        // What is counted is the same; what it means is not.
        let cells = LayerStats::of(layer.cells());
        let bits = layer.modulus();
        let fill = (cells.fill * cells.bits as f64 / bits as f64).min(1.0);
        let hashes = f64::from(plan.hashes);
        // As in `distinct`: with every place set, what one empty one would say.
        let empty = (-fill.min(1.0 - 1.0 / bits.max(2) as f64)).ln_1p();
        let distinct = -(bits as f64 / hashes) * empty;
        LayerStats {
            hashes: plan.hashes,
            lines_per_item: plan.hashes,
            bits,
            fill,
            rate: fill.powf(hashes),
            distinct,
            ..cells
        }
    }
}

/// Places of the line that are set.
fn set_in(line: &Line, kind: Kind) -> u32 {
    line.iter().map(|&word| kind.occupied(word).count_ones()).sum()
}

/// How many of an item's k places lie in each of its lines of a chunk of `lines`: (lines with one more, all lines, places
/// in the others).
fn shares(plan: Plan, lines: u64) -> (i32, i32, i32) {
    let spread = u64::from(plan.size.spread).min(1 << lines.ilog2()) as i32;
    let bits = i32::from(plan.size.bits);
    (bits % spread, spread, bits / spread)
}

/// The chance that a random item of this chunk is found.
fn chunk_rate(lines: &[Line], plan: Plan, kind: Kind) -> f64 {
    let (with_more, all, places) = shares(plan, lines.len() as u64);
    let of = f64::from(kind.line_places());
    let mean = |q| {
        let sum: f64 = lines.iter().map(|line| (f64::from(set_in(line, kind)) / of).powi(q)).sum();
        sum / lines.len() as f64
    };
    mean(places).powi(all - with_more) * if with_more > 0 { mean(places + 1).powi(with_more) } else { 1.0 }
}

/// How many items leave `fill` of the places set. The last chunk, if it is one of several and has fewer lines than an
/// item wants, is taken for one that has them.
fn distinct(plan: Plan, kind: Kind, fill: f64) -> f64 {
    let lines = plan.size.lines;
    let (with_more, all, places) = shares(plan, lines.min(CHUNK_LINES.into()));
    let hit = |q: f64| -(q * (-1.0 / f64::from(kind.line_places())).ln_1p()).exp_m1();
    let a = f64::from(all - with_more) * hit(places.into()) + f64::from(with_more) * hit(f64::from(places) + 1.0);
    // With every place set it could be any number: say what one empty place would.
    let fill = fill.min(1.0 - 1.0 / (lines as f64 * f64::from(kind.line_places())));
    (-fill).ln_1p() / (-a / lines as f64).ln_1p()
}
