//! A filter is a value like any other: it expires, moves, is copied, listed, measured and watched.

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use redis::Value;

use crate::harness::records::{self, Filter, Layer, Record};
use crate::harness::{Client, Filters, Options, Server, add, array, found, int, ints, items, ok, strings};
use crate::{needs, run};

#[test]
fn the_type_has_a_name_and_is_found_by_it() {
    let server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "k", "a");
    ok(run!(c, "SET", "s", "x"));
    assert_eq!(run!(c, "TYPE", "k"), Value::SimpleString("bloomgate".into()));
    let mut reply = array(run!(c, "SCAN", 0, "COUNT", 100, "TYPE", "bloomgate"));
    assert_eq!(strings(reply.remove(1)), ["k"]);
}

#[test]
fn keys_with_filters_expire_are_renamed_and_deleted() {
    let mut server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "a", "x");
    ok(run!(c, "RENAME", "a", "b"));
    assert_eq!(ints(run!(c, "BF.MEXISTS", "b", "x", "y")), [1, 0]);
    assert_eq!(int(run!(c, "BF.EXISTS", "a", "x")), 0);
    assert_eq!(int(run!(c, "DEL", "b")), 1);
    assert_eq!(int(run!(c, "BF.EXISTS", "b", "x")), 0);

    run!(c, "BF.ADD", "a", "x");
    assert_eq!(int(run!(c, "EXPIRE", "a", 1000)), 1);
    run!(c, "BF.ADD", "a", "y");
    assert!(int(run!(c, "TTL", "a")) > 0, "an add keeps the time to live");
    assert_eq!(int(run!(c, "PEXPIRE", "a", 20)), 1);
    server.until("the key has expired", || int(run!(c, "EXISTS", "a")) == 0);
    assert_eq!(int(run!(c, "BF.EXISTS", "a", "x")), 0);
    assert_eq!(int(run!(c, "BF.ADD", "a", "x")), 1, "a new filter");

    assert_eq!(int(run!(c, "UNLINK", "a")), 1);
    run!(c, "BF.ADD", "a", "x");
    ok(run!(c, "FLUSHALL"));
    assert_eq!(int(run!(c, "BF.EXISTS", "a", "x")), 0);
    run!(c, "BF.ADD", "a", "x");
    ok(run!(c, "FLUSHALL", "ASYNC"));
    assert_eq!(int(run!(c, "DBSIZE")), 0);
    run!(c, "BF.ADD", "a", "x");
    assert_eq!(int(run!(c, "MOVE", "a", 1)), 1);
    ok(run!(c, "SELECT", 1));
    assert_eq!(int(run!(c, "BF.EXISTS", "a", "x")), 1);
    drop(c);
    server.restart();
    let mut c = server.client();
    ok(run!(c, "SELECT", 1));
    assert_eq!(int(run!(c, "BF.EXISTS", "a", "x")), 1);
}

#[test]
fn databases_are_swapped_and_keys_go_from_one_to_another() {
    let server = Server::new();
    let mut c = server.client();
    let filters = Filters::make(&mut c);
    ok(run!(c, "SWAPDB", 0, 1));
    assert_eq!(int(run!(c, "DBSIZE")), 0);
    ok(run!(c, "SELECT", 1));
    filters.check(&mut c);
    for key in filters.keys() {
        assert_eq!(int(run!(c, "COPY", key, format!("2-{key}"), "DB", 2)), 1);
        assert_eq!(int(run!(c, "MOVE", key, 3)), 1);
    }
    assert_eq!(int(run!(c, "DBSIZE")), 0);
    ok(run!(c, "SELECT", 2));
    filters.check_under(&mut c, "2-");
    ok(run!(c, "SELECT", 3));
    filters.check(&mut c);
}

#[test]
fn object_knows_filters() {
    for (policy, question) in [("noeviction", "IDLETIME"), ("allkeys-lfu", "FREQ")] {
        let server = Options::new().config("maxmemory-policy", policy).start();
        let mut c = server.client();
        run!(c, "BF.ADD", "k", "a");
        assert_eq!(run!(c, "OBJECT", "ENCODING", "k"), Value::BulkString(b"raw".to_vec()));
        assert_eq!(int(run!(c, "OBJECT", "REFCOUNT", "k")), 1);
        assert!(int(run!(c, "OBJECT", question, "k")) >= 0);
        assert_eq!(int(run!(c, "BF.EXISTS", "k", "a")), 1);
    }
}

#[test]
fn eviction_takes_filters_whole_or_not_at_all() {
    let server = Options::new().config("maxmemory-policy", "allkeys-random").start();
    let mut c = server.client();
    // What is evicted is a change like another, so a replica has no more than its primary.
    let replica = Server::new();
    replica.follow(&server);
    let used: u64 = c.info("used_memory").parse().expect("a number");
    ok(run!(c, "CONFIG", "SET", "maxmemory", used + (4 << 20)));
    // About 125 KB each, three times what there is room for.
    let keys: Vec<String> = (0..100).map(|i| format!("k{i}")).collect();
    for key in &keys {
        ok(run!(c, "BF.RESERVE", key, "0.01", 100_000));
        add(&mut c, key, &items(0..2000));
    }
    assert!(c.info("evicted_keys").parse::<usize>().expect("a number") > 30);
    replica.catch_up(&server);
    let mut r = replica.client();
    let mut there = 0;
    for key in &keys {
        // All or nothing; an add that finds it gone in the middle makes another one, so what came last is always in.
        let left = int(run!(c, "EXISTS", key));
        assert_eq!(int(run!(r, "EXISTS", key)), left);
        if left == 1 {
            assert_eq!(found(&mut c, key, &items(1500..2000)), 500, "{key}");
            assert_eq!(r.digest(key), c.digest(key), "{key}");
            there += 1;
        }
    }
    assert!((1..70).contains(&there), "{there} of 100 are there");
}

#[test]
fn f42_a_copy_is_deep() {
    let server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "a", "x");
    assert_eq!(int(run!(c, "COPY", "a", "b")), 1);
    assert_eq!(c.digest("a"), c.digest("b"));
    assert_eq!(int(run!(c, "BF.ADD", "b", "y")), 1);
    assert_eq!(ints(run!(c, "BF.MEXISTS", "a", "x", "y")), [1, 0]);
    assert_eq!(ints(run!(c, "BF.MEXISTS", "b", "x", "y")), [1, 1]);
    assert_eq!(int(run!(c, "BF.ADD", "a", "z")), 1);
    assert_eq!(ints(run!(c, "BF.MEXISTS", "b", "z")), [0]);
    assert_eq!(int(run!(c, "DEL", "a")), 1);
    assert_eq!(ints(run!(c, "BF.MEXISTS", "b", "x", "y")), [1, 1]);
}

#[test]
fn f42_every_shape_can_be_copied() {
    let server = Server::new();
    let mut c = server.client();
    let filters = Filters::make(&mut c);
    for key in filters.keys() {
        assert_eq!(int(run!(c, "COPY", key, format!("copy-of-{key}"))), 1);
    }
    filters.check_under(&mut c, "copy-of-");
    for key in filters.keys() {
        assert_eq!(int(run!(c, "DEL", format!("copy-of-{key}"))), 1);
    }
    filters.check(&mut c);
}

#[test]
fn the_digest_tells_contents_apart_and_nothing_else() {
    let server = Server::new();
    let mut c = server.client();
    let empty = {
        ok(run!(c, "BF.RESERVE", "a", "0.01", 100));
        c.digest("a")
    };
    run!(c, "BF.MADD", "a", "x", "y");
    run!(c, "BF.MADD", "b", "y", "x", "x");
    assert_eq!(c.digest("a"), c.digest("b"), "the order of adds leaves no trace");
    assert_ne!(c.digest("a"), empty);
    run!(c, "BF.ADD", "b", "z");
    assert_ne!(c.digest("a"), c.digest("b"));
    ok(run!(c, "BF.RESERVE", "n", "0.01", 100, "NONSCALING"));
    assert_ne!(c.digest("n"), empty);
}

/// However the same items came, one by one or many at once, through growth, on whatever server.
#[test]
fn the_digest_is_that_of_the_adds_in_their_order() {
    let (one, other) = (Server::new(), Server::new());
    let (mut c, mut d) = (one.client(), other.client());
    for item in items(0..1500) {
        run!(c, "BF.ADD", "k", item);
    }
    add(&mut d, "k", &items(0..1500));
    run!(d, "BF.INSERT", "inserted", "ITEMS", items(0..1500));
    assert_eq!(d.digest("k"), c.digest("k"));
    assert_eq!(d.digest("inserted"), c.digest("k"));
}

#[test]
fn the_digest_sees_each_field_and_each_bit() {
    let server = Server::new();
    let mut c = server.client();
    let layer = Layer { k: 4, s: 2, lines: 130, ..Layer::DEFAULT };
    let of = |head: Record, layer: Layer, bits: &[u16], items: u64| {
        let bits: &[(u32, &[u16])] = if bits.is_empty() { &[] } else { &[(1, bits)] };
        records::joined(&[head, layer.record(), records::bits(0, 0, 3, bits), records::end(&[items])])
    };
    let whole = |filter: Filter, layer: Layer, bits: &[u16], items: u64| of(filter.record(), layer, bits, items);
    let keyed = |key: &[u8; 16]| {
        let mut head = Filter { flags: 4, ..Filter::DEFAULT }.record();
        head.body.extend(key);
        of(head, Layer { family: 2, ..layer }, &[1, 7, 9, 12], 1)
    };
    let filter = Filter::DEFAULT;
    let payloads = [
        whole(filter, layer, &[1, 7, 9, 12], 1),
        whole(filter, layer, &[1, 7, 9, 13], 1),
        whole(filter, layer, &[1, 7, 9], 1),
        whole(filter, layer, &[], 1),
        whole(filter, layer, &[1, 7, 9, 12], 2),
        whole(Filter { rate: 0.02, ..filter }, layer, &[1, 7, 9, 12], 1),
        whole(Filter { capacity: 101, ..filter }, layer, &[1, 7, 9, 12], 1),
        whole(Filter { expansion: 3, ..filter }, layer, &[1, 7, 9, 12], 1),
        whole(Filter { expansion: 0, flags: 1, ..filter }, layer, &[1, 7, 9, 12], 1),
        keyed(b"0123456789abcdef"),
        keyed(b"0123456789abcdeg"),
        whole(filter, Layer { k: 5, ..layer }, &[1, 7, 9, 12], 1),
        whole(filter, Layer { s: 1, ..layer }, &[1, 7, 9, 12], 1),
        whole(filter, Layer { lines: 131, ..layer }, &[1, 7, 9, 12], 1),
        whole(filter, Layer { capacity: 99, ..layer }, &[1, 7, 9, 12], 1),
        whole(filter, Layer { rate: 0.006, ..layer }, &[1, 7, 9, 12], 1),
    ];
    let digests: HashSet<String> = payloads
        .iter()
        .map(|payload| {
            ok(run!(c, "BF.LOADCHUNK", "k", 1, payload));
            let digest = c.digest("k");
            assert_eq!(int(run!(c, "DEL", "k")), 1);
            digest
        })
        .collect();
    assert_eq!(digests.len(), payloads.len(), "all differ");
}

#[test]
fn the_digest_sees_how_much_of_a_filter_has_come() {
    let server = Server::new();
    let mut c = server.client();
    let layer = Layer { lines: 130, ..Layer::DEFAULT };
    const END: i64 = (1 << 46) - 1;
    // Nothing is in any of these ranges.
    let records = [
        (1, Filter::DEFAULT.record()),
        (2, layer.record()),
        (3, records::bits(0, 0, 1, &[])),
        (4, records::bits(0, 1, 2, &[])),
        (5, records::bits(0, 2, 3, &[])),
        (END, records::end(&[0])),
    ];
    let digests: HashSet<String> = records
        .iter()
        .map(|(iterator, record)| {
            ok(run!(c, "BF.LOADCHUNK", "k", *iterator, record.bytes()));
            c.digest("k")
        })
        .collect();
    assert_eq!(digests.len(), records.len());
}

/// What happened to the key since the last call, as keyspace events say.
fn events(subscriber: &mut redis::PubSub, c: &mut Client) -> Vec<String> {
    assert_eq!(int(run!(c, "PUBLISH", "__keyspace@0__:k", "mark")), 1);
    let mut events = Vec::new();
    loop {
        let event: String = subscriber.get_message().expect("a message").get_payload().expect("text");
        if event == "mark" {
            return events;
        }
        events.push(event);
    }
}

#[test]
fn f41_events_tell_of_changes_and_of_nothing_else() {
    let server = Options::new().config("notify-keyspace-events", "KA").start();
    let mut c = server.client();
    let mut listener = server.client();
    let mut subscriber = listener.connection().as_pubsub();
    subscriber.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout can be set");
    subscriber.subscribe("__keyspace@0__:k").expect("a subscription");

    ok(run!(c, "BF.RESERVE", "k", "0.01", 3, "NONSCALING"));
    assert!(!events(&mut subscriber, &mut c).is_empty(), "a reserve is an event");
    run!(c, "BF.ADD", "k", "a");
    assert!(!events(&mut subscriber, &mut c).is_empty(), "an add is an event");
    run!(c, "BF.ADD", "k", "a");
    run!(c, "BF.MADD", "k", "a", "a");
    run!(c, "BF.MEXISTS", "k", "a", "b");
    run!(c, "BF.RESERVE", "k", "0.01", 3);
    assert_eq!(events(&mut subscriber, &mut c), [""; 0], "nothing changed");
    run!(c, "BF.MADD", "k", "a", "b");
    assert!(!events(&mut subscriber, &mut c).is_empty(), "one of the items was new");
    run!(c, "DEL", "k");
    assert_eq!(events(&mut subscriber, &mut c), ["del"]);
    run!(c, "BF.ADD", "k", "a");
    assert!(!events(&mut subscriber, &mut c).is_empty(), "an add that makes the key is an event");
}

#[test]
fn f32_watchers_are_disturbed_by_changes_only() {
    let server = Server::new();
    let mut c = server.client();
    let mut watcher = server.client();
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 2, "NONSCALING"));
    run!(c, "BF.ADD", "k", "a");
    let mut transaction = |c: &mut Client, call: &[&str]| {
        ok(run!(watcher, "WATCH", "k"));
        run!(c, call);
        ok(run!(watcher, "MULTI"));
        assert_eq!(run!(watcher, "PING"), Value::SimpleString("QUEUED".into()));
        run!(watcher, "EXEC") != Value::Nil
    };
    assert!(transaction(&mut c, &["BF.ADD", "k", "a"]), "nothing changed");
    assert!(transaction(&mut c, &["BF.MADD", "k", "a", "a"]), "nothing changed");
    assert!(transaction(&mut c, &["BF.EXISTS", "k", "b"]), "a question");
    assert!(!transaction(&mut c, &["BF.ADD", "k", "b"]), "an add");
    assert!(transaction(&mut c, &["BF.ADD", "k", "c"]), "refused: the filter is full");
    assert!(!transaction(&mut c, &["DEL", "k"]), "a deletion");
    assert!(!transaction(&mut c, &["BF.RESERVE", "k", "0.01", "100"]), "a creation");
    assert!(!transaction(&mut c, &["BF.MADD", "k", "a"]), "an add");
}

#[test]
fn f32_only_what_changed_counts_as_a_change() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.01", 100));
    assert_eq!(c.changes(), 1);
    for _ in 0..101 {
        run!(c, "BF.ADD", "k", "a");
    }
    assert_eq!(c.changes(), 2, "one of 101 adds");
    run!(c, "BF.MADD", "k", "a", "a");
    run!(c, "BF.MEXISTS", "k", "a", "b");
    assert_eq!(c.changes(), 2);
    run!(c, "BF.MADD", "k", "a", "b", "c");
    assert_eq!(c.changes(), 3, "two new items are one call");
    run!(c, "BF.ADD", "new", "a");
    assert_eq!(c.changes(), 5, "the filter, and its item");
    ok(run!(c, "BF.RESERVE", "full", "0.01", 1, "NONSCALING"));
    run!(c, "BF.ADD", "full", "a");
    assert_eq!(c.changes(), 7);
    run!(c, "BF.ADD", "full", "b");
    run!(c, "BF.MADD", "full", "b", "c");
    assert_eq!(c.changes(), 7, "refused");
}

#[test]
fn redis_cli_lists_filters_by_memory() {
    let cli = Command::new("redis-cli").arg("--version").output();
    needs!(cli.is_ok(), "redis-cli in the PATH");
    let server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "small", "a");
    ok(run!(c, "BF.RESERVE", "big", "0.01", 100_000));
    add(&mut c, "big", &items(0..1000));
    let output = Command::new("redis-cli")
        .args(["-p", &server.port().to_string(), "--memkeys"])
        .output()
        .expect("redis-cli runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let summary = text.lines().find(|line| line.starts_with("Biggest") && line.contains("bloomgate"));
    assert!(summary.is_some_and(|line| line.contains("big")), "{text}");
    assert_eq!(found(&mut c, "big", &items(0..1000)), 1000);
}

#[test]
fn f44_unlink_and_async_flush_free_a_filter_in_the_background() {
    let server = Server::new();
    let mut c = server.client();
    // 2,340 chunks: far above what a server frees at once.
    ok(run!(c, "BF.RESERVE", "k", "0.01", 8_000_000));
    add(&mut c, "k", &items(0..50_000));
    let before: u64 = c.info("lazyfreed_objects").parse().expect("a number");
    assert_eq!(int(run!(c, "UNLINK", "k")), 1);
    server.until("the filter was freed in the background", || {
        c.info("lazyfreed_objects").parse::<u64>().expect("a number") == before + 1
            && c.info("lazyfree_pending_objects") == "0"
    });
}
