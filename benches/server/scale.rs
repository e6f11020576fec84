//! Section `scale`: what an item costs as the filter grows from ten thousand items to a thousand million.

use crate::Result;
use crate::draw::{self, Curve};
use crate::report::{Report, count, median, nanoseconds};
use crate::settings::{BATCH, Filter, Settings};
use crate::traffic::{Round, any_below, never_added};

/// Measures MEXISTS of 500 on filters of each size, at 1 %, one size after the other, and draws the curve.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("Scale")?;
    report.paragraph(&format!(
        "MEXISTS of {BATCH} on full filters at 1 %: the server's processor time, nanoseconds an item; medians of {} \
         rounds in turn of {} items.",
        settings.rounds, settings.items
    ))?;
    let sides = settings.all_sides();
    let asked: Vec<(usize, bool)> = (0..sides.len()).flat_map(|side| [(side, false), (side, true)]).collect();
    let name = |&(side, present): &(usize, bool)| {
        let side: &crate::settings::Side = sides[side];
        format!("{}, {}", side.name, if present { "present" } else { "absent" })
    };
    let mut curves: Vec<Curve> = asked.iter().map(|asked| Curve { name: name(asked), points: Vec::new() }).collect();
    let mut rows = Vec::new();
    for power in 4..=settings.scale {
        let filter = Filter { items: 10_u64.pow(power), rate: Some(0.01) };
        let mut running = settings.start_each(&sides)?;
        for one in &mut running {
            one.make_key("filter", filter)?;
            if one.side.has_filters() {
                one.fill("filter", 0, filter.items)?;
            }
        }
        let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); asked.len()];
        for round in 0..settings.rounds {
            let numbers = [never_added(round, settings.items), any_below(filter.items, round, settings.items)];
            for (&(side, present), rounds) in asked.iter().zip(&mut rounds) {
                rounds.push(running[side].send("MEXISTS", "filter", &numbers[usize::from(present)], BATCH)?);
            }
        }
        let times = rounds.iter().map(|rounds| median(rounds.iter().map(Round::processor_ns)));
        let mut row = vec![count(filter.items)];
        for (curve, time) in curves.iter_mut().zip(times) {
            curve.points.push((filter.items as f64, time));
            row.push(nanoseconds(time));
        }
        rows.push(row);
    }
    let head: Vec<String> =
        ["items".to_owned()].into_iter().chain(curves.iter().map(|curve| curve.name.clone())).collect();
    report.table(&head, &rows)?;
    draw::curves(&report.picture("scale")?, &curves)
}
