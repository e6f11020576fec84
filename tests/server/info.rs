//! BF.INFO and BF.CARD: names, order and shapes, as clients parse them.

use redis::Value;

use crate::harness::records::{self, Filter, Layer};
use crate::harness::{Client, Server, add, error, int, items, ok, version};
use crate::run;

const NAMES: [&str; 5] = ["Capacity", "Size", "Number of filters", "Number of items inserted", "Expansion rate"];
const WORDS: [&str; 5] = ["CAPACITY", "SIZE", "FILTERS", "ITEMS", "EXPANSION"];

fn name(text: &str) -> Value {
    Value::SimpleString(text.into())
}

/// Names and values of a reply that is a map in RESP3, and flat in RESP2 and on 6.2.
fn fields(reply: Value, resp3: bool) -> Vec<(Value, Value)> {
    match reply {
        Value::Map(pairs) if resp3 && version().has(7, 0) => pairs,
        Value::Array(flat) if !(resp3 && version().has(7, 0)) => {
            flat.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// A filter of three layers, and its BF.INFO.
fn grown(c: &mut Client) -> [i64; 5] {
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 10, "EXPANSION", 3));
    assert_eq!(add(c, "k", &items(0..50)), 50);
    let size = int(run!(c, "MEMORY", "USAGE", "k", "SAMPLES", 0));
    [10 + 30 + 90, size, 3, 50, 3]
}

#[test]
fn f92_names_order_and_shapes() {
    let server = Server::new();
    let mut c = server.client();
    let [capacity, usage, filters, items, expansion] = grown(&mut c);
    for (mut c, resp3) in [(server.client(), false), (server.client3(), true)] {
        let read = fields(run!(c, "BF.INFO", "k"), resp3);
        assert_eq!(read.iter().map(|pair| pair.0.clone()).collect::<Vec<_>>(), NAMES.map(name));
        // MEMORY USAGE counts the key as well.
        let size = int(read[1].1.clone());
        assert!(size > usage / 2 && size < usage, "{size} of {usage}");
        let values = [capacity, size, filters, items, expansion];
        assert_eq!(read.into_iter().map(|pair| pair.1).collect::<Vec<_>>(), values.map(Value::Int));
    }
}

#[test]
fn f93_one_field_alone() {
    let server = Server::new();
    let (mut two, mut three) = (server.client(), server.client3());
    grown(&mut two);
    let all = fields(run!(two, "BF.INFO", "k"), false);
    for (word, (name, value)) in WORDS.iter().zip(all) {
        for word in [word.to_string(), word.to_lowercase()] {
            assert_eq!(run!(two, "BF.INFO", "k", &word), Value::Array(vec![value.clone()]), "{word}");
            let reply = run!(three, "BF.INFO", "k", &word);
            if version().has(7, 0) {
                assert_eq!(reply, Value::Map(vec![(name.clone(), value.clone())]), "{word}");
            } else {
                assert_eq!(reply, Value::Array(vec![value.clone()]), "{word}");
            }
        }
    }
    for word in ["SIZES", "", "Number of filters", "LOADING"] {
        let text = error(run!(two, "BF.INFO", "k", word));
        assert!(text.starts_with("ERR ") && text.contains(&format!("'{word}'")), "{text}");
    }
    let text = error(run!(two, "BF.INFO", "k", "SIZE", "ITEMS")).to_lowercase();
    assert!(text.contains("wrong number of arguments for 'bf.info' command"), "{text}");
}

#[test]
fn the_expansion_of_a_filter_that_does_not_scale_is_null() {
    let server = Server::new();
    let (mut two, mut three) = (server.client(), server.client3());
    ok(run!(two, "BF.RESERVE", "n", "0.01", 10, "NONSCALING"));
    assert_eq!(fields(run!(two, "BF.INFO", "n"), false)[4].1, Value::Nil);
    assert_eq!(fields(run!(three, "BF.INFO", "n"), true)[4].1, Value::Nil);
    assert_eq!(run!(two, "BF.INFO", "n", "EXPANSION"), Value::Array(vec![Value::Nil]));
    ok(run!(two, "BF.RESERVE", "slow", "0.01", 10, "EXPANSION", 1));
    assert_eq!(run!(two, "BF.INFO", "slow", "EXPANSION"), Value::Array(vec![Value::Int(1)]));
}

#[test]
fn a_missing_key_and_another_type() {
    let server = Server::new();
    let mut c = server.client();
    assert_eq!(error(run!(c, "BF.INFO", "missing")), "ERR not found");
    assert_eq!(error(run!(c, "BF.INFO", "missing", "SIZE")), "ERR not found");
    assert_eq!(run!(c, "BF.CARD", "missing"), Value::Int(0));
    assert_eq!(int(run!(c, "EXISTS", "missing")), 0);
    ok(run!(c, "SET", "s", "x"));
    for call in [&["BF.INFO", "s"][..], &["BF.INFO", "s", "SIZE"], &["BF.CARD", "s"]] {
        assert!(error(run!(c, call)).starts_with("WRONGTYPE "), "{call:?}");
    }
}

#[test]
fn f92_card_counts_adds_that_were_answered_1() {
    let server = Server::new();
    let (mut c, mut three) = (server.client(), server.client3());
    let mut expected = 0;
    for batch in 0..10 {
        // Half of them for the second time.
        expected += add(&mut c, "k", &items(batch * 300..batch * 300 + 600)) as i64;
        assert_eq!(run!(c, "BF.CARD", "k"), Value::Int(expected));
        assert_eq!(run!(three, "BF.CARD", "k"), Value::Int(expected));
        assert_eq!(run!(c, "BF.INFO", "k", "ITEMS"), Value::Array(vec![Value::Int(expected)]));
    }
    assert!((3_200..=3_300).contains(&expected), "{expected} of 3,300");
    ok(run!(c, "BF.RESERVE", "empty", "0.01", 10));
    assert_eq!(run!(c, "BF.CARD", "empty"), Value::Int(0));
}

#[test]
fn f53_a_filter_that_is_being_loaded_shows_as_such() {
    let server = Server::new();
    let (mut c, mut three) = (server.client(), server.client3());
    let steps = [
        (1, Filter::DEFAULT.record(), [0, 0]),
        (2, Layer { lines: 200, ..Layer::DEFAULT }.record(), [100, 1]),
        (4, records::bits(0, 0, 2, &[]), [100, 1]),
    ];
    for (iterator, record, [capacity, filters]) in steps {
        ok(run!(c, "BF.LOADCHUNK", "k", iterator, record.bytes()));
        for (c, resp3) in [(&mut c, false), (&mut three, true)] {
            let read = fields(run!(c, "BF.INFO", "k"), resp3);
            assert_eq!(read.len(), 6);
            assert_eq!(read[0], (name("Capacity"), Value::Int(capacity)));
            assert_eq!(read[2], (name("Number of filters"), Value::Int(filters)));
            assert_eq!(read[4], (name("Expansion rate"), Value::Int(2)));
            assert_eq!(read[5], (name("Loading"), Value::Int(iterator)), "the position of the next record");
        }
        assert_eq!(run!(c, "BF.INFO", "k", "FILTERS"), Value::Array(vec![Value::Int(filters)]));
        for call in [&["BF.CARD", "k"][..], &["BF.STATS", "k"], &["BF.DEBUG", "k"], &["BF.SCANDUMP", "k", "0"]] {
            assert!(error(run!(c, call)).contains("being loaded"), "{call:?}");
        }
        assert!(error(run!(c, "BF.INSERT", "k", "ITEMS", "a")).contains("being loaded"));
    }
}
