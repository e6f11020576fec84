//! False-positive rates, the quick part: what a small filter can go wrong by. `make accuracy` is the long one.

pub mod measure;

use bloomgate::bloom::sizing::Size;
use measure::{Cell, Effort, Measured, classic_bytes};

/// A second or so for all cells of a test.
const QUICK: Effort = Effort { positives: 300.0, fewest: 4_000, most: 250_000 };

fn assert_kept(cells: impl IntoIterator<Item = Cell>) -> Vec<Measured> {
    let measure = |(cell, seed): (Cell, u32)| {
        let measured = cell.measure(seed, QUICK);
        assert!(measured.at_least() <= cell.rate, "{cell:?}: {:.3e}, {measured:?}", measured.rate());
        assert!(measured.filters >= 8);
        measured
    };
    cells.into_iter().zip(0..).map(measure).collect()
}

#[test]
fn full_filters_keep_the_rate_asked() {
    let rates = [0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6];
    assert_kept([1, 5, 10, 100, 1000].iter().flat_map(|&capacity| rates.map(|rate| Cell::full(rate, capacity))));
}

/// A short last chunk beside a full one.
#[test]
fn awkward_sizes_keep_the_rate_asked() {
    let one_percent = [3400, 3500, 5000, 6000].map(|capacity| Cell::full(0.01, capacity));
    let one_in_a_million = [1200, 1400, 2270].map(|capacity| Cell::full(1e-6, capacity));
    for measured in assert_kept(one_percent.into_iter().chain(one_in_a_million)) {
        assert!((65..=131).contains(&measured.size.lines), "{measured:?}");
    }
}

#[test]
fn grown_filters_keep_the_rate_asked() {
    for rate in [0.1, 0.01, 1e-4] {
        assert_kept([1, 2, 4].map(|expansion| Cell::grown(rate, 100, expansion, 20)));
    }
}

#[test]
fn counting_filters_keep_the_rate_asked_through_churn() {
    let rates = [0.5, 0.1, 0.01, 0.001, 1e-4, 1e-6];
    let full = [1, 10, 100, 1000].iter().flat_map(|&capacity| rates.map(|rate| Cell::full(rate, capacity)));
    let grown = [0.1, 0.01].map(|rate| Cell::grown(rate, 100, 2, 20));
    assert_kept(full.chain(grown).flat_map(|cell| [cell.counting(0), cell.counting(10)]));
}

/// A rate that is kept by far would waste memory: 0.5 is honoured.
#[test]
fn what_is_asked_is_what_is_got() {
    for cell in [Cell::full(0.5, 1000), Cell::full(0.01, 1000), Cell::full(0.01, 10_000)] {
        let measured = cell.measure(0, QUICK);
        assert!(measured.rate() >= 0.8 * cell.rate, "{cell:?}: {:.3e}", measured.rate());
        assert!((measured.bytes as f64) < 1.5 * classic_bytes(cell.items, cell.rate), "{measured:?}");
    }
}

/// The bound itself: known values of the Poisson distribution, and what overdispersion does to it.
#[test]
fn the_bound_is_that_of_the_poisson_distribution() {
    let measured = |positives, scatter| Measured {
        filters: 8,
        probes: 1000,
        positives,
        scatter,
        size: Size { lines: 1, bits: 1, spread: 1 },
        bytes: 64,
    };
    // 1 − e^−λ = 0.001; and half the 0.1 % quantile of χ² with 200 degrees of freedom, 143.84.
    assert!((measured(1, 1.0).at_least() * 1000.0 - 0.001_000_5).abs() < 1e-7);
    assert!((measured(100, 1.0).at_least() * 1000.0 - 71.92).abs() < 0.01);
    assert!((measured(400, 4.0).at_least() * 1000.0 - 4.0 * 71.92).abs() < 0.04);
    assert_eq!(measured(0, 1.0).at_least(), 0.0);
}
