//! The module's section of INFO.

use std::collections::HashMap;

use crate::harness::{Client, Options, Server, add, bytes, error, found, int, items, ok};
use crate::run;

const NAMES: [&str; 9] = [
    "bf_filters",
    "bf_bytes",
    "bf_chunks",
    "bf_items_added",
    "bf_items_deleted",
    "bf_checks",
    "bf_hits",
    "bf_growths",
    "bf_refused_for_memory",
];

fn section(c: &mut Client, name: &str) -> String {
    String::from_utf8(bytes(run!(c, "INFO", name))).expect("text")
}

fn figures(c: &mut Client) -> HashMap<String, i64> {
    let text = section(c, "bf");
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect()
}

fn figure(c: &mut Client, name: &str) -> i64 {
    figures(c)[name]
}

#[test]
fn the_section_has_a_name_and_these_fields() {
    let server = Server::new();
    let mut c = server.client();
    let text = section(&mut c, "bf");
    assert!(text.starts_with("# bf\r\n"), "{text:?}");
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_once(':')).map(|pair| pair.0).collect();
    assert_eq!(names, NAMES);
    assert!(section(&mut c, "everything").contains("# bf\r\n"));
    assert!(!section(&mut c, "memory").contains("# bf\r\n"));
}

#[test]
fn commands_are_counted_by_item() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 10));
    run!(c, "BF.ADD", "k", "a");
    run!(c, "BF.ADD", "k", "a");
    run!(c, "BF.MADD", "k", "a", "b", "c", "b");
    run!(c, "BF.INSERT", "k", "ITEMS", "c", "d");
    assert_eq!((figure(&mut c, "bf_items_added"), figure(&mut c, "bf_growths")), (4, 0));
    run!(c, "BF.EXISTS", "k", "a");
    run!(c, "BF.EXISTS", "k", "x");
    run!(c, "BF.EXISTS", "missing", "x");
    run!(c, "BF.MEXISTS", "k", "a", "b", "x");
    run!(c, "BF.MEXISTS", "missing", "a", "b");
    assert_eq!((figure(&mut c, "bf_checks"), figure(&mut c, "bf_hits")), (8, 3));
    // 10, 20, 40, 80: three layers more.
    add(&mut c, "k", &items(0..100));
    assert_eq!((figure(&mut c, "bf_items_added"), figure(&mut c, "bf_growths")), (104, 3));
    // What is no question counts nothing.
    ok(run!(c, "SET", "s", "x"));
    error(run!(c, "BF.EXISTS", "s", "x"));
    error(run!(c, "BF.MEXISTS", "s", "x", "y"));
    assert_eq!((figure(&mut c, "bf_checks"), figure(&mut c, "bf_hits")), (8, 3));
    assert_eq!(found(&mut c, "k", &items(0..100)), 100);
    assert_eq!((figure(&mut c, "bf_checks"), figure(&mut c, "bf_hits")), (108, 103));
}

#[test]
fn each_add_to_a_counting_filter_is_counted_and_each_delete() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 100, "COUNTING"));
    run!(c, "BF.MADD", "k", "a", "b", "a");
    run!(c, "BF.ADD", "k", "a");
    run!(c, "BF.DEL", "k", "a");
    run!(c, "BF.DEL", "k", "x");
    run!(c, "BF.MDEL", "k", "a", "x", "b", "b");
    run!(c, "BF.MDEL", "missing", "a", "x");
    assert_eq!((figure(&mut c, "bf_items_added"), figure(&mut c, "bf_items_deleted")), (4, 3));
}

#[test]
fn what_is_refused_for_memory_is_counted() {
    let server = Options::new().module_arguments("FILTER_MAX_BYTES 1000").config("maxmemory", "100mb").start();
    let mut c = server.client();
    error(run!(c, "BF.RESERVE", "k", "0.01", 10_000));
    assert_eq!(figure(&mut c, "bf_refused_for_memory"), 1);
    error(run!(c, "BF.RESERVE", "k", "2", 10_000));
    assert_eq!(figure(&mut c, "bf_refused_for_memory"), 1, "refused, but not for memory");
    error(run!(c, "BF.RESERVE", "k", "0.01", "1000000000000000000"));
    assert_eq!(figure(&mut c, "bf_refused_for_memory"), 2, "more than any filter may have");
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 100));
    // Growth is tried once a command.
    run!(c, "BF.MADD", "k", items(0..110));
    assert_eq!(figure(&mut c, "bf_refused_for_memory"), 3);
}

/// Filters and chunks of `count` filters of about 31 chunks, as `k0`, `k1`, …
fn fill(c: &mut Client, count: usize) {
    for i in 0..count {
        ok(run!(c, "BF.RESERVE", format!("k{i}"), "0.01", 100_000));
        add(c, &format!("k{i}"), &items(0..5_000));
    }
}

/// Filters held, and chunks.
fn held(c: &mut Client) -> (i64, i64) {
    let figures = figures(c);
    (figures["bf_filters"], figures["bf_chunks"])
}

/// What the server holds is what is counted: filters, all their chunks, and their bytes.
#[track_caller]
fn exact(server: &Server, c: &mut Client, filters: i64, chunks: i64) {
    server.until("what was freed in the background is gone", || held(c) == (filters, chunks));
}

#[test]
fn what_is_held_is_right_whatever_happens_to_keys() {
    let server = Server::new();
    let mut c = server.client();
    assert_eq!(held(&mut c), (0, 0));
    let empty = figure(&mut c, "bf_bytes");
    assert!(empty < 1 << 20, "{empty} bytes without a filter");
    fill(&mut c, 4);
    let (filters, chunks) = held(&mut c);
    let one = chunks / 4;
    assert_eq!((filters, one * 4), (4, chunks));
    assert!((31..=64).contains(&one), "{one} chunks each");
    // What the filters count of themselves, and of the module's own only a little.
    let keys = ["k0", "k1", "k2", "k3"];
    let sizes: i64 = keys.iter().map(|key| crate::harness::ints(run!(c, "BF.INFO", *key, "SIZE"))[0]).sum();
    let counted = figure(&mut c, "bf_bytes") - empty;
    assert!(counted >= sizes && counted - sizes < 1 << 20, "{counted} for {sizes}");

    assert_eq!(int(run!(c, "COPY", "k0", "copy")), 1);
    exact(&server, &mut c, 5, 5 * one);
    assert_eq!(int(run!(c, "DEL", "copy")), 1);
    exact(&server, &mut c, 4, 4 * one);
    assert_eq!(int(run!(c, "UNLINK", "k3")), 1);
    exact(&server, &mut c, 3, 3 * one);
    ok(run!(c, "RENAME", "k1", "k0"));
    exact(&server, &mut c, 2, 2 * one);
    ok(run!(c, "SWAPDB", 0, 1));
    assert_eq!(int(run!(c, "DBSIZE")), 0);
    exact(&server, &mut c, 2, 2 * one);
    ok(run!(c, "SWAPDB", 0, 1));
    let dump = bytes(run!(c, "DUMP", "k0"));
    ok(run!(c, "RESTORE", "restored", 0, &dump));
    exact(&server, &mut c, 3, 3 * one);
    error(run!(c, "RESTORE", "bad", 0, &dump[..dump.len() - 20]));
    ok(run!(c, "RESTORE", "restored", 0, &dump, "REPLACE"));
    exact(&server, &mut c, 3, 3 * one);
    ok(run!(c, "SET", "restored", "x"));
    exact(&server, &mut c, 2, 2 * one);
    ok(run!(c, "DEBUG", "RELOAD"));
    exact(&server, &mut c, 2, 2 * one);
    assert_eq!(int(run!(c, "PEXPIRE", "k2", 1)), 1);
    exact(&server, &mut c, 1, one);
    ok(run!(c, "FLUSHALL", "ASYNC"));
    exact(&server, &mut c, 0, 0);
    fill(&mut c, 2);
    ok(run!(c, "FLUSHALL", "SYNC"));
    exact(&server, &mut c, 0, 0);
    let left = figure(&mut c, "bf_bytes");
    assert!((left - empty).abs() < 1 << 20, "{left} bytes without a filter, {empty} at the start");
}

#[test]
fn what_is_held_is_right_after_a_synchronisation() {
    for (name, diskless) in [("file", "disabled"), ("memory", "swapdb")] {
        let primary = Options::new()
            .config("repl-diskless-sync", if name == "memory" { "yes" } else { "no" })
            .config("repl-diskless-sync-delay", "0")
            .start();
        let replica = Options::new().config("repl-diskless-load", diskless).start();
        let (mut c, mut d) = (primary.client(), replica.client());
        fill(&mut c, 3);
        // Of its own, to be thrown away.
        fill(&mut d, 2);
        replica.follow(&primary);
        let (filters, chunks) = held(&mut c);
        assert_eq!(filters, 3);
        exact(&replica, &mut d, 3, chunks);
        run!(c, "BF.ADD", "new", "x");
        replica.catch_up(&primary);
        exact(&replica, &mut d, 4, chunks + 1);
        assert!(figure(&mut d, "bf_items_added") >= 1, "those of a primary count too");
        // A second one, over what the first brought: between the two it keeps what it has.
        ok(run!(d, "REPLICAOF", "NO", "ONE"));
        ok(run!(d, "BF.RESERVE", "own", "0.01", 10));
        replica.follow(&primary);
        exact(&replica, &mut d, 4, chunks + 1);
    }
}

#[test]
fn what_is_held_is_right_after_a_restart() {
    let mut server = Server::new();
    fill(&mut server.client(), 3);
    let before = held(&mut server.client());
    server.restart();
    assert_eq!(held(&mut server.client()), before);
    assert_eq!(figure(&mut server.client(), "bf_items_added"), 0, "nothing was added since");
}
