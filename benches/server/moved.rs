//! Section `moved`: filters that RedisBloom made and that keep its layout, answered by us and by RedisBloom itself.

use crate::Result;
use crate::commands::{Row, ask, fill_slices, keys, show, start};
use crate::report::Report;
use crate::settings::{BATCH, Filter, Running, Settings};

/// Items in the largest filter that a short run moves.
const LARGE: u64 = 10_000_000;

/// Moves filters of each size, and measures both sides with the same values.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("Moved from RedisBloom")?;
    if settings.peer_is_missing() {
        return report.paragraph("Left out, since RedisBloom is missing: only it makes such filters.");
    }
    report.paragraph(&format!(
        "As `commands`, for filters in RedisBloom's layout, the same value on both sides: RedisBloom fills a filter up to its last \
         tenth (or a round's items, if these are fewer), and what DUMP gives is put into both servers with RESTORE. The new items \
         are the rest of the filter, a quarter of them by single commands, and before each of the {} rounds both servers \
         get the value anew. In the end both must give away the same value again, or the run fails.",
        settings.rounds
    ))?;
    let reserved = |items| Filter { items, rate: Some(0.01) };
    let filters = [reserved(100_000), Filter { items: 300_000, rate: None }, reserved(LARGE)];
    for filter in filters.into_iter().chain((settings.large > LARGE).then(|| reserved(settings.large))) {
        let rows = measure(settings, filter)?;
        show(settings, report, filter, &rows)?;
    }
    Ok(())
}

fn measure(settings: &Settings, filter: Filter) -> Result<Vec<Row>> {
    let mut running = start(settings)?;
    let keys = keys(settings, filter);
    let new = (filter.items / 10).min(settings.items);
    let (first_new, first_single) = (filter.items - new, filter.items - new / 4);
    for one in running.iter_mut().filter(|one| !one.side.has_filters()) {
        for key in &keys {
            one.make_key(key, filter)?;
        }
    }
    let peer = running.last_mut().ok_or("no server runs")?;
    peer.make_key(&keys[0], filter)?;
    peer.fill(&keys[0], 0, first_new)?;
    let value = dump(peer, &keys[0])?;
    let [mut by_many, mut by_one] = Row::of_new(running.len());
    for _ in 0..settings.rounds {
        for one in running.iter_mut().filter(|one| one.side.has_filters()) {
            for key in &keys {
                let () = one.server.ask("RESTORE", &[key.as_bytes(), b"0", &value, b"REPLACE"])?;
            }
        }
        fill_slices(settings, &mut running, &keys, first_new..first_single, BATCH, &mut by_many)?;
        fill_slices(settings, &mut running, &keys, first_single..filter.items, 1, &mut by_one)?;
    }
    let mut rows = vec![by_many, by_one];
    rows.extend(ask(settings, filter, &mut running)?);
    let values = running.iter_mut().filter(|one| one.side.has_filters()).map(|one| dump(one, &keys[0]));
    if values.collect::<Result<Vec<_>>>()?.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(format!("{}: the same commands made different filters of the same value", filter.label()).into());
    }
    Ok(rows)
}

/// The value of a key as its server gives it away.
fn dump(running: &mut Running, key: &str) -> Result<Vec<u8>> {
    running.server.ask("DUMP", &[key])
}
