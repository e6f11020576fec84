//! BF.SCANDUMP: the loop of RedisBloom's clients, and what happens to the filter meanwhile.

use redis::Value;

use crate::harness::{Client, Filters, Server, add, array, bytes, error, found, int, items, ok};
use crate::run;

/// One record of a dump.
type Pair = (i64, Vec<u8>);

#[track_caller]
fn next(c: &mut Client, key: &str, iterator: i64) -> Pair {
    let [iterator, data] = array(run!(c, "BF.SCANDUMP", key, iterator)).try_into().expect("two elements");
    (int(iterator), bytes(data))
}

/// The loop as everybody writes it.
#[track_caller]
fn dump(c: &mut Client, key: &str) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut iterator = 0;
    loop {
        let (following, data) = next(c, key, iterator);
        if following == 0 {
            assert_eq!(data, b"", "the last reply is empty");
            return pairs;
        }
        assert!(following > iterator && following <= 1 << 53, "{following} after {iterator}");
        assert!(data.len() <= 1 << 20, "{} bytes", data.len());
        iterator = following;
        pairs.push((following, data));
    }
}

fn load(c: &mut Client, key: &str, (iterator, data): &Pair) -> Value {
    run!(c, "BF.LOADCHUNK", key, *iterator, data)
}

#[track_caller]
fn load_all(c: &mut Client, key: &str, pairs: &[Pair]) {
    for pair in pairs {
        ok(load(c, key, pair));
    }
}

/// Asserts that it is refused with an error that says each of `words`, and that the key is what it was.
#[track_caller]
fn refused(c: &mut Client, key: &str, pair: &Pair, words: &[&str]) {
    let before = c.digest(key);
    let text = error(load(c, key, pair));
    assert!(text.starts_with("ERR "), "{text}");
    for word in words {
        assert!(text.contains(word), "{text:?} does not say {word:?}");
    }
    assert_eq!(c.digest(key), before, "{text}");
}

#[test]
fn every_shape_goes_to_another_server() {
    let (from, to) = (Server::new(), Server::new());
    let (mut c, mut d) = (from.client(), to.client());
    let filters = Filters::make(&mut c);
    for key in filters.keys() {
        let pairs = dump(&mut c, key);
        assert!(pairs.len() >= 4, "{key}: filter, layer, bits, end");
        load_all(&mut d, key, &pairs);
        assert_eq!(dump(&mut d, key), pairs, "{key}: a dump of what was loaded is the same");
    }
    ok(run!(d, "BF.RESERVE", "other", "0.01", 1));
    assert_eq!(int(run!(d, "EXPIRE", "grown", 100_000)), 1, "a dump has no expiry");
    filters.check(&mut d);
    filters.check(&mut c);
}

#[test]
fn f58_a_large_filter_comes_in_records_of_at_most_1_mib() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.01", 3_000_000));
    let items = items(0..1_500_000);
    for batch in items.chunks(100_000) {
        run!(c, "BF.MADD", "k", batch);
    }
    // `dump` asserts the size of each.
    let pairs = dump(&mut c, "k");
    let total: usize = pairs.iter().map(|pair| pair.1.len()).sum();
    assert!(total > 3 << 20 && pairs.len() >= 6, "{total} bytes in {} records", pairs.len());
    load_all(&mut c, "copy", &pairs);
    assert_eq!(c.digest("copy"), c.digest("k"));
    // An empty one of the same size takes a few bytes.
    ok(run!(c, "BF.RESERVE", "empty", "0.01", 3_000_000));
    let total: usize = dump(&mut c, "empty").iter().map(|pair| pair.1.len()).sum();
    assert!(total < 1000, "{total} bytes");
}

#[test]
fn adds_and_growth_during_a_dump_leave_it_loadable() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.001", 100, "EXPANSION", 2));
    let before = items(0..2000);
    add(&mut c, "k", &before);
    let (mut iterator, mut count) = (0, 2000);
    let mut records = 0;
    loop {
        let (following, data) = next(&mut c, "k", iterator);
        if following == 0 {
            break;
        }
        ok(run!(c, "BF.LOADCHUNK", "copy", following, data));
        // Every record is followed by enough items for a layer more, some times; then the end must come.
        if records < 6 {
            add(&mut c, "k", &items(count..count * 2));
            count *= 2;
        }
        (iterator, records) = (following, records + 1);
    }
    assert_eq!(found(&mut c, "copy", &before), before.len(), "what was in when the dump began is in");
    assert_eq!(run!(c, "BF.INFO", "copy", "FILTERS"), run!(c, "BF.INFO", "k", "FILTERS"), "all layers came");
    // It goes on like any other.
    assert_eq!(int(run!(c, "BF.ADD", "copy", "never before")), 1);
    assert_eq!(int(run!(c, "BF.EXISTS", "copy", "never before")), 1);
}

#[test]
fn a_filter_made_anew_meanwhile_is_told_apart() {
    let server = Server::new();
    let mut c = server.client();
    let make = |c: &mut Client| {
        run!(c, "DEL", "k");
        ok(run!(c, "BF.RESERVE", "k", "0.001", 10_000));
        add(c, "k", &items(0..1000));
    };
    make(&mut c);
    let first = dump(&mut c, "k");
    make(&mut c);
    let second = dump(&mut c, "k");
    assert_eq!(first.len(), second.len());
    for i in 1..first.len() {
        run!(c, "DEL", "copy");
        load_all(&mut c, "copy", &first[..i]);
        refused(&mut c, "copy", &second[i], &["another filter", "delete the key"]);
        load_all(&mut c, "copy", &first[i..]);
        assert_eq!(found(&mut c, "copy", &items(0..1000)), 1000);
    }
}

#[test]
fn a_copy_is_told_apart_and_a_renamed_filter_is_the_same() {
    let server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "k", "a");
    let pairs = dump(&mut c, "k");
    assert_eq!(int(run!(c, "COPY", "k", "twin")), 1);
    let twin = dump(&mut c, "twin");
    load_all(&mut c, "loaded", &pairs[..2]);
    refused(&mut c, "loaded", &twin[2], &["another filter"]);
    ok(run!(c, "RENAME", "k", "renamed"));
    let renamed = dump(&mut c, "renamed");
    load_all(&mut c, "loaded", &renamed[2..]);
    assert_eq!(int(run!(c, "BF.EXISTS", "loaded", "a")), 1);
}

#[test]
fn a_replica_that_lags_is_told_apart() {
    let (primary, replica) = (Server::new(), Server::new());
    let mut c = primary.client();
    ok(run!(c, "BF.RESERVE", "k", "0.001", 10_000));
    add(&mut c, "k", &items(0..1000));
    replica.follow(&primary);
    let behind = dump(&mut replica.client(), "k");
    let same = dump(&mut c, "k");
    assert_eq!(behind, same, "a replica that has everything gives the same dump");
    run!(c, "BF.ADD", "k", "later");
    let ahead = dump(&mut c, "k");
    // From the primary, then from the replica as it was: that one lacks an item.
    load_all(&mut c, "copy", &ahead[..2]);
    refused(&mut c, "copy", &behind[2], &["older"]);
    // The other way is the same as an add during the dump.
    load_all(&mut c, "other", &behind[..2]);
    load_all(&mut c, "other", &ahead[2..]);
    assert_eq!(found(&mut c, "other", &items(0..1000)), 1000);
}

#[test]
fn lost_doubled_and_reordered_records_are_noticed() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.001", 100));
    add(&mut c, "k", &items(0..2000));
    let pairs = dump(&mut c, "k");
    assert!(pairs.len() > 10, "several layers");
    for i in 1..pairs.len() {
        run!(c, "DEL", "copy");
        load_all(&mut c, "copy", &pairs[..i]);
        // The last one again changes nothing, and is OK; any other one is not the next.
        let before = c.digest("copy");
        ok(load(&mut c, "copy", &pairs[i - 1]));
        assert_eq!(c.digest("copy"), before);
        for (j, other) in pairs.iter().enumerate() {
            // The filter record is answered OK for as long as the filter is being loaded.
            if j != i && j + 1 != i && j != 0 {
                refused(&mut c, "copy", other, &[]);
            }
        }
        // The right record with another's iterator.
        refused(&mut c, "copy", &(pairs[i - 1].0, pairs[i].1.clone()), &["iterator"]);
        refused(&mut c, "copy", &(0, pairs[i].1.clone()), &["iterator"]);
    }
    ok(load(&mut c, "copy", pairs.last().expect("an end record")));
    assert_eq!(c.digest("copy"), c.digest("k"));
    ok(load(&mut c, "copy", pairs.last().expect("an end record")));
}

#[test]
fn f53_a_filter_being_loaded_answers_no_question() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.001", 100));
    add(&mut c, "k", &items(0..500));
    let pairs = dump(&mut c, "k");
    for pair in &pairs {
        if int(run!(c, "EXISTS", "copy")) == 1 {
            let questions = [
                run!(c, "BF.EXISTS", "copy", "item0"),
                run!(c, "BF.MEXISTS", "copy", "item0", "x"),
                run!(c, "BF.ADD", "copy", "x"),
                run!(c, "BF.MADD", "copy", "x"),
                run!(c, "BF.INSERT", "copy", "ITEMS", "x"),
                run!(c, "BF.CARD", "copy"),
                run!(c, "BF.SCANDUMP", "copy", 0),
            ];
            for reply in questions {
                let text = error(reply);
                assert!(text.starts_with("ERR ") && text.contains("being loaded"), "{text}");
            }
        }
        ok(load(&mut c, "copy", pair));
    }
    assert_eq!(found(&mut c, "copy", &items(0..500)), 500);
}

#[test]
fn f56_iterators_that_were_not_returned() {
    let server = Server::new();
    let mut c = server.client();
    add(&mut c, "k", &items(0..1000));
    let valid: Vec<i64> = dump(&mut c, "k").iter().map(|pair| pair.0).collect();
    for iterator in ["-1", "", "one", "1.0", " 1", "18446744073709551616"] {
        assert!(error(run!(c, "BF.SCANDUMP", "k", iterator)).contains("bad iterator"), "{iterator}");
    }
    for iterator in ["9007199254740993", "18446744073709551615", "70368744177664", "1000"] {
        assert!(error(run!(c, "BF.SCANDUMP", "k", iterator)).contains("iterator"), "{iterator}");
    }
    // Every one of them can be asked for at any time, in any order.
    for iterator in valid.iter().rev() {
        next(&mut c, "k", *iterator);
    }
    assert_eq!(error(run!(c, "BF.SCANDUMP", "missing", 0)), "ERR not found");
    ok(run!(c, "SET", "s", "x"));
    assert!(error(run!(c, "BF.SCANDUMP", "s", 0)).starts_with("WRONGTYPE "));
}

/// Lua knows numbers as doubles, and writes large ones with 14 digits.
#[test]
fn a_script_copies_a_filter() {
    let server = Server::new();
    let mut c = server.client();
    add(&mut c, "k", &items(0..5000));
    let direct = "local i = 0
        repeat
            local r = redis.call('BF.SCANDUMP', KEYS[1], i)
            i = r[1]
            if i ~= 0 then redis.call('BF.LOADCHUNK', KEYS[2], i, r[2]) end
        until i == 0
        return 'done'";
    assert_eq!(bytes(run!(c, "EVAL", direct, 2, "k", "copy")), b"done");
    assert_eq!(c.digest("copy"), c.digest("k"));
    // Iterators as text, by way of tostring and of JSON.
    for (key, via) in [("text", "tostring(r[1])"), ("json", "tostring(cjson.decode(cjson.encode({r[1]}))[1])")] {
        let script = direct.replace("i = r[1]", &format!("i = {via}")).replace("i ~= 0", "i ~= '0'");
        let script = script.replace("i == 0", "i == '0'");
        assert_eq!(bytes(run!(c, "EVAL", script, 2, "k", key)), b"done");
        assert_eq!(c.digest(key), c.digest("k"), "{via}");
    }
}
