//! Section `counting`: filters that can delete, ours with COUNTING beside RedisBloom's cuckoo filters, which are its own answer.

use crate::Result;
use crate::report::{Report, count, median, nanoseconds, percent};
use crate::settings::{BATCH, Running, Settings};
use crate::traffic::{Requests, Round, any_below, never_added, send, slices};

/// Items in the filters that are measured.
const SIZES: [u64; 2] = [100_000, 10_000_000];
/// The key of all of them.
const KEY: &str = "filter0";

/// A kind of command: what the floor, our filter and the peer's are sent. A verb that the peer lacks is none.
struct Workload {
    label: &'static str,
    verbs: [Option<&'static str>; 3],
    batch: usize,
    items: Items,
}

/// Which items are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Items {
    Absent,
    Present,
    /// A slice of the filter, each item once: deleted, and then added again.
    Slice,
}

const WORKLOADS: [Workload; 8] = [
    workload("MEXISTS of 500, absent", ["MEXISTS", "MEXISTS", "MEXISTS"], BATCH, Items::Absent),
    workload("MEXISTS of 500, present", ["MEXISTS", "MEXISTS", "MEXISTS"], BATCH, Items::Present),
    workload("EXISTS pipelined, absent", ["EXISTS", "EXISTS", "EXISTS"], 1, Items::Absent),
    workload("EXISTS pipelined, present", ["EXISTS", "EXISTS", "EXISTS"], 1, Items::Present),
    workload("DEL pipelined", ["ADD", "DEL", "DEL"], 1, Items::Slice),
    workload("ADD pipelined, new", ["ADD", "ADD", "ADD"], 1, Items::Slice),
    Workload { label: "MDEL of 500", verbs: [Some("MADD"), Some("MDEL"), None], batch: BATCH, items: Items::Slice },
    Workload {
        label: "MADD of 500, new",
        verbs: [Some("MADD"), Some("MADD"), None],
        batch: BATCH,
        items: Items::Slice,
    },
];

const fn workload(label: &'static str, [floor, ours, peer]: [&'static str; 3], batch: usize, items: Items) -> Workload {
    Workload { label, verbs: [Some(floor), Some(ours), Some(peer)], batch, items }
}

/// The prefixes of the commands of all sides, in order.
const PREFIXES: [&str; 3] = ["FLOOR", "BF", "CF"];

/// Measures filters of each size.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("Counting")?;
    report.paragraph(&format!(
        "As `commands`, for filters from which items can be deleted: BF.RESERVE … 0.01 n NONSCALING COUNTING, and CF.RESERVE … n \
         with its defaults, which has no rate to choose. They are full, and stay so: what is deleted is added again. The floor \
         answers ADD and MADD in the place of DEL and MDEL. RedisBloom has no MDEL, and no MADD for cuckoo filters. Medians of {} \
         rounds in turn.",
        settings.rounds
    ))?;
    for size in SIZES {
        measure(settings, report, size)?;
    }
    Ok(())
}

/// One kind of command to one side.
fn ask(one: &mut Running, prefix: &'static str, verb: &str, numbers: &[u64], batch: usize) -> Result<Round> {
    let mut requests = Requests::new(prefix);
    requests.push(verb, KEY, numbers, batch);
    send(&mut one.server, &requests)
}

fn measure(settings: &Settings, report: &mut Report, size: u64) -> Result<()> {
    let sides = settings.all_sides();
    let mut running = settings.start_each(&sides)?;
    for (one, prefix) in running.iter_mut().zip(PREFIXES) {
        let n = size.to_string();
        let () = match prefix {
            "BF" => one.server.ask("BF.RESERVE", &[KEY, "0.01", &n, "NONSCALING", "COUNTING"])?,
            "CF" => one.server.ask("CF.RESERVE", &[KEY, &n])?,
            _ => one.server.ask("SET", &[KEY, "no filter"])?,
        };
        for slice in slices(0..size, 1_000_000).filter(|_| prefix != "FLOOR") {
            ask(one, prefix, "ADD", &slice, 1)?;
        }
        // A new connection and a new server have buffers to grow: none of this is to be measured.
        ask(one, prefix, "MEXISTS", &never_added(0, settings.items / 4), BATCH)?;
    }
    let mut rows: Vec<Vec<Vec<Round>>> = WORKLOADS.iter().map(|_| vec![Vec::new(); running.len()]).collect();
    for round in 0..settings.rounds {
        for (workload, sides) in WORKLOADS.iter().zip(&mut rows) {
            let items = if workload.batch == 1 { settings.items / 4 } else { settings.items };
            let numbers = match workload.items {
                Items::Absent => never_added(round, items),
                Items::Present => any_below(size, round, items),
                Items::Slice => {
                    let items = items.min(size);
                    let begin = round * items % size;
                    (begin..size.min(begin + items)).collect()
                }
            };
            for (((one, prefix), verb), rounds) in running.iter_mut().zip(PREFIXES).zip(workload.verbs).zip(sides) {
                let Some(verb) = verb else { continue };
                let took = ask(one, prefix, verb, &numbers, workload.batch)?;
                let all = workload.items == Items::Present || verb.ends_with("DEL");
                if prefix == "BF" && all && took.ones != numbers.len() as u64 {
                    return Err(format!("{} missed items that are in: {}", one.side.name, workload.label).into());
                }
                rounds.push(took);
            }
        }
    }
    show(report, &mut running, size, &rows)
}

fn show(report: &mut Report, running: &mut [Running], size: u64, rows: &[Vec<Vec<Round>>]) -> Result<()> {
    report.paragraph(&format!("### {} items", count(size)))?;
    let mut head = vec!["workload".to_owned()];
    head.extend(running.iter().map(|one| format!("cpu {}", one.side.name)));
    head.push("ours / floor".to_owned());
    head.extend(running[2..].iter().flat_map(|_| ["peer / floor".to_owned(), "peer / ours".to_owned()]));
    let line = |(workload, sides): (&Workload, &Vec<Vec<Round>>)| {
        let times: Vec<f64> = sides.iter().map(|rounds| median(rounds.iter().map(Round::processor_ns))).collect();
        let mut ratios = vec![times[1] / times[0]];
        ratios.extend(times[2..].iter().flat_map(|peer| [peer / times[0], peer / times[1]]));
        // A side that was not asked has no median.
        let or_none = |text: String, value: f64| if value.is_nan() { "–".to_owned() } else { text };
        let mut cells = vec![workload.label.to_owned()];
        cells.extend(times.iter().map(|&time| or_none(nanoseconds(time), time)));
        cells.extend(ratios.iter().map(|&ratio| or_none(format!("{ratio:.2}"), ratio)));
        cells
    };
    report.table(&head, &WORKLOADS.iter().zip(rows).map(line).collect::<Vec<_>>())?;
    let mut texts = Vec::new();
    for (one, absent) in running.iter_mut().zip(&rows[0]).skip(1) {
        let bytes: u64 = one.server.ask("MEMORY", &["USAGE", KEY])?;
        let (ones, items) = absent.iter().fold((0, 0), |(ones, items), round| (ones + round.ones, items + round.items));
        texts.push(format!("{} {} bytes, {}", one.side.name, count(bytes), percent(ones as f64 / items as f64)));
    }
    report.paragraph(&format!("Memory, and false positives among the absent items of MEXISTS: {}.", texts.join("; ")))
}
