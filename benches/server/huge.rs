//! Section `huge`: what one command of very many items keeps the server busy for.

use crate::Result;
use crate::report::{Report, median, nanoseconds};
use crate::settings::{Filter, Settings};

/// Items in a command, each size adding as many in all.
const SIZES: [usize; 8] = [1, 10, 100, 500, 1_000, 10_000, 100_000, 1 << 20];
/// Items added by the commands of each size.
const ITEMS: u64 = 1 << 20;

/// Adds the same number of new items by commands of each size.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("One huge command")?;
    report.paragraph(&format!(
        "{ITEMS} new items by BF.MADD of different sizes, into a filter reserved for ten million at 1 %, measured once: \
         how long one command runs (median, by SLOWLOG: nobody else is served for so long; reading and taking apart \
         what the client sends comes on top), and the server's whole processor time, nanoseconds an item.",
    ))?;
    let sides = settings.filter_sides();
    let mut running = settings.start_each(&sides)?;
    let mut rows = Vec::new();
    for (part, batch) in (0..).zip(SIZES) {
        let mut row = vec![batch.to_string()];
        for one in &mut running {
            if part == 0 {
                one.make_key("filter", Filter { items: 10_000_000, rate: Some(0.01) })?;
            }
            let numbers: Vec<u64> = (part * ITEMS..(part + 1) * ITEMS).collect();
            let mut processor = 0.0;
            let times = one.each_call("BF.MADD", |one| {
                processor = one.send("MADD", "filter", &numbers, batch)?.processor_ns();
                Ok(())
            })?;
            row.push(format!("{:.3}", median(times.iter().map(|&time| time as f64)) / 1e3));
            row.push(nanoseconds(processor));
        }
        rows.push(row);
    }
    let columns =
        sides.iter().flat_map(|side| [format!("{}, ms a command", side.name), format!("{}, ns an item", side.name)]);
    report.table(&["items a command".to_owned()].into_iter().chain(columns).collect::<Vec<_>>(), &rows)
}
