//! Measures the false-positive rates that filters really have, and prints a table: `make accuracy`.
//!
//! Ends with 1 if a rate was certainly (99.9 %) above the one asked. Takes about twenty minutes of one core. Words after `--` on
//! cargo's command line choose the parts whose titles hold them, such as `Counting`.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use bloomgate::bloom::geometry::Kind;
use bloomgate::bloom::sizing;
use measure::{Cell, Effort, Measured, classic_bytes};

#[path = "../tests/core/accuracy/measure.rs"]
mod measure;

/// A statistical error of 1 % for rates down to 1e-4, 1.6 % at 1e-5, 5 % at 1e-6.
const LONG: Effort = Effort { positives: 10_000.0, fewest: 2_000_000, most: 400_000_000 };

const RATES: [f64; 7] = [0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6];

fn main() -> ExitCode {
    let parts = [
        ("NONSCALING, full", full()),
        ("NONSCALING, full, with a short last chunk", awkward()),
        ("Scaling, grown to 20 times the capacity", grown()),
        ("Counting, full", counting(0)),
        ("Counting, full, after ten times the capacity in deletes and adds", counting(10)),
        ("Counting, scaling, grown to 20 times the capacity, after ten times as many deletes and adds", churned()),
    ];
    let words: Vec<String> = std::env::args().skip(1).collect();
    let asked = |title: &str| words.iter().all(|word| title.contains(word.as_str()));
    let parts: Vec<_> = parts.into_iter().filter(|(title, _)| asked(title)).collect();
    let cells: Vec<Cell> = parts.iter().flat_map(|(_, cells)| cells).copied().collect();
    let mut measured = measure_all(&cells).into_iter();
    let mut broken = 0;
    for (title, cells) in parts {
        println!("\n### {title}\n");
        println!(
            "| asked | capacity | expansion | lines, k, s of the newest layer | filters | probes | measured | of asked | at least | bytes | classic | of classic |"
        );
        println!("|--:|--:|--:|:--|--:|--:|--:|--:|--:|--:|--:|--:|");
        for (cell, measured) in cells.iter().zip(&mut measured) {
            broken += u32::from(measured.at_least() > cell.rate);
            print_row(cell, &measured);
        }
    }
    println!("\n{broken} of {} above the rate asked.", cells.len());
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn full() -> Vec<Cell> {
    let capacities = [1, 5, 10, 100, 1000, 100_000, 1_000_000];
    capacities.iter().flat_map(|&capacity| RATES.map(|rate| Cell::full(rate, capacity))).collect()
}

/// 65 to 131 lines, and the first capacities whose last chunk has 1, 2, 31 or 63 lines, where the rule gives any.
fn awkward() -> Vec<Cell> {
    let mut cells: Vec<Cell> = [3400, 5000, 6000].map(|capacity| Cell::full(0.01, capacity)).into();
    cells.extend([1200, 1400, 1700, 2000, 2270, 2300].map(|capacity| Cell::full(1e-6, capacity)));
    for (rate, capacities) in [(0.01, 3000..10_000), (1e-4, 1500..5000), (1e-6, 1000..3500)] {
        for last in [1, 2, 31, 63] {
            let has_it = |&capacity: &u64| {
                sizing::choose(capacity, rate, Kind::Plain)
                    .is_some_and(|size| size.lines > 64 && size.lines % 64 == last)
            };
            cells.extend(capacities.clone().step_by(10).find(has_it).map(|capacity| Cell::full(rate, capacity)));
        }
    }
    cells
}

fn counting(churns: u64) -> Vec<Cell> {
    let cells = [1, 10, 100, 1000, 100_000].iter().flat_map(|&capacity| RATES.map(|rate| Cell::full(rate, capacity)));
    let large = [0.1, 0.01, 0.001, 1e-4].map(|rate| Cell::full(rate, 1_000_000));
    cells.chain(large).map(|cell| cell.counting(churns)).collect()
}

fn churned() -> Vec<Cell> {
    let rates = [0.1, 0.01, 1e-4];
    let cells = [1, 100, 1000].iter().flat_map(|&capacity| rates.map(|rate| Cell::grown(rate, capacity, 2, 20)));
    cells.map(|cell| cell.counting(10)).collect()
}

fn grown() -> Vec<Cell> {
    let mut cells = Vec::new();
    for expansion in [1, 2, 4] {
        for capacity in [1, 100, 1000] {
            cells.extend([0.1, 0.01, 1e-4].map(|rate| Cell::grown(rate, capacity, expansion, 20)));
        }
        cells.push(Cell::grown(1e-6, 100, expansion, 20));
    }
    cells
}

/// Every cell, on as many threads as there are processors.
fn measure_all(cells: &[Cell]) -> Vec<Measured> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![None; cells.len()]);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(number) else { break };
                    let measured = cell.measure(number as u32, LONG);
                    eprintln!("{number} of {}: {cell:?} {:.4e}", cells.len(), measured.rate());
                    results.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(measured);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

fn print_row(cell: &Cell, measured: &Measured) {
    let expansion = if cell.expansion == 0 { "–".into() } else { cell.expansion.to_string() };
    let size = measured.size;
    let classic = classic_bytes(cell.items, cell.rate);
    println!(
        "| {} | {} | {expansion} | {}, {}, {} | {} | {:.1e} | {:.3e} | {:.3} | {:.3} | {} | {classic:.0} | {:.2} |",
        cell.rate,
        cell.capacity,
        size.lines,
        size.bits,
        size.spread,
        measured.filters,
        measured.probes as f64,
        measured.rate(),
        measured.rate() / cell.rate,
        measured.at_least() / cell.rate,
        measured.bytes,
        measured.bytes as f64 / classic,
    );
}
