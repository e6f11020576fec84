//! What the commands answer.

use redis::Value;

use crate::harness::records::{self, Filter, Layer};
use crate::harness::{Client, Server, add, array, bytes, error, found, int, ints, items, ok, version};
use crate::run;

/// A filter in which no item of a test is a false positive.
fn precise(c: &mut Client, key: &str) {
    ok(run!(c, "BF.RESERVE", key, "1e-9", 10_000));
}

#[test]
fn an_item_is_new_once_and_then_known() {
    let server = Server::new();
    let mut c = server.client();
    assert_eq!(int(run!(c, "BF.EXISTS", "k", "x")), 0);
    assert_eq!(int(run!(c, "BF.ADD", "k", "x")), 1);
    assert_eq!(int(run!(c, "BF.ADD", "k", "x")), 0);
    assert_eq!(int(run!(c, "BF.EXISTS", "k", "x")), 1);
    assert_eq!(int(run!(c, "BF.EXISTS", "k", "y")), 0);
}

#[test]
fn many_items_are_answered_in_order() {
    let server = Server::new();
    let mut c = server.client();
    assert_eq!(ints(run!(c, "BF.MEXISTS", "k", "a", "b")), [0, 0]);
    assert_eq!(int(run!(c, "EXISTS", "k")), 0, "asking makes no key");
    assert_eq!(ints(run!(c, "BF.MADD", "k", "a", "a", "b", "a")), [1, 0, 1, 0]);
    assert_eq!(ints(run!(c, "BF.MEXISTS", "k", "b", "c", "a")), [1, 0, 1]);
}

#[test]
fn a_repeated_item_is_new_only_the_first_time_wherever_it_stands() {
    let server = Server::new();
    let mut c = server.client();
    precise(&mut c, "k");
    // Each item comes again after 1, 7, 31, 32, 33 and 100 others, so within a group of any size and across its border.
    let mut seen = std::collections::HashSet::new();
    let mut order = Vec::new();
    for i in 0..500_usize {
        order.extend([0, 1, 7, 31, 32, 33, 100].iter().filter_map(|back| i.checked_sub(*back)));
    }
    let expected: Vec<i64> = order.iter().map(|i| i64::from(seen.insert(*i))).collect();
    assert_eq!(ints(run!(c, "BF.MADD", "k", &order)), expected);
}

#[test]
fn f92_replies_are_integers_in_resp2_and_booleans_in_resp3() {
    let server = Server::new();
    let (mut two, mut three) = (server.client(), server.client3());
    let boolean = |truth| if version().has(7, 0) { Value::Boolean(truth) } else { Value::Int(i64::from(truth)) };
    assert_eq!(run!(two, "BF.ADD", "k", "a"), Value::Int(1));
    assert_eq!(run!(three, "BF.ADD", "k", "a"), boolean(false));
    assert_eq!(run!(three, "BF.ADD", "k", "b"), boolean(true));
    assert_eq!(run!(two, "BF.EXISTS", "k", "b"), Value::Int(1));
    assert_eq!(run!(three, "BF.EXISTS", "k", "b"), boolean(true));
    assert_eq!(run!(three, "BF.EXISTS", "missing", "b"), boolean(false));
    assert_eq!(run!(two, "BF.MADD", "k", "a", "c"), Value::Array(vec![Value::Int(0), Value::Int(1)]));
    assert_eq!(run!(three, "BF.MADD", "k", "a", "d"), Value::Array(vec![boolean(false), boolean(true)]));
    assert_eq!(run!(two, "BF.MEXISTS", "k", "a", "z"), Value::Array(vec![Value::Int(1), Value::Int(0)]));
    assert_eq!(run!(three, "BF.MEXISTS", "k", "a", "z"), Value::Array(vec![boolean(true), boolean(false)]));
    assert_eq!(run!(three, "BF.MEXISTS", "missing", "a"), Value::Array(vec![boolean(false)]));
    assert_eq!(run!(two, "BF.INSERT", "k", "ITEMS", "a", "e"), Value::Array(vec![Value::Int(0), Value::Int(1)]));
    assert_eq!(run!(three, "BF.INSERT", "k", "ITEMS", "a", "f"), Value::Array(vec![boolean(false), boolean(true)]));
    assert_eq!(run!(three, "BF.RESERVE", "r", "0.01", 10), Value::Okay);
}

#[test]
fn a_missing_key_is_made_with_the_defaults() {
    let server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "one", "x");
    run!(c, "BF.MADD", "many", "x");
    ok(run!(c, "BF.RESERVE", "reserved", "0.01", 100, "EXPANSION", 2));
    run!(c, "BF.ADD", "reserved", "x");
    ok(run!(c, "BF.RESERVE", "plain", "0.01", 100));
    run!(c, "BF.ADD", "plain", "x");
    let digests: Vec<String> = ["one", "many", "reserved", "plain"].iter().map(|key| c.digest(key)).collect();
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    ok(run!(c, "BF.RESERVE", "other", "0.01", 101));
    run!(c, "BF.ADD", "other", "x");
    assert_ne!(c.digest("other"), digests[0], "the digest sees the capacity");
}

#[test]
fn a_full_non_scaling_filter_says_so_in_the_place_of_each_item() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "n", "1e-9", 3, "NONSCALING"));
    let replies = array(run!(c, "BF.MADD", "n", "a", "b", "b", "c", "d", "a", "e"));
    assert_eq!(replies[..4], [Value::Int(1), Value::Int(1), Value::Int(0), Value::Int(1)]);
    assert!(error(replies[4].clone()).starts_with("ERR non scaling filter is full"), "{:?}", replies[4]);
    assert_eq!(replies[5], Value::Int(0), "an item that is there needs no room");
    assert!(error(replies[6].clone()).starts_with("ERR non scaling filter is full"), "{:?}", replies[6]);
    assert_eq!(replies.len(), 7);
    assert!(error(run!(c, "BF.ADD", "n", "d")).starts_with("ERR non scaling filter is full"));
    assert_eq!(int(run!(c, "BF.ADD", "n", "c")), 0);
    assert_eq!(ints(run!(c, "BF.MEXISTS", "n", "a", "b", "c", "d", "e")), [1, 1, 1, 0, 0]);
}

#[test]
fn a_scaling_filter_takes_everything_and_forgets_nothing() {
    let server = Server::new();
    let mut c = server.client();
    for expansion in [1, 2, 4] {
        let key = format!("k{expansion}");
        ok(run!(c, "BF.RESERVE", &key, "0.001", 10, "EXPANSION", expansion));
        let items = items(0..2000);
        for (i, item) in items.iter().enumerate() {
            int(run!(c, "BF.ADD", &key, item));
            if i % 100 == 0 {
                assert_eq!(found(&mut c, &key, &items[..=i]), i + 1);
            }
        }
        assert_eq!(found(&mut c, &key, &items), items.len());
    }
}

#[test]
fn f77_items_are_any_bytes() {
    let server = Server::new();
    let mut c = server.client();
    precise(&mut c, "k");
    let mut long = vec![b'x'; 1 << 20];
    let mut strange: Vec<Vec<u8>> =
        [b"a\nb".as_slice(), b"a", b"b", b"", b"\0", b"\0\0", b"\0\xff", b"\xff", b"a\r\nb"]
            .iter()
            .map(|item| item.to_vec())
            .collect();
    strange.push(long.clone());
    *long.last_mut().expect("a last byte") = b'y';
    strange.push(long);
    // Every length up to past each block that a hash works in.
    strange.extend((1..200).map(|length| vec![0xa5; length]));
    for item in &strange {
        assert_eq!(int(run!(c, "BF.EXISTS", "k", item)), 0, "{} bytes, before", item.len());
        assert_eq!(int(run!(c, "BF.ADD", "k", item)), 1, "{} bytes", item.len());
        assert_eq!(int(run!(c, "BF.EXISTS", "k", item)), 1, "{} bytes, after", item.len());
    }
    assert_eq!(ints(run!(c, "BF.MEXISTS", "k", &strange)), vec![1; strange.len()]);
}

#[test]
fn keys_are_any_bytes() {
    let server = Server::new();
    let mut c = server.client();
    for key in [b"".as_slice(), b"\0", b"\0\xff\n", b"a key"] {
        ok(run!(c, "BF.RESERVE", key, "0.01", 10));
        assert_eq!(int(run!(c, "BF.ADD", key, "x")), 1);
        assert_eq!(int(run!(c, "BF.EXISTS", key, "x")), 1);
    }
}

#[test]
fn f88_another_type_is_refused() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "SET", "s", "x"));
    let replies = [
        run!(c, "BF.EXISTS", "s", "a"),
        run!(c, "BF.MEXISTS", "s", "a"),
        run!(c, "BF.ADD", "s", "a"),
        run!(c, "BF.MADD", "s", "a", "b"),
        run!(c, "BF.RESERVE", "s", "0.01", 100),
        run!(c, "BF.LOADCHUNK", "s", 1, records::empty_filter(Filter::DEFAULT, Layer::DEFAULT)),
    ];
    for reply in replies {
        assert!(error(reply.clone()).starts_with("WRONGTYPE "), "{reply:?}");
    }
    assert_eq!(bytes(run!(c, "GET", "s")), b"x");
    run!(c, "BF.ADD", "k", "a");
    for command in ["GET", "INCR", "LLEN", "SCARD"] {
        assert!(error(run!(c, command, "k")).starts_with("WRONGTYPE "), "{command}");
    }
}

#[test]
fn f106_an_existing_key_is_not_reserved_again() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.01", 100));
    run!(c, "BF.ADD", "k", "a");
    let before = c.digest("k");
    assert!(error(run!(c, "BF.RESERVE", "k", "0.01", 100)).starts_with("ERR item exists"));
    assert!(error(run!(c, "BF.RESERVE", "k", "0.5", 7, "NONSCALING")).starts_with("ERR item exists"));
    assert_eq!(c.digest("k"), before);
}

#[test]
fn the_servers_own_words_for_a_wrong_number_of_arguments() {
    let server = Server::new();
    let mut c = server.client();
    let calls: [&[&str]; 13] = [
        &["BF.RESERVE"],
        &["BF.RESERVE", "k", "0.01"],
        &["BF.ADD"],
        &["BF.ADD", "k"],
        &["BF.ADD", "k", "a", "b"],
        &["BF.MADD"],
        &["BF.MADD", "k"],
        &["BF.EXISTS", "k"],
        &["BF.EXISTS", "k", "a", "b"],
        &["BF.MEXISTS"],
        &["BF.MEXISTS", "k"],
        &["BF.LOADCHUNK", "k", "1"],
        &["BF.LOADCHUNK", "k", "1", "a", "b"],
    ];
    for call in calls {
        let text = error(run!(c, call));
        // Redis 6.2 repeats the name as it was sent.
        let name = if version().has(7, 0) { call[0].to_lowercase() } else { call[0].to_owned() };
        let expected = format!("ERR wrong number of arguments for '{name}' command");
        assert_eq!(text, expected, "{call:?}");
    }
    assert_eq!(int(run!(c, "DBSIZE")), 0);
}

#[test]
fn the_module_announces_itself_as_bf() {
    let server = Server::new();
    let list = format!("{:?}", run!(server.client(), "MODULE", "LIST"));
    let name = format!("{:?}", Value::BulkString(b"bf".to_vec()));
    assert!(list.contains(&name) || list.contains("SimpleString(\"bf\")"), "{list}");
}

/// Asks for each item before it is added, as people do from articles. How often the answer was wrong.
fn asked_before_added(c: &mut Client, key: &str, count: usize) -> usize {
    let mut wrong = 0;
    for start in (0..count).step_by(5000) {
        let items: Vec<String> = (start..count.min(start + 5000)).map(|i| format!("tc{i}")).collect();
        let calls: Vec<redis::Cmd> = items
            .iter()
            .flat_map(|item| ["BF.EXISTS", "BF.ADD"].map(|name| redis::cmd(name).arg(key).arg(item).to_owned()))
            .collect();
        for pair in c.pipeline(&calls).chunks(2) {
            let (known, new) = (int(pair[0].clone()), int(pair[1].clone()));
            assert_eq!(known, 1 - new, "BF.ADD says what BF.EXISTS said");
            wrong += usize::try_from(known).expect("0 or 1");
        }
    }
    wrong
}

#[test]
fn the_check_from_articles_on_a_default_filter() {
    let server = Server::new();
    let mut c = server.client();
    let wrong = asked_before_added(&mut c, "key", 100_000);
    assert!(wrong <= 1000, "{wrong} of 100,000 wrong, at most 1 % was asked");
    let items: Vec<String> = (0..100_000).map(|i| format!("tc{i}")).collect();
    assert_eq!(found(&mut c, "key", &items), items.len());
}

#[test]
fn the_check_from_articles_on_a_reserved_filter() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "key", "0.001", 100_000));
    let wrong = asked_before_added(&mut c, "key", 100_000);
    assert!(wrong <= 100, "{wrong} of 100,000 wrong, at most 0.1 % was asked");
}

#[test]
fn f69_adds_that_answer_1_are_as_many_as_items_within_the_rate() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.01", 200_000));
    let new = add(&mut c, "k", &items(0..200_000));
    assert!((199_400..=200_000).contains(&new), "{new} of 200,000 were new");
}
