//! Section `create`: how long the server stands still for making a filter, and for the add that makes it grow.

use crate::Result;
use crate::report::{Report, count, median, percent};
use crate::settings::{BATCH, Running, Settings};

/// Capacities of the filters that are made.
const CAPACITIES: [u64; 8] = [1, 100, 1_000, 10_000, 100_000, 1_000_000, 100_000_000, 1_000_000_000];
/// Their rates.
const RATES: [f64; 6] = [0.5, 0.1, 0.01, 0.001, 1e-6, 1e-9];
/// First capacities of the filters that grow.
const FIRST_CAPACITIES: [u64; 3] = [100, 1_000, 10_000];
/// Filters made in each cell, each of a different capacity, so that none finds the sizes of another.
const TRIES: u64 = 7;
/// Single adds begin this many before the one that is expected to make the filter grow.
const AROUND: u64 = 8;

/// Measures both, by SLOWLOG.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("Creation and growth")?;
    report.paragraph(&format!(
        "Microseconds that a command kept the server busy, by its SLOWLOG: median and greatest of {TRIES} BF.RESERVE of \
         capacities from the given one on; then median and greatest of the adds that made a filter grow, expansion 2, \
         from its first capacity to {} items.",
        count(settings.items)
    ))?;
    for side in settings.filter_sides() {
        let mut running = settings.start(side)?;
        report.paragraph(&format!("{}, BF.RESERVE", side.name))?;
        let rows = CAPACITIES.iter().map(|&capacity| {
            let cells = RATES.iter().map(|&rate| creation(&mut running, capacity, rate));
            [Ok(count(capacity))].into_iter().chain(cells).collect()
        });
        report.table(&head("capacity"), &rows.collect::<Result<Vec<_>>>()?)?;
        report.paragraph(&format!("{}, the add that grows", side.name))?;
        let rows = FIRST_CAPACITIES.iter().map(|&capacity| {
            let cells = RATES.iter().map(|&rate| growth(&mut running, capacity, rate, settings.items));
            [Ok(count(capacity))].into_iter().chain(cells).collect()
        });
        report.table(&head("first capacity"), &rows.collect::<Result<Vec<_>>>()?)?;
    }
    Ok(())
}

fn head(first: &str) -> Vec<String> {
    [first.to_owned()].into_iter().chain(RATES.iter().map(|&rate| percent(rate))).collect()
}

fn creation(running: &mut Running, capacity: u64, rate: f64) -> Result<String> {
    let times = running.each_call("BF.RESERVE", |running| {
        for more in 0..TRIES {
            let capacity = (capacity + more).to_string();
            let () = running.server.ask("BF.RESERVE", &["filter", &rate.to_string(), &capacity])?;
            let () = running.server.ask("DEL", &["filter"])?;
        }
        Ok(())
    })?;
    median_and_greatest(&times)
}

/// Fills a filter until just before each layer's capacity by commands of many, and goes over it by single adds.
///
/// Which of these single adds grows the filter is not asked: it is the one that takes longest.
fn growth(running: &mut Running, first_capacity: u64, rate: f64, items: u64) -> Result<String> {
    let () = running.server.ask("BF.RESERVE", &["filter", &rate.to_string(), &first_capacity.to_string()])?;
    let (mut next, mut added, mut full, mut capacity) = (0, 0, first_capacity, first_capacity);
    let mut growths = Vec::new();
    while full < items {
        while added + AROUND < full {
            // Not every item is answered 1, and none must be added beyond this point.
            let missing = full - AROUND - added;
            let numbers: Vec<u64> = (next..next + missing).collect();
            added += running.send("MADD", "filter", &numbers, BATCH)?.ones;
            next += missing;
        }
        let times = running.each_call("BF.ADD", |running| {
            while added <= full {
                let singles: Vec<u64> = (next..next + AROUND).collect();
                next += AROUND;
                added += running.send("ADD", "filter", &singles, 1)?.ones;
            }
            Ok(())
        })?;
        growths.extend(times.into_iter().max());
        capacity *= 2;
        full += capacity;
    }
    let () = running.server.ask("DEL", &["filter"])?;
    median_and_greatest(&growths)
}

fn median_and_greatest(times: &[u64]) -> Result<String> {
    let greatest = times.iter().max().ok_or("SLOWLOG did not show the command")?;
    Ok(format!("{:.0}, {greatest}", median(times.iter().map(|&time| time as f64))))
}
