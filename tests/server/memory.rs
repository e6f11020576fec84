//! What filters cost, as the server counts it.

use std::time::Duration;

use crate::harness::{Client, Filters, Options, Server, add, array, bytes, found, int, ints, items, ok, version};
use crate::run;

fn used(c: &mut Client) -> i64 {
    c.info("used_memory").parse().expect("a number of bytes")
}

fn usage(c: &mut Client, key: &str) -> i64 {
    int(run!(c, "MEMORY", "USAGE", key))
}

/// What MEMORY USAGE counts for a key itself. For the value of a string that is an integer Redis counts 16 bytes before
/// 8.0, and neither later releases nor Valkey count anything.
fn usage_of_a_key(c: &mut Client) -> i64 {
    ok(run!(c, "SET", "i", 1));
    let value = if version().valkey || version().has(8, 0) { 0 } else { 16 };
    usage(c, "i") - value
}

#[test]
fn f100_a_default_filter_counts_at_most_288_bytes() {
    let server = Server::new();
    let mut c = server.client();
    let key = usage_of_a_key(&mut c);
    run!(c, "BF.ADD", "k", "a");
    let one = usage(&mut c, "k") - key;
    assert!((192..=288).contains(&one), "{one} bytes; its lines are 192");
    add(&mut c, "k", &items(0..80));
    assert_eq!(usage(&mut c, "k") - key, one, "it does not grow below its capacity");
}

#[test]
fn f100_ten_thousand_default_filters() {
    let server = Server::new();
    let mut c = server.client();
    let fill = |c: &mut Client, call: &[&str], count: usize| {
        let before = used(c);
        let calls: Vec<redis::Cmd> = (0..count)
            .map(|i| redis::cmd(call[0]).arg(format!("{}{i:05}", call[0])).arg(&call[1..]).to_owned())
            .collect();
        c.pipeline(&calls);
        (used(c) - before) / i64::try_from(count).expect("a small count")
    };
    // The same keys with the smallest values there are show what keys cost.
    let key = fill(&mut c, &["SET", "1"], 16_384);
    ok(run!(c, "FLUSHALL"));
    let filter = fill(&mut c, &["BF.ADD", "x"], 16_384);
    // An allocator rounds up, by a fifth at most in these sizes; 16 is the server's own note of a module's value.
    let most = key + (288 + 16) * 6 / 5;
    assert!(filter <= most, "{filter} bytes each with their keys, {key} without a filter, at most {most}");
}

/// How many filters there are, and what the module has allocated.
fn filters_and_bytes(c: &mut Client) -> (i64, i64) {
    let text = String::from_utf8(bytes(run!(c, "INFO", "bf"))).expect("text");
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line of INFO bf");
        line.parse().expect("a number")
    };
    (number("bf_filters:"), number("bf_bytes:"))
}

/// More than the buffers of a client that sends 500 items a command.
const BUFFERS: i64 = 200_000;

#[test]
fn f101_everything_allocated_is_counted() {
    let server = Server::new();
    let mut c = server.client();
    for (key, capacity, count) in [("full", 500_000, 500_000), ("sparse", 50_000_000, 2_000), ("chain", 100, 100_000)] {
        let before = used(&mut c);
        ok(run!(c, "BF.RESERVE", key, "0.01", capacity));
        add(&mut c, key, &items(0..count));
        let (counted, taken) = (usage(&mut c, key), used(&mut c) - before);
        // The server's figure has its clients' buffers in it, which come and go.
        let (least, most) = (counted * 9 / 10 - BUFFERS, counted * 11 / 10 + BUFFERS);
        assert!((least..=most).contains(&taken), "{key}: {counted} counted, {taken} taken");
    }
    // What filters count is, to the byte, what the module's allocator gave out.
    let sizes: i64 = ["full", "sparse", "chain"].iter().map(|key| ints(run!(c, "BF.INFO", *key, "SIZE"))[0]).sum();
    assert_eq!(filters_and_bytes(&mut c), (3, sizes));
}

#[test]
fn an_empty_filter_of_any_size_costs_next_to_nothing() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.01", 1_000_000_000));
    let bytes = usage(&mut c, "k");
    assert!(bytes < 4096, "{bytes} bytes");
    run!(c, "BF.ADD", "k", "a");
    let bytes = usage(&mut c, "k");
    // A chunk, a node, and a root of 8 bytes for each 2 MiB of 1.2 GB.
    assert!(bytes < 20_000, "{bytes} bytes");
}

#[test]
fn filters_made_and_deleted_leave_nothing() {
    let server = Options::new().config("lazyfree-lazy-user-del", "no").config("lazyfree-lazy-user-flush", "no").start();
    let mut c = server.client();
    let round = |c: &mut Client| {
        for i in 0..200 {
            run!(c, "BF.ADD", format!("default{i}"), "a");
        }
        add(c, "grown", &items(0..5000));
        ok(run!(c, "BF.RESERVE", "large", "0.001", 10_000_000));
        add(c, "large", &items(0..1000));
        run!(c, "COPY", "grown", "copy");
        let dump = crate::harness::bytes(run!(c, "DUMP", "grown"));
        ok(run!(c, "RESTORE", "restored", 0, dump.as_slice()));
        run!(c, "RESTORE", "damaged", 0, &dump[..dump.len() / 2]);
        run!(c, "BF.RESERVE", "large", "0.01", 5);
        run!(c, "BF.LOADCHUNK", "half", 1, "nonsense");
        ok(run!(c, "DEBUG", "RELOAD"));
        run!(c, "DEL", "grown");
        ok(run!(c, "FLUSHALL"));
        used(c)
    };
    // The first rounds fill the server's own caches and buffers.
    let early = (0..3).map(|_| round(&mut c)).max().expect("three rounds");
    let late = (0..10).map(|_| round(&mut c)).min().expect("ten rounds");
    // The server's own use varies by a few KB. What a round makes once takes over 10 KB, and the rest comes 200 times.
    assert!(late - early < 16_384, "{early} bytes in use after the first rounds, {late} in the end");
}

/// The share of probes, out of `count` items that were never added, that are answered 1.
fn rate(c: &mut Client, key: &str, count: usize) -> f64 {
    found(c, key, &items(1_000_000..1_000_000 + count)) as f64 / count as f64
}

/// 1 % and five standard deviations of a measurement with 100,000 probes.
const ONE_PERCENT: f64 = 0.01 + 5.0 * 0.000315;

#[test]
fn f65_memory_and_rate_at_200_000() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "a", "0.01", 200_000));
    ok(run!(c, "BF.RESERVE", "n", "0.01", 200_000, "NONSCALING"));
    for (key, elsewhere) in [("a", 275_792), ("n", 239_728)] {
        add(&mut c, key, &items(0..200_000));
        let bytes = usage(&mut c, key);
        assert!(bytes * 100 <= elsewhere * 105, "{key}: {bytes} bytes, {elsewhere} elsewhere");
        let rate = rate(&mut c, key, 100_000);
        assert!(rate <= ONE_PERCENT, "{key}: {rate}");
    }
}

#[test]
fn f67_memory_and_rate_of_a_default_filter_with_200_000() {
    let server = Server::new();
    let mut c = server.client();
    add(&mut c, "k", &items(0..200_000));
    let bytes = usage(&mut c, "k");
    assert!(bytes <= 550_000, "{bytes} bytes");
    let rate = rate(&mut c, "k", 100_000);
    assert!(rate <= ONE_PERCENT, "{rate}");
}

/// Filters of every shape, at every stage of a load, copied, grown and loaded again: to the byte.
#[test]
fn f101_memory_usage_is_what_the_allocator_gave() {
    let server = Server::new();
    let mut c = server.client();
    let filters = Filters::make(&mut c);
    let mut keys: Vec<String> = filters.keys().map(str::to_owned).collect();
    for (key, stages) in [("grown", 7), ("keyed", 5), ("sparse", 3), ("large", 2)] {
        let mut position = 0;
        let half = format!("half-{key}");
        for _ in 0..stages {
            let mut reply = array(run!(c, "BF.SCANDUMP", key, position));
            let record = bytes(reply.remove(1));
            position = int(reply.remove(0));
            ok(run!(c, "BF.LOADCHUNK", &half, position, record));
        }
        let copies = [(key, format!("copy-{key}")), (&half, format!("copy-{half}"))];
        for (from, to) in &copies {
            assert_eq!(int(run!(c, "COPY", from, to)), 1);
        }
        keys.extend(copies.map(|(_, to)| to).into_iter().chain([half]));
    }
    // Of the key itself.
    let key_of = |c: &mut Client, name: &str| {
        ok(run!(c, "SET", format!("{name}!"), 1));
        let value = if version().valkey || version().has(8, 0) { 0 } else { 16 };
        let bytes = usage(c, &format!("{name}!")) - value;
        assert_eq!(int(run!(c, "DEL", format!("{name}!"))), 1);
        bytes
    };
    let check = |c: &mut Client, keys: &[String], when: &str| {
        let sizes: Vec<i64> = keys.iter().map(|key| ints(run!(c, "BF.INFO", key, "SIZE"))[0]).collect();
        assert_eq!(filters_and_bytes(c), (keys.len() as i64, sizes.iter().sum()), "{when}");
        for (key, size) in keys.iter().zip(sizes) {
            // The name is a byte longer than the one that it is compared with, and its own object may be larger.
            let beside = usage(c, key) - size - key_of(c, key);
            assert!((-16..=16).contains(&beside), "{key}, {when}: {beside} bytes beside the {size} of the filter");
        }
    };
    check(&mut c, &keys, "made");
    for (key, size) in [("default", 5000), ("slow", 2500), ("copy-keyed", 4000)] {
        add(&mut c, key, &items(0..size));
    }
    check(&mut c, &keys, "grown");
    ok(run!(c, "DEBUG", "RELOAD"));
    check(&mut c, &keys, "loaded");
    for key in keys.drain(..keys.len() / 2) {
        assert_eq!(int(run!(c, "DEL", key)), 1);
    }
    check(&mut c, &keys, "some deleted");
}

/// A filter is freed by another thread if freeing it would take long, and only then: 64 allocations, for every server.
#[test]
fn f44_free_effort_is_in_proportion() {
    let server = Server::new();
    let mut c = server.client();
    let mut lazily = 0;
    // Lines, then chunks of 64 of them: 1.2 MB for a million.
    for (capacity, in_the_background) in [(100, false), (100_000, false), (1_000_000, true), (100_000_000, true)] {
        ok(run!(c, "BF.RESERVE", "k", "0.01", capacity, "NONSCALING"));
        add(&mut c, "k", &items(0..10));
        assert_eq!(int(run!(c, "UNLINK", "k")), 1);
        lazily += i64::from(in_the_background);
        server.until("what is freed in the background is freed", || {
            c.info("lazyfree_pending_objects") == "0" && filters_and_bytes(&mut c) == (0, 0)
        });
        assert_eq!(c.info("lazyfreed_objects"), lazily.to_string(), "{capacity}");
    }
}

/// Makes and deletes many small filters, again and again; the server's memory after each round: in use, and resident.
fn rounds(server: &Server, count: usize, rounds: usize) -> Vec<(i64, i64)> {
    let mut c = server.client();
    let number = |c: &mut Client, field: &str| c.info(field).parse::<i64>().expect("a number");
    let empty = used(&mut c);
    let round = |round: usize| {
        for begin in (0..count).step_by(10_000) {
            let calls: Vec<redis::Cmd> = (begin..count.min(begin + 10_000))
                .map(|i| redis::cmd("BF.ADD").arg(format!("user:{i:07}")).arg(i).to_owned())
                .collect();
            c.pipeline(&calls);
        }
        let each = (used(&mut c) - empty) / count as i64;
        let (filters, bytes) = filters_and_bytes(&mut c);
        assert_eq!(filters, count as i64);
        assert!(bytes <= 288 * filters, "{bytes} bytes for {filters} filters");
        println!("{each} bytes a filter and its key, {} of them the filter's", bytes / filters);
        if round.is_multiple_of(2) {
            ok(run!(c, "FLUSHALL", "ASYNC"));
        } else {
            let keys: Vec<String> = (0..count).map(|i| format!("user:{i:07}")).collect();
            for keys in keys.chunks(10_000) {
                assert_eq!(int(run!(c, "UNLINK", keys)), keys.len() as i64);
            }
        }
        server
            .until("all is freed", || filters_and_bytes(&mut c) == (0, 0) && c.info("lazyfree_pending_objects") == "0");
        let left = (used(&mut c), number(&mut c, "used_memory_rss"));
        println!("{} bytes in use, {} resident", left.0, left.1);
        left
    };
    (0..rounds).map(round).collect()
}

/// Asserts that neither figure goes on growing after the first two rounds, in which buffers and tables find their size.
/// Buffers of a connection come and go, and the table of keys shrinks when the server comes to it; the least that could be
/// lost with each filter, 16 bytes a round, is more.
fn level(count: usize, after: &[(i64, i64)]) {
    let (early, late) = after.split_at(2);
    let last = late.last().expect("more rounds");
    let most = |figure: fn(&(i64, i64)) -> i64| early.iter().map(figure).max().expect("two rounds");
    assert!(last.0 <= most(|round| round.0) + (1 << 20) + 2 * count as i64, "in use: {after:?}");
    assert!(last.1 <= most(|round| round.1) * 11 / 10, "resident: {after:?}");
}

#[test]
fn many_small_filters_come_and_go() {
    level(30_000, &rounds(&Server::new(), 30_000, 6));
}

#[test]
#[ignore = "takes long: cargo test --test server a_million_small_filters -- --ignored --nocapture"]
fn a_million_small_filters() {
    level(1_000_000, &rounds(&Options::new().deadline(Duration::from_secs(600)).start(), 1_000_000, 6));
}
