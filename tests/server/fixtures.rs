//! An RDB file that release 0.1.0 wrote on Redis 7.0.15 is loaded for ever. `tests/core/codec/fixtures.rs` does the same
//! for bare records.
//!
//! | key | how it was made |
//! |---|---|
//! | `default` | BF.MADD of `item0` … `item79` |
//! | `grown` | BF.RESERVE 0.05 20, 500 items |
//! | `non-scaling` | BF.RESERVE 0.2 1000 NONSCALING, 1000 items |
//! | `gaps` | BF.RESERVE 0.001 50000000, 30 items |
//! | `copy` | COPY of `grown` |
//! | `keyed`, `half-loaded` | BF.LOADCHUNK of `tests/fixtures/v1/*.bin` of these names |
//!
//! and another with counting filters:
//!
//! | key | how it was made |
//! |---|---|
//! | `grown` | BF.RESERVE 0.05 20 COUNTING, BF.MADD of `item0` … `item699`, BF.MDEL of those from `item500` on |
//! | `twice` | COPY of `grown`, `item0` … `item99` again |
//! | `keyed`, `half-loaded` | BF.LOADCHUNK of `tests/fixtures/v1/counting-*.bin` of these names |

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Client, Options, Server, add, error, found, int, ints, items, ok, version};
use crate::{needs, run};

const END: u64 = (1 << 46) - 1;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1").join(name)
}

/// Each key, its items, and those of `absent0` … `absent999` that it answers 1 for: a number that depends on every bit.
const FILTERS: [(&str, usize, usize); 6] = [
    ("default", 80, 2),
    ("grown", 500, 16),
    ("copy", 500, 16),
    ("non-scaling", 1000, 165),
    ("gaps", 30, 0),
    ("keyed", 300, 29),
];

/// The same of the counting ones, and what BF.CARD answers.
const COUNTING: [(&str, usize, usize, i64); 3] =
    [("grown", 500, 36, 500), ("twice", 500, 36, 600), ("keyed", 300, 32, 319)];

fn wrong(c: &mut Client, key: &str) -> usize {
    found(c, key, &(0..1000).map(|i| format!("absent{i}")).collect::<Vec<_>>())
}

#[test]
fn the_rdb_file_of_version_1_is_loaded_for_ever() {
    needs!(version().has(7, 0), "RDB files of Redis 7.0");
    let mut server = Server::on_file(&fixture("dump.rdb"));
    for restarted in [false, true] {
        if restarted {
            server.restart();
        }
        let mut c = server.client();
        assert_eq!(int(run!(c, "DBSIZE")), 7);
        for (key, n, wrongly) in FILTERS {
            assert_eq!(found(&mut c, key, &items(0..n)), n, "{key}");
            assert_eq!(wrong(&mut c, key), wrongly, "{key}");
        }
        assert!(error(run!(c, "BF.EXISTS", "half-loaded", "item0")).contains("load"));
    }
}

#[test]
fn the_counting_filters_of_version_1_are_loaded_for_ever() {
    needs!(version().has(7, 0), "RDB files of Redis 7.0");
    let mut server = Server::on_file(&fixture("counting.rdb"));
    for restarted in [false, true] {
        if restarted {
            server.restart();
        }
        let mut c = server.client();
        assert_eq!(int(run!(c, "DBSIZE")), 4);
        for (key, n, wrongly, card) in COUNTING {
            assert_eq!(found(&mut c, key, &items(0..n)), n, "{key}");
            assert_eq!((wrong(&mut c, key), int(run!(c, "BF.CARD", key))), (wrongly, card), "{key}");
        }
        assert!(error(run!(c, "BF.DEL", "half-loaded", "item0")).contains("load"));
        assert_eq!(int(run!(c, "BF.COUNT", "keyed", "item0")), 15);
    }
    let mut c = server.client();
    for item in items(0..100) {
        assert!(int(run!(c, "BF.COUNT", "twice", &item)) >= 2);
        assert_eq!(ints(run!(c, "BF.MDEL", "twice", &item, &item)), [1, 1]);
    }
    assert_eq!(found(&mut c, "twice", &items(100..500)), 400);
    assert!(found(&mut c, "twice", &items(0..100)) < 20);
}

/// The half-loaded one goes on where it stopped, and what is loaded grows.
#[test]
fn the_filters_of_version_1_can_be_used() {
    needs!(version().has(7, 0), "RDB files of Redis 7.0");
    let server = Server::on_file(&fixture("dump.rdb"));
    let mut c = server.client();
    let records = records(&fs::read(fixture("grown.bin")).expect("the fixture"));
    // Positions: 1, then for each layer 1 and its number of chunks, which is 1.
    for (i, record) in records.iter().enumerate().skip(5) {
        let iterator = if i + 1 == records.len() { END } else { i as u64 + 1 };
        ok(run!(c, "BF.LOADCHUNK", "half-loaded", iterator, &record[..]));
    }
    assert_eq!(found(&mut c, "half-loaded", &items(0..500)), 500);
    for (key, ..) in FILTERS.into_iter().filter(|(key, ..)| *key != "non-scaling") {
        assert!(add(&mut c, key, &items(10_000..11_000)) > 900, "{key}");
        assert_eq!(found(&mut c, key, &items(10_000..11_000)), 1000, "{key}");
    }
}

/// A file's records, taken apart by their lengths.
fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some(length) = bytes.get(12..16) {
        let length = u32::from_le_bytes(length.try_into().expect("four bytes"));
        records.push(bytes.split_off(..length as usize).expect("the whole record").to_vec());
    }
    records
}

/// Writes `dump.rdb` if it is not there yet, and prints what FILTERS says of it.
#[test]
#[ignore = "writes a new fixture: cargo test --test server write_the_rdb_file -- --ignored --nocapture"]
fn write_the_rdb_file() {
    let server = Options::new().start();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "grown", "0.05", 20));
    ok(run!(c, "BF.RESERVE", "non-scaling", "0.2", 1000, "NONSCALING"));
    ok(run!(c, "BF.RESERVE", "gaps", "0.001", 50_000_000));
    for (key, n, _) in FILTERS.into_iter().filter(|(key, ..)| !["copy", "keyed"].contains(key)) {
        add(&mut c, key, &items(0..n));
    }
    assert_eq!(int(run!(c, "COPY", "grown", "copy")), 1);
    for key in ["keyed", "half-loaded"] {
        let data = fs::read(fixture(&format!("{key}.bin"))).expect("the fixture");
        ok(run!(c, "BF.LOADCHUNK", key, 1, data));
    }
    for (key, ..) in FILTERS {
        println!("{key}: {} wrong", wrong(&mut c, key));
    }
    keep(server, "dump.rdb");
}

/// Writes `counting.rdb` likewise.
#[test]
#[ignore = "writes a new fixture: cargo test --test server write_the_rdb_file -- --ignored --nocapture"]
fn write_the_rdb_file_of_counting_filters() {
    let server = Options::new().start();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "grown", "0.05", 20, "COUNTING"));
    add(&mut c, "grown", &items(0..700));
    assert_eq!(ints(run!(c, "BF.MDEL", "grown", items(500..700))), [1; 200]);
    assert_eq!(int(run!(c, "COPY", "grown", "twice")), 1);
    add(&mut c, "twice", &items(0..100));
    for key in ["keyed", "half-loaded"] {
        let data = fs::read(fixture(&format!("counting-{key}.bin"))).expect("the fixture");
        ok(run!(c, "BF.LOADCHUNK", key, 1, data));
    }
    for (key, ..) in COUNTING {
        println!("{key}: {} wrong", wrong(&mut c, key));
    }
    keep(server, "counting.rdb");
}

/// Copies what the server saves to the fixtures, if there is none of this name.
fn keep(mut server: Server, name: &str) {
    server.stop();
    let written = server.directory().join("dump.rdb");
    println!("{} bytes", fs::metadata(&written).expect("the file").len());
    if !fixture(name).exists() {
        fs::copy(written, fixture(name)).expect("the file can be copied");
    }
}
