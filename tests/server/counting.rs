//! Counting filters: what BF.DEL, BF.MDEL and BF.COUNT answer, and that counts survive whatever filters do.

use redis::Value;

use crate::harness::records::{self, Filter, Layer};
use crate::harness::{Client, Options, Server, add, array, bytes, error, found, int, ints, items, ok, version};
use crate::{needs, run};

/// A counting filter in which no item of a test is a false positive.
fn precise(c: &mut Client, key: &str) {
    ok(run!(c, "BF.RESERVE", key, "1e-9", 1000, "COUNTING"));
}

#[track_caller]
fn count(c: &mut Client, key: &str, item: &str) -> i64 {
    match run!(c, "BF.COUNT", key, item) {
        Value::Int(times) => times,
        other => panic!("not an integer: {other:?}"),
    }
}

fn delete(c: &mut Client, key: &str, items: &[String]) -> usize {
    let deleted = items.chunks(500).flat_map(|some| ints(run!(c, "BF.MDEL", key, some)));
    deleted.filter(|&was| was == 1).count()
}

/// The example of BF.ADD's documentation.
#[test]
fn what_was_added_twice_is_there_until_it_was_deleted_twice() {
    let server = Server::new();
    let mut c = server.client();
    precise(&mut c, "k");
    let answers: Vec<i64> = ["ADD", "ADD", "DEL", "EXISTS", "DEL", "EXISTS", "DEL", "ADD"]
        .iter()
        .map(|name| int(run!(c, format!("BF.{name}"), "k", "x")))
        .collect();
    assert_eq!(answers, [1, 0, 1, 1, 1, 0, 0, 1]);
}

#[test]
fn many_items_in_order() {
    let server = Server::new();
    let mut c = server.client();
    precise(&mut c, "k");
    assert_eq!(ints(run!(c, "BF.MADD", "k", "a", "b", "a", "a")), [1, 1, 0, 0]);
    assert_eq!(["a", "b", "x"].map(|item| count(&mut c, "k", item)), [3, 1, 0]);
    assert_eq!(ints(run!(c, "BF.MDEL", "k", "b", "a", "b", "x", "a")), [1, 1, 0, 0, 1]);
    assert_eq!(["a", "b", "x"].map(|item| count(&mut c, "k", item)), [1, 0, 0]);
    assert_eq!(int(run!(c, "BF.CARD", "k")), 1);
    // Many groups, forwards and backwards.
    let mut all = items(0..3000);
    assert_eq!(add(&mut c, "k", &all), 3000);
    assert_eq!(add(&mut c, "k", &all), 0);
    all.reverse();
    assert_eq!(delete(&mut c, "k", &all), 3000);
    assert_eq!((found(&mut c, "k", &all), int(run!(c, "BF.CARD", "k"))), (3000, 3001));
    assert_eq!(delete(&mut c, "k", &all), 3000);
    assert_eq!((found(&mut c, "k", &all), int(run!(c, "BF.CARD", "k"))), (0, 1));
}

#[test]
fn replies_of_resp3() {
    let server = Server::new();
    let (mut two, mut three) = (server.client(), server.client3());
    let boolean = |truth| if version().has(7, 0) { Value::Boolean(truth) } else { Value::Int(i64::from(truth)) };
    precise(&mut two, "k");
    run!(two, "BF.MADD", "k", "a", "b", "c", "d", "e");
    assert_eq!(run!(two, "BF.DEL", "k", "a"), Value::Int(1));
    assert_eq!(run!(three, "BF.DEL", "k", "a"), boolean(false));
    assert_eq!(run!(three, "BF.DEL", "k", "b"), boolean(true));
    assert_eq!(run!(three, "BF.DEL", "missing", "b"), boolean(false));
    assert_eq!(run!(two, "BF.MDEL", "k", "b", "c"), Value::Array(vec![Value::Int(0), Value::Int(1)]));
    assert_eq!(run!(three, "BF.MDEL", "k", "b", "d"), Value::Array(vec![boolean(false), boolean(true)]));
    assert_eq!(run!(three, "BF.MDEL", "missing", "b"), Value::Array(vec![boolean(false)]));
    for c in [&mut two, &mut three] {
        assert_eq!(run!(c, "BF.COUNT", "k", "e"), Value::Int(1));
        assert_eq!(run!(c, "BF.COUNT", "missing", "e"), Value::Int(0));
    }
}

#[test]
fn a_count_ends_at_15_and_such_an_item_stays() {
    let server = Server::new();
    let mut c = server.client();
    precise(&mut c, "k");
    for times in 1..20 {
        run!(c, "BF.ADD", "k", "hot");
        assert_eq!(count(&mut c, "k", "hot"), times.min(15));
    }
    assert_eq!(ints(run!(c, "BF.MDEL", "k", vec!["hot"; 50])), [1; 50]);
    assert_eq!((count(&mut c, "k", "hot"), int(run!(c, "BF.CARD", "k"))), (15, 0));
}

#[test]
fn a_missing_key_holds_nothing_and_is_not_made() {
    let server = Server::new();
    let mut c = server.client();
    assert_eq!(int(run!(c, "BF.DEL", "k", "a")), 0);
    assert_eq!(ints(run!(c, "BF.MDEL", "k", "a", "b")), [0, 0]);
    assert_eq!(count(&mut c, "k", "a"), 0);
    assert_eq!(int(run!(c, "EXISTS", "k")), 0);
}

#[test]
fn what_is_no_counting_filter_is_an_error() {
    let server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "plain", "a");
    ok(run!(c, "SET", "s", "x"));
    let record = Filter { flags: 2, ..Filter::DEFAULT }.record().bytes();
    ok(run!(c, "BF.LOADCHUNK", "half", 1, record));
    let before = ["plain", "half"].map(|key| c.digest(key));
    for name in ["BF.DEL", "BF.MDEL", "BF.COUNT"] {
        let text = error(run!(c, name, "plain", "a"));
        assert!(text.starts_with("ERR ") && text.contains("COUNTING"), "{text}");
        assert!(error(run!(c, name, "s", "a")).starts_with("WRONGTYPE "));
        let text = error(run!(c, name, "half", "a"));
        assert!(text.starts_with("ERR ") && text.contains("loaded"), "{text}");
        for arguments in [&[][..], &["k"]] {
            assert!(error(run!(c, name, arguments)).contains("wrong number of arguments"), "{name} {arguments:?}");
        }
    }
    for name in ["BF.DEL", "BF.COUNT"] {
        assert!(error(run!(c, name, "plain", "a", "b")).contains("wrong number of arguments"));
    }
    assert_eq!(before, ["plain", "half"].map(|key| c.digest(key)));
    assert_eq!(int(run!(c, "BF.EXISTS", "plain", "a")), 1);
}

/// A full one counts what it finds, refuses what is new, and takes it after a delete.
#[test]
fn full() {
    let server = Server::new();
    let mut c = server.client();
    let replies = array(run!(
        c,
        "BF.INSERT",
        "k",
        "COUNTING",
        "ERROR",
        "1e-9",
        "CAPACITY",
        3,
        "NONSCALING",
        "ITEMS",
        "a",
        "b",
        "a",
        "c",
        "a"
    ));
    assert_eq!((&replies[..3], &replies[4]), (&[Value::Int(1), Value::Int(1), Value::Int(0)][..], &Value::Int(0)));
    assert!(error(replies[3].clone()).starts_with("ERR non scaling filter is full"));
    assert_eq!((count(&mut c, "k", "a"), count(&mut c, "k", "c"), int(run!(c, "BF.CARD", "k"))), (3, 0, 4));
    assert_eq!(ints(run!(c, "BF.MDEL", "k", "a", "a")), [1, 1]);
    assert_eq!(int(run!(c, "BF.ADD", "k", "c")), 1);
    assert!(error(run!(c, "BF.ADD", "k", "d")).starts_with("ERR non scaling filter is full"));
}

/// Adds and deletes of a filter of several layers, so that items leave the older ones.
fn churn(c: &mut Client, key: &str) {
    ok(run!(c, "BF.RESERVE", key, "0.01", 100, "COUNTING"));
    add(c, key, &items(0..1000));
    add(c, key, &items(0..300));
    assert_eq!(delete(c, key, &items(200..600)), 400);
    add(c, key, &items(1000..1500));
}

/// That it is what [`churn`] leaves, however it came here.
#[track_caller]
fn check(c: &mut Client, key: &str) {
    let there = [items(0..300), items(600..1500)].concat();
    assert_eq!(found(c, key, &there), there.len(), "{key}: a false negative");
    assert_eq!(int(run!(c, "BF.CARD", key)), 1000 + 300 - 400 + 500);
    for item in &items(0..200) {
        assert!(count(c, key, item) >= 2, "{key} {item}");
    }
    assert!(found(c, key, &items(300..600)) < 15, "{key}");
}

#[test]
fn counts_survive_a_restart_a_copy_and_a_restore() {
    let mut server = Server::new();
    let mut c = server.client();
    churn(&mut c, "k");
    check(&mut c, "k");
    let digest = c.digest("k");
    assert_eq!(int(run!(c, "COPY", "k", "copy")), 1);
    let dump = bytes(run!(c, "DUMP", "k"));
    ok(run!(c, "RESTORE", "restored", 0, dump));
    for restarted in [false, true] {
        if restarted {
            server.restart();
            c = server.client();
        }
        for key in ["k", "copy", "restored"] {
            check(&mut c, key);
            assert_eq!(c.digest(key), digest, "{key} {restarted}");
        }
    }
    assert_eq!(delete(&mut c, "copy", &items(0..200)), 200);
    check(&mut c, "k");
    assert_ne!(c.digest("copy"), digest);
}

#[test]
fn the_aof_has_every_add_and_delete() {
    for preamble in ["yes", "no"] {
        let options = Options::new().config("appendonly", "yes").config("appendfsync", "always");
        let mut server = options.config("aof-use-rdb-preamble", preamble).start();
        let mut c = server.client();
        churn(&mut c, "k");
        let digest = c.digest("k");
        for rewritten in [false, true] {
            if rewritten {
                run!(c, "BGREWRITEAOF");
                server.until("the AOF is rewritten", || c.info("aof_rewrite_in_progress") == "0");
                assert_eq!(c.info("aof_last_bgrewrite_status"), "ok");
            }
            server.kill();
            server.start();
            c = server.client();
            check(&mut c, "k");
            assert_eq!(c.digest("k"), digest, "preamble {preamble}, rewritten {rewritten}");
        }
    }
}

#[test]
fn what_is_sent_is_what_took_effect() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    precise(&mut c, "k");
    assert_eq!(stream.shown(&server), ["BF.LOADCHUNK k 1 <filter layer bits end>"]);
    for (call, expected) in [
        (&["BF.ADD", "k", "a"][..], &["BF.ADD k a"][..]),
        (&["BF.ADD", "k", "a"], &["BF.ADD k a"]),
        (&["BF.MADD", "k", "a", "b", "a"], &["BF.MADD k a b a"]),
        (&["BF.DEL", "k", "x"], &[]),
        (&["BF.DEL", "k", "b"], &["BF.DEL k b"]),
        (&["BF.DEL", "k", "b"], &[]),
        (&["BF.MDEL", "k", "x", "b"], &[]),
        (&["BF.MDEL", "k", "x", "a", "b"], &["BF.DEL k a"]),
        (&["BF.MDEL", "k", "a", "x", "a", "b"], &["BF.MDEL k a a"]),
        (&["BF.MDEL", "k", "a"], &["BF.MDEL k a"]),
        (&["BF.COUNT", "k", "a"], &[]),
    ] {
        run!(c, call);
        assert_eq!(stream.shown(&server), expected, "{call:?}");
    }
    run!(c, "BF.ADD", "k", "a");
    let before = c.changes();
    for call in [["BF.ADD", "k", "a"], ["BF.DEL", "k", "a"], ["BF.DEL", "k", "x"], ["BF.MDEL", "k", "x"]] {
        run!(c, &call);
    }
    assert_eq!(c.changes() - before, 2);
}

#[test]
fn what_a_full_one_refused_is_not_sent() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 2, "NONSCALING", "COUNTING"));
    run!(c, "BF.MADD", "k", "a", "b", "c", "a");
    run!(c, "BF.ADD", "k", "c");
    assert_eq!(stream.shown(&server)[1..], ["BF.MADD k a b a"]);
}

#[test]
fn a_replica_has_the_same_counters() {
    let primary = Server::new();
    let replica = Options::new().module_arguments("ERROR_RATE 0.2 INITIAL_SIZE 7 EXPANSION 5").start();
    let mut c = primary.client();
    churn(&mut c, "before");
    replica.follow(&primary);
    churn(&mut c, "after");
    for key in ["before", "after"] {
        let odd: Vec<String> = items(0..1500).into_iter().step_by(2).collect();
        add(&mut c, key, &odd);
        delete(&mut c, key, &odd);
    }
    replica.catch_up(&primary);
    let mut r = replica.client();
    for key in ["before", "after"] {
        check(&mut r, key);
        assert_eq!(r.digest(key), c.digest(key));
    }
    assert!(error(run!(r, "BF.DEL", "after", "item0")).starts_with("READONLY"));
    assert_eq!(count(&mut r, "after", "item0"), count(&mut c, "after", "item0"));
}

#[test]
fn f31_a_replica_that_panics_on_errors_sees_none() {
    needs!(version().has(7, 0), "propagation-error-behavior, of 7.0");
    let primary = Server::new();
    let replica = Options::new().config("propagation-error-behavior", "panic-on-replicas").start();
    replica.follow(&primary);
    let mut c = primary.client();
    ok(run!(c, "BF.RESERVE", "k", "0.3", 20, "NONSCALING", "COUNTING"));
    for round in 0..20 {
        // Whatever is a false positive, and whatever is refused.
        run!(c, "BF.MADD", "k", items(round * 7..round * 7 + 40));
        run!(c, "BF.MDEL", "k", items(round * 7..round * 7 + 30));
        run!(c, "BF.DEL", "k", format!("other{round}"));
    }
    run!(c, "BF.ADD", "plain", "a");
    run!(c, "BF.DEL", "plain", "a");
    replica.catch_up(&primary);
    assert_eq!(replica.client().digest("k"), c.digest("k"));
    assert!(replica.alive());
}

/// WATCH, as an add or a delete that took effect disturbs it, and no other.
#[test]
fn watchers_are_told_of_what_changed() {
    let server = Server::new();
    let (mut c, mut other) = (server.client(), server.client());
    precise(&mut c, "k");
    run!(c, "BF.ADD", "k", "a");
    for (call, disturbs) in [
        (&["BF.DEL", "k", "x"][..], false),
        (&["BF.MDEL", "k", "x", "y"], false),
        (&["BF.COUNT", "k", "a"], false),
        (&["BF.ADD", "k", "a"], true),
        (&["BF.DEL", "k", "a"], true),
        (&["BF.MDEL", "k", "x", "a"], true),
    ] {
        ok(run!(c, "WATCH", "k"));
        run!(other, call);
        ok(run!(c, "MULTI"));
        run!(c, "PING");
        assert_eq!(run!(c, "EXEC") == Value::Nil, disturbs, "{call:?}");
    }
}

/// A dump record by record, with something between them.
fn scan(c: &mut Client, key: &str, mut between: impl FnMut(&mut Client)) -> Vec<(i64, Vec<u8>)> {
    let mut records = Vec::new();
    let mut iterator = 0;
    loop {
        let mut reply = array(run!(c, "BF.SCANDUMP", key, iterator));
        let (data, next) = (bytes(reply.remove(1)), int(reply.remove(0)));
        if next == 0 {
            return records;
        }
        records.push((next, data));
        iterator = next;
        between(c);
    }
}

#[test]
fn a_dump_is_loaded_and_one_of_other_moments_is_not() {
    let server = Server::new();
    let mut c = server.client();
    churn(&mut c, "k");
    for (iterator, data) in scan(&mut c, "k", |_| {}) {
        ok(run!(c, "BF.LOADCHUNK", "loaded", iterator, data));
    }
    check(&mut c, "loaded");
    assert_eq!(c.digest("loaded"), c.digest("k"));
    for change in ["BF.ADD", "BF.DEL"] {
        let records = scan(&mut c, "k", |c| _ = run!(c, change, "k", "item0"));
        ok(run!(c, "BF.LOADCHUNK", "torn", records[0].0, &records[0].1[..]));
        let text = error(run!(c, "BF.LOADCHUNK", "torn", records[1].0, &records[1].1[..]));
        assert!(
            text.starts_with("ERR ") && text.contains("COPY key tmp") && text.contains("BF.SCANDUMP tmp"),
            "{text}"
        );
        assert_eq!(int(run!(c, "DEL", "torn")), 1);
        // As the error says.
        assert_eq!(int(run!(c, "COPY", "k", "tmp")), 1);
        let records = scan(&mut c, "tmp", |c| _ = run!(c, change, "k", "item0"));
        for (iterator, data) in records {
            ok(run!(c, "BF.LOADCHUNK", "whole", iterator, data));
        }
        assert_eq!(c.digest("whole"), c.digest("tmp"));
        assert_eq!(int(run!(c, "DEL", "tmp", "whole")), 2);
    }
}

/// A filter of these records, whose layer is of the other kind.
#[test]
fn layers_of_the_other_kind_are_refused() {
    let server = Server::new();
    let mut c = server.client();
    let counters = Layer { layout: 2, width: 4, ..Layer::DEFAULT };
    for (flags, layer) in [
        (0, counters),
        (2, Layer::DEFAULT),
        (2, Layer { layout: 2, ..Layer::DEFAULT }),
        (2, Layer { width: 4, ..Layer::DEFAULT }),
    ] {
        let data = records::empty_filter(Filter { flags, ..Filter::DEFAULT }, layer);
        assert!(error(run!(c, "BF.LOADCHUNK", "k", 1, data)).starts_with("ERR "), "{flags} {layer:?}");
        assert_eq!(int(run!(c, "EXISTS", "k")), 0);
    }
    ok(run!(c, "BF.LOADCHUNK", "k", 1, records::empty_filter(Filter { flags: 2, ..Filter::DEFAULT }, counters)));
    assert_eq!((int(run!(c, "BF.ADD", "k", "a")), count(&mut c, "k", "a")), (1, 1));
}

/// On a filter that is there the words of BF.INSERT have no effect, this one neither.
#[test]
fn counting_does_not_change_a_filter_that_is_there() {
    let server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "plain", "a");
    assert_eq!(ints(run!(c, "BF.INSERT", "plain", "COUNTING", "ITEMS", "a", "b")), [0, 1]);
    assert!(error(run!(c, "BF.COUNT", "plain", "a")).contains("COUNTING"));
    precise(&mut c, "k");
    assert_eq!(ints(run!(c, "BF.INSERT", "k", "ITEMS", "a", "a")), [1, 0]);
    assert_eq!(ints(run!(c, "BF.INSERT", "k", "NOCREATE", "ITEMS", "a")), [0]);
    assert_eq!(count(&mut c, "k", "a"), 3);
}

/// Four bits a place: some four times the memory of a plain filter.
#[test]
fn memory() {
    let server = Server::new();
    let mut c = server.client();
    let usage = |c: &mut Client, key: &str| {
        let size = int(array(run!(c, "BF.INFO", key, "SIZE")).remove(0));
        assert!(int(run!(c, "MEMORY", "USAGE", key)) >= size);
        size as f64
    };
    for (key, counting) in [("plain", &[][..]), ("counting", &["COUNTING"])] {
        ok(run!(c, "BF.RESERVE", key, "0.01", 50_000, "NONSCALING", counting));
        add(&mut c, key, &items(0..50_000));
    }
    let times = usage(&mut c, "counting") / usage(&mut c, "plain");
    assert!((3.85..4.05).contains(&times), "{times}");
}
