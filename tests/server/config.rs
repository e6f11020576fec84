//! Settings: load arguments everywhere, CONFIG GET and CONFIG SET from 7.0 on.

use std::fs;

use redis::Value;

use crate::harness::records::{self, Filter, Layer};
use crate::harness::{Client, Options, Server, add, array, error, found, int, items, ok, strings, version};
use crate::{needs, run};

/// Name after the prefix, default, values that are taken, values that are not.
const SETTINGS: [(&str, &str, &[&str], &[&str]); 5] = [
    (
        "error-rate",
        "0.01",
        &["0.5", "0.000000000001", "0.999999"],
        &["0", "1", "2", "-0.1", "1e-13", "nan", "inf", "5%", "", "much"],
    ),
    ("initial-size", "100", &["1", "1073741824"], &["0", "-1", "1073741825", "1e3", "1.5", "", "ten"]),
    ("expansion-factor", "2", &["0", "1", "32768"], &["-1", "32769", "2.0", "", "two"]),
    ("hash", "murmur3", &["siphash", "murmur3"], &["", "md5", "sip", "siphash ", "0"]),
    (
        "filter-max-bytes",
        "0",
        &["1", "1000000", "18446744073709551615"],
        &["-1", "18446744073709551616", "1mb", "1.5", "", "all"],
    ),
];

/// The whole name on this server.
fn full(name: &str) -> String {
    let unprefixed = version().has(8, 0);
    if unprefixed { format!("bf-{name}") } else { format!("bf.{name}") }
}

fn get(c: &mut Client, name: &str) -> Vec<String> {
    strings(run!(c, "CONFIG", "GET", full(name)))
}

fn set(c: &mut Client, name: &str, value: &str) -> Value {
    run!(c, "CONFIG", "SET", full(name), value)
}

#[test]
fn names_defaults_and_ranges() {
    needs!(version().has(7, 0), "configurations of modules, of 7.0");
    let server = Server::new();
    let mut c = server.client();
    for (name, default, good, bad) in SETTINGS {
        assert_eq!(get(&mut c, name), [&full(name), default]);
        for value in good {
            ok(set(&mut c, name, value));
            assert_eq!(get(&mut c, name)[1], *value, "{name}");
            for wrong in bad {
                let text = error(set(&mut c, name, wrong));
                assert!(text.starts_with("ERR ") && text.contains("must be"), "{name} {wrong:?}: {text}");
                assert_eq!(get(&mut c, name)[1], *value, "{name} {wrong:?}");
            }
        }
    }
    // These and no others.
    let pattern = if version().has(8, 0) { "bf-*" } else { "bf.*" };
    let all = strings(run!(c, "CONFIG", "GET", pattern));
    assert_eq!(all.len(), 2 * SETTINGS.len(), "{all:?}");
}

#[test]
fn what_is_set_counts_from_the_next_filter_on() {
    needs!(version().has(7, 0), "configurations of modules, of 7.0");
    let server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "before", "x");
    let before = c.digest("before");
    for (name, value) in [("error-rate", "0.001"), ("initial-size", "1000"), ("expansion-factor", "4")] {
        ok(set(&mut c, name, value));
    }
    ok(run!(c, "BF.RESERVE", "reserved", "0.001", 1000, "EXPANSION", 4));
    run!(c, "BF.ADD", "reserved", "x");
    run!(c, "BF.ADD", "added", "x");
    run!(c, "BF.INSERT", "inserted", "ITEMS", "x");
    assert_eq!(c.digest("added"), c.digest("reserved"));
    assert_eq!(c.digest("inserted"), c.digest("reserved"));
    assert_eq!(c.digest("before"), before);
    ok(set(&mut c, "expansion-factor", "0"));
    run!(c, "BF.ADD", "fixed", "x");
    assert_eq!(run!(c, "BF.INFO", "fixed", "EXPANSION"), Value::Array(vec![Value::Nil]));
}

#[test]
fn configuration_beats_load_arguments_and_these_beat_the_defaults() {
    needs!(version().has(7, 0), "configurations of modules, of 7.0");
    let server = Options::new()
        .module_arguments("ERROR_RATE 0.25 INITIAL_SIZE 500 FILTER_MAX_BYTES 1000000")
        .config(&full("initial-size"), "700")
        .start();
    let mut c = server.client();
    assert_eq!(get(&mut c, "error-rate")[1], "0.25", "the load argument");
    assert_eq!(get(&mut c, "initial-size")[1], "700", "the file");
    assert_eq!(get(&mut c, "expansion-factor")[1], "2", "the default");
    assert_eq!(get(&mut c, "filter-max-bytes")[1], "1000000", "the load argument");
    ok(set(&mut c, "initial-size", "900"));
    run!(c, "BF.ADD", "k", "x");
    assert_eq!(run!(c, "BF.INFO", "k", "CAPACITY"), Value::Array(vec![Value::Int(900)]), "CONFIG SET");
    // What was set is what CONFIG REWRITE keeps.
    ok(run!(c, "CONFIG", "REWRITE"));
    let file = fs::read_to_string(server.directory().join("redis.conf")).expect("the configuration");
    let line = file.lines().find(|line| line.starts_with(&full("initial-size")));
    assert!(line.is_some_and(|line| line.ends_with("900") || line.ends_with("\"900\"")), "{file}");
}

#[test]
fn a_bad_line_of_the_file_stops_the_load() {
    needs!(version().has(7, 0), "configurations of modules, of 7.0");
    let log = Options::new().config(&full("error-rate"), "2").try_start().err().expect("a bad value");
    assert!(log.contains("must be a number from 1e-12 to below 1"), "{log}");
}

/// A server whose filters of clients have at most 100,000 bytes of lines.
fn limited() -> Server {
    Options::new().module_arguments("filter_max_bytes 100000").start()
}

/// Asserts an error that names the need, the limit and where it is set, and that the key is what it was.
#[track_caller]
fn too_large(c: &mut Client, key: &str, call: &[&str]) {
    let before = (int(run!(c, "EXISTS", key)) == 1).then(|| c.digest(key));
    let text = error(run!(c, call));
    assert!(text.starts_with("ERR the filter needs ") && text.contains("100000 bytes of filter-max-bytes"), "{text}");
    let after = (int(run!(c, "EXISTS", key)) == 1).then(|| c.digest(key));
    assert_eq!(after, before, "{text}");
}

#[test]
fn filter_max_bytes_limits_creation() {
    let server = limited();
    let mut c = server.client();
    // 1.25 bytes an item at 1 %.
    ok(run!(c, "BF.RESERVE", "fits", "0.01", 70_000, "NONSCALING"));
    too_large(&mut c, "k", &["BF.RESERVE", "k", "0.01", "90000", "NONSCALING"]);
    too_large(&mut c, "k", &["BF.INSERT", "k", "CAPACITY", "90000", "NONSCALING", "ITEMS", "a"]);
    too_large(&mut c, "k", &["BF.RESERVE", "k", "0.01", "1000000000"]);
}

#[test]
fn filter_max_bytes_limits_growth() {
    let server = limited();
    let mut c = server.client();
    let items = items(0..100_000);
    let (mut new, mut refused) = (0, None);
    for item in &items {
        match run!(c, "BF.ADD", "k", item) {
            Value::Int(answer) => new += answer,
            _ => {
                refused = Some(item);
                break;
            }
        }
    }
    let item = refused.expect("the layers of 100, 200, … 12,800 items are too large some time");
    assert!(new > 10_000, "{new}");
    too_large(&mut c, "k", &["BF.ADD", "k", item]);
    assert_eq!(int(run!(c, "BF.ADD", "k", "item0")), 0, "what is there needs no room");
    // One error for each new item, and no more growth within the command.
    let replies = array(run!(c, "BF.MADD", "k", "item0", item, "item1", "never seen"));
    assert_eq!((&replies[0], &replies[2]), (&Value::Int(0), &Value::Int(0)));
    assert!(error(replies[1].clone()).contains("filter-max-bytes"));
    assert!(error(replies[3].clone()).contains("filter-max-bytes"));
}

#[test]
fn filter_max_bytes_limits_what_clients_load() {
    let server = limited();
    let mut c = server.client();
    let large = Layer { lines: 2000, ..Layer::DEFAULT };
    ok(run!(c, "BF.LOADCHUNK", "k", 1, Filter::DEFAULT.record().bytes()));
    let text = error(run!(c, "BF.LOADCHUNK", "k", 2, large.record().bytes()));
    assert!(text.contains("128000 bytes") && text.contains("100000 bytes of filter-max-bytes"), "{text}");
    let text = error(run!(c, "BF.LOADCHUNK", "whole", 1, records::empty_filter(Filter::DEFAULT, large)));
    assert!(text.contains("filter-max-bytes"), "{text}");
    // The whole filter counts, not each layer.
    let half = Layer { lines: 1000, ..Layer::DEFAULT };
    ok(run!(c, "BF.LOADCHUNK", "k", 2, half.record().bytes()));
    ok(run!(c, "BF.LOADCHUNK", "k", 18, records::bits(0, 0, 16, &[]).bytes()));
    let text = error(run!(c, "BF.LOADCHUNK", "k", 19, Layer { number: 1, ..half }.record().bytes()));
    assert!(text.contains("filter-max-bytes"), "{text}");
}

/// Two filters beyond the limit: one made so, one grown so. Their digests.
fn make_large(c: &mut Client) -> [String; 2] {
    ok(run!(c, "BF.RESERVE", "large", "0.01", 1_000_000));
    add(c, "large", &items(0..10));
    add(c, "grown", &items(0..100_000));
    digests(c)
}

fn digests(c: &mut Client) -> [String; 2] {
    ["large", "grown"].map(|key| c.digest(key))
}

#[test]
fn filter_max_bytes_never_limits_what_a_primary_brings() {
    let (primary, replica) = (Server::new(), limited());
    replica.follow(&primary);
    let mut c = primary.client();
    let expected = make_large(&mut c);
    replica.catch_up(&primary);
    assert_eq!(digests(&mut replica.client()), expected);
    // Nor a full synchronisation.
    let other = limited();
    other.follow(&primary);
    assert_eq!(digests(&mut other.client()), expected);
    assert_eq!(found(&mut other.client(), "grown", &items(0..100_000)), 100_000);
}

#[test]
fn filter_max_bytes_never_limits_what_a_file_brings() {
    needs!(version().has(7, 0), "configurations of modules, of 7.0");
    let mut server = Options::new().config("appendonly", "yes").config("appendfsync", "always").start();
    let expected = make_large(&mut server.client());
    server.kill();
    server.configure(&full("filter-max-bytes"), "100000");
    server.start();
    let mut c = server.client();
    assert_eq!(digests(&mut c), expected, "from the AOF");
    too_large(&mut c, "k", &["BF.RESERVE", "k", "0.01", "1000000"]);
    ok(run!(c, "DEBUG", "RELOAD"));
    assert_eq!(digests(&mut c), expected, "from an RDB file");
    assert_eq!(found(&mut c, "grown", &items(0..100_000)), 100_000);
}
