//! Loading the module: its arguments, and what keeps it from being loaded.

use crate::harness::{Options, Server, built, error, int, items, module, ok, version};
use crate::run;

#[test]
fn arguments_are_the_defaults_of_filters_that_adds_make() {
    let server = Options::new().module_arguments("ERROR_RATE 0.001 INITIAL_SIZE 1000 EXPANSION 4").start();
    let mut c = server.client();
    run!(c, "BF.ADD", "made", "x");
    ok(run!(c, "BF.RESERVE", "reserved", "0.001", 1000, "EXPANSION", 4));
    run!(c, "BF.ADD", "reserved", "x");
    assert_eq!(c.digest("made"), c.digest("reserved"));
    // What BF.RESERVE leaves out is a default too.
    ok(run!(c, "BF.RESERVE", "short", "0.001", 1000));
    run!(c, "BF.ADD", "short", "x");
    assert_eq!(c.digest("short"), c.digest("made"));
}

#[test]
fn arguments_are_taken_in_any_case_and_any_number() {
    for arguments in ["error_rate 0.001", "Initial_Size 1000", "EXPANSION 1", "EXPANSION 32768 ERROR_RATE 1e-12"] {
        let server = Options::new().module_arguments(arguments).start();
        assert_eq!(int(run!(server.client(), "BF.ADD", "k", "x")), 1, "{arguments}");
    }
}

#[test]
fn expansion_0_makes_filters_that_do_not_scale() {
    let server = Options::new().module_arguments("EXPANSION 0 INITIAL_SIZE 3 ERROR_RATE 1e-9").start();
    let mut c = server.client();
    for item in items(0..3) {
        assert_eq!(int(run!(c, "BF.ADD", "k", item)), 1);
    }
    assert!(error(run!(c, "BF.ADD", "k", "more")).starts_with("ERR non scaling filter is full"));
}

#[test]
fn bad_arguments_stop_the_load_and_the_log_names_them() {
    let wrong = [
        ("ERROR_RATE 2", "ERROR_RATE"),
        ("ERROR_RATE 0", "ERROR_RATE"),
        ("ERROR_RATE 1e-13", "ERROR_RATE"),
        ("ERROR_RATE nan", "ERROR_RATE"),
        ("ERROR_RATE much", "ERROR_RATE"),
        ("ERROR_RATE", "ERROR_RATE"),
        ("INITIAL_SIZE 0", "INITIAL_SIZE"),
        ("INITIAL_SIZE 1073741825", "INITIAL_SIZE"),
        ("INITIAL_SIZE 1e3", "INITIAL_SIZE"),
        ("EXPANSION 32769", "EXPANSION"),
        ("EXPANSION -1", "EXPANSION"),
        ("ERROR_RATE 0.01 FOO 1", "FOO"),
        ("ERROR_RATE 0.01 ERROR_RATE 0.01", "ERROR_RATE"),
    ];
    for (arguments, name) in wrong {
        let log = Options::new().module_arguments(arguments).try_start().err();
        let log = log.unwrap_or_else(|| panic!("loaded with {arguments}"));
        // A line of the module's own, besides the server's, which repeats nothing of the arguments.
        assert!(log.lines().any(|line| line.contains("<bf>") && line.contains(name)), "{arguments}:\n{log}");
        assert!(!log.contains("crashed by signal") && !log.contains("panicked"), "{arguments}:\n{log}");
    }
}

#[test]
fn arguments_of_redisbloom_that_have_no_effect_here_are_taken_and_logged() {
    let server = Options::new().module_arguments("CF_MAX_EXPANSIONS 32 ERROR_RATE 0.001").start();
    assert_eq!(int(run!(server.client(), "BF.ADD", "k", "x")), 1);
    let log = server.log();
    assert!(log.lines().any(|line| line.contains("<bf>") && line.contains("CF_MAX_EXPANSIONS")), "{log}");
}

/// The log of a server in which `rival.rs` owns something before our module comes.
fn log_with_rival(owns: &str) -> String {
    let rival = built("examples/librival.so");
    let started = Options::new().module_before(rival, owns).try_start();
    started.err().unwrap_or_else(|| panic!("loaded although another module owns the {owns}"))
}

#[test]
fn f107_the_log_names_what_another_module_has_taken() {
    for (owns, name) in [("name", "bf"), ("type", "bloomgate"), ("command", "bf.add")] {
        let log = log_with_rival(owns);
        let line =
            log.lines().find(|line| line.contains("bloomgate:") || line.contains("<bf>") || line.contains("<module>"));
        assert!(log.lines().any(|line| says_taken(line, name)), "{owns}: no line names {name}: {line:?}\n{log}");
        assert!(!log.contains("crashed by signal") && !log.contains("panicked"), "{log}");
    }
}

/// A line of the module that names what is taken: it quotes it, so that `bf` is not found in some other word.
fn says_taken(line: &str, name: &str) -> bool {
    let quoted = [format!("'{name}'"), format!("`{name}`"), format!("\"{name}\"")];
    quoted.iter().any(|name| line.to_lowercase().contains(&name.to_lowercase()))
}

#[test]
fn loading_twice_is_refused_and_harms_nothing() {
    let log = Options::new().module_before(module(), "").try_start().err().expect("the second cannot be loaded");
    assert!(log.lines().any(|line| says_taken(line, "bf")), "{log}");
}

#[test]
fn a_good_load_says_who_it_is() {
    let server = Server::new();
    let log = server.log();
    assert!(!log.to_lowercase().contains("panicked"), "{log}");
    assert!(log.contains("Module 'bf' loaded"), "on {}: {log}", version());
}

/// A panic ends the server, and whoever looks for the reason finds the place in its log.
#[test]
fn the_log_names_the_file_and_the_line_of_a_panic() {
    let server = Options::new().module_before(built("examples/libfaulty.so"), "").start();
    let mut c = server.client();
    ok(run!(c, "SET", "k", "x"));
    assert!(c.try_run(redis::cmd("FAULTY.PANIC").arg("k")).is_err(), "the server ends without an answer");
    server.until("the server has ended", || !server.alive());
    let log = server.log();
    let line = log.lines().find(|line| line.contains("a fault of the module")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("tests/server/faulty.rs:") && line.contains("the eighth argument of two"), "{line}");
    // A line of the log, with its date: the server's, not what went to standard error.
    assert!(line.contains(" # "), "{line}");
}
