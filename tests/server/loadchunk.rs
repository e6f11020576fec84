//! BF.LOADCHUNK: a filter put together from records, and everything that is not one refused.

use redis::Value;

use crate::harness::records::{self, Filter, Layer, Record};
use crate::harness::{Client, Server, add, error, int, ints, items, ok, shown};
use crate::run;

/// The iterator of an end record.
const END: u64 = (1 << 46) - 1;

/// Asserts that it is refused, saying each of `words`, and that there is no key.
fn refused(c: &mut Client, key: &str, iterator: impl ToString, data: &[u8], words: &[&str]) {
    let before = int(run!(c, "EXISTS", key));
    let digest = (before == 1).then(|| c.digest(key));
    let iterator = iterator.to_string();
    let text = error(run!(c, "BF.LOADCHUNK", key, &iterator, data));
    assert!(text.starts_with("ERR "), "{text}");
    for word in words {
        assert!(text.to_lowercase().contains(word), "iterator {iterator}: {text:?} does not say {word:?}");
    }
    assert_eq!(int(run!(c, "EXISTS", key)), before, "iterator {iterator}: {text}");
    assert_eq!((before == 1).then(|| c.digest(key)), digest, "iterator {iterator}: {text}");
}

/// A default filter with `hello` in it, by the known places: line 1 of 3, places 171, 239 and 33.
fn hello() -> [Record; 4] {
    let positions = [33, 171, 239].map(|place| 512 + place);
    [Filter::DEFAULT.record(), Layer::DEFAULT.record(), records::bits(0, 0, 1, &[(0, &positions)]), records::end(&[1])]
}

#[test]
fn records_make_a_filter_one_by_one_or_together() {
    let server = Server::new();
    let mut c = server.client();
    let records = hello();
    for (record, iterator) in records.iter().zip([1, 2, 3, END]) {
        ok(run!(c, "BF.LOADCHUNK", "single", iterator, record.bytes()));
    }
    ok(run!(c, "BF.LOADCHUNK", "joined", 1, records::joined(&records)));
    assert_eq!(c.digest("single"), c.digest("joined"));
    for key in ["single", "joined"] {
        assert_eq!(ints(run!(c, "BF.MEXISTS", key, "hello", "other", "")), [1, 0, 0], "{key}");
        assert_eq!(int(run!(c, "BF.ADD", key, "hello")), 0, "{key}");
        assert_eq!(int(run!(c, "BF.ADD", key, "other")), 1, "{key}");
    }
    assert_eq!(c.digest("single"), c.digest("joined"));
}

#[test]
fn what_is_sent_to_replicas_makes_the_same_filter_elsewhere() {
    let (from, to) = (Server::new(), Server::new());
    let (mut c, mut d, mut stream) = (from.client(), to.client(), from.stream());
    ok(run!(c, "BF.RESERVE", "k", "0.01", 10, "EXPANSION", 3));
    add(&mut c, "k", &items(0..1000));
    for request in stream.until_now(&mut c) {
        let reply = run!(d, &request);
        assert!(!matches!(reply, Value::ServerError(_)), "{:?}: {reply:?}", shown(&[request]));
    }
    assert_eq!(d.digest("k"), c.digest("k"));
}

#[test]
fn f52_an_existing_key_is_not_loaded_over() {
    let server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "k", "a");
    refused(&mut c, "k", 1, &records::joined(&hello()), &["exists"]);
    refused(&mut c, "k", 1, &Filter::DEFAULT.record().bytes(), &["exists"]);
    assert_eq!(ints(run!(c, "BF.MEXISTS", "k", "a", "hello")), [1, 0]);
    // On a filter that is being loaded the identical record is answered OK, another one is not.
    let mut record = Filter::DEFAULT.record();
    ok(run!(c, "BF.LOADCHUNK", "half", 1, record.bytes()));
    ok(run!(c, "BF.LOADCHUNK", "half", 1, record.bytes()));
    record.changes = 1;
    refused(&mut c, "half", 1, &record.bytes(), &["del"]);
}

#[test]
fn f53_a_filter_that_is_being_loaded_answers_nothing_as_if_it_were_whole() {
    let server = Server::new();
    let mut c = server.client();
    let records = hello();
    for (loaded, iterator) in [(0, 1), (1, 2), (2, 3)] {
        ok(run!(c, "BF.LOADCHUNK", "k", iterator, records[loaded].bytes()));
        let replies = [
            run!(c, "BF.EXISTS", "k", "hello"),
            run!(c, "BF.MEXISTS", "k", "hello", "other"),
            run!(c, "BF.ADD", "k", "hello"),
            run!(c, "BF.MADD", "k", "hello", "other"),
        ];
        for reply in replies {
            let text = error(reply);
            assert!(text.starts_with("ERR ") && text.contains("load"), "{text}");
        }
        assert!(error(run!(c, "BF.RESERVE", "k", "0.01", 100)).starts_with("ERR item exists"));
        assert_eq!(run!(c, "TYPE", "k"), Value::SimpleString("bloomgate".into()));
    }
    ok(run!(c, "RENAME", "k", "renamed"));
    assert_eq!(int(run!(c, "COPY", "renamed", "k")), 1);
    assert_eq!(int(run!(c, "DEL", "renamed")), 1);
    ok(run!(c, "BF.LOADCHUNK", "k", END, records[3].bytes()));
    assert_eq!(int(run!(c, "BF.EXISTS", "k", "hello")), 1);
}

#[test]
fn f54_a_whole_filter_takes_no_bits() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.LOADCHUNK", "k", 1, records::joined(&hello())));
    refused(&mut c, "k", 3, b"zz", &[]);
    refused(&mut c, "k", 3, &records::bits(0, 0, 1, &[(0, &[1])]).bytes(), &[]);
    refused(&mut c, "k", END, &records::end(&[2]).bytes(), &[]);
    ok(run!(c, "BF.LOADCHUNK", "k", END, records::end(&[1]).bytes()));
}

#[test]
fn f56_only_the_iterator_that_belongs_to_a_record_is_taken() {
    let server = Server::new();
    let mut c = server.client();
    let records = hello();
    for iterator in ["0", "-1", "2", "3", "70368744177663", "18446744073709551616", "", "1.0", " 1", "one"] {
        refused(&mut c, "k", iterator, &records[0].bytes(), &["iterator"]);
    }
    ok(run!(c, "BF.LOADCHUNK", "k", 1, records[0].bytes()));
    for iterator in ["0", "1", "3", "-2"] {
        refused(&mut c, "k", iterator, &records[1].bytes(), &["iterator"]);
    }
    ok(run!(c, "BF.LOADCHUNK", "k", 2, records[1].bytes()));
    for iterator in ["0", "2", "4"] {
        refused(&mut c, "k", iterator, &records[2].bytes(), &["iterator"]);
    }
    ok(run!(c, "BF.LOADCHUNK", "k", 3, records[2].bytes()));
    refused(&mut c, "k", "4", &records[3].bytes(), &["iterator"]);
    ok(run!(c, "BF.LOADCHUNK", "k", END, records[3].bytes()));
}

#[test]
fn a_lost_doubled_or_foreign_record_is_noticed() {
    let server = Server::new();
    let mut c = server.client();
    let layer = Layer { lines: 200, k: 6, s: 4, ..Layer::DEFAULT };
    ok(run!(c, "BF.LOADCHUNK", "k", 1, Filter::DEFAULT.record().bytes()));
    // Bits, a second layer or the end before the first layer.
    refused(&mut c, "k", 3, &records::bits(0, 0, 1, &[]).bytes(), &[]);
    refused(&mut c, "k", 2, &Layer { number: 1, ..layer }.record().bytes(), &[]);
    refused(&mut c, "k", END, &records::end(&[]).bytes(), &[]);
    let mut other = layer.record();
    other.id = *b"another!";
    refused(&mut c, "k", 2, &other.bytes(), &[]);
    ok(run!(c, "BF.LOADCHUNK", "k", 2, layer.record().bytes()));
    // 200 lines are four chunks: 0 .. 2 and 2 .. 4.
    refused(&mut c, "k", 6, &records::bits(0, 2, 4, &[]).bytes(), &[]);
    refused(&mut c, "k", END, &records::end(&[0]).bytes(), &[]);
    ok(run!(c, "BF.LOADCHUNK", "k", 4, records::bits(0, 0, 2, &[(1, &[5])]).bytes()));
    ok(run!(c, "BF.LOADCHUNK", "k", 4, records::bits(0, 0, 2, &[(1, &[5])]).bytes()));
    refused(&mut c, "k", 4, &records::bits(0, 0, 2, &[(1, &[6])]).bytes(), &[]);
    refused(&mut c, "k", 6, &records::bits(0, 1, 4, &[]).bytes(), &[]);
    refused(&mut c, "k", 7, &records::bits(0, 2, 5, &[]).bytes(), &[]);
    refused(&mut c, "k", END, &records::end(&[0]).bytes(), &[]);
    let mut older = records::bits(0, 2, 4, &[]);
    older.changes = 5;
    ok(run!(c, "BF.LOADCHUNK", "k", 6, older.bytes()));
    refused(&mut c, "k", END, &records::end(&[0]).bytes(), &[]);
    let mut end = records::end(&[0, 0]);
    end.changes = 5;
    refused(&mut c, "k", END, &end.bytes(), &[]);
    let mut end = records::end(&[1]);
    end.changes = 5;
    ok(run!(c, "BF.LOADCHUNK", "k", END, end.bytes()));
    assert_eq!(int(run!(c, "BF.EXISTS", "k", "x")), 0);
}

#[test]
fn f57_damage_in_transit_is_noticed() {
    let server = Server::new();
    let mut c = server.client();
    let payload = records::joined(&hello());
    for at in 0..payload.len() {
        let mut damaged = payload.clone();
        damaged[at] ^= 0x10;
        refused(&mut c, "k", 1, &damaged, &[]);
    }
    for length in 0..payload.len() {
        let whole_records = records::find(&payload).iter().any(|range| range.end == length);
        if whole_records {
            // That is what a dump under way looks like.
            ok(run!(c, "BF.LOADCHUNK", "k", 1, &payload[..length]));
            run!(c, "DEL", "k");
        } else {
            refused(&mut c, "k", 1, &payload[..length], &[]);
        }
    }
    // As a client does that takes it for text.
    let text = String::from_utf8_lossy(&payload).into_owned();
    refused(&mut c, "k", 1, text.as_bytes(), &[]);
    refused(&mut c, "k", 1, &[payload.as_slice(), b"\0"].concat(), &[]);
    refused(&mut c, "k", 1, &[payload.as_slice(), payload.as_slice()].concat(), &[]);
    ok(run!(c, "BF.LOADCHUNK", "k", 1, payload.as_slice()));
}

#[test]
fn records_that_do_not_check_are_refused() {
    let server = Server::new();
    let mut c = server.client();
    let filter = Filter::DEFAULT;
    let wrong_filters = [
        Filter { flags: 32, ..filter },
        Filter { flags: u32::MAX, ..filter },
        Filter { flags: 1, expansion: 2, ..filter },
        Filter { expansion: 0, ..filter },
        Filter { expansion: 4_000_000_000, ..filter },
        Filter { rate: f64::NAN, ..filter },
        Filter { rate: 0.0, ..filter },
        Filter { rate: 1.0, ..filter },
        Filter { rate: -0.5, ..filter },
        Filter { rate: f64::INFINITY, ..filter },
        Filter { capacity: 0, ..filter },
        // Keyed without a key; known, but not of this release: foreign.
        Filter { flags: 4, ..filter },
        Filter { flags: 8, ..filter },
    ];
    for wrong in wrong_filters {
        refused(&mut c, "k", 1, &wrong.record().bytes(), &[]);
    }
    let layer = Layer::DEFAULT;
    let wrong_layers = [
        Layer { number: 1, ..layer },
        Layer { layout: 0, ..layer },
        Layer { layout: 2, ..layer },
        Layer { layout: 128, ..layer },
        Layer { family: 0, ..layer },
        Layer { family: 2, ..layer },
        Layer { family: 128, ..layer },
        Layer { width: 0, ..layer },
        Layer { width: 4, ..layer },
        Layer { s: 0, ..layer },
        Layer { s: 3, ..layer },
        Layer { s: 8, ..layer },
        Layer { s: 16, k: 16, ..layer },
        Layer { k: 0, ..layer },
        Layer { k: 65, ..layer },
        Layer { k: u16::MAX, ..layer },
        Layer { lines: 0, ..layer },
        Layer { lines: (1 << 34) + 1, ..layer },
        Layer { lines: u64::MAX, ..layer },
        Layer { capacity: 0, ..layer },
        Layer { rate: f64::NAN, ..layer },
        Layer { rate: 0.0, ..layer },
        Layer { rate: 1.0, ..layer },
    ];
    ok(run!(c, "BF.LOADCHUNK", "k", 1, filter.record().bytes()));
    for wrong in wrong_layers {
        refused(&mut c, "k", 2, &wrong.record().bytes(), &[]);
    }
    for (version, kind) in [(0, records::LAYER), (2, records::LAYER), (1, 0), (1, 5), (1, 255)] {
        let wrong = Record { version, kind, ..layer.record() };
        refused(&mut c, "k", 2, &wrong.bytes(), &[]);
    }
    ok(run!(c, "BF.LOADCHUNK", "k", 2, layer.record().bytes()));
    let wrong_bits: [&[(u32, &[u16])]; 5] =
        [&[(0, &[])], &[(1, &[1])], &[(0, &[2, 1])], &[(0, &[1, 1])], &[(0, &[1536])]];
    for wrong in wrong_bits {
        refused(&mut c, "k", 3, &records::bits(0, 0, 1, wrong).bytes(), &[]);
    }
    ok(run!(c, "BF.LOADCHUNK", "k", 3, records::bits(0, 0, 1, &[(0, &[1535])]).bytes()));
}

/// The header with which a RedisBloom dump begins: size, layers, options, growth, then 53 bytes a layer.
struct Header {
    layers: u32,
    growth: u32,
    bytes: u64,
    bits: u64,
    error: f64,
    bpe: f64,
    hashes: u32,
    entries: u64,
}

impl Header {
    const GOOD: Self =
        Self { layers: 1, growth: 2, bytes: 16, bits: 128, error: 0.05, bpe: 6.235, hashes: 5, entries: 20 };

    fn bytes(&self) -> Vec<u8> {
        let mut header = 0_u64.to_le_bytes().to_vec();
        header.extend(self.layers.to_le_bytes());
        header.extend(5_u32.to_le_bytes());
        header.extend(self.growth.to_le_bytes());
        for _ in 0..self.layers.min(1) {
            header.extend(self.bytes.to_le_bytes());
            header.extend(self.bits.to_le_bytes());
            header.extend(0_u64.to_le_bytes());
            header.extend(self.error.to_le_bytes());
            header.extend(self.bpe.to_le_bytes());
            header.extend(self.hashes.to_le_bytes());
            header.extend(self.entries.to_le_bytes());
            header.push(0);
        }
        header
    }
}

#[test]
fn f09_f10_f11_hostile_headers_of_another_format_are_refused() {
    let server = Server::new();
    let mut c = server.client();
    let good = || Header { ..Header::GOOD };
    let headers = [
        Header { hashes: u32::MAX - 1, ..good() },
        Header { hashes: 0, ..good() },
        Header { bpe: -3.0, ..good() },
        Header { bpe: f64::NAN, ..good() },
        Header { bpe: 1.5e9, ..good() },
        Header { bytes: (1 << 61) + 8, bits: 64, ..good() },
        Header { bytes: 1 << 40, bits: 1 << 43, ..good() },
        Header { layers: 0, ..good() },
        Header { layers: 100_000, ..good() },
        Header { entries: 0, ..good() },
        Header { entries: 1 << 63, ..good() },
        Header { growth: 0, ..good() },
        Header { growth: 4_000_000_000, ..good() },
        Header { error: f64::NAN, ..good() },
    ];
    let before: i64 = c.info("used_memory_peak").parse().expect("a number of bytes");
    for header in headers {
        refused(&mut c, "k", 1, &header.bytes(), &[]);
        run!(c, "BF.ADD", "other", "x");
    }
    assert!(server.alive());
    let after: i64 = c.info("used_memory_peak").parse().expect("a number of bytes");
    assert!(after - before < 1 << 20, "{} bytes for nothing", after - before);
}

#[test]
fn what_a_record_announces_costs_nothing_before_it_comes() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.LOADCHUNK", "k", 1, Filter::DEFAULT.record().bytes()));
    // 64 GiB of lines: refused as a client's, where the machine has less; in any case nothing is taken for it.
    let layer = Layer { lines: 1 << 30, ..Layer::DEFAULT };
    let before: i64 = c.info("used_memory").parse().expect("a number of bytes");
    run!(c, "BF.LOADCHUNK", "k", 2, layer.record().bytes());
    run!(c, "BF.LOADCHUNK", "k", 3, records::bits(0, 0, 1, &[]).bytes());
    let after: i64 = c.info("used_memory").parse().expect("a number of bytes");
    assert!(after - before < 1 << 20, "{} bytes", after - before);
    assert_eq!(int(run!(c, "DEL", "k")), 1);
}

#[test]
fn a_layer_sent_by_a_client_to_a_whole_filter_is_the_next_one_or_identical() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.LOADCHUNK", "k", 1, records::joined(&hello())));
    let second = Layer { number: 1, ..Layer::DEFAULT };
    // P(1) = 1 + 1 + 1 chunk, so its iterator is 4.
    refused(&mut c, "k", 5, &second.record().bytes(), &["iterator"]);
    let mut foreign = second.record();
    foreign.id = *b"another!";
    refused(&mut c, "k", 4, &foreign.bytes(), &[]);
    refused(&mut c, "k", 2, &Layer { k: 4, ..Layer::DEFAULT }.record().bytes(), &[]);
    ok(run!(c, "BF.LOADCHUNK", "k", 4, second.record().bytes()));
    ok(run!(c, "BF.LOADCHUNK", "k", 4, second.record().bytes()));
    refused(&mut c, "k", 6, &Layer { number: 3, ..second }.record().bytes(), &[]);
    assert_eq!(int(run!(c, "BF.EXISTS", "k", "hello")), 1);
    assert_eq!(int(run!(c, "BF.ADD", "k", "new")), 1);
    assert_eq!(int(run!(c, "BF.EXISTS", "k", "new")), 1);
}

/// What a client can have for its bytes is bounded: a record names at most 8,192 chunks, 32 MiB.
#[test]
fn a_record_of_a_client_names_at_most_8192_chunks() {
    let server = Server::new();
    let mut c = server.client();
    let layer = Layer { lines: 10_000 * 64, capacity: 1 << 24, ..Layer::DEFAULT };
    let payload = |count: u32| {
        let chunks: Vec<(u32, &[u16])> = (0..count).map(|index| (index, &[7_u16][..])).collect();
        records::joined(&[Filter::DEFAULT.record(), layer.record(), records::bits(0, 0, 10_000, &chunks)])
    };
    ok(run!(c, "BF.LOADCHUNK", "most", 1, payload(8192)));
    let reply = error(run!(c, "BF.LOADCHUNK", "more", 1, payload(8193)));
    assert_eq!(reply, "ERR bad record: it holds more than 8,192 chunks, the most that one record of a dump has");
    assert_eq!(int(run!(c, "EXISTS", "more")), 0);
}
