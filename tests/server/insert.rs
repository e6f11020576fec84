//! BF.INSERT: its options, and what it answers.

use redis::Value;

use crate::harness::{Client, Options, Server, array, error, found, int, ints, items};
use crate::run;

/// Asserts an error that says each of `words`, and that no key was made.
fn refused(c: &mut Client, arguments: &[&str], words: &[&str]) {
    let text = error(run!(c, "BF.INSERT", "k", arguments));
    assert!(text.starts_with("ERR "), "{arguments:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{arguments:?}: {text:?} does not say {word:?}");
    }
    assert_eq!(int(run!(c, "EXISTS", "k")), 0, "{arguments:?}");
}

#[test]
fn a_missing_key_is_made_as_the_options_say() {
    let server = Server::new();
    let mut c = server.client();
    let same = |c: &mut Client, insert: &[&str], reserve: &[&str]| {
        assert_eq!(ints(run!(c, "BF.INSERT", "inserted", insert, "ITEMS", "a", "b", "a")), [1, 1, 0], "{insert:?}");
        run!(c, "BF.RESERVE", "reserved", reserve);
        run!(c, "BF.MADD", "reserved", "a", "b");
        assert_eq!(c.digest("inserted"), c.digest("reserved"), "{insert:?}");
        run!(c, "DEL", "inserted", "reserved");
    };
    same(&mut c, &[], &["0.01", "100"]);
    same(&mut c, &["CAPACITY", "1000"], &["0.01", "1000"]);
    same(&mut c, &["ERROR", "0.001"], &["0.001", "100"]);
    same(&mut c, &["error", ".001", "Capacity", "1000"], &["0.001", "1000"]);
    same(&mut c, &["EXPANSION", "4"], &["0.01", "100", "EXPANSION", "4"]);
    same(&mut c, &["EXPANSION", "0"], &["0.01", "100", "NONSCALING"]);
    same(&mut c, &["NonScaling", "CAPACITY", "50"], &["0.01", "50", "NONSCALING"]);
    // The third item counts once more.
    let insert = ["counting", "EXPANSION", "4"];
    assert_eq!(ints(run!(c, "BF.INSERT", "inserted", &insert, "ITEMS", "a", "b", "a")), [1, 1, 0]);
    run!(c, "BF.RESERVE", "reserved", "0.01", "100", "EXPANSION", 4, "COUNTING");
    run!(c, "BF.MADD", "reserved", "a", "b", "a");
    assert_eq!(c.digest("inserted"), c.digest("reserved"));
    run!(c, "BF.MADD", "reserved", "a");
    assert_ne!(c.digest("inserted"), c.digest("reserved"), "the counts are others");
    run!(c, "DEL", "inserted", "reserved");
}

#[test]
fn what_the_options_leave_out_is_the_default() {
    let server = Options::new().module_arguments("ERROR_RATE 0.001 INITIAL_SIZE 1000 EXPANSION 4").start();
    let mut c = server.client();
    run!(c, "BF.INSERT", "inserted", "ITEMS", "a");
    run!(c, "BF.ADD", "added", "a");
    assert_eq!(c.digest("inserted"), c.digest("added"));
    run!(c, "BF.INSERT", "some", "CAPACITY", 500, "ITEMS", "a");
    run!(c, "BF.RESERVE", "reserved", "0.001", 500, "EXPANSION", 4);
    run!(c, "BF.ADD", "reserved", "a");
    assert_eq!(c.digest("some"), c.digest("reserved"));
}

#[test]
fn all_after_items_is_items() {
    let server = Server::new();
    let mut c = server.client();
    let words = ["CAPACITY", "10", "ITEMS", "NOCREATE", ""];
    assert_eq!(ints(run!(c, "BF.INSERT", "k", "ITEMS", &words)), [1; 5]);
    assert_eq!(ints(run!(c, "BF.MEXISTS", "k", &words)), [1; 5]);
    let many = items(0..3000);
    let new = ints(run!(c, "BF.INSERT", "many", "CAPACITY", 100, "ITEMS", &many));
    assert_eq!(new.len(), 3000);
    assert_eq!(found(&mut c, "many", &many), 3000);
}

#[test]
fn f80_options_are_whole_words_in_any_case() {
    let server = Server::new();
    let mut c = server.client();
    refused(&mut c, &["NOTHING", "ITEMS", "a"], &["NOTHING"]);
    refused(&mut c, &["C", "10", "I", "a"], &["'C'"]);
    refused(&mut c, &["CAPPCITY", "10", "ITEMS", "a"], &["CAPPCITY"]);
    refused(&mut c, &["NOSCALING", "ITEMS", "a"], &["NOSCALING"]);
    refused(&mut c, &["ITEM", "a"], &["ITEM"]);
    refused(&mut c, &["COUNT", "ITEMS", "a"], &["'COUNT'"]);
    refused(&mut c, &["COUNTING", "1", "ITEMS", "a"], &["'1'"]);
    refused(&mut c, &["COUNTING", "counting", "ITEMS", "a"], &["COUNTING", "twice"]);
    refused(&mut c, &["COUNTING", "NONSCALING"], &["ITEMS"]);
    refused(&mut c, &["CAPACITY", "10", "CAPACITY", "10", "ITEMS", "a"], &["CAPACITY", "twice"]);
    refused(&mut c, &["CAPACITY", "ITEMS", "a"], &["capacity"]);
    refused(&mut c, &["CAPACITY", "10"], &["ITEMS"]);
    refused(&mut c, &["CAPACITY", "10", "ITEMS"], &["ITEMS"]);
    refused(&mut c, &["NONSCALING", "CAPACITY"], &["CAPACITY", "value"]);
}

#[test]
fn values_have_the_ranges_of_bf_reserve() {
    let server = Server::new();
    let mut c = server.client();
    for rate in ["2", "1", "0", "-0.1", "nan", "inf", "1e-13", "", "text", "5%"] {
        refused(&mut c, &["ERROR", rate, "ITEMS", "a"], &["error rate", "1e-12"]);
    }
    for capacity in ["0", "-1", "1e3", "", "ten", "18446744073709551616"] {
        refused(&mut c, &["CAPACITY", capacity, "ITEMS", "a"], &["capacity"]);
    }
    for expansion in ["-1", "32769", "2.0", ""] {
        refused(&mut c, &["EXPANSION", expansion, "ITEMS", "a"], &["expansion", "32768"]);
    }
    refused(&mut c, &["CAPACITY", "1000000000000000000", "ITEMS", "a"], &["1 TiB"]);
}

#[test]
fn f81_nonscaling_and_expansion_exclude_each_other() {
    let server = Server::new();
    let mut c = server.client();
    for expansion in ["0", "1", "2"] {
        refused(&mut c, &["NONSCALING", "EXPANSION", expansion, "ITEMS", "a"], &["NONSCALING", "EXPANSION"]);
        refused(&mut c, &["EXPANSION", expansion, "NONSCALING", "ITEMS", "a"], &["NONSCALING", "EXPANSION"]);
    }
}

#[test]
fn f83_nocreate_excludes_what_a_filter_is_made_with() {
    let server = Server::new();
    let mut c = server.client();
    refused(&mut c, &["NOCREATE", "CAPACITY", "10", "ITEMS", "a"], &["NOCREATE", "CAPACITY"]);
    refused(&mut c, &["ERROR", "0.1", "NOCREATE", "ITEMS", "a"], &["NOCREATE", "ERROR"]);
    refused(&mut c, &["NOCREATE", "COUNTING", "ITEMS", "a"], &["NOCREATE", "COUNTING"]);
    refused(&mut c, &["NOCREATE", "ITEMS", "a"], &["not found"]);
    run!(c, "BF.ADD", "k", "a");
    assert_eq!(ints(run!(c, "BF.INSERT", "k", "NOCREATE", "ITEMS", "a", "b")), [0, 1]);
}

#[test]
fn f84_on_an_existing_filter_the_options_have_no_effect() {
    let server = Server::new();
    let mut c = server.client();
    for key in ["k", "other"] {
        run!(c, "BF.RESERVE", key, "0.001", 1000);
    }
    let options = ["CAPACITY", "5", "ERROR", "0.5", "NONSCALING"];
    assert_eq!(ints(run!(c, "BF.INSERT", "k", &options, "ITEMS", "a")), [1]);
    run!(c, "BF.ADD", "other", "a");
    assert_eq!(c.digest("k"), c.digest("other"));
    // Bad ones are errors all the same.
    assert!(error(run!(c, "BF.INSERT", "k", "CAPACITY", "0", "ITEMS", "b")).contains("capacity"));
    assert_eq!(int(run!(c, "BF.EXISTS", "k", "b")), 0);
}

#[test]
fn f86_the_error_shows_the_option_that_it_did_not_know() {
    let server = Server::new();
    let mut c = server.client();
    refused(&mut c, &["CAPACITY 10", "ITEMS", "a"], &["'CAPACITY 10'"]);
    let long = "x".repeat(10_000);
    let text = error(run!(c, "BF.INSERT", "k", &long, "ITEMS", "a"));
    assert!(text.contains("xxxx") && text.len() < 500, "{text}");
}

#[test]
fn f90_every_item_has_its_element() {
    let server = Server::new();
    let mut c = server.client();
    let insert = ["CAPACITY", "3", "ERROR", "1e-9", "NONSCALING", "ITEMS"];
    let replies = array(run!(c, "BF.INSERT", "n", &insert, "a", "b", "c", "d", "e"));
    assert_eq!(replies[..3], [Value::Int(1), Value::Int(1), Value::Int(1)]);
    assert_eq!(replies.len(), 5);
    for reply in &replies[3..] {
        assert!(error(reply.clone()).starts_with("ERR non scaling filter is full"), "{reply:?}");
    }
    assert_eq!(ints(run!(c, "BF.INSERT", "n", "ITEMS", "c", "b", "a")), [0, 0, 0], "what is there needs no room");
}

#[test]
fn f88_another_type_is_refused() {
    let server = Server::new();
    let mut c = server.client();
    run!(c, "SET", "s", "x");
    for options in [&["ITEMS", "a"][..], &["NOCREATE", "ITEMS", "a"]] {
        assert!(error(run!(c, "BF.INSERT", "s", options)).starts_with("WRONGTYPE "), "{options:?}");
    }
}
