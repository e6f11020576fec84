//! Who may do what: key permissions, categories, commands by name.

use redis::Value;

use crate::harness::records::{self, Filter, Layer};
use crate::harness::{Client, Server, error, int, ok, strings, version};
use crate::{needs, run};

/// Calls that answer something about the filter `k`, without telling what is in it.
const LOOKS: [&[&str]; 5] =
    [&["BF.INFO", "k"], &["BF.INFO", "k", "SIZE"], &["BF.CARD", "k"], &["BF.STATS", "k"], &["BF.DEBUG", "k"]];
/// Calls that tell what is in it.
const READS: [&[&str]; 4] = [
    &["BF.EXISTS", "k", "x"],
    &["BF.MEXISTS", "k", "x", "y"],
    &["BF.SCANDUMP", "k", "0"],
    &["BF.COUNT", "counting", "x"],
];
/// Calls that write.
const WRITES: [&[&str]; 6] = [
    &["BF.RESERVE", "new", "0.01", "100"],
    &["BF.ADD", "k", "y"],
    &["BF.MADD", "k", "y", "z"],
    &["BF.INSERT", "k", "ITEMS", "y"],
    &["BF.DEL", "counting", "x"],
    &["BF.MDEL", "counting", "x", "y"],
];

fn load(c: &mut Client) -> Value {
    run!(c, "BF.LOADCHUNK", "loaded", 1, records::empty_filter(Filter::DEFAULT, Layer::DEFAULT))
}

/// A connection of a new user with these rights.
fn user(server: &Server, rights: &[&str]) -> Client {
    let name = rights.join("");
    ok(run!(server.client(), "ACL", "SETUSER", &name, "on", "nopass", rights));
    let mut c = server.client();
    ok(run!(c, "AUTH", &name, "any"));
    c
}

#[track_caller]
fn allowed(c: &mut Client, calls: &[&[&str]]) {
    for call in calls {
        let reply = run!(c, *call);
        assert!(!matches!(reply, Value::ServerError(_)), "{call:?}: {reply:?}");
    }
}

#[track_caller]
fn denied(c: &mut Client, calls: &[&[&str]]) {
    for call in calls {
        let text = error(run!(c, *call));
        assert!(text.starts_with("NOPERM "), "{call:?}: {text}");
    }
}

/// A server with a filter `k` and one that is `counting`.
fn server() -> Server {
    let server = Server::new();
    ok(run!(server.client(), "BF.RESERVE", "counting", "0.01", 100, "COUNTING"));
    assert_eq!(int(run!(server.client(), "BF.ADD", "k", "x")), 1);
    server
}

#[test]
fn f18_who_may_read_may_not_write() {
    needs!(version().has(7, 0), "ACL key permissions, of 7.0");
    let server = server();
    let mut reader = user(&server, &["%R~*", "+@all"]);
    allowed(&mut reader, &LOOKS);
    allowed(&mut reader, &READS);
    denied(&mut reader, &WRITES);
    assert!(error(load(&mut reader)).starts_with("NOPERM "));
    assert_eq!(int(run!(server.client(), "DBSIZE")), 2);
}

#[test]
fn f18_who_may_write_may_not_read() {
    needs!(version().has(7, 0), "ACL key permissions, of 7.0");
    let server = server();
    let mut writer = user(&server, &["%W~*", "+@all"]);
    // BF.ADD answers whether the item was there, as SADD does, and needs no more than SADD.
    allowed(&mut writer, &WRITES);
    ok(load(&mut writer));
    denied(&mut writer, &READS);
    // As STRLEN or OBJECT: they tell of the key, not of what is in it.
    allowed(&mut writer, &LOOKS);
}

#[test]
fn f18_keys_out_of_reach() {
    let server = server();
    let mut stranger = user(&server, &["~other:*", "+@all"]);
    denied(&mut stranger, &LOOKS);
    denied(&mut stranger, &READS);
    denied(&mut stranger, &WRITES);
    assert_eq!(int(run!(stranger, "BF.ADD", "other:k", "x")), 1);
    // The second word of BF.ADD is an item, and no key.
    assert!(error(run!(stranger, "BF.ADD", "k", "other:k")).starts_with("NOPERM "));
}

/// The one way on every server.
#[test]
fn commands_by_name() {
    let server = server();
    let mut c = user(&server, &["~*", "+bf.exists", "+bf.mexists"]);
    allowed(&mut c, &READS[..2]);
    denied(&mut c, &READS[2..]);
    denied(&mut c, &LOOKS);
    denied(&mut c, &WRITES);
}

#[test]
fn categories_of_reading_and_writing() {
    needs!(version().has(7, 2), "ACL categories of module commands, of 7.2");
    let server = server();
    let mut reader = user(&server, &["~*", "+@read"]);
    allowed(&mut reader, &LOOKS);
    allowed(&mut reader, &READS);
    denied(&mut reader, &WRITES);
    let mut writer = user(&server, &["~*", "+@write"]);
    allowed(&mut writer, &WRITES);
    ok(load(&mut writer));
    denied(&mut writer, &LOOKS);
    denied(&mut writer, &READS);
    let mut quick = user(&server, &["~*", "+@fast"]);
    allowed(&mut quick, &[&["BF.EXISTS", "k", "x"], &["BF.ADD", "k", "x"], &["BF.CARD", "k"]]);
    denied(&mut quick, &[&["BF.SCANDUMP", "k", "0"], &["BF.STATS", "k"], &["BF.INFO", "k"]]);
}

#[test]
fn a_category_of_its_own() {
    needs!(version().has(7, 4) || version().valkey, "ACL categories that modules add, of Redis 7.4 and Valkey 8");
    let server = server();
    let mut c = user(&server, &["~*", "+@bloom"]);
    allowed(&mut c, &LOOKS);
    allowed(&mut c, &READS);
    allowed(&mut c, &WRITES);
    ok(load(&mut c));
    denied(&mut c, &[&["GET", "k"], &["DEL", "k"]]);
    let listed = strings(run!(server.client(), "ACL", "CAT", "bloom"));
    let mut listed: Vec<String> = listed.into_iter().map(|name| name.to_lowercase()).collect();
    listed.sort();
    let mut all: Vec<String> =
        [&LOOKS[..], &READS, &WRITES].concat().iter().map(|call| call[0].to_lowercase()).collect();
    all.push("bf.loadchunk".to_owned());
    all.sort();
    all.dedup();
    assert_eq!(listed, all);
}
