//! Keyspace events: `bf.reserve` for a filter made, then one `bf.add` for a command that changed it.

use std::time::Duration;

use redis::PubSub;

use crate::harness::records::{self, Filter, Layer};
use crate::harness::{Client, Options, Server, int, items, ok};
use crate::run;

/// Only the class of modules' data types, which is what the documentation names.
fn server() -> Server {
    Options::new().config("notify-keyspace-events", "Kd").start()
}

fn subscribe(listener: &mut Client) -> PubSub<'_> {
    let mut subscriber = listener.connection().as_pubsub();
    subscriber.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout can be set");
    subscriber.psubscribe("__keyspace@0__:*").expect("a subscription");
    subscriber
}

/// `key event` of all since the last call.
fn events(subscriber: &mut PubSub<'_>, c: &mut Client) -> Vec<String> {
    assert_eq!(int(run!(c, "PUBLISH", "__keyspace@0__:mark", "mark")), 1);
    let mut events = Vec::new();
    loop {
        let message = subscriber.get_message().expect("a message");
        let event: String = message.get_payload().expect("text");
        if event == "mark" {
            return events;
        }
        events.push(format!("{} {event}", message.get_channel_name().trim_start_matches("__keyspace@0__:")));
    }
}

#[test]
fn f41_each_command_and_its_events() {
    let server = server();
    let (mut c, mut listener) = (server.client(), server.client());
    let mut subscriber = subscribe(&mut listener);
    let made = ["k bf.reserve"];
    let added = ["k bf.add"];
    let made_and_added = ["k bf.reserve", "k bf.add"];
    let steps: &[(&[&str], &[&str])] = &[
        (&["BF.RESERVE", "k", "1e-9", "3", "EXPANSION", "2"], &made),
        (&["BF.RESERVE", "k", "0.01", "3"], &[]),
        (&["BF.ADD", "k", "a"], &added),
        (&["BF.ADD", "k", "a"], &[]),
        (&["BF.MADD", "k", "a", "a"], &[]),
        (&["BF.MADD", "k", "a", "b", "c"], &added),
        // It grows twice on the way.
        (&["BF.MADD", "k", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"], &added),
        (&["BF.INSERT", "k", "ITEMS", "a", "b"], &[]),
        (&["BF.INSERT", "k", "ITEMS", "a", "z"], &added),
        (&["BF.EXISTS", "k", "a"], &[]),
        (&["BF.MEXISTS", "k", "a", "x"], &[]),
        (&["BF.INFO", "k"], &[]),
        (&["BF.CARD", "k"], &[]),
        (&["BF.STATS", "k"], &[]),
        (&["BF.DEBUG", "k"], &[]),
        (&["BF.SCANDUMP", "k", "0"], &[]),
        // The server's own event is of another class.
        (&["BF.DEL", "k", "a"], &[]),
        (&["BF.COUNT", "k", "a"], &[]),
        (&["DEL", "k"], &[]),
        (&["BF.DEL", "k", "a"], &[]),
        (&["BF.MDEL", "k", "a", "b"], &[]),
        (&["BF.EXISTS", "k", "a"], &[]),
        (&["BF.INSERT", "k", "NOCREATE", "ITEMS", "a"], &[]),
        (&["BF.ADD", "k", "a"], &made_and_added),
        (&["DEL", "k"], &[]),
        (&["BF.MADD", "k", "a", "b"], &made_and_added),
        (&["DEL", "k"], &[]),
        (&["BF.INSERT", "k", "CAPACITY", "2", "ERROR", "1e-9", "NONSCALING", "ITEMS", "a", "b", "c"], &made_and_added),
        (&["BF.ADD", "k", "c"], &[]),
        (&["BF.MADD", "k", "c", "a"], &[]),
        (&["DEL", "k"], &[]),
        (&["BF.INSERT", "k", "COUNTING", "ERROR", "1e-9", "ITEMS", "a", "b"], &made_and_added),
        (&["BF.ADD", "k", "a"], &added),
        (&["BF.MADD", "k", "a", "b"], &added),
        (&["BF.COUNT", "k", "a"], &[]),
        (&["BF.DEL", "k", "x"], &[]),
        (&["BF.DEL", "k", "a"], &["k bf.del"]),
        (&["BF.MDEL", "k", "x", "y"], &[]),
        (&["BF.MDEL", "k", "x", "a", "b"], &["k bf.del"]),
    ];
    for (call, expected) in steps {
        run!(c, *call);
        assert_eq!(events(&mut subscriber, &mut c), *expected, "{call:?}");
    }
}

#[test]
fn f41_loading_makes_the_filter_and_then_changes_it() {
    let server = server();
    let (mut c, mut listener) = (server.client(), server.client());
    let mut subscriber = subscribe(&mut listener);
    let records = [Filter::DEFAULT.record(), Layer::DEFAULT.record(), records::bits(0, 0, 1, &[]), records::end(&[0])];
    let iterators = [1, 2, 3, (1_i64 << 46) - 1];
    for (record, iterator) in records.iter().zip(iterators) {
        ok(run!(c, "BF.LOADCHUNK", "k", iterator, record.bytes()));
        let expected = if iterator == 1 { "k bf.reserve" } else { "k bf.add" };
        assert_eq!(events(&mut subscriber, &mut c), [expected]);
        ok(run!(c, "BF.LOADCHUNK", "k", iterator, record.bytes()));
        assert_eq!(events(&mut subscriber, &mut c), [""; 0], "it changed nothing");
    }
}

/// A replica's listeners hear of the filter and of its items too.
#[test]
fn f41_on_a_replica() {
    let (primary, replica) = (Server::new(), server());
    replica.follow(&primary);
    let (mut c, mut d, mut listener) = (primary.client(), replica.client(), replica.client());
    let mut subscriber = subscribe(&mut listener);
    run!(c, "BF.ADD", "k", "a");
    run!(c, "BF.ADD", "k", "a");
    run!(c, "BF.MADD", "k", items(0..3));
    replica.catch_up(&primary);
    assert_eq!(events(&mut subscriber, &mut d), ["k bf.reserve", "k bf.add", "k bf.add"]);
}
