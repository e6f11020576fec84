//! Redis Cluster: the key of a command decides where it goes, and nothing else in it.

use redis::Value;

use crate::harness::cluster::{node, slot, text};
use crate::harness::{Client, Options, Server, add, array, bytes, error, found, int, items, ok, strings, version};
use crate::{needs, run};

/// Every command, with the key `key` and other words that are keys of other slots.
fn calls(key: &str) -> [Vec<&str>; 12] {
    [
        vec!["BF.RESERVE", key, "0.01", "100"],
        vec!["BF.ADD", key, "a"],
        vec!["BF.MADD", key, "a", "b", "c"],
        vec!["BF.INSERT", key, "ITEMS", "a", "b", "c"],
        vec!["BF.EXISTS", key, "a"],
        vec!["BF.MEXISTS", key, "a", "b", "c"],
        vec!["BF.INFO", key],
        vec!["BF.CARD", key],
        vec!["BF.STATS", key],
        vec!["BF.DEBUG", key],
        vec!["BF.SCANDUMP", key, "0"],
        vec!["BF.LOADCHUNK", key, "2", "a"],
    ]
}

/// Two nodes that know each other: the slot of `k` is the first one's, that of `elsewhere` the second's.
fn cluster() -> (Server, Server) {
    let (here, there) = (node(Options::new()), node(Options::new()));
    let (mut c, mut d) = (here.client(), there.client());
    let (own, other) = (slot(&mut c, "k"), slot(&mut c, "elsewhere"));
    // One that stays: a node that gives away its last slot turns itself into a replica of the one that took it.
    let spare = slot(&mut c, "spare");
    ok(run!(c, "CLUSTER", "ADDSLOTS", own, spare));
    ok(run!(d, "CLUSTER", "ADDSLOTS", other));
    ok(run!(c, "CLUSTER", "MEET", "127.0.0.1", there.port()));
    let told = |c: &mut Client| {
        let text = text(run!(c, "CLUSTER", "INFO"));
        text.contains("cluster_state:ok") && text.contains("cluster_slots_assigned:3")
    };
    here.until("each node knows the other's slot", || told(&mut c) && told(&mut d));
    (here, there)
}

#[test]
fn commands_go_where_their_key_is() {
    let (here, there) = cluster();
    let mut c = here.client();
    let other = slot(&mut c, "elsewhere");
    for call in calls("elsewhere") {
        let text = error(run!(c, &call));
        assert_eq!(text, format!("MOVED {other} 127.0.0.1:{}", there.port()), "{call:?}");
    }
    for call in calls("k") {
        let reply = run!(c, &call);
        assert!(call[0] == "BF.LOADCHUNK" || !matches!(reply, Value::ServerError(_)), "{call:?}: {reply:?}");
        assert_eq!(strings(run!(c, "COMMAND", "GETKEYS", &call)), ["k"]);
    }
    // Under a slot of nobody there is an error of the cluster, and no key.
    assert!(error(run!(c, "BF.ADD", "nowhere", "a")).starts_with("CLUSTERDOWN "));
}

/// A filter of several layers in the first node; its digest.
fn fill(c: &mut Client) -> String {
    add(c, "k", &items(0..20_000));
    c.digest("k")
}

#[track_caller]
fn moved(c: &mut Client, d: &mut Client, digest: &str) {
    assert_eq!(d.digest("k"), digest);
    assert_eq!(found(d, "k", &items(0..20_000)), 20_000);
    assert!(error(run!(c, "BF.EXISTS", "k", "a")).starts_with("MOVED "));
}

#[test]
fn a_slot_is_moved_key_by_key() {
    let (here, there) = cluster();
    let (mut c, mut d) = (here.client(), there.client());
    let digest = fill(&mut c);
    let own = slot(&mut c, "k");
    let (from, to) = (text(run!(c, "CLUSTER", "MYID")), text(run!(d, "CLUSTER", "MYID")));
    ok(run!(d, "CLUSTER", "SETSLOT", own, "IMPORTING", &from));
    ok(run!(c, "CLUSTER", "SETSLOT", own, "MIGRATING", &to));
    ok(run!(c, "MIGRATE", "127.0.0.1", there.port(), "k", 0, 5000));
    ok(run!(d, "CLUSTER", "SETSLOT", own, "NODE", &to));
    ok(run!(c, "CLUSTER", "SETSLOT", own, "NODE", &to));
    moved(&mut c, &mut d, &digest);
}

/// As the docs have it for filters that are too large for MIGRATE.
#[test]
fn a_filter_too_large_for_migrate_is_moved_record_by_record() {
    let (here, there) = cluster();
    let (mut c, mut d) = (here.client(), there.client());
    // The least that a server takes; a record is no longer.
    ok(run!(d, "CONFIG", "SET", "proto-max-bulk-len", 1 << 20));
    ok(run!(c, "BF.RESERVE", "k", "0.001", 1_000_000));
    add(&mut c, "k", &items(0..100_000));
    let digest = c.digest("k");
    let own = slot(&mut c, "k");
    let (from, to) = (text(run!(c, "CLUSTER", "MYID")), text(run!(d, "CLUSTER", "MYID")));
    ok(run!(d, "CLUSTER", "SETSLOT", own, "IMPORTING", &from));
    ok(run!(c, "CLUSTER", "SETSLOT", own, "MIGRATING", &to));
    // IOERR, or on some servers what the other one said of it.
    error(run!(c, "MIGRATE", "127.0.0.1", there.port(), "k", 0, 5000));
    assert_eq!(c.digest("k"), digest);
    let mut iterator = 0;
    loop {
        let mut pair = array(run!(c, "BF.SCANDUMP", "k", iterator));
        let record = bytes(pair.pop().expect("iterator and record"));
        iterator = int(pair.pop().expect("iterator and record"));
        if iterator == 0 {
            break;
        }
        ok(run!(d, "ASKING"));
        ok(run!(d, "BF.LOADCHUNK", "k", iterator, record));
    }
    assert_eq!(int(run!(c, "DEL", "k")), 1);
    ok(run!(d, "CLUSTER", "SETSLOT", own, "NODE", &to));
    ok(run!(c, "CLUSTER", "SETSLOT", own, "NODE", &to));
    assert_eq!(d.digest("k"), digest);
    assert_eq!(found(&mut d, "k", &items(0..100_000)), 100_000);
}

#[test]
fn a_slot_is_moved_at_once() {
    needs!(version().valkey && version().number >= (9, 0, 0), "CLUSTER MIGRATESLOTS, of Valkey 9");
    let (here, there) = cluster();
    let (mut c, mut d) = (here.client(), there.client());
    let digest = fill(&mut c);
    let (own, to) = (slot(&mut c, "k"), text(run!(d, "CLUSTER", "MYID")));
    ok(run!(c, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", own, own, "NODE", &to));
    there.until("the slot has moved", || !matches!(run!(d, "BF.CARD", "k"), Value::ServerError(_)));
    there.until("the other node knows", || matches!(run!(c, "BF.CARD", "k"), Value::ServerError(_)));
    moved(&mut c, &mut d, &digest);
}
