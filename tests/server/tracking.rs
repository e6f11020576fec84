//! CLIENT TRACKING: who cached an answer is told when an add may have changed it, and only then.

use std::time::Duration;

use redis::PubSub;

use crate::harness::{Client, Server, int, ok};
use crate::run;

const INVALIDATE: &str = "__redis__:invalidate";

/// Keys that were called out of date since the last call.
fn invalidated(subscriber: &mut PubSub<'_>, c: &mut Client) -> Vec<String> {
    assert_eq!(int(run!(c, "PUBLISH", "mark", "")), 1);
    let mut keys = Vec::new();
    loop {
        let message = subscriber.get_message().expect("a message");
        if message.get_channel_name() == "mark" {
            return keys;
        }
        keys.extend(message.get_payload::<Vec<String>>().expect("keys"));
    }
}

#[test]
fn an_add_that_changed_something_invalidates_what_was_read() {
    let server = Server::new();
    let (mut c, mut reader, mut listener) = (server.client(), server.client(), server.client());
    let id = int(run!(listener, "CLIENT", "ID"));
    let mut subscriber = listener.connection().as_pubsub();
    subscriber.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout can be set");
    subscriber.subscribe(&[INVALIDATE, "mark"]).expect("subscriptions");
    ok(run!(reader, "CLIENT", "TRACKING", "ON", "REDIRECT", id));

    ok(run!(c, "BF.RESERVE", "k", "1e-9", 3, "NONSCALING"));
    run!(c, "BF.MADD", "k", "a", "b");
    let reads: [&[&str]; 7] = [
        &["BF.EXISTS", "k", "x"],
        &["BF.MEXISTS", "k", "x"],
        &["BF.CARD", "k"],
        &["BF.INFO", "k"],
        &["BF.STATS", "k"],
        &["BF.DEBUG", "k"],
        &["BF.SCANDUMP", "k", "0"],
    ];
    for read in reads {
        run!(reader, read);
        let nothing: [&[&str]; 5] = [
            &["BF.ADD", "k", "a"],
            &["BF.MADD", "k", "a", "b"],
            &["BF.INSERT", "k", "ITEMS", "b"],
            &["BF.RESERVE", "k", "0.01", "10"],
            &["BF.EXISTS", "k", "a"],
        ];
        for call in nothing {
            run!(c, call);
            assert_eq!(invalidated(&mut subscriber, &mut c), [""; 0], "{read:?}, then {call:?}");
        }
        assert_eq!(int(run!(c, "BF.ADD", "k", "c")), 1);
        assert_eq!(invalidated(&mut subscriber, &mut c), ["k"], "{read:?}");
        // Refused, for it is full now.
        run!(reader, read);
        run!(c, "BF.ADD", "k", "d");
        assert_eq!(invalidated(&mut subscriber, &mut c), [""; 0], "{read:?}");
        // One of three, for the next read.
        run!(c, "DEL", "k");
        assert_eq!(invalidated(&mut subscriber, &mut c), ["k"], "{read:?}");
        ok(run!(c, "BF.RESERVE", "k", "1e-9", 3, "NONSCALING"));
        run!(c, "BF.MADD", "k", "a", "b");
    }
    // Who asked for a missing key is told when it is made.
    run!(reader, "BF.EXISTS", "new", "x");
    run!(c, "BF.ADD", "new", "x");
    assert_eq!(invalidated(&mut subscriber, &mut c), ["new"]);
}
