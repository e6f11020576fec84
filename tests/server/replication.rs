//! What a primary sends, and that its replicas end with the same bits.

use redis::Value;

use crate::harness::records::{self, Filter, Layer};
use crate::harness::{
    Filters, Options, Server, Stream, add, array, error, found, int, ints, items, ok, shown, version,
};
use crate::{needs, run};

/// The two ways of sending the add of a single item.
fn add_of(request: &str, key: &str, item: &str) -> bool {
    request == format!("BF.ADD {key} {item}") || request == format!("BF.MADD {key} {item}")
}

const CREATED: &str = "BF.LOADCHUNK k 1 <filter layer bits end>";

fn sent(stream: &mut Stream, server: &Server) -> Vec<String> {
    shown(&stream.until_now(&mut server.client()))
}

#[test]
fn a_creation_is_sent_as_records() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    ok(run!(c, "BF.RESERVE", "k", "0.01", 100, "EXPANSION", 4));
    assert_eq!(sent(&mut stream, &server), [CREATED]);
    run!(c, "DEL", "k");
    run!(c, "BF.ADD", "k", "a");
    assert_eq!(sent(&mut stream, &server), ["DEL k", CREATED, "BF.ADD k a"]);
    run!(c, "DEL", "k");
    run!(c, "BF.MADD", "k", "a", "b");
    assert_eq!(sent(&mut stream, &server), ["DEL k", CREATED, "BF.MADD k a b"]);
}

#[test]
fn f32_only_what_changed_is_sent() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 100));
    for _ in 0..101 {
        run!(c, "BF.ADD", "k", "a");
    }
    assert_eq!(sent(&mut stream, &server), [CREATED, "BF.ADD k a"]);
    run!(c, "BF.MADD", "k", "a", "a");
    run!(c, "BF.EXISTS", "k", "b");
    run!(c, "BF.RESERVE", "k", "0.01", 100);
    run!(c, "BF.RESERVE", "wrong", "2", 100);
    assert_eq!(sent(&mut stream, &server), [""; 0]);
    run!(c, "BF.MADD", "k", "b", "c");
    assert_eq!(sent(&mut stream, &server), ["BF.MADD k b c"]);
    run!(c, "BF.MADD", "k", "a", "d", "b", "e", "d");
    assert_eq!(sent(&mut stream, &server), ["BF.MADD k d e"]);
    run!(c, "BF.MADD", "k", "a", "f");
    let requests = sent(&mut stream, &server);
    assert!(requests.len() == 1 && add_of(&requests[0], "k", "f"), "{requests:?}");
}

#[test]
fn growth_is_sent_as_a_layer_record_between_the_items() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 2, "EXPANSION", 2));
    assert_eq!(sent(&mut stream, &server), [CREATED]);
    run!(c, "BF.MADD", "k", "a", "b", "c", "d");
    // The second layer's position: after the filter record, the first layer and its only chunk.
    let requests = sent(&mut stream, &server);
    assert_eq!(requests, ["BF.MADD k a b", "BF.LOADCHUNK k 4 <layer>", "BF.MADD k c d"]);
    run!(c, "BF.MADD", "k", "e", "f");
    assert_eq!(sent(&mut stream, &server), ["BF.MADD k e f"]);
    run!(c, "BF.ADD", "k", "a");
    assert_eq!(sent(&mut stream, &server), [""; 0], "an item that is there makes no layer");
    run!(c, "BF.ADD", "k", "g");
    let requests = sent(&mut stream, &server);
    assert!(requests.len() == 2 && requests[0] == "BF.LOADCHUNK k 6 <layer>", "{requests:?}");
    assert!(add_of(&requests[1], "k", "g"), "{requests:?}");
}

#[test]
fn f32_what_a_full_filter_refused_is_not_sent() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    ok(run!(c, "BF.RESERVE", "k", "1e-9", 2, "NONSCALING"));
    run!(c, "BF.MADD", "k", "a", "b", "c");
    assert_eq!(sent(&mut stream, &server), [CREATED, "BF.MADD k a b"]);
    run!(c, "BF.MADD", "k", "a", "d");
    run!(c, "BF.ADD", "k", "d");
    assert_eq!(sent(&mut stream, &server), [""; 0]);
}

#[test]
fn scripts_and_transactions_send_the_same() {
    let server = Server::new();
    let (mut c, mut stream) = (server.client(), server.stream());
    let script = "redis.call('BF.ADD', KEYS[1], 'a'); redis.call('BF.ADD', KEYS[1], 'a'); \
                  return redis.call('BF.MADD', KEYS[1], 'a', 'b', 'c')";
    assert_eq!(ints(run!(c, "EVAL", script, 1, "k")), [0, 1, 1]);
    assert_eq!(sent(&mut stream, &server), [CREATED, "BF.ADD k a", "BF.MADD k b c"]);
    ok(run!(c, "MULTI"));
    run!(c, "BF.ADD", "k", "a");
    run!(c, "BF.ADD", "k", "d");
    assert_eq!(ints(run!(c, "EXEC")), [0, 1]);
    assert_eq!(sent(&mut stream, &server), ["BF.ADD k d"]);
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

#[test]
fn everything_that_is_done_reaches_a_replica() {
    let (primary, replica) = (Server::new(), Server::new());
    replica.follow(&primary);
    let mut c = primary.client();
    let filters = Filters::make(&mut c);
    run!(c, "BF.ADD", "a", "x");
    run!(c, "COPY", "a", "b");
    run!(c, "BF.ADD", "b", "y");
    ok(run!(c, "RENAME", "a", "c"));
    replica.catch_up(&primary);
    let mut r = replica.client();
    filters.check(&mut r);
    assert_eq!(ints(run!(r, "BF.MEXISTS", "b", "x", "y")), [1, 1]);
    for key in ["b", "c"] {
        assert_eq!(r.digest(key), c.digest(key));
    }
    assert!(error(run!(r, "BF.ADD", "b", "z")).starts_with("READONLY"));
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
    assert_eq!(sent(&mut stream, &server), ["BF.LOADCHUNK k 1 <filter>"]);
    run!(c, "BF.LOADCHUNK", "k", 1, "refused");
    ok(run!(c, "BF.LOADCHUNK", "k", 2, Layer::DEFAULT.record().bytes()));
    ok(run!(c, "BF.LOADCHUNK", "k", 2, Layer::DEFAULT.record().bytes()));
    ok(run!(c, "BF.LOADCHUNK", "k", 3, records::bits(0, 0, 1, &[(0, &[7])]).bytes()));
    ok(run!(c, "BF.LOADCHUNK", "k", 3, records::bits(0, 0, 1, &[(0, &[7])]).bytes()));
    let requests = sent(&mut stream, &server);
    assert_eq!(requests, ["BF.LOADCHUNK k 2 <layer>", "BF.LOADCHUNK k 3 <bits>"]);
}
