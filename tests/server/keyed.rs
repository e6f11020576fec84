//! Items that an attacker chooses, and the keyed hash that is proof against them.

use redis::Value;

use crate::harness::{Client, Options, Server, add, array, bytes, error, found, int, items, ok, version};
use crate::persistence::rewrite;
use crate::{needs, run};

/// MurmurHash3 x64_128 run backwards: other items with the hash of an item.
///
/// The two halves of the state take in a block of 16 bytes by steps each of which can be undone, so for any two states
/// there is one block that leads from the one to the other. An item of 32 bytes is two blocks: whatever stands in the
/// first, a second one leads to the state that the victim's blocks led to, and what follows, the length included, is the
/// same. The seed is public, as the whole module is.
mod collisions {
    const SEED: u64 = 0x626c_6f6f;
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    const ADD1: u64 = 0x52dc_e729;
    const ADD2: u64 = 0x3849_5ab5;

    pub type Item = [u8; 32];
    type State = [u64; 2];
    type Block = [u64; 2];

    /// The number that multiplies `odd` to 1, by Newton's iteration: each round doubles the bits that are right.
    fn inverse(odd: u64) -> u64 {
        (0..6).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
    }

    fn after(state: State, block: Block) -> State {
        let mixed1 = block[0].wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        let h1 = (state[0] ^ mixed1).rotate_left(27).wrapping_add(state[1]).wrapping_mul(5).wrapping_add(ADD1);
        let mixed2 = block[1].wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        let h2 = (state[1] ^ mixed2).rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(ADD2);
        [h1, h2]
    }

    /// The block that leads from one state to another.
    fn between(from: State, to: State) -> Block {
        let fifth = inverse(5);
        let mixed1 = to[0].wrapping_sub(ADD1).wrapping_mul(fifth).wrapping_sub(from[1]).rotate_right(27) ^ from[0];
        let mixed2 = to[1].wrapping_sub(ADD2).wrapping_mul(fifth).wrapping_sub(to[0]).rotate_right(31) ^ from[1];
        [
            mixed1.wrapping_mul(inverse(C2)).rotate_right(31).wrapping_mul(inverse(C1)),
            mixed2.wrapping_mul(inverse(C1)).rotate_right(33).wrapping_mul(inverse(C2)),
        ]
    }

    fn block(bytes: &[u8]) -> Block {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        [word(0), word(8)]
    }

    /// `count` other items with the hash of `victim`.
    pub fn of(victim: &Item, count: u64) -> Vec<Item> {
        let start = [SEED, SEED];
        let target = after(after(start, block(&victim[..16])), block(&victim[16..]));
        let other = |number| {
            let first = [number, 0];
            let second = between(after(start, first), target);
            let mut item = [0; 32];
            for (bytes, word) in item.chunks_mut(8).zip(first.into_iter().chain(second)) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            item
        };
        (0..count).map(other).collect()
    }
}

const MANY: usize = 1000;

/// An item that the attacker knows to be in, and items made to be taken for it.
fn attack() -> (collisions::Item, Vec<collisions::Item>) {
    let known = *b"order 4711 was delivered at noon";
    let forged = collisions::of(&known, MANY as u64);
    assert!(!forged.contains(&known));
    (known, forged)
}

fn ones(reply: Value) -> usize {
    crate::harness::ints(reply).into_iter().filter(|&answer| answer == 1).count()
}

#[test]
fn the_keyed_hash_tells_items_apart_that_were_made_to_collide() {
    let server = Server::new();
    let mut c = server.client();
    let (known, forged) = attack();
    for (key, hash, at_least, at_most) in [("open", "murmur3", MANY, MANY), ("guarded", "siphash", 0, 3)] {
        ok(run!(c, "BF.RESERVE", key, "0.000001", 10_000, "HASH", hash));
        assert_eq!(int(run!(c, "BF.ADD", key, &known[..])), 1);
        // A guard that lets through what was seen before.
        let passed = ones(run!(c, "BF.MEXISTS", key, forged.iter().map(|item| &item[..]).collect::<Vec<_>>()));
        assert!((at_least..=at_most).contains(&passed), "{key}: {passed} of {MANY} forged items are taken for known");
        // A consumer that drops what it has handled: theirs are handled, or none is.
        let handled = ones(run!(c, "BF.MADD", key, forged.iter().map(|item| &item[..]).collect::<Vec<_>>()));
        assert_eq!(handled, MANY - passed, "{key}");
    }
}

/// The key of a filter, which only its dump has.
fn secret(c: &mut Client, key: &str) -> [u8; 16] {
    let record = bytes(array(run!(c, "BF.SCANDUMP", key, 0)).remove(1));
    // 32 bytes of a record's own, flags, expansion, rate, capacity; the checksum after it.
    assert_eq!(record[32] & 4, 4, "keyed");
    record[56..record.len() - 8].try_into().expect("a key of 16 bytes")
}

#[test]
fn each_filter_has_a_key_of_its_own() {
    let (one, other) = (Server::new(), Server::new());
    let mut seen = Vec::new();
    for (server, key) in [(&one, "a"), (&one, "b"), (&other, "a")] {
        let c = &mut server.client();
        ok(run!(c, "BF.RESERVE", key, "0.01", 100, "HASH", "siphash"));
        add(c, key, &items(0..50));
        seen.push((secret(c, key), c.digest(key)));
    }
    for i in 0..seen.len() {
        assert_ne!(seen[i].0, [0; 16]);
        for j in 0..i {
            assert_ne!(seen[i].0, seen[j].0);
            assert_ne!(seen[i].1, seen[j].1, "the digest depends on the key");
        }
    }
}

#[test]
fn replies_name_the_hash_and_keep_the_key() {
    let server = Server::new();
    let (mut c, mut three) = (server.client(), server.client3());
    ok(run!(c, "BF.RESERVE", "k", "0.01", 100, "HASH", "SIPHASH"));
    add(&mut c, "k", &items(0..300));
    let secret = secret(&mut c, "k");
    let said = |reply: Value| format!("{reply:?}");
    let key = format!("{secret:?}");
    let key = key.trim_matches(['[', ']']);
    for c in [&mut c, &mut three] {
        for command in ["BF.INFO", "BF.STATS", "BF.DEBUG", "BF.CARD"] {
            let text = said(run!(c, command, "k"));
            assert!(!text.contains(key), "{command}: {text}");
        }
    }
    let dump = said(run!(c, "BF.SCANDUMP", "k", 0));
    assert!(dump.contains(key), "where it is, it is seen: {dump}");
    let stats = array(run!(c, "BF.STATS", "k"));
    let at = stats.iter().position(|field| *field == Value::BulkString(b"hash".into())).expect("a field `hash`");
    assert_eq!(bytes(stats[at + 1].clone()), b"siphash");
    for line in crate::harness::strings(run!(c, "BF.DEBUG", "k")).iter().skip(1) {
        assert!(line.ends_with(" hash:siphash"), "{line}");
    }
}

/// The rule that the page for operators gives to those who must not have the key.
#[test]
fn an_application_is_kept_from_the_key() {
    let server = Server::new();
    let (mut c, mut app) = (server.client(), server.client());
    ok(run!(c, "BF.RESERVE", "k", "0.01", 100, "HASH", "siphash"));
    ok(run!(
        c,
        "ACL",
        "SETUSER",
        "app",
        "on",
        ">secret3",
        "~*",
        "+@all",
        "-@admin",
        "-@dangerous",
        "-bf.scandump",
        "-dump"
    ));
    ok(run!(app, "AUTH", "app", "secret3"));
    assert_eq!(int(run!(app, "BF.ADD", "k", "a")), 1);
    assert_eq!(int(run!(app, "BF.EXISTS", "k", "a")), 1);
    for call in [
        &["BF.SCANDUMP", "k", "0"][..],
        &["DUMP", "k"],
        &["MIGRATE", "127.0.0.1", "1", "k", "0", "10", "COPY"],
        &["PSYNC", "?", "-1"],
        &["SYNC"],
        &["MONITOR"],
        &["SAVE"],
        &["DEBUG", "RELOAD"],
        &["EVAL", "return redis.pcall('DUMP', KEYS[1])", "1", "k"],
    ] {
        let text = error(run!(app, call));
        // The last one's is the script's own answer.
        let refused = ["permission", "NOPERM", "can't run this command"].iter().any(|words| text.contains(words));
        assert!(refused, "{call:?}: {text}");
    }
}

#[test]
fn the_key_goes_wherever_the_filter_goes() {
    let mut primary = Options::new().module_arguments("HASH siphash").config("appendonly", "yes").start();
    // Its own filters would be others.
    let replica = Server::new();
    replica.follow(&primary);
    let mut c = primary.client();
    for key in ["made", "grown"] {
        add(&mut c, key, &items(0..if key == "made" { 50 } else { 3000 }));
    }
    let expected = ["made", "grown"].map(|key| (c.digest(key), secret(&mut c, key)));
    let there = |c: &mut Client, prefix: &str| {
        let mut of = |key| (c.digest(&format!("{prefix}{key}")), secret(c, &format!("{prefix}{key}")));
        ["made", "grown"].map(&mut of)
    };
    replica.catch_up(&primary);
    assert_eq!(there(&mut replica.client(), ""), expected, "replicated");
    for key in ["made", "grown"] {
        assert_eq!(int(run!(c, "COPY", key, format!("copy-{key}"))), 1);
        let dump = bytes(run!(c, "DUMP", key));
        ok(run!(c, "RESTORE", format!("restored-{key}"), 0, dump));
        let mut position = 0;
        loop {
            let mut reply = array(run!(c, "BF.SCANDUMP", key, position));
            let data = bytes(reply.remove(1));
            position = int(reply.remove(0));
            if position == 0 {
                break;
            }
            ok(run!(c, "BF.LOADCHUNK", format!("loaded-{key}"), position, data));
        }
    }
    for prefix in ["copy-", "restored-", "loaded-"] {
        assert_eq!(there(&mut c, prefix), expected, "{prefix}");
    }
    ok(run!(c, "DEBUG", "RELOAD"));
    assert_eq!(there(&mut c, ""), expected, "from an RDB file");
    rewrite(&primary);
    drop(c);
    primary.kill();
    primary.start();
    let mut c = primary.client();
    assert_eq!(there(&mut c, ""), expected, "from the AOF");
    assert_eq!(found(&mut c, "grown", &items(0..3000)), 3000);
}

#[test]
fn the_hash_of_filters_that_commands_make_can_be_configured() {
    let server = Options::new().module_arguments("hash SipHash").start();
    let mut c = server.client();
    let mut hash_of = |call: &[&str]| {
        run!(c, call);
        let line = crate::harness::strings(run!(c, "BF.DEBUG", "k")).remove(1);
        assert_eq!(int(run!(c, "DEL", "k")), 1);
        line.rsplit_once("hash:").expect("a hash").1.to_owned()
    };
    assert_eq!(hash_of(&["BF.ADD", "k", "a"]), "siphash");
    assert_eq!(hash_of(&["BF.MADD", "k", "a", "b"]), "siphash");
    assert_eq!(hash_of(&["BF.RESERVE", "k", "0.01", "100"]), "siphash");
    assert_eq!(hash_of(&["BF.RESERVE", "k", "0.01", "100", "hash", "MurMur3"]), "murmur3");
    assert_eq!(hash_of(&["BF.INSERT", "k", "HASH", "murmur3", "ITEMS", "a"]), "murmur3");
    assert_eq!(hash_of(&["BF.INSERT", "k", "ITEMS", "a"]), "siphash");
}

#[test]
fn it_can_be_set_while_the_server_runs() {
    needs!(version().has(7, 0), "configurations of modules, of 7.0");
    let server = Server::new();
    let mut c = server.client();
    let name = if version().has(8, 0) { "bf-hash" } else { "bf.hash" };
    run!(c, "BF.ADD", "before", "a");
    ok(run!(c, "CONFIG", "SET", name, "siphash"));
    run!(c, "BF.ADD", "after", "a");
    let line = |c: &mut Client, key: &str| crate::harness::strings(run!(c, "BF.DEBUG", key)).remove(1);
    assert!(line(&mut c, "before").ends_with("murmur3"), "a filter keeps its hash");
    assert!(line(&mut c, "after").ends_with("siphash"));
}

#[test]
fn bad_words_are_named() {
    let server = Server::new();
    let mut c = server.client();
    for call in [
        &["BF.RESERVE", "k", "0.01", "100", "HASH", "md5"][..],
        &["BF.INSERT", "k", "HASH", "md5", "ITEMS", "a"],
        &["BF.INSERT", "k", "HASH", "ITEMS", "a"],
    ] {
        assert_eq!(error(run!(c, call)), "ERR bad hash: it must be murmur3 or siphash", "{call:?}");
    }
    for (call, said) in [
        (&["BF.RESERVE", "k", "0.01", "100", "HASH"][..], "HASH needs a value"),
        (&["BF.RESERVE", "k", "0.01", "100", "HASH", "murmur3", "HASH", "murmur3"], "HASH stands twice"),
        (&["BF.INSERT", "k", "NOCREATE", "HASH", "siphash", "ITEMS", "a"], "NOCREATE and HASH exclude"),
    ] {
        let text = error(run!(c, call));
        assert!(text.contains(said), "{text}");
    }
    assert_eq!(int(run!(c, "EXISTS", "k")), 0);
    // On a filter that is there it has no effect.
    run!(c, "BF.INSERT", "k", "HASH", "murmur3", "ITEMS", "a");
    assert_eq!(ones(run!(c, "BF.INSERT", "k", "HASH", "siphash", "ITEMS", "a", "b")), 1);
}
