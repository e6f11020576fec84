//! Section `clients`: items a second with fifty clients, as redis-benchmark measures them.

use crate::Result;
use crate::report::{Report, median, output};
use crate::settings::{Filter, Running, Settings};

/// What each of them sends, and the item's argument: redis-benchmark puts twelve random digits into it.
const WORKLOADS: [(&str, &str, &str); 4] = [
    ("EXISTS, absent", "EXISTS", "absent-__rand_int__"),
    ("EXISTS, present", "EXISTS", "__rand_int__"),
    ("ADD, present", "ADD", "__rand_int__"),
    ("ADD, mostly new", "ADD", "new-__rand_int__"),
];
/// Different items that the present ones are picked from.
const ITEMS: u64 = 100_000;

/// Runs redis-benchmark against each side in turn.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("Fifty clients")?;
    let requests = settings.items.to_string();
    report.paragraph(&format!(
        "`redis-benchmark -c 50 -P 16 -n {requests}`, commands a second, medians of 3 rounds in turn; a filter reserved \
         for a hundred million items at 1 %, with {ITEMS} present. With few processors the client takes as much of \
         them as the server."
    ))?;
    if let Err(missing) = output("redis-benchmark", &["--version"]) {
        return report.paragraph(&format!("**Not measured**: {missing} (Debian's package `redis-tools` has it)."));
    }
    let sides = settings.all_sides();
    let mut running = settings.start_each(&sides)?;
    for one in &mut running {
        one.make_key("filter", Filter { items: 100_000_000, rate: Some(0.01) })?;
        let add = format!("{}.MADD", one.side.prefix);
        let all: Vec<String> =
            ["filter".to_owned()].into_iter().chain((0..ITEMS).map(|i| format!("{i:012}"))).collect();
        let _: redis::Value = one.server.ask(&add, &all)?;
    }
    let mut rows = Vec::new();
    for (label, verb, item) in WORKLOADS {
        // It reads the range as a C int.
        let range = if item.starts_with("new") { 2_000_000_000 } else { ITEMS };
        let mut rates = vec![Vec::new(); running.len()];
        for _ in 0..3 {
            for (one, rates) in running.iter().zip(&mut rates) {
                rates.push(commands_a_second(one, &requests, verb, item, range)?);
            }
        }
        let cells = rates.into_iter().map(|rates| format!("{:.0}", median(rates)));
        rows.push([label.to_owned()].into_iter().chain(cells).collect());
    }
    let head: Vec<String> =
        ["commands a second"].into_iter().chain(sides.iter().map(|side| side.name)).map(str::to_owned).collect();
    report.table(&head, &rows)
}

fn commands_a_second(one: &Running, requests: &str, verb: &str, item: &str, range: u64) -> Result<f64> {
    let (port, range) = (one.server.port().to_string(), range.to_string());
    let command = format!("{}.{verb}", one.side.prefix);
    let arguments =
        ["-p", &port, "-c", "50", "-P", "16", "-n", requests, "-r", &range, "--csv", &command, "filter", item];
    // The last line is "name","commands a second",…
    let text = output("redis-benchmark", &arguments)?;
    let rate = text.lines().last().and_then(|line| line.split("\",\"").nth(1)?.trim_matches('"').parse().ok());
    Ok(rate.ok_or_else(|| format!("redis-benchmark printed something else: {text}"))?)
}
