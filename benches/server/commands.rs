//! Section `commands`: the processor time an item of each kind of command, against the floor and against RedisBloom.

use std::ops::Range;

use crate::Result;
use crate::draw;
use crate::report::{Report, median, nanoseconds, percent};
use crate::settings::{BATCH, Filter, Running, Settings};
use crate::traffic::{Requests, Round, any_below, never_added, send, slices};

/// A kind of command over items that are in the filter, or that are not, without changing it.
struct Workload {
    label: &'static str,
    verb: &'static str,
    batch: usize,
    present: bool,
}

/// One is left out: an absent item would be new to MADD and ADD, so those are measured while the filter is filled.
const WORKLOADS: [Workload; 6] = [
    Workload { label: "MEXISTS of 500, absent", verb: "MEXISTS", batch: BATCH, present: false },
    Workload { label: "MEXISTS of 500, present", verb: "MEXISTS", batch: BATCH, present: true },
    Workload { label: "MADD of 500, present", verb: "MADD", batch: BATCH, present: true },
    Workload { label: "EXISTS pipelined, absent", verb: "EXISTS", batch: 1, present: false },
    Workload { label: "EXISTS pipelined, present", verb: "EXISTS", batch: 1, present: true },
    Workload { label: "ADD pipelined, present", verb: "ADD", batch: 1, present: true },
];

/// A line of the table: the rounds of each side.
pub struct Row {
    /// The kind of command.
    pub label: &'static str,
    sides: Vec<Vec<Round>>,
}

impl Row {
    /// No round yet.
    fn new(label: &'static str, sides: usize) -> Self {
        Self { label, sides: vec![Vec::new(); sides] }
    }

    /// The two of new items: by commands of many, and by single ones.
    pub fn of_new(sides: usize) -> [Self; 2] {
        ["MADD of 500, new", "ADD pipelined, new"].map(|label| Self::new(label, sides))
    }

    /// Processor time an item of each side, the median of its rounds.
    fn processor(&self) -> Vec<f64> {
        self.sides.iter().map(|rounds| median(rounds.iter().map(Round::processor_ns))).collect()
    }

    /// Wall time an item of each side, likewise.
    fn wall(&self) -> Vec<f64> {
        self.sides.iter().map(|rounds| median(rounds.iter().map(Round::wall_ns))).collect()
    }

    /// Processor time of the sides with filters over the floor's.
    pub fn over_floor(&self) -> Vec<f64> {
        let times = self.processor();
        times.iter().skip(1).map(|time| time / times[0]).collect()
    }

    /// The least and the greatest ratio of ours to the floor in a round.
    fn spread(&self) -> (f64, f64) {
        let ratios =
            self.sides[0].iter().zip(&self.sides[1]).map(|(floor, ours)| ours.processor_ns() / floor.processor_ns());
        ratios.fold((f64::INFINITY, 0.0), |(least, greatest), ratio| (ratio.min(least), ratio.max(greatest)))
    }

    /// Answers of 1 over items asked, of the sides with filters.
    fn share_of_ones(&self) -> Vec<f64> {
        let share = |rounds: &Vec<Round>| {
            let ones: u64 = rounds.iter().map(|round| round.ones).sum();
            let items: u64 = rounds.iter().map(|round| round.items).sum();
            ones as f64 / items as f64
        };
        self.sides.iter().skip(1).map(share).collect()
    }
}

/// Measures every filter, a table each, and draws them all.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("Commands")?;
    report.paragraph(&format!(
        "One connection; requests made beforehand; items are text of 24 bytes, in random order; {} items a round by \
         commands of {BATCH}, {} by single pipelined ones; medians of {} rounds in turn. `cpu` is the server's main \
         thread, nanoseconds an item; `wall` is what passed for the client. `floor` is a module command that opens the \
         key and answers 0 for each item. The new items fill the filter, the last tenth of them by single commands \
         (a filter larger than a round: once); least–greatest is ours / floor in single rounds.",
        settings.items,
        settings.items / 4,
        settings.rounds
    ))?;
    let mut groups = Vec::new();
    for &filter in &settings.filters {
        let rows = measure(settings, filter)?;
        show(settings, report, filter, &rows)?;
        groups.push((filter.label(), rows));
    }
    draw::bars(&report.picture("commands")?, settings, &groups)
}

fn measure(settings: &Settings, filter: Filter) -> Result<Vec<Row>> {
    let mut running = start(settings)?;
    let [by_many, by_one] = fill(settings, filter, &mut running)?;
    let mut rows = vec![by_many, by_one];
    rows.extend(ask(settings, filter, &mut running)?);
    Ok(rows)
}

/// Starts a server for each side and sends it some requests.
pub fn start(settings: &Settings) -> Result<Vec<Running<'_>>> {
    let mut running = settings.start_each(&settings.all_sides())?;
    // A new connection and a new server have buffers to grow and code to load; none of this is to be measured.
    for one in &mut running {
        one.send("MEXISTS", "no key", &never_added(0, settings.items / 4), BATCH)?;
    }
    Ok(running)
}

/// Sends the full filter, under the first key, what does not change it.
pub fn ask(settings: &Settings, filter: Filter, running: &mut [Running]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (number, workload) in (0..).zip(&WORKLOADS) {
        let mut row = Row::new(workload.label, running.len());
        let items = if workload.batch == 1 { settings.items / 4 } else { settings.items };
        for round in 0..settings.rounds {
            let seed = number * settings.rounds + round;
            let numbers =
                if workload.present { any_below(filter.items, seed, items) } else { never_added(seed, items) };
            for (one, rounds) in running.iter_mut().zip(&mut row.sides) {
                let took = one.send(workload.verb, "filter0", &numbers, workload.batch)?;
                if workload.verb.ends_with("EXISTS") && workload.present && one.side.has_filters() && took.ones != items
                {
                    return Err(format!(
                        "{} denies items that it has: {} of {items}",
                        one.side.name,
                        items - took.ones
                    )
                    .into());
                }
                rounds.push(took);
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Fills the filter and measures that: nine tenths of the items by commands of many, the rest by single ones.
///
/// A filter smaller than a round is filled as often as it fits into one, under other keys, or there would be nothing to
/// measure, and that in each round; a larger one is filled once, by slices, in turn with the other sides.
fn fill(settings: &Settings, filter: Filter, running: &mut [Running]) -> Result<[Row; 2]> {
    let keys = keys(settings, filter);
    let rounds = if filter.items < settings.items { settings.rounds } else { 1 };
    let first_single = filter.items - (filter.items / 10).min(settings.items / 4);
    let [mut by_many, mut by_one] = Row::of_new(running.len());
    for _ in 0..rounds {
        for one in running.iter_mut() {
            let _: u64 = one.server.ask("DEL", &keys)?;
            for key in &keys {
                one.make_key(key, filter)?;
            }
        }
        fill_slices(settings, running, &keys, 0..first_single, BATCH, &mut by_many)?;
        fill_slices(settings, running, &keys, first_single..filter.items, 1, &mut by_one)?;
    }
    for one in running {
        for key in &keys[1..] {
            let _: u64 = one.server.ask("DEL", &[key])?;
        }
    }
    Ok([by_many, by_one])
}

/// The keys that new items are added to: as many as times that the filter fits into a round.
pub fn keys(settings: &Settings, filter: Filter) -> Vec<String> {
    (0..(settings.items / filter.items).max(1)).map(|key| format!("filter{key}")).collect()
}

/// Adds the items of this range to each of the keys; each side's whole time is a round of the row.
pub fn fill_slices(
    settings: &Settings,
    running: &mut [Running],
    keys: &[String],
    range: Range<u64>,
    batch: usize,
    row: &mut Row,
) -> Result<()> {
    let verb = if batch == 1 { "ADD" } else { "MADD" };
    let mut totals: Vec<Option<Round>> = vec![None; running.len()];
    for slice in slices(range, settings.items) {
        for (one, total) in running.iter_mut().zip(&mut totals) {
            let mut requests = Requests::new(one.side.prefix);
            for key in keys {
                requests.push(verb, key, &slice, batch);
            }
            let took = send(&mut one.server, &requests)?;
            *total = Some(total.map_or(took, |before| before.and(took)));
        }
    }
    for (rounds, total) in row.sides.iter_mut().zip(totals) {
        rounds.extend(total);
    }
    Ok(())
}

/// A filter's table.
pub fn show(settings: &Settings, report: &mut Report, filter: Filter, rows: &[Row]) -> Result<()> {
    report.paragraph(&format!("### {}", filter.label()))?;
    let sides = settings.all_sides();
    let peer = &sides[2..];
    let names = |what: &str| sides.iter().map(|side| format!("{what} {}", side.name)).collect::<Vec<_>>();
    let mut head = vec!["workload".to_owned()];
    head.extend(names("cpu"));
    head.extend(["ours / floor".to_owned(), "least–greatest".to_owned()]);
    head.extend(peer.iter().flat_map(|_| ["peer / floor".to_owned(), "peer / ours".to_owned()]));
    head.extend(names("wall"));
    let line = |row: &Row| {
        let times = row.processor();
        let mut cells = vec![row.label.to_owned()];
        cells.extend(times.iter().map(|&time| nanoseconds(time)));
        let (least, greatest) = row.spread();
        cells.extend([format!("{:.2}", times[1] / times[0]), format!("{least:.2}–{greatest:.2}")]);
        cells.extend(times[2..].iter().flat_map(|peer| [peer / times[0], peer / times[1]]).map(|r| format!("{r:.2}")));
        cells.extend(row.wall().iter().map(|&time| nanoseconds(time)));
        cells
    };
    report.table(&head, &rows.iter().map(line).collect::<Vec<_>>())?;
    let absent = rows.iter().find(|row| row.label == WORKLOADS[0].label).ok_or("no workload asks for absent items")?;
    let rates = settings.filter_sides().into_iter().zip(absent.share_of_ones());
    let rates: Vec<String> = rates.map(|(side, share)| format!("{} {}", side.name, percent(share))).collect();
    report.paragraph(&format!("False positives among the absent items of MEXISTS: {}.", rates.join(", ")))
}
