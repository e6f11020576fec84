//! The run's record: what it prints is what it keeps, under `benches/record/`, with the machine it ran on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::settings::Settings;

/// A markdown page that grows, on the terminal and in its file.
pub struct Report {
    directory: PathBuf,
    name: String,
    text: String,
}

impl Report {
    /// Begins the record of today's run with the machine's description.
    pub fn begin(settings: &Settings) -> Result<Self> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/record");
        fs::create_dir_all(&directory)?;
        let day = output("date", &["+%F"])?;
        let name = format!("{day}-{}", settings.record);
        let mut report = Self { directory, name, text: String::new() };
        report.paragraph(&format!("# Benchmark of {day}, {}", settings.record))?;
        let machine = format!(
            "{}, {} cores, {} of memory, kernel {}; {}; load average at the start {}.",
            first_field("/proc/cpuinfo", "model name"),
            std::thread::available_parallelism()?,
            first_field("/proc/meminfo", "MemTotal"),
            output("uname", &["-r"])?,
            settings.server_version()?,
            load_average(),
        );
        report.paragraph(&machine)?;
        report.paragraph(&format!("Command: `{}`.", settings.command_line()))?;
        let mut loaded = Vec::new();
        for running in &mut settings.start_each(&settings.all_sides())? {
            loaded.push(format!("{} ({})", running.side.name, running.loaded()?));
        }
        report.paragraph(&format!("Modules: {}.", loaded.join(", ")))?;
        if settings.peer_is_missing() {
            report.paragraph(
                "**RedisBloom is missing from this run**: its columns are not there. `make test-all` fetches it, or \
                 BLOOMGATE_PEER names its redisbloom.so.",
            )?;
        }
        Ok(report)
    }

    /// Adds a paragraph or a heading, and saves: a long run that is cut off leaves what it had.
    pub fn paragraph(&mut self, text: &str) -> Result<()> {
        println!("{text}\n");
        self.text += text;
        self.text += "\n\n";
        Ok(fs::write(self.directory.join(format!("{}.md", self.name)), &self.text)?)
    }

    /// Adds the heading of a section, with the machine's load beside it.
    pub fn heading(&mut self, title: &str) -> Result<()> {
        self.paragraph(&format!("## {title}"))?;
        self.paragraph(&format!("Load average before: {}.", load_average()))
    }

    /// Adds a table; its first column is text, the others are figures.
    pub fn table(&mut self, head: &[String], rows: &[Vec<String>]) -> Result<()> {
        let lines = || [head].into_iter().chain(rows.iter().map(Vec::as_slice));
        let widths: Vec<usize> = (0..head.len())
            .map(|column| lines().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max())
            .map(|widest| widest.unwrap_or(0).max(3))
            .collect();
        let mut drawn: Vec<String> = lines()
            .map(|line| {
                let cells = line.iter().zip(&widths).enumerate();
                let padded = cells.map(|(column, (cell, &width))| match column {
                    0 => format!(" {cell:<width$} |"),
                    _ => format!(" {cell:>width$} |"),
                });
                format!("|{}", padded.collect::<String>())
            })
            .collect();
        let rule = widths.iter().enumerate().map(|(column, width)| match column {
            0 => format!("{}|", "-".repeat(width + 2)),
            _ => format!("{}:|", "-".repeat(width + 1)),
        });
        drawn.insert(1, format!("|{}", rule.collect::<String>()));
        self.paragraph(&drawn.join("\n"))
    }

    /// Shows a picture in the record and gives the file to draw it to.
    pub fn picture(&mut self, about: &str) -> Result<PathBuf> {
        let file = format!("{}-{about}.svg", self.name);
        self.paragraph(&format!("![{about}]({file})"))?;
        Ok(self.directory.join(file))
    }
}

/// A count of items as people say it: `100 k`, `10 M`.
pub fn count(items: u64) -> String {
    for (unit, name) in [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")] {
        if items >= unit && items.is_multiple_of(unit / 10) {
            return format!("{} {name}", items as f64 / unit as f64);
        }
    }
    items.to_string()
}

/// A share as `0.1 %`, a small one as `1e-6`.
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 1e-5 {
        return format!("{share:e}");
    }
    // Rounded, since 0.07 · 100 is not 7.
    format!("{} %", (share * 1e8).round() / 1e6)
}

/// Nanoseconds an item, to what such a measurement is worth.
pub fn nanoseconds(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Bytes as MiB.
pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

/// The middle one of these values; of an even number, the lower of the two.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// What a program prints, without the line's end.
pub fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let done = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if !done.status.success() {
        return Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// The first value of that name in a file of `name : value` lines.
fn first_field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':'));
    value.map_or_else(|| format!("unknown {name}"), |(_, value)| value.trim().to_owned())
}
