//! Section `values`: saving, loading, making and deleting large filters.

use std::time::{Duration, Instant};

use crate::Result;
use crate::report::{Report, count, mebibytes};
use crate::settings::{Filter, Settings, Side};

/// The filter that is only made, and deleted after a part of its items was added.
const HUGE: Filter = Filter { items: 1_000_000_000, rate: Some(0.01) };

/// Measures each module with filters once: these things take seconds, and show little noise.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("Large values")?;
    let filter = Filter { items: settings.large, rate: Some(0.01) };
    report.paragraph(&format!(
        "A full filter of {}, measured once. Time to the end of BGSAVE, of it the fork alone, and from starting a \
         server on the file to its first answer. MiB: the file; the largest resident size of the parent (filling \
         included), of the saving child (pages it shares included) and what the two no longer shared; the same of the \
         server that loaded the file.",
        filter.label()
    ))?;
    let head = [
        "module",
        "MEMORY USAGE",
        "BGSAVE, s",
        "fork, ms",
        "file",
        "parent's peak",
        "child's peak",
        "not shared",
        "load, s",
        "peak after load",
    ];
    let rows =
        settings.filter_sides().into_iter().map(|side| saving(settings, side, filter)).collect::<Result<Vec<_>>>()?;
    report.table(&head.map(str::to_owned), &rows)?;

    let some = settings.large / 20;
    report.paragraph(&format!(
        "A filter reserved for {}, measured once, milliseconds as the client sees them: making it, the first item, and \
         with {} items in it, DEL; the same with UNLINK, and the PING right after. MiB: what MEMORY USAGE counts when \
         it is new, and with these items.",
        HUGE.label(),
        count(some)
    ))?;
    let head = ["module", "RESERVE", "first ADD", "new", "with items", "DEL", "UNLINK", "PING after"];
    let rows =
        settings.filter_sides().into_iter().map(|side| making(settings, side, some)).collect::<Result<Vec<_>>>()?;
    report.table(&head.map(str::to_owned), &rows)
}

fn saving(settings: &Settings, side: &Side, filter: Filter) -> Result<Vec<String>> {
    let mut filled = settings.start(side)?;
    filled.make_key("filter", filter)?;
    filled.fill("filter", 0, filter.items)?;
    let mut server = filled.server;
    let usage: u64 = server.ask("MEMORY", &["USAGE", "filter"])?;
    let saved = server.background_save()?;
    let peak = server.peak_memory()?;
    let server = server.restart()?;
    Ok(vec![
        side.name.to_owned(),
        mebibytes(usage),
        format!("{:.2}", saved.time.as_secs_f64()),
        milliseconds(saved.fork),
        mebibytes(saved.file),
        mebibytes(peak),
        mebibytes(saved.child_peak),
        mebibytes(saved.not_shared),
        format!("{:.2}", server.ready_after.as_secs_f64()),
        mebibytes(server.peak_memory()?),
    ])
}

fn making(settings: &Settings, side: &Side, items: u64) -> Result<Vec<String>> {
    let mut running = settings.start(side)?;
    let begun = Instant::now();
    running.make_key("filter", HUGE)?;
    let reserve = begun.elapsed();
    let first = time(|| running.server.ask("BF.ADD", &["filter", "first"]))?;
    let new: u64 = running.server.ask("MEMORY", &["USAGE", "filter"])?;
    running.fill("filter", 0, items)?;
    let with_items: u64 = running.server.ask("MEMORY", &["USAGE", "filter"])?;
    let deleted = time(|| running.server.ask("DEL", &["filter"]))?;
    running.make_key("filter", HUGE)?;
    running.fill("filter", 0, items)?;
    let unlinked = time(|| running.server.ask("UNLINK", &["filter"]))?;
    let after = time(|| running.server.ask("PING", &[] as &[&str]))?;
    let mut cells = vec![side.name.to_owned(), milliseconds(reserve), milliseconds(first)];
    cells.extend([new, with_items].map(mebibytes));
    cells.extend([deleted, unlinked, after].map(milliseconds));
    Ok(cells)
}

/// How long a request takes, its reply included.
fn time(request: impl FnOnce() -> Result<redis::Value>) -> Result<Duration> {
    let begun = Instant::now();
    request()?;
    Ok(begun.elapsed())
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}
