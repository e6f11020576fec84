//! Inputs that a fuzzer found worth keeping, tried again as it did: `tests/seeds`, a directory for each target of `fuzz`.

use std::fs;
use std::path::Path;

#[path = "../../fuzz/src/lib.rs"]
mod fuzz;

fn replay(target: &str, run: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds").join(target);
    let mut tried = 0;
    for entry in fs::read_dir(directory).unwrap() {
        run(&fs::read(entry.unwrap().path()).unwrap());
        tried += 1;
    }
    assert!(tried > 10, "{tried} inputs in {target}");
}

#[test]
fn args() {
    replay("args", fuzz::args::run);
}

#[test]
fn decode() {
    replay("decode", fuzz::decode::run);
}

#[test]
fn load() {
    replay("load", fuzz::load::run);
}

#[test]
fn operations() {
    replay("operations", fuzz::operations::run);
}
