//! The server benchmark: what BF.* commands cost on a real server, beside a module that does nothing and RedisBloom.
//!
//! `make bench` runs it; everything it prints is kept in a dated file under `benches/record/`, with pictures.
//!
//! | variable | sets | default, with FULL=1 |
//! |---|---|---|
//! | `SECTION` | sections to run, with commas: see [`SECTIONS`] | all |
//! | `FILTERS` | filters of `commands`, as `items:rate` or `items:grown`, with commas | 100 k at 1 %, 10 M at 0.1 %, 1 M grown; and 100 M at 1 % |
//! | `ROUNDS` | rounds of a measurement | 5, 9 |
//! | `ITEMS` | items in a round of commands of many (single ones: a quarter) | 1,000,000, 4,000,000 |
//! | `SCALE` | `scale` goes up to ten to this power | 7, 9 |
//! | `LARGE` | items in the filter of `values`, and in the largest of `moved` if they are more than 10 million | 10,000,000, 100,000,000 |
//! | `RECORD` | the record's name after the date | short, full, and the sections |
//! | `BLOOMGATE_SERVER` | the server | `redis-server` |
//! | `BLOOMGATE_PEER` | RedisBloom's file | one under `.peers/` |
//! | `BLOOMGATE_MODULE`, `BLOOMGATE_FLOOR` | the other two modules' files | those just built |
//!
//! How it measures: machines are noisy, so whatever is compared runs in turn, round after round, on servers that live
//! side by side, and the median counts. The main figure is the server's own processor time an item (its main thread,
//! as INFO says), since it is far steadier than the time that passes. The client's work is done before the clock starts.

mod clients;
mod commands;
mod counting;
mod create;
mod draw;
mod huge;
mod memory;
mod moved;
mod report;
mod scale;
mod server;
mod settings;
mod traffic;
mod values;

use report::Report;
use settings::Settings;

/// Whatever ends a run ends it with a text.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A part of the benchmark that can run alone: its name and what it does.
type Section = (&'static str, fn(&Settings, &mut Report) -> Result<()>);

/// All of them, in order.
const SECTIONS: [Section; 9] = [
    ("memory", memory::run),
    ("commands", commands::run),
    ("counting", counting::run),
    ("moved", moved::run),
    ("clients", clients::run),
    ("scale", scale::run),
    ("values", values::run),
    ("create", create::run),
    ("huge", huge::run),
];

fn main() -> Result<()> {
    let settings = Settings::from_environment()?;
    if let Some(unknown) = settings.sections.iter().find(|asked| SECTIONS.iter().all(|(name, _)| name != asked)) {
        let names = SECTIONS.map(|(name, _)| name).join(", ");
        return Err(format!("there is no section `{unknown}`, but {names}").into());
    }
    let mut report = Report::begin(&settings)?;
    for (name, run) in SECTIONS {
        if settings.sections.is_empty() || settings.sections.iter().any(|asked| asked == name) {
            run(&settings, &mut report)?;
        }
    }
    Ok(())
}
