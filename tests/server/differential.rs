//! The same commands, sent to RedisBloom and to this module, are answered the same, but for the differences listed here.
//!
//! `docs/differences.md` gives the reason of each. Commands are drawn from a seed; `BLOOMGATE_SEED` takes another one.

use std::collections::{HashMap, HashSet};
use std::env;
use std::path::PathBuf;
use std::slice;

use redis::{Cmd, Value};

use crate::harness::{Client, Options, Server, error_text, ok, strings, version};
use crate::{needs, run};

/// How many commands are drawn for each protocol.
const COMMANDS: usize = 10_000;
const SEED: u64 = 0x626c_6f6f_6d67_6174;

/// A command, and what both answered.
struct Exchange {
    words: Vec<String>,
    /// What had been added to the key before.
    known: HashSet<String>,
    ours: Value,
    theirs: Value,
}

/// A difference that is meant.
struct Difference {
    /// Its heading in `docs/differences.md`.
    title: &'static str,
    /// Commands of which the last one shows it, on an empty database.
    example: &'static [&'static str],
    /// Whether it explains that these replies differ.
    explains: fn(&Exchange) -> bool,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        title: "Words that are no options are refused",
        example: &["BF.INSERT k NOTHING ITEMS a"],
        explains: |e| e.only_ours_says("ERR syntax error: unknown option"),
    },
    Difference {
        title: "An option stands once",
        example: &["BF.RESERVE k 0.01 100 NONSCALING NONSCALING"],
        explains: |e| e.only_ours_says("") && e.repeats_an_option(),
    },
    Difference {
        title: "Options that contradict one another are refused",
        example: &["BF.INSERT k NONSCALING EXPANSION 2 ITEMS a"],
        explains: |e| e.only_ours_says("exclude one another"),
    },
    Difference {
        title: "EXPANSION 0 means NONSCALING",
        example: &["BF.RESERVE k 0.01 100 EXPANSION 0"],
        explains: |e| e.has("EXPANSION") && e.has("0") && !is_error(&e.ours) && is_error(&e.theirs),
    },
    Difference {
        title: "Ranges",
        example: &["BF.RESERVE k 0.01 100 EXPANSION 32769"],
        explains: |e| e.only_ours_says(": it must be a") && (e.has("32769") || e.has("1e-13")),
    },
    Difference {
        title: "Numbers may begin with zeros",
        example: &["BF.RESERVE k 0.01 0100"],
        explains: |e| e.words.iter().any(|word| word == "0100") && !is_error(&e.ours) && is_error(&e.theirs),
    },
    Difference {
        title: "A full filter answers for every item",
        example: &["BF.RESERVE k 0.000001 1 NONSCALING", "BF.MADD k a b c a"],
        explains: |e| match (&e.ours, &e.theirs) {
            (Value::Array(ours), Value::Array(theirs)) => {
                theirs.len() < ours.len()
                    && ours.starts_with(theirs)
                    && error_of(&theirs[theirs.len() - 1]).is_some_and(|text| text == FULL)
            }
            _ => false,
        },
    },
    Difference {
        title: "A key of another type is an error",
        example: &["SET k x", "BF.EXISTS k a"],
        explains: |e| e.is(&["BF.EXISTS", "BF.MEXISTS"]) && e.only_ours_says(WRONG_TYPE),
    },
    Difference {
        title: "What errors say",
        example: &["BF.INSERT k CAPACITY x ITEMS a"],
        explains: |e| match (error_of(&e.ours), error_of(&e.theirs)) {
            (Some(ours), Some(theirs)) => {
                let same_start = |text: &&&str| !theirs.starts_with(**text) || ours.starts_with(**text);
                ours != theirs && TEXTS.iter().filter(same_start).count() == TEXTS.len()
            }
            _ => false,
        },
    },
    Difference {
        title: "Of several faults another may be named",
        example: &["BF.INFO k FOO"],
        explains: |e| match (error_of(&e.ours), error_of(&e.theirs)) {
            (Some(ours), Some(_)) => ["ERR bad ", "ERR syntax error"].iter().any(|start| ours.starts_with(start)),
            _ => false,
        },
    },
    Difference {
        title: "Other items are false positives",
        example: &["BF.RESERVE k 0.000001 10 NONSCALING", "BF.MADD k 1 2 3 4 5", "BF.EXISTS k x11617"],
        explains: |e| {
            // Once one has taken fewer items it is full later.
            let (mut known, mut apart, adds) = (e.known.clone(), false, e.is(ADDS));
            (adds || e.is(&["BF.EXISTS", "BF.MEXISTS"]))
                && e.items().into_iter().all(|(item, ours, theirs)| {
                    let one_is_full = is_error(ours) != is_error(theirs);
                    let fine = ours == theirs || if one_is_full { apart } else { !known.contains(item) };
                    apart |= ours != theirs;
                    if adds && !is_error(ours) {
                        known.insert(item.clone());
                    }
                    fine
                })
        },
    },
    Difference {
        title: "Dumps",
        example: &["BF.ADD k a", "BF.SCANDUMP k 0"],
        explains: |e| {
            let begins = |reply: &Value| matches!(reply, Value::Array(a) if matches!(a[..], [Value::Int(1..), _]));
            let ended = |reply: &Value| matches!(reply, Value::Array(a) if a[0] == Value::Int(0));
            match e.words[0].as_str() {
                "BF.SCANDUMP" => {
                    (begins(&e.ours) && begins(&e.theirs)) || (is_error(&e.ours) && ended(&e.theirs)) || // past the end
                    (is_error(&e.ours) && begins(&e.theirs))
                }
                "BF.LOADCHUNK" => is_error(&e.ours) && e.theirs == Value::Okay,
                _ => false,
            }
        },
    },
    Difference {
        title: "Sizes",
        example: &["BF.RESERVE k 0.01 100", "BF.INFO k SIZE"],
        explains: |e| {
            let same_but_size = without_size(&e.ours) == without_size(&e.theirs);
            let size_alone = e.has("SIZE") && same_shape(&e.ours, &e.theirs);
            (e.is(&["BF.INFO"]) && (same_but_size || size_alone))
                || (e.is(&["BF.DEBUG"]) && without_sizes(&e.ours) == without_sizes(&e.theirs))
        },
    },
    Difference {
        title: "COPY",
        example: &["BF.ADD k a", "COPY k copy"],
        explains: |e| e.is(&["COPY"]) && e.ours == Value::Int(1) && is_error(&e.theirs),
    },
    Difference { title: "The name of the type", example: &["BF.ADD k a", "TYPE k"], explains: |e| e.is(&["TYPE"]) },
    Difference { title: "What COMMAND tells", example: &["COMMAND INFO BF.ADD"], explains: |e| e.is(&["COMMAND"]) },
];

const ADDS: &[&str] = &["BF.ADD", "BF.MADD", "BF.INSERT"];

const FULL: &str = "ERR non scaling filter is full";
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// Beginnings of errors that programs look for: where RedisBloom's error begins so, ours does.
const TEXTS: &[&str] =
    &["ERR item exists", "ERR not found", FULL, WRONG_TYPE, "ERR wrong number of arguments for 'bf."];

impl Exchange {
    fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.words[0].as_str())
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().skip(2).any(|own| own.eq_ignore_ascii_case(word))
    }

    fn repeats_an_option(&self) -> bool {
        let count = |option: &str| self.words.iter().filter(|word| word.eq_ignore_ascii_case(option)).count();
        ["CAPACITY", "ERROR", "EXPANSION", "NONSCALING", "NOCREATE"].iter().any(|option| count(option) > 1)
    }

    /// The items of which the replies tell something, each with what ours and theirs tell.
    fn items(&self) -> Vec<(&String, &Value, &Value)> {
        fn elements(reply: &Value) -> &[Value] {
            match reply {
                Value::Array(elements) => elements,
                other => slice::from_ref(other),
            }
        }
        let (ours, theirs) = (elements(&self.ours), elements(&self.theirs));
        let items = &self.words[self.words.len().saturating_sub(ours.len())..];
        items.iter().zip(ours).zip(theirs).map(|((item, ours), theirs)| (item, ours, theirs)).collect()
    }

    fn only_ours_says(&self, text: &str) -> bool {
        error_of(&self.ours).is_some_and(|ours| ours.contains(text)) && !is_error(&self.theirs)
    }

    fn explained(&self) -> bool {
        self.ours == self.theirs || DIFFERENCES.iter().any(|difference| (difference.explains)(self))
    }
}

fn error_of(reply: &Value) -> Option<String> {
    match reply {
        Value::ServerError(error) => Some(error_text(error)),
        _ => None,
    }
}

fn is_error(reply: &Value) -> bool {
    error_of(reply).is_some()
}

/// BF.INFO's reply without the value of its field Size.
fn without_size(reply: &Value) -> Vec<Value> {
    let mut flat = match reply {
        Value::Array(elements) => elements.clone(),
        Value::Map(pairs) => pairs.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect(),
        other => vec![other.clone()],
    };
    if let Some(name) = flat.iter().position(|element| *element == Value::SimpleString("Size".into())) {
        flat.remove(name + 1);
    }
    flat
}

/// BF.DEBUG's lines without the values that follow from the layout, and without the field that RedisBloom lacks.
fn without_sizes(reply: &Value) -> Vec<Vec<String>> {
    let field = |field: &str| match field.split_once(':') {
        Some(("hash", _)) => None,
        Some((name @ ("bytes" | "bits" | "hashes" | "ratio"), _)) => Some(name.to_owned()),
        _ => Some(field.to_owned()),
    };
    match reply {
        Value::Array(_) => {
            strings(reply.clone()).iter().map(|line| line.split(' ').filter_map(field).collect()).collect()
        }
        other => vec![vec![format!("{other:?}")]],
    }
}

/// Whether both are an array or a map of one number.
fn same_shape(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Array(a), Value::Array(b)) => matches!((&a[..], &b[..]), ([Value::Int(_)], [Value::Int(_)])),
        (Value::Map(a), Value::Map(b)) => {
            matches!((&a[..], &b[..]), ([(x, Value::Int(_))], [(y, Value::Int(_))]) if x == y)
        }
        _ => false,
    }
}

fn redisbloom() -> Option<PathBuf> {
    env::var_os("BLOOMGATE_REDISBLOOM").map(PathBuf::from)
}

/// Both servers, and a connection to each.
struct Pair {
    ours: Client,
    theirs: Client,
    /// What was added to each key.
    added: HashMap<String, HashSet<String>>,
    _servers: [Server; 2],
}

impl Pair {
    fn start(redisbloom: PathBuf, protocol: u8) -> Self {
        // With the same defaults, and a rate at which no false positive is to be expected in the whole test.
        let arguments = "ERROR_RATE 0.000001 INITIAL_SIZE 100";
        let ours = Options::new().module_arguments(arguments).start();
        let theirs = Options::new().without_module().module_before(redisbloom, arguments).start();
        let client = |server: &Server| if protocol == 3 { server.client3() } else { server.client() };
        Self { ours: client(&ours), theirs: client(&theirs), added: HashMap::new(), _servers: [ours, theirs] }
    }

    fn send(&mut self, words: Vec<String>) -> Exchange {
        let mut command = Cmd::new();
        command.arg(&words);
        let known = words.get(1).and_then(|key| self.added.get(key)).cloned().unwrap_or_default();
        let exchange = Exchange { ours: self.ours.run(&command), theirs: self.theirs.run(&command), words, known };
        if exchange.is(ADDS) {
            let added = exchange.items().into_iter().filter(|(_, ours, _)| !is_error(ours));
            let added: Vec<String> = added.map(|(item, ..)| item.clone()).collect();
            self.added.entry(exchange.words[1].clone()).or_default().extend(added);
        } else if exchange.is(&["DEL"]) {
            self.added.remove(&exchange.words[1]);
        }
        exchange
    }

    fn both(&mut self, command: &str, arguments: &[&str]) {
        run!(self.ours, command, arguments);
        run!(self.theirs, command, arguments);
    }
}

/// Numbers from a seed: SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        usize::try_from(x % sides as u64).expect("below sides")
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len())]
    }

    /// Mostly a good word.
    fn mostly<'a>(&mut self, good: &[&'a str], bad: &[&'a str]) -> String {
        if self.one_in(6) { self.of(bad).into() } else { self.of(good).into() }
    }

    fn key(&mut self) -> String {
        self.mostly(&["a", "b", "c", "d", "e"], &["text", "missing"])
    }

    fn rate(&mut self) -> String {
        let good = ["0.000001", "1e-6", ".0000001", "1E-7", "0.00000100"];
        self.mostly(&good, &["0", "1", "2", "-0.1", "nan", "inf", "x", "", "5%", "0.01x", "1e-13", "1e400"])
    }

    fn capacity(&mut self) -> String {
        let bad = ["0", "-1", "x", "", "1e3", "1.5", " 100", "+100", "0100", "18446744073709551616"];
        self.mostly(&["100", "150", "300", "1000"], &bad)
    }

    fn expansion(&mut self) -> String {
        self.mostly(&["1", "2", "3", "10"], &["0", "-1", "x", "", "2.0", "32769"])
    }

    fn items(&mut self) -> Vec<String> {
        let count = if self.one_in(10) { 40 } else { 1 + self.roll(6) };
        (0..count).map(|_| format!("item{}", self.roll(600))).collect()
    }

    /// Options of which each may have a value, and some are wrong.
    fn options(&mut self, syntax: &[&str]) -> Vec<String> {
        let mut words = Vec::new();
        for _ in 0..[0, 0, 1, 1, 2, 3][self.roll(6)] {
            let word = self.of(syntax);
            words.push(if self.one_in(4) { word.to_lowercase() } else { word.into() });
            match word {
                "CAPACITY" => words.push(self.capacity()),
                "ERROR" => words.push(self.rate()),
                "EXPANSION" => words.push(self.expansion()),
                _ => {}
            }
        }
        if self.one_in(12) {
            words.push(self.of(&["FOO", "NOSCALING", "NOTHING", "CAPPCITY", "E", "capacity 10", ""]).into());
        }
        words
    }

    /// One command.
    fn command(&mut self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let name = self.of(&[
            "BF.RESERVE",
            "BF.RESERVE",
            "BF.ADD",
            "BF.ADD",
            "BF.MADD",
            "BF.MADD",
            "BF.INSERT",
            "BF.INSERT",
            "BF.INSERT",
            "BF.EXISTS",
            "BF.MEXISTS",
            "BF.INFO",
            "BF.INFO",
            "BF.CARD",
            "BF.SCANDUMP",
            "BF.LOADCHUNK",
            "BF.DEBUG",
            "DEL",
        ]);
        words.push(name.into());
        words.push(self.key());
        match name {
            "BF.RESERVE" => {
                words.push(self.rate());
                words.push(self.capacity());
                words.extend(self.options(&["EXPANSION", "EXPANSION", "NONSCALING"]));
            }
            "BF.ADD" | "BF.EXISTS" => words.extend(self.items().into_iter().take(1)),
            "BF.MADD" | "BF.MEXISTS" => words.extend(self.items()),
            "BF.INSERT" => {
                words.extend(self.options(&["CAPACITY", "ERROR", "EXPANSION", "NONSCALING", "NOCREATE"]));
                words.push(self.of(&["ITEMS", "ITEMS", "items"]).into());
                words.extend(self.items());
            }
            "BF.INFO" if self.one_in(2) => {
                let fields = ["CAPACITY", "SIZE", "FILTERS", "ITEMS", "EXPANSION", "items", "Size"];
                words.push(self.mostly(&fields, &["FOO", "", "Capacity:"]));
            }
            "BF.SCANDUMP" => words.push(self.mostly(&["0"], &["x", "-1", "", "1", "999999", "1.0"])),
            "BF.LOADCHUNK" => {
                words.push(self.of(&["1", "1", "0", "-1", "x", "", "5"]).into());
                words.push(self.of(&["x", "", "zzzzzzzz"]).into());
            }
            _ => {}
        }
        // The string that is in the way stays where it is.
        if name == "DEL" {
            words[1] = self.of(&["a", "b", "c", "d", "e"]).into();
        } else if self.one_in(30) {
            words.pop();
        } else if self.one_in(30) {
            words.push(self.of(&["more", "0"]).into());
        }
        words
    }
}

fn agree(protocol: u8) {
    let Some(redisbloom) = redisbloom() else { return };
    let seed = env::var("BLOOMGATE_SEED").ok().map_or(SEED, |text| text.parse().expect("BLOOMGATE_SEED is a number"));
    let mut pair = Pair::start(redisbloom, protocol);
    let mut dice = Dice(seed);
    pair.both("SET", &["text", "x"]);
    let mut errors = 0;
    for i in 0..COMMANDS {
        let exchange = pair.send(dice.command());
        let Exchange { words, ours, theirs, .. } = &exchange;
        assert!(
            exchange.explained(),
            "BLOOMGATE_SEED={seed}, command {i}, RESP{protocol}: {words:?}\nours   {ours:?}\ntheirs {theirs:?}"
        );
        errors += usize::from(is_error(ours));
        let unlike = ours != theirs && (is_error(ours) != is_error(theirs) || exchange.is(ADDS));
        if unlike && words[1] != "text" {
            // From here on they would differ for this reason alone.
            pair.send(vec!["DEL".into(), words[1].clone()]);
        }
    }
    assert!((COMMANDS / 10..COMMANDS * 9 / 10).contains(&errors), "{errors} of {COMMANDS} commands were refused");
}

#[test]
fn drawn_commands_are_answered_as_by_redisbloom() {
    needs!(redisbloom().is_some(), "RedisBloom (`make test-all` fetches it)");
    agree(2);
}

#[test]
fn drawn_commands_are_answered_as_by_redisbloom_in_resp3() {
    needs!(redisbloom().is_some(), "RedisBloom (`make test-all` fetches it)");
    needs!(version().has(7, 0), "RESP3 replies of modules, of 7.0");
    agree(3);
}

#[test]
fn one_fault_is_named_as_by_redisbloom() {
    needs!(redisbloom().is_some(), "RedisBloom (`make test-all` fetches it)");
    let Some(redisbloom) = redisbloom() else { return };
    let mut pair = Pair::start(redisbloom, 2);
    for line in ["k x 100", "k 0.01 x", "k 0.01 100 EXPANSION x", "k 0.01", "text 0.01 100", "there 0.01 100"] {
        pair.both("SET", &["text", "x"]);
        pair.both("BF.ADD", &["there", "x"]);
        let exchange = pair.send(format!("BF.RESERVE {line}").split(' ').map(str::to_owned).collect());
        let (Some(ours), Some(theirs)) = (error_of(&exchange.ours), error_of(&exchange.theirs)) else {
            panic!("{line}: {:?}, theirs {:?}", exchange.ours, exchange.theirs);
        };
        assert!(ours.starts_with(&theirs), "{line}: {ours}, theirs {theirs}");
    }
}

/// A difference that is gone has to leave the list, and the page.
#[test]
fn each_difference_is_there() {
    needs!(redisbloom().is_some(), "RedisBloom (`make test-all` fetches it)");
    let Some(redisbloom) = redisbloom() else { return };
    let mut pair = Pair::start(redisbloom, 2);
    for Difference { title, example, explains } in DIFFERENCES {
        pair.both("FLUSHALL", &[]);
        let (last, before) = example.split_last().expect("a command");
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for line in before {
            let exchange = pair.send(words(line));
            assert_eq!(exchange.ours, exchange.theirs, "{title}: {line}");
        }
        let exchange = pair.send(words(last));
        assert_ne!(exchange.ours, exchange.theirs, "{title}: {last} is answered alike");
        assert!(explains(&exchange), "{title}: {last}: {:?}, theirs {:?}", exchange.ours, exchange.theirs);
    }
}

#[test]
fn the_page_lists_the_differences() {
    let page = include_str!("../../docs/differences.md");
    let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let titles: Vec<&str> = DIFFERENCES.iter().map(|difference| difference.title).collect();
    assert_eq!(headings, titles);
}

/// The loop of dump and load is the same, whatever is in the data.
#[test]
fn a_dump_is_carried_by_the_same_loop() {
    needs!(redisbloom().is_some(), "RedisBloom (`make test-all` fetches it)");
    let Some(redisbloom) = redisbloom() else { return };
    let mut pair = Pair::start(redisbloom, 2);
    for client in [&mut pair.ours, &mut pair.theirs] {
        ok(run!(client, "BF.RESERVE", "k", "0.000001", 1000));
        run!(client, "BF.MADD", "k", (0..100).collect::<Vec<_>>());
        let mut iterator = 0;
        loop {
            let (next, data): (i64, Vec<u8>) =
                redis::from_redis_value(run!(client, "BF.SCANDUMP", "k", iterator)).expect("a pair");
            if next == 0 {
                assert!(data.is_empty());
                break;
            }
            ok(run!(client, "BF.LOADCHUNK", "copy", next, data));
            iterator = next;
        }
        assert_eq!(run!(client, "BF.CARD", "copy"), Value::Int(100));
        assert_eq!(run!(client, "BF.MEXISTS", "copy", "1", "100"), Value::Array(vec![Value::Int(1), Value::Int(0)]));
    }
}
