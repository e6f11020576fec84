//! The harness itself, on a server without the module.

use std::process::Command;
use std::time::Duration;

use crate::harness::{Options, Server, bytes, error, int, ok, shown, strings, version};
use crate::{needs, run};

fn bare() -> Options {
    Options::new().without_module()
}

fn runs(pid: &str) -> bool {
    Command::new("kill").args(["-0", pid]).stderr(std::process::Stdio::null()).status().expect("kill runs").success()
}

#[test]
fn a_server_keeps_its_data_over_restart_and_ends_with_its_value() {
    let mut server = bare().start();
    ok(run!(server.client(), "SET", "k", b"\0\xff"));
    server.restart();
    let mut c = server.client3();
    assert_eq!(bytes(run!(c, "GET", "k")), b"\0\xff");
    let pid = c.info("process_id");
    assert!(runs(&pid) && server.alive());
    drop(server);
    assert!(!runs(&pid));
}

#[test]
fn a_killed_server_comes_back_with_what_it_saved() {
    let mut server = bare().config("appendonly", "yes").config("appendfsync", "always").start();
    ok(run!(server.client(), "SET", "k", "v"));
    server.kill();
    assert!(!server.alive());
    server.start();
    assert_eq!(bytes(run!(server.client(), "GET", "k")), b"v");
    assert_eq!(shown(&server.aof()), ["SET k v"]);
}

#[test]
fn a_panicking_test_leaves_no_server() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let test = std::thread::spawn(move || {
        let server = bare().start();
        sender.send(server.client().info("process_id")).expect("the receiver waits");
        panic!("as a failing test does");
    });
    let pid = receiver.recv().expect("a process id");
    assert!(test.join().is_err());
    assert!(!runs(&pid));
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let log = bare().config("no-such-option", "1").try_start().err().expect("it ends");
    assert!(log.contains("no-such-option"), "{log}");
}

#[test]
fn a_test_past_its_deadline_loses_its_server() {
    let server = bare().deadline(Duration::from_millis(300)).start();
    let mut c = server.client();
    // Without the watchdog this blocks until the connection's own timeout, ten minutes later.
    assert!(c.try_run(redis::cmd("BLPOP").arg("nothing").arg(0)).is_err());
}

#[test]
fn replicas_and_streams_see_what_is_written() {
    let primary = bare().start();
    let replica = bare().start();
    let mut c = primary.client();
    ok(run!(c, "SET", "before", "1"));
    replica.follow(&primary);
    let mut stream = primary.stream();
    assert_eq!(int(run!(c, "INCR", "n")), 1);
    replica.catch_up(&primary);
    assert_eq!(strings(run!(replica.client(), "MGET", "before", "n")), ["1", "1"]);
    assert_eq!(shown(&stream.until_now(&mut c)), ["INCR n"]);
    assert!(shown(&stream.until_now(&mut c)).is_empty());
}

#[test]
fn errors_and_pipelines_arrive_as_they_are() {
    needs!(version().has(6, 2), "any server that is supported");
    let server = bare().start();
    let mut c = server.client();
    assert_eq!(error(run!(c, "SET", "k")), "ERR wrong number of arguments for 'set' command");
    let commands: Vec<_> = (0..10_000).map(|_| redis::cmd("INCR").arg("n").to_owned()).collect();
    assert_eq!(c.pipeline(&commands).into_iter().map(int).collect::<Vec<_>>(), (1..=10_000).collect::<Vec<_>>());
}

#[test]
fn two_servers_at_once_have_two_ports() {
    let (a, b): (Server, Server) = (bare().start(), bare().start());
    assert_ne!(a.port(), b.port());
    assert!(a.directory() != b.directory());
}
