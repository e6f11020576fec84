//! What a run measures, from the environment: `make bench ROUNDS=9` and the like.

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::report::{count, output, percent};
use crate::server::Server;
use crate::traffic::{Requests, Round, send, slices};

/// A filter to measure.
#[derive(Clone, Copy)]
pub struct Filter {
    /// Distinct items put into it.
    pub items: u64,
    /// The rate it is reserved with for that many items; none: it grows by itself from the default capacity.
    pub rate: Option<f64>,
}

impl Filter {
    /// How tables name it.
    pub fn label(&self) -> String {
        match self.rate {
            Some(rate) => format!("{} at {}", count(self.items), percent(rate)),
            None => format!("{}, grown from 100", count(self.items)),
        }
    }

    /// Reads `items:rate` or `items:grown`.
    fn parse(text: &str) -> Result<Self> {
        let (items, rate) = text.split_once(':').ok_or_else(|| format!("`{text}` is not items:rate or items:grown"))?;
        let rate = if rate == "grown" { None } else { Some(rate.parse()?) };
        Ok(Self { items: items.parse()?, rate })
    }
}

/// A module under test.
pub struct Side {
    /// How tables name it.
    pub name: &'static str,
    /// What its commands' names begin with, up to the dot.
    pub prefix: &'static str,
    module: PathBuf,
}

impl Side {
    /// Whether it has filters, as all but the floor do.
    pub fn has_filters(&self) -> bool {
        self.prefix == FILTERS
    }
}

/// A server with one of the modules.
pub struct Running<'a> {
    /// Which module.
    pub side: &'a Side,
    /// The server.
    pub server: Server,
}

impl Running<'_> {
    /// Makes the key that the traffic goes to: a filter, or where there are none, a plain string.
    pub fn make_key(&mut self, key: &str, filter: Filter) -> Result<()> {
        match filter.rate {
            _ if !self.side.has_filters() => self.server.ask("SET", &[key, "no filter"]),
            Some(rate) => self.server.ask("BF.RESERVE", &[key, &rate.to_string(), &filter.items.to_string()]),
            None => Ok(()),
        }
    }

    /// How the server names the module and its version, which shows what was really measured.
    pub fn loaded(&mut self) -> Result<String> {
        let modules: Vec<HashMap<String, redis::Value>> = self.server.ask("MODULE", &["LIST"])?;
        let named = modules.iter().filter_map(|module| Some((module.get("name")?, module.get("ver")?)));
        let texts = named.filter_map(|(name, version)| {
            let name: String = redis::from_redis_value_ref(name).ok()?;
            let version: u64 = redis::from_redis_value_ref(version).ok()?;
            Some(format!("{name} {version}"))
        });
        Ok(texts.collect::<Vec<_>>().join(" "))
    }

    /// Sends one kind of command over the items of these numbers, `batch` in each.
    pub fn send(&mut self, verb: &str, key: &str, numbers: &[u64], batch: usize) -> Result<Round> {
        let mut requests = Requests::new(self.side.prefix);
        requests.push(verb, key, numbers, batch);
        send(&mut self.server, &requests)
    }

    /// Runs `work` and gives, for each of its calls of the named command, how many microseconds the server was busy.
    ///
    /// They come from SLOWLOG, so from the server's own clock around the command; the last thousand count.
    pub fn each_call(&mut self, command: &str, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<Vec<u64>> {
        let () = self.server.ask("CONFIG", &["SET", "slowlog-max-len", "1000"])?;
        let () = self.server.ask("CONFIG", &["SET", "slowlog-log-slower-than", "0"])?;
        let () = self.server.ask("SLOWLOG", &["RESET"])?;
        work(self)?;
        let () = self.server.ask("CONFIG", &["SET", "slowlog-log-slower-than", "-1"])?;
        // An entry is: number, time, microseconds, the beginning of the command, the client's address and name.
        type Entry = (u64, u64, u64, Vec<String>, String, String);
        let entries: Vec<Entry> = self.server.ask("SLOWLOG", &["GET", "1000"])?;
        let named = |entry: &&Entry| entry.3.first().is_some_and(|name| name.eq_ignore_ascii_case(command));
        Ok(entries.iter().filter(named).map(|entry| entry.2).collect())
    }

    /// Adds the items numbered from `begin` to below `end` by commands of 500.
    pub fn fill(&mut self, key: &str, begin: u64, end: u64) -> Result<()> {
        for slice in slices(begin..end, 1_000_000) {
            self.send("MADD", key, &slice, BATCH)?;
        }
        Ok(())
    }
}

/// The variables that change what is measured.
const VARIABLES: [&str; 8] = ["FULL", "SECTION", "FILTERS", "ROUNDS", "ITEMS", "SCALE", "LARGE", "RECORD"];
/// Items in a command of many.
pub const BATCH: usize = 500;
/// The prefix of the modules that have filters.
const FILTERS: &str = "BF";

/// The settings of a run.
pub struct Settings {
    /// The sections to run, all if empty.
    pub sections: Vec<String>,
    /// The record's name, after the date.
    pub record: String,
    /// Rounds of each measurement.
    pub rounds: u64,
    /// Items in a round of commands of many; single ones get a quarter.
    pub items: u64,
    /// The filters of section `commands`.
    pub filters: Vec<Filter>,
    /// Section `scale` goes from 10⁴ items to ten to this power.
    pub scale: u32,
    /// Items in the filter of section `values`.
    pub large: u64,
    program: PathBuf,
    floor: Side,
    ours: Side,
    peer: Option<Side>,
}

impl Settings {
    /// Reads the environment.
    pub fn from_environment() -> Result<Self> {
        let full = set("FULL").is_some_and(|value| value != "0");
        let sections: Vec<String> = set("SECTION").iter().flat_map(|list| list.split(',')).map(str::to_owned).collect();
        let kind = if full { "full" } else { "short" };
        let name = if sections.is_empty() { kind.to_owned() } else { format!("{kind}-{}", sections.join("-")) };
        let filters = "100000:0.01,10000000:0.001,1000000:grown";
        let filters = if full { format!("{filters},100000000:0.01") } else { filters.to_owned() };
        let filters = set("FILTERS").unwrap_or(filters);
        let built = built_modules()?;
        let module = |variable: &str, beside: &str| set(variable).map_or_else(|| built.join(beside), PathBuf::from);
        Ok(Self {
            sections,
            record: set("RECORD").unwrap_or(name),
            rounds: number("ROUNDS", if full { 9 } else { 5 })?,
            items: number("ITEMS", if full { 4_000_000 } else { 1_000_000 })?,
            filters: filters.split(',').map(Filter::parse).collect::<Result<_>>()?,
            scale: number("SCALE", if full { 9 } else { 7 })?,
            large: number("LARGE", if full { 100_000_000 } else { 10_000_000 })?,
            program: set("BLOOMGATE_SERVER").unwrap_or_else(|| "redis-server".to_owned()).into(),
            floor: Side { name: "floor", prefix: "FLOOR", module: module("BLOOMGATE_FLOOR", "examples/libfloor.so") },
            ours: Side { name: "Bloomgate", prefix: FILTERS, module: module("BLOOMGATE_MODULE", "libbloomgate.so") },
            peer: peer().map(|module| Side { name: "RedisBloom", prefix: FILTERS, module }),
        })
    }

    /// What to type for the same run: the variables that are set.
    pub fn command_line(&self) -> String {
        let variables = VARIABLES.iter().filter_map(|name| Some(format!(" {name}={}", set(name)?)));
        format!("make bench{}", variables.collect::<String>())
    }

    /// How the server names itself.
    pub fn server_version(&self) -> Result<String> {
        output(&self.program.to_string_lossy(), &["--version"])
    }

    /// Whether RedisBloom is missing from this run.
    pub fn peer_is_missing(&self) -> bool {
        self.peer.is_none()
    }

    /// The modules with filters: ours, then the peer's if it is there.
    pub fn filter_sides(&self) -> Vec<&Side> {
        [&self.ours].into_iter().chain(&self.peer).collect()
    }

    /// All modules: the floor, ours, the peer's if it is there.
    pub fn all_sides(&self) -> Vec<&Side> {
        [&self.floor, &self.ours].into_iter().chain(&self.peer).collect()
    }

    /// Starts a server with this module.
    pub fn start<'a>(&self, side: &'a Side) -> Result<Running<'a>> {
        Ok(Running { side, server: Server::start(&self.program, &side.module)? })
    }

    /// Starts a server for each of these modules.
    pub fn start_each<'a>(&self, sides: &[&'a Side]) -> Result<Vec<Running<'a>>> {
        sides.iter().map(|side| self.start(side)).collect()
    }
}

/// A variable that is set and not empty.
fn set(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.is_empty())
}

fn number<T: std::str::FromStr<Err = std::num::ParseIntError>>(variable: &str, default: T) -> Result<T> {
    set(variable).map_or(Ok(default), |text| text.parse().map_err(|error| format!("{variable}={text}: {error}").into()))
}

/// The directory of release builds: this program lies in its `deps`.
fn built_modules() -> Result<PathBuf> {
    let program = env::current_exe()?;
    Ok(program.ancestors().nth(2).ok_or("this program is not where cargo puts benchmarks")?.to_owned())
}

/// RedisBloom, if somebody fetched it.
fn peer() -> Option<PathBuf> {
    let fetched = || find(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".peers"), "redisbloom.so");
    set("BLOOMGATE_PEER").map(PathBuf::from).or_else(fetched)
}

fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = directory.read_dir().ok()?.flatten().map(|entry| entry.path()).collect();
    let here = entries.iter().find(|path| path.ends_with(name)).cloned();
    here.or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|path| find(path, name)))
}
