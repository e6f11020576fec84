//! Measures false-positive rates: fills filters, probes them with items that were never added, and says what the count
//! proves. Used by the quick tests here and by the long run (`examples/accuracy.rs`).
//!
//! Filters of one kind differ, small ones most, and the probes of one filter share its luck. So a cell is measured on
//! many filters (at least [`FEWEST_FILTERS`]), and what their counts scatter more than Poisson counts would is taken
//! into the bound: with positives x, and D the variance of a filter's count over its mean (1 where that is less),
//!
//! ```text
//! at least = λ / probes · D     with λ the mean of the Poisson distribution for which P(X ≥ x / D) = 0.1 %
//! ```
//!
//! So the true rate is `at least` or higher, with a confidence of 99.9 %; a cell fails if that is above the rate asked.
//! (Positives are binomial, which scatter less than Poisson counts. The items are the same in every run, so a cell
//! that holds today fails tomorrow only if sizes or layout change.)

use bloomgate::bloom::chain::{Chain, Head, Room, Stop};
use bloomgate::bloom::geometry::Kind;
use bloomgate::bloom::layer::{GROUP, Plan};
use bloomgate::bloom::sizing::Size;
use statrs::function::gamma::gamma_lr;

/// Filters of one kind that are measured, at least.
const FEWEST_FILTERS: u64 = 8;

/// One kind of filter.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The rate asked.
    pub rate: f64,
    /// The capacity asked.
    pub capacity: u64,
    /// 0: NONSCALING.
    pub expansion: u32,
    /// Adds answered 1 before it is probed; of a counting filter, items in it.
    pub items: u64,
    /// Whether items can be deleted.
    pub kind: Kind,
    /// Of a counting filter: how often as many items as it holds are deleted, any of them, and as many others added.
    pub churns: u64,
}

/// How long a cell is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The probes of all filters together: as many as give so many positives at the rate asked, …
    pub positives: f64,
    /// … but at least …
    pub fewest: u64,
    /// … and at most so many.
    pub most: u64,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Filters that were filled and probed.
    pub filters: u64,
    /// Probes of all of them.
    pub probes: u64,
    /// Probes that were answered 1.
    pub positives: u64,
    /// D.
    pub scatter: f64,
    /// The newest layer's size.
    pub size: Size,
    /// Bytes of the lines of one filter.
    pub bytes: u64,
}

impl Cell {
    /// A filter that takes `capacity` items and no more, full.
    pub fn full(rate: f64, capacity: u64) -> Cell {
        Cell { rate, capacity, expansion: 0, items: capacity, kind: Kind::Plain, churns: 0 }
    }

    /// A filter that has grown to `times` its capacity.
    pub fn grown(rate: f64, capacity: u64, expansion: u32, times: u64) -> Cell {
        Cell { rate, capacity, expansion, items: capacity * times, kind: Kind::Plain, churns: 0 }
    }

    /// The same of a counting filter after `churns`.
    pub fn counting(self, churns: u64) -> Cell {
        Cell { kind: Kind::Counting, churns, ..self }
    }

    /// Fills filters and probes them. Cells with different seeds share no items.
    pub fn measure(self, seed: u32, effort: Effort) -> Measured {
        let wanted = ((effort.positives / self.rate) as u64).clamp(effort.fewest, effort.most);
        // Filling takes longer than probing; to probe much more than was filled wastes nothing on it. Few probes a
        // filter keep apart what varies between filters.
        let probes = (20 * self.items).max(400).min(wanted / FEWEST_FILTERS).next_multiple_of(GROUP as u64);
        let filters = wanted.div_ceil(probes);
        let head = Head {
            id: [0; 8],
            rate: self.rate,
            capacity: self.capacity,
            expansion: self.expansion,
            key: None,
            kind: self.kind,
        };
        let plan = head.plan().expect("a capacity that fits");
        let (mut positives, mut squares, mut last) = (0, 0.0, None);
        for number in 0..filters {
            let name = u64::from(seed) << 32 | number;
            let chain = self.filled(head, plan, name);
            let found = positives_among(&chain, name, probes);
            positives += found;
            squares += (found as f64).powi(2);
            last = chain.layers().next_back().map(|layer| (layer.plan().size, chain.lines() * 64));
        }
        let mean = positives as f64 / filters as f64;
        let variance = (squares - filters as f64 * mean * mean) / (filters - 1) as f64;
        let scatter = if positives == 0 { 1.0 } else { (variance / mean).max(1.0) };
        let (size, bytes) = last.expect("some filters");
        Measured { filters, probes: filters * probes, positives, scatter, size, bytes }
    }

    fn filled(self, head: Head, first: Plan, name: u64) -> Chain {
        let mut chain = Chain::new(head, first).expect("a plan that checks");
        let mut there: Vec<u64> = Vec::new();
        let mut next = 0;
        let mut fill = |chain: &mut Chain, there: &mut Vec<u64>| {
            while chain.items() < self.items {
                let items: [_; GROUP] = std::array::from_fn(|i| item(name, next + i as u64));
                let group = items.each_ref().map(<[u8; 16]>::as_slice);
                let wanted = (self.items - chain.items()).min(GROUP as u64) as usize;
                let added = chain.add_group(&group[..wanted], Room::Kept);
                if self.churns > 0 {
                    there.extend(next..next + added.done as u64);
                }
                next += added.done as u64;
                match added.stop {
                    None => {}
                    Some(Stop::Full) => {
                        let plan = chain.plan_next().expect("a next layer");
                        chain.grow(plan).expect("room for it");
                    }
                    Some(Stop::OutOfMemory) => panic!("out of memory"),
                }
            }
        };
        fill(&mut chain, &mut there);
        let (mut random, mut left) = (name, self.churns * self.items);
        while left > 0 {
            let some = left.min(GROUP as u64).min(self.items);
            let leaving = (0..some).map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                item(name, there.swap_remove((random >> 32) as usize % there.len()))
            });
            let leaving: Vec<[u8; 16]> = leaving.collect();
            let group: Vec<&[u8]> = leaving.iter().map(<[u8; 16]>::as_slice).collect();
            assert_eq!(u64::from(chain.remove_group(&group).count_ones()), some, "what is in is missed");
            fill(&mut chain, &mut there);
            left -= some;
        }
        assert!(there.iter().all(|&number| chain.contains(&item(name, number))), "what is in is missed");
        chain
    }
}

/// Of so many items (a multiple of [`GROUP`]) that were never added, how many are answered 1.
fn positives_among(chain: &Chain, name: u64, probes: u64) -> u64 {
    const NEVER_ADDED: u64 = 1 << 63;
    (0..probes)
        .step_by(GROUP)
        .map(|first| {
            let items: [_; GROUP] = std::array::from_fn(|i| item(name, NEVER_ADDED | (first + i as u64)));
            u64::from(chain.contains_group(&items.each_ref().map(<[u8; 16]>::as_slice)).count_ones())
        })
        .sum()
}

fn item(name: u64, number: u64) -> [u8; 16] {
    (u128::from(name) << 64 | u128::from(number)).to_le_bytes()
}

impl Measured {
    /// The rate measured.
    pub fn rate(&self) -> f64 {
        self.positives as f64 / self.probes as f64
    }

    /// The lowest rate that the filters may truly have, at a confidence of 99.9 %.
    pub fn at_least(&self) -> f64 {
        const DOUBT: f64 = 0.001;
        if self.positives == 0 {
            return 0.0;
        }
        let count = self.positives as f64 / self.scatter;
        let (mut low, mut high) = (0.0, count);
        // P(X ≥ count) grows with the mean, and is near 1/2 where that is `count`.
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if gamma_lr(count, middle) < DOUBT { low = middle } else { high = middle }
        }
        low * self.scatter / self.probes as f64
    }
}

/// Bytes of a classic filter (Bloom 1970) of the best size for so many items.
pub fn classic_bytes(items: u64, rate: f64) -> f64 {
    items as f64 * -rate.ln() / std::f64::consts::LN_2.powi(2) / 8.0
}
