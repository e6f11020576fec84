//! What a primary sends, and that its replicas end with the same bits.

use std::process::Command;

use redis::Value;

use crate::harness::records::{self, Filter, Layer};
use crate::harness::{
    Client, Filters, Options, Primary, Server, add, array, bytes, error, found, int, ints, items, ok, shown, version,
};
use crate::{needs, run};

/// The two ways of sending the add of a single item.
fn add_of(request: &str, key: &str, item: &str) -> bool {
    request == format!("BF.ADD {key} {item}") || request == format!("BF.MADD {key} {item}")
}

const CREATED: &str = "BF.LOADCHUNK k 1 <filter layer bits end>";

#[test]
fn a_creation_is_sent_as_records() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    ok(run!(c, "BF.RESERVE", "k", "0.01", 100, "EXPANSION", 4));
    assert_eq!(stream.shown(&server), [CREATED]);
    run!(c, "DEL", "k");
    run!(c, "BF.ADD", "k", "a");
    assert_eq!(stream.shown(&server), ["DEL k", CREATED, "BF.ADD k a"]);
    run!(c, "DEL", "k");
    run!(c, "BF.MADD", "k", "a", "b");
    assert_eq!(stream.shown(&server), ["DEL k", CREATED, "BF.MADD k a b"]);
}

#[test]
fn f32_only_what_changed_is_sent() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 100));
    for _ in 0..101 {
        run!(c, "BF.ADD", "k", "a");
    }
    assert_eq!(stream.shown(&server), [CREATED, "BF.ADD k a"]);
    run!(c, "BF.MADD", "k", "a", "a");
    run!(c, "BF.EXISTS", "k", "b");
    run!(c, "BF.RESERVE", "k", "0.01", 100);
    run!(c, "BF.RESERVE", "wrong", "2", 100);
    assert_eq!(stream.shown(&server), [""; 0]);
    run!(c, "BF.MADD", "k", "b", "c");
    assert_eq!(stream.shown(&server), ["BF.MADD k b c"]);
    run!(c, "BF.MADD", "k", "a", "d", "b", "e", "d");
    assert_eq!(stream.shown(&server), ["BF.MADD k d e"]);
    run!(c, "BF.MADD", "k", "a", "f");
    let requests = stream.shown(&server);
    assert!(requests.len() == 1 && add_of(&requests[0], "k", "f"), "{requests:?}");
}

#[test]
fn growth_is_sent_as_a_layer_record_between_the_items() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 2, "EXPANSION", 2));
    assert_eq!(stream.shown(&server), [CREATED]);
    run!(c, "BF.MADD", "k", "a", "b", "c", "d");
    // The second layer's position: after the filter record, the first layer and its only chunk.
    let requests = stream.shown(&server);
    assert_eq!(requests, ["BF.MADD k a b", "BF.LOADCHUNK k 4 <layer>", "BF.MADD k c d"]);
    run!(c, "BF.MADD", "k", "e", "f");
    assert_eq!(stream.shown(&server), ["BF.MADD k e f"]);
    run!(c, "BF.ADD", "k", "a");
    assert_eq!(stream.shown(&server), [""; 0], "an item that is there makes no layer");
    run!(c, "BF.ADD", "k", "g");
    let requests = stream.shown(&server);
    assert!(requests.len() == 2 && requests[0] == "BF.LOADCHUNK k 6 <layer>", "{requests:?}");
    assert!(add_of(&requests[1], "k", "g"), "{requests:?}");
}

#[test]
fn f32_what_a_full_filter_refused_is_not_sent() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 2, "NONSCALING"));
    run!(c, "BF.MADD", "k", "a", "b", "c");
    assert_eq!(stream.shown(&server), [CREATED, "BF.MADD k a b"]);
    run!(c, "BF.MADD", "k", "a", "d");
    run!(c, "BF.ADD", "k", "d");
    assert_eq!(stream.shown(&server), [""; 0]);
}

#[test]
fn scripts_and_transactions_send_the_same() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    let script = "redis.call('BF.ADD', KEYS[1], 'a'); redis.call('BF.ADD', KEYS[1], 'a'); \
                  return redis.call('BF.MADD', KEYS[1], 'a', 'b', 'c')";
    assert_eq!(ints(run!(c, "EVAL", script, 1, "k")), [0, 1, 1]);
    assert_eq!(stream.shown(&server), [CREATED, "BF.ADD k a", "BF.MADD k b c"]);
    ok(run!(c, "MULTI"));
    run!(c, "BF.ADD", "k", "a");
    run!(c, "BF.ADD", "k", "d");
    assert_eq!(ints(run!(c, "EXEC")), [0, 1]);
    assert_eq!(stream.shown(&server), ["BF.ADD k d"]);
}

#[test]
fn a_full_synchronisation_brings_everything() {
    for diskless in ["no", "yes"] {
        let options = |load| {
            let options = Options::new().config("repl-diskless-sync", diskless).config("repl-diskless-sync-delay", "0");
            options.config("repl-diskless-load", load)
        };
        let (primary, replica) = (options("disabled").start(), options("swapdb").start());
        let filters = Filters::make(&mut primary.client());
        replica.follow(&primary);
        filters.check(&mut replica.client());
    }
}

/// A replica that ends where a command of its primary's is an error, on servers that can do so.
fn strict() -> Options {
    if version().has(7, 0) {
        Options::new().config("propagation-error-behavior", "panic-on-replicas")
    } else {
        Options::new()
    }
}

/// All that can be done to keys with filters. What is left: `b` … `moved`.
fn everything(c: &mut Client, elsewhere: &Server) {
    run!(c, "BF.ADD", "a", "x");
    run!(c, "COPY", "a", "b");
    run!(c, "BF.ADD", "b", "y");
    ok(run!(c, "RENAME", "a", "c"));
    run!(c, "BF.MADD", "b", items(0..300));
    run!(c, "BF.INSERT", "d", "ERROR", "0.001", "ITEMS", items(0..200));
    assert_eq!(int(run!(c, "EXPIRE", "d", 100_000)), 1);
    let dump = bytes(run!(c, "DUMP", "b"));
    ok(run!(c, "RESTORE", "e", 0, &dump));
    ok(run!(c, "RESTORE", "e", 0, dump, "REPLACE"));
    run!(c, "BF.ADD", "e", "more");
    assert_eq!(int(run!(c, "COPY", "b", "away", "DB", 1)), 1);
    ok(run!(c, "SWAPDB", 0, 1));
    assert_eq!(int(run!(c, "MOVE", "away", 1)), 1);
    ok(run!(c, "SWAPDB", 0, 1));
    assert_eq!(int(run!(c, "BF.ADD", "away", "z")), 1);
    run!(c, "BF.ADD", "gone", "x");
    assert_eq!(int(run!(c, "PEXPIRE", "gone", 1)), 1);
    elsewhere.until("the key has expired", || int(run!(c, "EXISTS", "gone")) == 0);
    run!(c, "BF.ADD", "migrated", "x");
    ok(run!(c, "MIGRATE", "127.0.0.1", elsewhere.port(), "migrated", 0, 5000));
    ok(run!(c, "MIGRATE", "127.0.0.1", elsewhere.port(), "c", 0, 5000, "COPY"));
    ok(run!(c, "MULTI"));
    run!(c, "BF.RESERVE", "f", "1e-9", 2, "EXPANSION", 2);
    run!(c, "BF.MADD", "f", items(0..5));
    run!(c, "BF.ADD", "f", "item1");
    run!(c, "EXEC");
    let script = "redis.call('BF.ADD', KEYS[1], ARGV[1]); redis.call('COPY', KEYS[1], KEYS[2]); \
                  return redis.call('BF.ADD', KEYS[2], ARGV[2])";
    assert_eq!(int(run!(c, "EVAL", script, 2, "g", "h", "one", "two")), 1);
    if version().has(7, 0) {
        let library = "#!lua name=l\nredis.register_function('fill', function(keys, args) \
                       return redis.call('BF.MADD', keys[1], unpack(args)) end)";
        run!(c, "FUNCTION", "LOAD", library);
        assert_eq!(ints(run!(c, "FCALL", "fill", 1, "i", items(0..150))).len(), 150);
    }
    // Refused, or without effect.
    run!(c, "BF.RESERVE", "b", "0.01", 100);
    run!(c, "BF.RESERVE", "never", "2", 100);
    run!(c, "BF.LOADCHUNK", "never", 1, "x");
    run!(c, "BF.MADD", "f", items(0..5));
    run!(c, "UNLINK", "h");
}

const LEFT: [&str; 7] = ["b", "c", "d", "e", "f", "g", "away"];

#[test]
fn everything_that_is_done_reaches_a_replica() {
    let (primary, replica, elsewhere) = (Server::new(), strict().start(), Server::new());
    replica.follow(&primary);
    let mut c = primary.client();
    let filters = Filters::make(&mut c);
    everything(&mut c, &elsewhere);
    replica.catch_up(&primary);
    let mut r = replica.client();
    filters.check(&mut r);
    assert_eq!(ints(run!(r, "BF.MEXISTS", "b", "x", "y")), [1, 1]);
    for key in LEFT {
        assert_eq!(r.digest(key), c.digest(key), "{key}");
        assert_eq!(int(run!(r, "TTL", key)) > 0, key == "d", "{key}");
    }
    assert_eq!(elsewhere.client().digest("c"), c.digest("c"));
    assert_eq!(int(run!(r, "DBSIZE")), int(run!(c, "DBSIZE")));
    assert!(error(run!(r, "BF.ADD", "b", "z")).starts_with("READONLY"));
    assert!(replica.alive());
}

#[test]
fn the_stream_and_the_aof_hold_the_same_commands() {
    let options = || Options::new().config("appendonly", "yes").config("appendfsync", "always");
    let (server, elsewhere) = (options().config("aof-use-rdb-preamble", "no").start(), Server::new());
    let (mut c, mut stream) = (server.client(), server.stream());
    everything(&mut c, &elsewhere);
    // 6.2 writes times to live into the AOF in another way.
    let but_times = |mut requests: Vec<String>| {
        requests.retain(|request| !request.contains("EXPIRE"));
        requests
    };
    let sent = but_times(stream.shown(&server));
    let mut written = but_times(shown(&server.aof()));
    assert_eq!(written.pop().as_deref(), Some("SET mark-in-the-stream "));
    assert_eq!(written, sent);
    // Of what was done several times or in vain there is one trace.
    assert_eq!(sent.iter().filter(|request| request.contains("never")).count(), 0, "{sent:?}");
    assert_eq!(sent.iter().filter(|request| request.starts_with("BF.MADD f ")).count(), 2, "before and after growth");
}

#[test]
fn a_broken_link_is_mended_by_what_was_missed() {
    let (primary, replica) = (Server::new(), strict().start());
    replica.follow(&primary);
    let mut c = primary.client();
    let all = items(0..3000);
    add(&mut c, "k", &all[..1000]);
    for part in [&all[1000..2000], &all[2000..]] {
        assert_eq!(int(run!(c, "CLIENT", "KILL", "TYPE", "replica")), 1);
        add(&mut c, "k", part);
        replica.catch_up(&primary);
    }
    assert_eq!((c.info("sync_full"), c.info("sync_partial_ok")), ("1".into(), "2".into()));
    let mut r = replica.client();
    assert_eq!(found(&mut r, "k", &all), 3000);
    assert_eq!(r.digest("k"), c.digest("k"));
}

#[test]
fn a_chain_of_replicas_has_the_same_filters_and_any_can_be_promoted() {
    let mut first = Server::new();
    let (second, third) = (strict().start(), strict().start());
    second.follow(&first);
    third.follow(&second);
    let mut c = first.client();
    let filters = Filters::make(&mut c);
    everything(&mut c, &Server::new());
    second.catch_up(&first);
    third.catch_up(&second);
    let mut r = third.client();
    filters.check(&mut r);
    for key in LEFT {
        assert_eq!(r.digest(key), c.digest(key), "{key}");
    }
    first.kill();
    ok(run!(second.client(), "REPLICAOF", "NO", "ONE"));
    add(&mut second.client(), "default", &items(0..500));
    third.catch_up(&second);
    assert_eq!(found(&mut r, "default", &items(0..500)), 500);
    assert_eq!(r.digest("default"), second.client().digest("default"));
}

#[test]
fn a_replica_answers_from_its_old_filters_while_it_loads_new_ones() {
    needs!(version().has(7, 0), "asynchronous loading, of 7.0");
    let primary = Options::new()
        .config("repl-diskless-sync", "yes")
        .config("repl-diskless-sync-delay", "0")
        .config("repl-backlog-size", "16kb")
        .config("client-output-buffer-limit", "replica 64kb 0 0")
        .start();
    let swapping = Options::new().config("repl-diskless-load", "swapdb");
    // It looks after clients each time that it has loaded so much.
    let replica = swapping.config("loading-process-events-interval-bytes", "1024").start();
    let mut c = primary.client();
    for i in 0..50 {
        run!(c, "BF.ADD", format!("k{i}"), "old");
    }
    replica.follow(&primary);
    let mut r = replica.client();
    // It sleeps until the primary gives it up, and too much is written for a partial synchronisation.
    let pid = r.info("process_id");
    signal("-STOP", &pid);
    run!(c, "CLIENT", "KILL", "TYPE", "replica");
    for i in 0..50 {
        run!(c, "BF.MADD", format!("k{i}"), items(0..500));
    }
    ok(run!(c, "CONFIG", "SET", "rdb-key-save-delay", 40_000));
    signal("-CONT", &pid);
    replica.until("it loads", || r.info("async_loading") == "1");
    let mut calls: Vec<redis::Cmd> =
        (0..50).map(|i| redis::cmd("BF.EXISTS").arg(format!("k{i}")).arg("old").to_owned()).collect();
    calls.push(redis::cmd("INFO").arg("persistence").to_owned());
    let mut replies = r.pipeline(&calls);
    let info = String::from_utf8(bytes(replies.pop().expect("the last reply"))).expect("text");
    assert!(info.contains("async_loading:1"), "it still loads: {info}");
    assert!(replies.into_iter().all(|reply| int(reply) == 1));
    replica.catch_up(&primary);
    for i in 0..50 {
        let key = format!("k{i}");
        assert_eq!(found(&mut r, &key, &items(0..500)), 500);
        assert_eq!(r.digest(&key), c.digest(&key));
    }
}

fn signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args([name, pid]).status().expect("kill runs").success());
}

/// What a replica makes of a primary of a later release.
#[test]
fn records_of_a_later_version_are_refused_by_a_replica_and_its_log_says_so() {
    let empty = {
        let server = Server::new();
        ok(run!(server.client(), "SAVE"));
        std::fs::read(server.directory().join("dump.rdb")).expect("the RDB file")
    };
    let later = records::Record { version: 2, ..Filter::DEFAULT.record() }.bytes();
    let replica = Server::new();
    let primary = Primary::serve(
        empty,
        &[
            redis::cmd("BF.LOADCHUNK").arg("k").arg(1).arg(later),
            redis::cmd("BF.LOADCHUNK").arg("now").arg(1).arg(Filter::DEFAULT.record().bytes()),
        ],
    );
    let mut r = replica.client();
    ok(run!(r, "REPLICAOF", "127.0.0.1", primary.port()));
    replica.until("the second command has come", || int(run!(r, "EXISTS", "now")) == 1);
    assert_eq!(int(run!(r, "EXISTS", "k")), 0);
    let log = replica.log();
    assert!(log.contains("records of version 2 (it reads version 1)"), "{log}");
    assert!(replica.alive());
}

#[test]
fn a_full_synchronisation_with_a_later_version_is_refused_and_the_log_says_so() {
    let server = Options::new().config("rdbcompression", "no").config("rdbchecksum", "no").start();
    let mut c = server.client();
    run!(c, "BF.ADD", "k", "x");
    ok(run!(c, "SAVE"));
    let mut rdb = std::fs::read(server.directory().join("dump.rdb")).expect("the RDB file");
    let record = records::find(&rdb).remove(0);
    rdb[record.start + 8] = 2;
    records::mend(&mut rdb[record]);
    let replica = Server::new();
    let primary = Primary::serve(rdb, &[]);
    ok(run!(replica.client(), "REPLICAOF", "127.0.0.1", primary.port()));
    replica.until("the log says why", || replica.log().contains("records of version 2 (it reads version 1)"));
    // Some servers end then, as for any file that they cannot load.
    let reply = Client::connect(replica.port(), redis::ProtocolVersion::RESP2)
        .and_then(|mut r| r.try_run(redis::cmd("BF.EXISTS").arg("k").arg("x")));
    assert!(!matches!(reply, Ok(Value::Int(1))), "{reply:?}");
}

#[test]
fn f30_a_replica_with_other_defaults_has_the_same_filters() {
    let primary = Server::new();
    let replica = Options::new().module_arguments("ERROR_RATE 0.2 INITIAL_SIZE 7 EXPANSION 5").start();
    replica.follow(&primary);
    let mut c = primary.client();
    run!(c, "BF.ADD", "one", "a");
    add(&mut c, "grown", &items(0..5000));
    replica.catch_up(&primary);
    let mut r = replica.client();
    assert_eq!(r.digest("one"), c.digest("one"));
    assert_eq!(r.digest("grown"), c.digest("grown"));
    assert_eq!(found(&mut r, "grown", &items(0..5000)), 5000);
}

#[test]
fn f31_a_replica_that_panics_on_errors_sees_none() {
    needs!(version().has(7, 0), "propagation-error-behavior, of 7.0");
    let primary = Server::new();
    let replica = Options::new().config("propagation-error-behavior", "panic-on-replicas").start();
    replica.follow(&primary);
    let mut c = primary.client();
    ok(run!(c, "BF.RESERVE", "ns", "0.01", 2, "NONSCALING"));
    let replies = array(run!(c, "BF.MADD", "ns", "a", "b", "c"));
    assert_eq!(replies[..2], [Value::Int(1), Value::Int(1)]);
    assert!(error(replies[2].clone()).starts_with("ERR non scaling filter is full"));
    run!(c, "BF.RESERVE", "ns", "0.01", 2);
    run!(c, "BF.LOADCHUNK", "ns", 1, "x");
    add(&mut c, "grown", &items(0..1000));
    replica.catch_up(&primary);
    let mut r = replica.client();
    assert_eq!(ints(run!(r, "BF.MEXISTS", "ns", "a", "b", "c")), [1, 1, 0]);
    assert_eq!(r.digest("ns"), c.digest("ns"));
    assert_eq!(r.digest("grown"), c.digest("grown"));
    assert!(replica.alive());
}

#[test]
fn a_replica_never_refuses_an_add_of_its_primary() {
    let primary = Server::new();
    let replica = Options::new().config("replica-read-only", "no").start();
    let mut c = primary.client();
    for (key, scaling) in [("ns", "NONSCALING"), ("zero", "EXPANSION")] {
        let mut call = redis::cmd("BF.RESERVE");
        call.arg(key).arg("1e-9").arg(3).arg(scaling);
        ok(c.run(if scaling == "EXPANSION" { call.arg(1) } else { &call }));
    }
    replica.follow(&primary);
    let mut r = replica.client();
    // The replica's own items take the room that the primary believes to have.
    for key in ["ns", "zero"] {
        assert_eq!(ints(run!(r, "BF.MADD", key, "x", "y", "z")), [1, 1, 1]);
        assert_eq!(ints(run!(c, "BF.MADD", key, "a", "b", "c")), [1, 1, 1]);
    }
    replica.catch_up(&primary);
    for key in ["ns", "zero"] {
        assert_eq!(ints(run!(r, "BF.MEXISTS", key, "a", "b", "c", "x", "y", "z")), [1; 6], "{key}");
    }
    // And when the primary then grows, its layer record finds one of that number there.
    assert_eq!(int(run!(c, "BF.ADD", "zero", "d")), 1);
    replica.catch_up(&primary);
    assert_eq!(ints(run!(r, "BF.MEXISTS", "zero", "a", "d", "z")), [1, 1, 1]);
    assert_eq!(r.info("master_link_status"), "up");
}

#[test]
fn a_promoted_replica_goes_on() {
    let (mut primary, replica) = (Server::new(), Server::new());
    replica.follow(&primary);
    let all = items(0..2000);
    add(&mut primary.client(), "k", &all[..1000]);
    replica.catch_up(&primary);
    primary.kill();
    let mut r = replica.client();
    ok(run!(r, "REPLICAOF", "NO", "ONE"));
    add(&mut r, "k", &all[1000..]);
    assert_eq!(found(&mut r, "k", &all), 2000);
    primary.start();
    primary.follow(&replica);
    assert_eq!(found(&mut primary.client(), "k", &all), 2000);
    assert_eq!(primary.client().digest("k"), r.digest("k"));
}

#[test]
fn loads_are_sent_on_unless_they_change_nothing() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    let filter = Filter::DEFAULT.record().bytes();
    ok(run!(c, "BF.LOADCHUNK", "k", 1, filter.as_slice()));
    ok(run!(c, "BF.LOADCHUNK", "k", 1, filter.as_slice()));
    assert_eq!(stream.shown(&server), ["BF.LOADCHUNK k 1 <filter>"]);
    run!(c, "BF.LOADCHUNK", "k", 1, "refused");
    ok(run!(c, "BF.LOADCHUNK", "k", 2, Layer::DEFAULT.record().bytes()));
    ok(run!(c, "BF.LOADCHUNK", "k", 2, Layer::DEFAULT.record().bytes()));
    ok(run!(c, "BF.LOADCHUNK", "k", 3, records::bits(0, 0, 1, &[(0, &[7])]).bytes()));
    ok(run!(c, "BF.LOADCHUNK", "k", 3, records::bits(0, 0, 1, &[(0, &[7])]).bytes()));
    let requests = stream.shown(&server);
    assert_eq!(requests, ["BF.LOADCHUNK k 2 <layer>", "BF.LOADCHUNK k 3 <bits>"]);
}
