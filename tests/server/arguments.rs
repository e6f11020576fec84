//! Which arguments are taken, and what the errors say.

use redis::Value;

use crate::harness::{Client, Server, error, int, ints, ok};
use crate::run;

/// Asserts that BF.RESERVE with these arguments is refused, with an error that says each of `words`, in any case, and
/// that it leaves no key behind.
fn refused(c: &mut Client, arguments: &[&str], words: &[&str]) {
    let text = error(run!(c, "BF.RESERVE", "k", arguments));
    assert!(text.starts_with("ERR "), "{arguments:?}: {text}");
    for word in words {
        assert!(text.to_lowercase().contains(&word.to_lowercase()), "{arguments:?}: {text:?} does not say {word:?}");
    }
    assert_eq!(int(run!(c, "EXISTS", "k")), 0, "{arguments:?}");
}

fn taken(c: &mut Client, arguments: &[&str]) {
    assert_eq!(run!(c, "BF.RESERVE", "k", arguments), Value::Okay, "{arguments:?}");
    assert_eq!(int(run!(c, "DEL", "k")), 1);
}

#[test]
fn f08_rates_out_of_range() {
    let server = Server::new();
    let mut c = server.client();
    let wrong =
        ["2", "1", "1.0", "0", "-0", "-0.1", "nan", "NaN", "inf", "-inf", "1e-13", "1e-320", "1e400", "", "text"];
    for rate in wrong {
        refused(&mut c, &[rate, "100"], &["rate", "1e-12", "1"]);
    }
    for rate in ["1e-12", "0.5", "0.999999", "1E-3"] {
        taken(&mut c, &[rate, "100"]);
    }
}

#[test]
fn f111_numbers_are_numbers_from_end_to_end() {
    let server = Server::new();
    let mut c = server.client();
    for rate in ["5%", " 0.01", "0.01 ", "0.01x", "0,01", "0.01\n", "0.01\0"] {
        refused(&mut c, &[rate, "100"], &["rate"]);
    }
    taken(&mut c, &[".01", "100"]);
    for capacity in ["1e3", "1.0", "1.5", "", " 100", "100 ", "100x", "0x10", "1_000", "ten", "100\0"] {
        refused(&mut c, &["0.01", capacity], &["capacity"]);
    }
    for expansion in ["2.0", "1e1", "", " 2", "two"] {
        refused(&mut c, &["0.01", "100", "EXPANSION", expansion], &["expansion", "32768"]);
    }
    refused(&mut c, &["0.01", "100", "EXPANSION", "2", "EXPANSION", "2"], &["expansion"]);
    refused(&mut c, &["0.01", "100", "NONSCALING", "NONSCALING"], &["nonscaling"]);
}

#[test]
fn capacities_out_of_range() {
    let server = Server::new();
    let mut c = server.client();
    for capacity in ["0", "-1", "-9223372036854775808", "18446744073709551616", "99999999999999999999999"] {
        refused(&mut c, &["0.01", capacity], &["capacity"]);
    }
    taken(&mut c, &["0.01", "1"]);
}

#[test]
fn expansions_out_of_range() {
    let server = Server::new();
    let mut c = server.client();
    for expansion in ["-1", "32769", "4294967296", "18446744073709551616"] {
        refused(&mut c, &["0.01", "100", "EXPANSION", expansion], &["expansion", "32768"]);
    }
    for expansion in ["0", "1", "2", "32768"] {
        taken(&mut c, &["0.01", "100", "EXPANSION", expansion]);
    }
}

#[test]
fn f06_expansion_0_means_nonscaling() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "zero", "0.01", 100, "EXPANSION", 0));
    ok(run!(c, "BF.RESERVE", "nonscaling", "0.01", 100, "NONSCALING"));
    assert_eq!(c.digest("zero"), c.digest("nonscaling"));
    ok(run!(c, "BF.RESERVE", "b", "0.99", 1, "EXPANSION", 0));
    run!(c, "BF.MADD", "b", "a", "b", "c");
    refused(&mut c, &["0.01", "100", "NOSCALING"], &["NOSCALING"]);
}

#[test]
fn f78_unknown_options_are_named() {
    let server = Server::new();
    let mut c = server.client();
    refused(&mut c, &["0.01", "100", "FOO"], &["FOO"]);
    refused(&mut c, &["0.01", "100", "FOO", "BAR"], &["FOO"]);
    refused(&mut c, &["0.01", "100", "NONSCALING", "BAR"], &["BAR"]);
    refused(&mut c, &["0.01", "100", "EXPANSION", "2", "BAR"], &["BAR"]);
    refused(&mut c, &["0.01", "100", "E", "2"], &["E"]);
    refused(&mut c, &["0.01", "100", "EXPANSIONS", "2"], &["EXPANSIONS"]);
    refused(&mut c, &["0.01", "100", "NONSCALINGX"], &["NONSCALINGX"]);
    refused(&mut c, &["0.01", "100", ""], &[]);
    refused(&mut c, &["0.01", "100", "EXPANSION 2"], &["EXPANSION 2"]);
    refused(&mut c, &["0.01", "100", "EXPANSION"], &["EXPANSION"]);
    // Whatever was sent, the error is one line.
    let text = error(run!(c, "BF.RESERVE", "k", "0.01", "100", b"x\r\n+OK\r\n\xff\0"));
    assert!(!text.contains('\n'), "{text:?}");
    assert_eq!(run!(c, "PING"), Value::SimpleString("PONG".into()), "the connection is in step");
}

#[test]
fn options_are_taken_in_any_case_and_order() {
    let server = Server::new();
    let mut c = server.client();
    for arguments in [["expansion", "2"], ["EXPANSION", "2"], ["ExPaNsIoN", "2"]] {
        taken(&mut c, &["0.01", "100", arguments[0], arguments[1]]);
    }
    taken(&mut c, &["0.01", "100", "nonscaling"]);
    assert_eq!(int(run!(c, "bf.add", "k", "a")), 1);
    assert_eq!(ints(run!(c, "Bf.mExists", "k", "a")), [1]);
}

#[test]
fn f81_nonscaling_and_expansion_exclude_each_other() {
    let server = Server::new();
    let mut c = server.client();
    for expansion in ["0", "1", "2"] {
        refused(&mut c, &["0.01", "100", "NONSCALING", "EXPANSION", expansion], &["nonscaling", "expansion"]);
        refused(&mut c, &["0.01", "100", "EXPANSION", expansion, "NONSCALING"], &["nonscaling", "expansion"]);
    }
}

#[test]
fn counting_is_a_whole_word_once() {
    let server = Server::new();
    let mut c = server.client();
    for arguments in [&["COUNTING"][..], &["counting", "NONSCALING"], &["EXPANSION", "4", "Counting"]] {
        run!(c, "BF.RESERVE", "k", "0.01", "100", arguments);
        run!(c, "BF.ADD", "k", "a");
        assert_eq!(int(run!(c, "BF.COUNT", "k", "a")), 1, "{arguments:?}");
        run!(c, "DEL", "k");
    }
    refused(&mut c, &["0.01", "100", "COUNTING", "COUNTING"], &["COUNTING", "twice"]);
    refused(&mut c, &["0.01", "100", "NONSCALING", "COUNTING", "counting"], &["COUNTING", "twice"]);
    for word in ["COUNT", "COUNTIN", "COUNTINGS", "COUTNING", "COUNTING ", "COUNTING\0", "NOCOUNTING"] {
        refused(&mut c, &["0.01", "100", word], &["unknown option", word.trim_end_matches('\0')]);
    }
    refused(&mut c, &["0.01", "100", "COUNTING", "4"], &["unknown option", "4"]);
    refused(&mut c, &["0.01", "100", "COUNTING", "EXPANSION", "2", "NONSCALING"], &["nonscaling", "expansion"]);
    refused(&mut c, &["0.01", "COUNTING"], &["capacity"]);
    refused(&mut c, &["COUNTING", "100"], &["rate"]);
    // 4 bits a place: a filter of bits of this capacity would have 0.3 TiB.
    refused(&mut c, &["0.01", "300000000000", "COUNTING"], &["1 TiB"]);
}

#[test]
fn f87_every_error_has_its_code() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "SET", "s", "x"));
    ok(run!(c, "BF.RESERVE", "full", "1e-9", 1, "NONSCALING"));
    run!(c, "BF.ADD", "full", "a");
    let replies = [
        run!(c, "BF.RESERVE", "k", "0.01"),
        run!(c, "BF.RESERVE", "k", "2", 100),
        run!(c, "BF.RESERVE", "k", "0.01", 0),
        run!(c, "BF.RESERVE", "k", "0.01", 100, "FOO"),
        run!(c, "BF.RESERVE", "full", "0.01", 100),
        run!(c, "BF.RESERVE", "k", "0.01", "1000000000000000000"),
        run!(c, "BF.ADD", "full", "b"),
        run!(c, "BF.ADD", "s", "b"),
        run!(c, "BF.LOADCHUNK", "k", "zero", "data"),
        run!(c, "BF.LOADCHUNK", "k", 1, "data"),
        run!(c, "BF.LOADCHUNK", "full", 1, "data"),
        run!(c, "BF.DEL", "full", "a"),
        run!(c, "BF.MDEL", "s", "a"),
        run!(c, "BF.COUNT", "full", "a"),
    ];
    for reply in replies {
        let text = error(reply);
        assert!(text.starts_with("ERR ") || text.starts_with("WRONGTYPE "), "{text}");
        assert!(text.len() > "ERR ".len() + 3, "{text}");
    }
}
