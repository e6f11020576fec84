//! Commands, items and keys as large as a server takes them, and as many connections.

use std::net::TcpStream;

use crate::harness::{Options, Server, add, array, error, found, int, ints, items, ok};
use crate::run;

/// The most words that a command may have.
const WORDS: usize = 1 << 20;

#[test]
fn commands_of_1_048_576_words() {
    let server = Server::new();
    let mut c = server.client();
    let all = items(0..WORDS - 2);
    let new: i64 = ints(run!(c, "BF.MADD", "k", &all)).into_iter().sum();
    // At most 1 % were false positives.
    assert!(new > 1_037_000, "{new} were new");
    assert_eq!(ints(run!(c, "BF.MEXISTS", "k", &all)), vec![1; WORDS - 2]);
    assert_eq!(int(run!(c, "BF.CARD", "k")), new);
    // As many again into a filter that is full after 10.
    ok(run!(c, "BF.RESERVE", "full", "0.01", 10, "NONSCALING"));
    let replies = array(run!(c, "BF.INSERT", "full", "ITEMS", &all[..WORDS - 3]));
    assert_eq!(replies.len(), WORDS - 3);
    assert_eq!(int(run!(c, "BF.CARD", "full")), 10);
    assert!(server.alive());
}

#[test]
fn items_of_100_mb() {
    let server = Options::new().config("maxmemory", "0").start();
    let mut c = server.client();
    let mut item = vec![b'x'; 100_000_000];
    assert_eq!(int(run!(c, "BF.ADD", "k", &item)), 1);
    assert_eq!(int(run!(c, "BF.EXISTS", "k", &item)), 1);
    // They differ in the last byte.
    *item.last_mut().expect("a byte") = b'y';
    assert_eq!(ints(run!(c, "BF.MEXISTS", "k", &item, "x")), [0, 0]);
    assert_eq!(ints(run!(c, "BF.MADD", "k", &item, "x")), [1, 1]);
    assert_eq!(int(run!(c, "BF.CARD", "k")), 3);
    assert!(int(run!(c, "MEMORY", "USAGE", "k")) < 1000, "items are not kept");
    // Nor are they taken for options: what an error shows of them is short.
    let text = error(run!(c, "BF.RESERVE", "k2", &item, 10));
    assert!(text.len() < 1000, "{} bytes", text.len());
}

#[test]
fn keys_of_1_mb() {
    let mut server = Options::new().config("appendonly", "yes").config("appendfsync", "always").start();
    let key = "k".repeat(1 << 20);
    let mut c = server.client();
    add(&mut c, &key, &items(0..300));
    assert_eq!(int(run!(c, "COPY", &key, format!("{key}2"))), 1);
    let digest = c.digest(&key);
    drop(c);
    server.kill();
    server.start();
    let mut c = server.client();
    assert_eq!(found(&mut c, &key, &items(0..300)), 300);
    assert_eq!(found(&mut c, &format!("{key}2"), &items(0..300)), 300);
    assert_eq!(c.digest(&key), digest);
}

#[test]
fn ten_thousand_connections_wait_while_items_are_added() {
    let server = Options::new().config("maxclients", "10500").config("tcp-backlog", "511").start();
    let mut c = server.client();
    // Some machines allow a process fewer files; the server then takes as many as it may.
    let most: usize = array(run!(c, "CONFIG", "GET", "maxclients"))
        .pop()
        .map(|text| String::from_utf8(crate::harness::bytes(text)).expect("text").parse().expect("a number"))
        .expect("the setting");
    let wanted = (most - 100).min(10_000);
    let mut idle = Vec::new();
    while idle.len() < wanted {
        match TcpStream::connect(("127.0.0.1", server.port())) {
            Ok(socket) => idle.push(socket),
            // So is this one.
            Err(_) => break,
        }
        // The queue of those that wait to be accepted is short.
        if idle.len() % 400 == 0 {
            run!(c, "PING");
        }
    }
    assert!(idle.len() > 500, "{} connections", idle.len());
    server.until("all are connected", || c.info("connected_clients").parse::<usize>().expect("a number") > idle.len());
    let all = items(0..20_000);
    add(&mut c, "k", &all);
    assert_eq!(found(&mut c, "k", &all), 20_000);
}
