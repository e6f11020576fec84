//! What COMMAND INFO and COMMAND DOCS tell.

use redis::Value;

use crate::harness::{Client, Server, array, bytes, int, strings, version};
use crate::{needs, run};

struct Row {
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    key: &'static [&'static str],
    categories: &'static [&'static str],
    arguments: &'static str,
}

/// Without `module`, which 7.0 and later add.
const WRITE: &[&str] = &["denyoom", "write"];
const FAST_WRITE: &[&str] = &["denyoom", "fast", "write"];
/// What frees memory is not refused for want of it.
const FAST_DELETE: &[&str] = &["fast", "write"];
const READ: &[&str] = &["readonly"];
const FAST_READ: &[&str] = &["fast", "readonly"];
const INSERTS: &[&str] = &["RW", "insert"];
const DELETES: &[&str] = &["RW", "delete"];
const TELLS: &[&str] = &["RO", "access"];
const LOOKS: &[&str] = &["RO"];

/// `arguments` as redis-cli would hint them.
const ROWS: [Row; 15] = [
    Row {
        name: "bf.reserve",
        arity: -4,
        flags: FAST_WRITE,
        key: INSERTS,
        categories: &["@write", "@fast"],
        arguments: "key error_rate capacity [EXPANSION expansion] [NONSCALING] [COUNTING] [HASH murmur3|siphash]",
    },
    Row {
        name: "bf.add",
        arity: 3,
        flags: FAST_WRITE,
        key: INSERTS,
        categories: &["@write", "@fast"],
        arguments: "key item",
    },
    Row {
        name: "bf.madd",
        arity: -3,
        flags: FAST_WRITE,
        key: INSERTS,
        categories: &["@write", "@fast"],
        arguments: "key item...",
    },
    Row {
        name: "bf.insert",
        arity: -4,
        flags: FAST_WRITE,
        key: INSERTS,
        categories: &["@write", "@fast"],
        arguments: "key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING] [COUNTING] \
                    [HASH murmur3|siphash] ITEMS item...",
    },
    Row {
        name: "bf.exists",
        arity: 3,
        flags: FAST_READ,
        key: TELLS,
        categories: &["@read", "@fast"],
        arguments: "key item",
    },
    Row {
        name: "bf.mexists",
        arity: -3,
        flags: FAST_READ,
        key: TELLS,
        categories: &["@read", "@fast"],
        arguments: "key item...",
    },
    Row {
        name: "bf.del",
        arity: 3,
        flags: FAST_DELETE,
        key: DELETES,
        categories: &["@write", "@fast"],
        arguments: "key item",
    },
    Row {
        name: "bf.mdel",
        arity: -3,
        flags: FAST_DELETE,
        key: DELETES,
        categories: &["@write", "@fast"],
        arguments: "key item...",
    },
    Row {
        name: "bf.count",
        arity: 3,
        flags: FAST_READ,
        key: TELLS,
        categories: &["@read", "@fast"],
        arguments: "key item",
    },
    Row {
        name: "bf.info",
        arity: -2,
        flags: READ,
        key: LOOKS,
        categories: &["@read", "@slow"],
        arguments: "key [CAPACITY|SIZE|FILTERS|ITEMS|EXPANSION]",
    },
    Row { name: "bf.card", arity: 2, flags: FAST_READ, key: LOOKS, categories: &["@read", "@fast"], arguments: "key" },
    Row { name: "bf.stats", arity: 2, flags: READ, key: LOOKS, categories: &["@read", "@slow"], arguments: "key" },
    Row { name: "bf.debug", arity: 2, flags: FAST_READ, key: LOOKS, categories: &["@read", "@fast"], arguments: "key" },
    Row {
        name: "bf.scandump",
        arity: 3,
        flags: READ,
        key: TELLS,
        categories: &["@read", "@slow"],
        arguments: "key iterator",
    },
    Row {
        name: "bf.loadchunk",
        arity: 4,
        flags: WRITE,
        key: INSERTS,
        categories: &["@write", "@slow"],
        arguments: "key iterator data",
    },
];

fn sorted(mut words: Vec<String>) -> Vec<String> {
    words.sort();
    words
}

/// The value after `name` in a flat array of names and values, as RESP2 shows maps.
fn field(map: &[Value], name: &str) -> Option<Value> {
    map.chunks(2).find(|pair| bytes(pair[0].clone()) == name.as_bytes()).map(|pair| pair[1].clone())
}

fn text(map: &[Value], name: &str) -> String {
    String::from_utf8(bytes(field(map, name).unwrap_or_else(|| panic!("no {name} in {map:?}")))).expect("text")
}

fn info(c: &mut Client, name: &str) -> Vec<Value> {
    array(array(run!(c, "COMMAND", "INFO", name)).remove(0))
}

#[test]
fn arity_flags_and_the_place_of_the_key() {
    let server = Server::new();
    let mut c = server.client();
    for row in &ROWS {
        let info = info(&mut c, row.name);
        // 6.2 knows no arity of a module's command.
        assert_eq!(int(info[1].clone()), if version().has(7, 0) { row.arity } else { -1 }, "{}", row.name);
        let flags = strings(info[2].clone()).into_iter().filter(|flag| flag != "module").collect();
        assert_eq!(sorted(flags), row.flags, "{}", row.name);
        assert_eq!(info[3..6], [Value::Int(1), Value::Int(1), Value::Int(1)], "{}", row.name);
    }
    // No command is missing from the table, and all have lower-case names as the server's own.
    let names = array(run!(c, "COMMAND"))
        .into_iter()
        .map(|info| String::from_utf8(bytes(array(info).remove(0))).expect("text"));
    let ours = sorted(names.filter(|name| name.starts_with("bf.")).collect());
    assert_eq!(ours, sorted(ROWS.iter().map(|row| row.name.to_owned()).collect()));
}

#[test]
fn the_key_is_the_first_argument_and_the_only_one() {
    let server = Server::new();
    let mut c = server.client();
    for row in &ROWS {
        let count = usize::try_from(row.arity.abs() - 2).expect("a name and a key at least");
        let rest: Vec<String> = (0..count).map(|i| format!("argument{i}")).collect();
        assert_eq!(strings(run!(c, "COMMAND", "GETKEYS", row.name, "key", rest)), ["key"], "{}", row.name);
    }
}

#[test]
fn key_specifications() {
    needs!(version().has(7, 0), "key specifications, of 7.0");
    let server = Server::new();
    let mut c = server.client();
    for row in &ROWS {
        let specs = array(info(&mut c, row.name)[8].clone());
        assert_eq!(specs.len(), 1, "{}", row.name);
        let spec = array(specs[0].clone());
        assert_eq!(strings(field(&spec, "flags").expect("flags")), row.key, "{}", row.name);
        let search = array(field(&spec, "begin_search").expect("begin_search"));
        assert_eq!(text(&search, "type"), "index");
        assert_eq!(field(&array(field(&search, "spec").expect("spec")), "index"), Some(Value::Int(1)));
        let find = array(field(&spec, "find_keys").expect("find_keys"));
        assert_eq!(text(&find, "type"), "range");
        let range = array(field(&find, "spec").expect("spec"));
        assert_eq!((field(&range, "lastkey"), field(&range, "limit")), (Some(Value::Int(0)), Some(Value::Int(0))));
    }
}

#[test]
fn categories() {
    needs!(version().has(7, 2), "ACL categories of module commands, of 7.2");
    let server = Server::new();
    let mut c = server.client();
    let own = version().has(7, 4) || version().valkey;
    for row in &ROWS {
        let mut expected: Vec<String> = row.categories.iter().map(|name| (*name).to_owned()).collect();
        expected.extend(own.then(|| "@bloom".to_owned()));
        assert_eq!(sorted(strings(info(&mut c, row.name)[6].clone())), sorted(expected), "{}", row.name);
    }
}

/// Arguments in the notation of the documentation.
fn hint(arguments: Vec<Value>) -> String {
    let hints = arguments.into_iter().map(|argument| {
        let argument = array(argument);
        let kind = text(&argument, "type");
        let flags = field(&argument, "flags").map_or(Vec::new(), strings);
        let token = field(&argument, "token").map(|token| String::from_utf8(bytes(token)).expect("text"));
        let value = match kind.as_str() {
            "pure-token" => String::new(),
            "oneof" => hint(array(field(&argument, "arguments").expect("choices"))).replace(' ', "|"),
            _ => text(&argument, "name"),
        };
        let mut hint: Vec<String> = token.into_iter().collect();
        hint.extend(Some(value).filter(|value| !value.is_empty()));
        let mut hint = hint.join(" ");
        if flags.contains(&"multiple".to_owned()) {
            hint += "...";
        }
        if flags.contains(&"optional".to_owned()) { format!("[{hint}]") } else { hint }
    });
    hints.collect::<Vec<_>>().join(" ")
}

#[test]
fn docs() {
    needs!(version().has(7, 0), "COMMAND DOCS, of 7.0");
    let server = Server::new();
    let mut c = server.client();
    for row in &ROWS {
        let docs = array(array(run!(c, "COMMAND", "DOCS", row.name)).remove(1));
        assert!(text(&docs, "summary").len() > 20, "{}", row.name);
        assert!(text(&docs, "complexity").starts_with("O("), "{}", row.name);
        assert_eq!(text(&docs, "since"), "0.1.0", "{}", row.name);
        assert_eq!(text(&docs, "module"), "bf");
        assert_eq!(hint(array(field(&docs, "arguments").expect("arguments"))), row.arguments, "{}", row.name);
    }
}
