//! Saved and loaded: RDB files, DUMP and RESTORE, the AOF in its forms.

use std::fs;

use redis::Value;

use crate::harness::records::{self, Filter, Layer};
use crate::harness::{
    Client, Filters, Options, Random, Server, add, bytes, error, found, int, items, ok, shown, version,
};
use crate::{needs, run};

/// Every write is on disk when it is answered, so that a kill loses nothing.
fn with_aof() -> Options {
    Options::new().config("appendonly", "yes").config("appendfsync", "always")
}

/// Rewrites the AOF and waits for it.
pub fn rewrite(server: &Server) {
    let mut c = server.client();
    run!(c, "BGREWRITEAOF");
    server.until("the AOF is rewritten", || {
        let info = c.info_all();
        info["aof_rewrite_in_progress"] == "0" && info["aof_rewrite_scheduled"] == "0"
    });
    assert_eq!(c.info("aof_last_bgrewrite_status"), "ok", "{}", server.log());
}

#[test]
fn save_and_restart() {
    let mut server = Server::new();
    let filters = Filters::make(&mut server.client());
    ok(run!(server.client(), "SAVE"));
    server.kill();
    server.start();
    filters.check(&mut server.client());
    server.restart();
    filters.check(&mut server.client());
}

#[test]
fn bgsave_and_restart() {
    let mut server = Server::new();
    let mut c = server.client();
    let filters = Filters::make(&mut c);
    run!(c, "BGSAVE");
    server.until("the background save is done", || c.info("rdb_bgsave_in_progress") == "0");
    assert_eq!(c.info("rdb_last_bgsave_status"), "ok");
    server.kill();
    server.start();
    filters.check(&mut server.client());
}

#[test]
fn debug_reload() {
    let server = Server::new();
    let mut c = server.client();
    let filters = Filters::make(&mut c);
    ok(run!(c, "DEBUG", "RELOAD"));
    filters.check(&mut c);
}

#[test]
fn f38_aof_as_written() {
    let mut server = with_aof().start();
    let filters = Filters::make(&mut server.client());
    server.kill();
    server.start();
    filters.check(&mut server.client());
    ok(run!(server.client(), "DEBUG", "LOADAOF"));
    filters.check(&mut server.client());
}

/// A server whose AOF was rewritten, added to and loaded again; the filters that were in it before.
fn rewritten(preamble: &str) -> (Server, Filters) {
    let mut server = with_aof().config("aof-use-rdb-preamble", preamble).start();
    let filters = Filters::make(&mut server.client());
    rewrite(&server);
    add(&mut server.client(), "after", &items(0..500));
    server.kill();
    server.start();
    let mut c = server.client();
    filters.check(&mut c);
    assert_eq!(found(&mut c, "after", &items(0..500)), 500);
    (server, filters)
}

#[test]
fn f38_aof_rewritten_without_preamble() {
    let (mut server, filters) = rewritten("no");
    // And once more from what was loaded.
    rewrite(&server);
    server.kill();
    server.start();
    filters.check(&mut server.client());
}

#[test]
fn aof_rewritten_with_preamble() {
    rewritten("yes");
}

#[test]
fn files_are_read_with_other_defaults_and_lower_limits() {
    for preamble in ["yes", "no"] {
        let mut server = with_aof().config("aof-use-rdb-preamble", preamble).start();
        let mut c = server.client();
        let filters = Filters::make(&mut c);
        // As written, and then rewritten.
        for is_rewritten in [false, true] {
            if is_rewritten {
                rewrite(&server);
            }
            add(&mut c, "after", &items(0..500));
            let after = c.digest("after");
            server.kill();
            // Below what some of these filters need; and what is over it is not thrown out.
            server.module_arguments("ERROR_RATE 0.3 INITIAL_SIZE 7 EXPANSION 0 FILTER_MAX_BYTES 10000");
            server.configure("maxmemory", "2mb");
            server.start();
            c = server.client();
            filters.check(&mut c);
            assert_eq!(c.digest("after"), after, "rewritten: {is_rewritten}, preamble: {preamble}");
        }
    }
}

#[test]
fn f32_the_aof_holds_what_changed() {
    let server = with_aof().config("aof-use-rdb-preamble", "no").start();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.01", 100));
    for _ in 0..101 {
        run!(c, "BF.ADD", "k", "a");
    }
    run!(c, "BF.MEXISTS", "k", "a", "b");
    assert_eq!(shown(&server.aof()), ["BF.LOADCHUNK k 1 <filter layer bits end>", "BF.ADD k a"]);
}

#[test]
fn the_aof_rewritten_without_preamble_holds_records_only() {
    let server = with_aof().config("aof-use-rdb-preamble", "no").start();
    let mut c = server.client();
    add(&mut c, "k", &items(0..300));
    rewrite(&server);
    let requests = shown(&server.aof());
    assert!(!requests.is_empty());
    for request in requests {
        assert!(request.starts_with("BF.LOADCHUNK k "), "{request}");
    }
}

#[test]
fn f40_files_are_in_proportion_to_what_is_in_a_filter() {
    let mut server = with_aof().config("aof-use-rdb-preamble", "no").start();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "b", "0.001", 20_000_000));
    run!(c, "BF.ADD", "b", "x");
    rewrite(&server);
    let size: u64 = c.info("aof_current_size").parse().expect("a size");
    assert!(size < 2000, "{size} bytes in the AOF");
    let dump = bytes(run!(c, "DUMP", "b")).len();
    assert!(dump < 1000, "{dump} bytes in the dump");
    ok(run!(c, "SAVE"));
    let rdb = fs::metadata(server.directory().join("dump.rdb")).expect("the RDB file").len();
    assert!(rdb < 2000, "{rdb} bytes in the RDB file");
    drop(c);
    server.kill();
    server.start();
    assert_eq!(int(run!(server.client(), "BF.EXISTS", "b", "x")), 1);
}

#[test]
fn f02_many_layers_load_again() {
    let mut server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "p", "0.0001", 1, "EXPANSION", 1));
    add(&mut c, "p", &items(0..5000));
    let digest = c.digest("p");
    ok(run!(c, "SAVE"));
    drop(c);
    server.kill();
    server.start();
    let mut c = server.client();
    assert_eq!(c.digest("p"), digest);
    assert_eq!(found(&mut c, "p", &items(0..5000)), 5000);
}

#[test]
fn dump_and_restore() {
    let (from, to) = (Server::new(), Server::new());
    let (mut c, mut d) = (from.client(), to.client());
    let filters = Filters::make(&mut c);
    for key in filters.keys() {
        let dump = bytes(run!(c, "DUMP", key));
        let ttl = int(run!(c, "PTTL", key)).max(0);
        ok(run!(d, "RESTORE", key, ttl, dump.as_slice()));
        ok(run!(d, "RESTORE", key, ttl, dump.as_slice(), "REPLACE"));
        assert_eq!(bytes(run!(d, "DUMP", key)), dump, "{key}: restored and dumped again");
    }
    filters.check(&mut d);
}

#[test]
fn migrate() {
    let (from, to) = (Server::new(), Server::new());
    let mut c = from.client();
    add(&mut c, "k", &items(0..1000));
    let digest = c.digest("k");
    ok(run!(c, "MIGRATE", "127.0.0.1", to.port(), "k", 0, 10_000));
    assert_eq!(int(run!(c, "EXISTS", "k")), 0);
    let mut d = to.client();
    assert_eq!(found(&mut d, "k", &items(0..1000)), 1000);
    assert_eq!(d.digest("k"), digest);
}

/// The records in a value that DUMP gave on a server without compression.
fn dumped(c: &mut Client, key: &str) -> (Vec<u8>, Vec<std::ops::Range<usize>>) {
    let dump = bytes(run!(c, "DUMP", key));
    let records = records::find(&dump);
    (dump, records)
}

fn uncompressed() -> Options {
    Options::new().config("rdbcompression", "no")
}

#[test]
fn the_saved_bytes_are_those_of_the_description() {
    let server = uncompressed().start();
    let mut c = server.client();
    run!(c, "BF.ADD", "k", "hello");
    let (dump, found) = dumped(&mut c, "k");
    // 0.01 · 6/π², the rate of the first layer.
    let layer = Layer { rate: 0.01 * 6.0 / std::f64::consts::PI.powi(2), ..Layer::DEFAULT };
    // hello: line 1 of 3; places 171 239 33.
    let positions = [33, 171, 239].map(|place| 512 + place);
    let expected =
        [Filter::DEFAULT.record(), layer.record(), records::bits(0, 0, 1, &[(0, &positions)]), records::end(&[1])];
    assert_eq!(found.len(), expected.len());
    for (range, mut record) in found.into_iter().zip(expected) {
        let bytes = &dump[range];
        // The id is random; everything after it is not.
        record.id.copy_from_slice(&bytes[16..24]);
        record.changes = 1;
        assert_eq!(bytes.escape_ascii().to_string(), record.bytes().escape_ascii().to_string());
    }
}

#[test]
fn the_dump_checksum_of_this_test_is_the_servers() {
    let server = Server::new();
    let mut c = server.client();
    run!(c, "BF.ADD", "k", "a");
    let dump = bytes(run!(c, "DUMP", "k"));
    let mut mended = dump.clone();
    mended[dump.len() - 8..].fill(0);
    records::mend_dump(&mut mended);
    assert_eq!(mended, dump);
}

#[test]
fn f13_a_patched_dump_with_mended_checksums_is_refused() {
    let server = uncompressed().start();
    let mut c = server.client();
    run!(c, "BF.ADD", "k", "hello");
    let (dump, found) = dumped(&mut c, "k");
    let [filter, layer, bits, end] = found.as_slice() else { panic!("four records, not {found:?}") };
    const BODY: usize = 32;
    let nan = f64::NAN.to_le_bytes();
    let zero = 0_f64.to_le_bytes();
    let one = 1_f64.to_le_bytes();
    // record, offset in it, bytes to put there
    let patches: Vec<(&std::ops::Range<usize>, usize, &[u8])> = vec![
        (filter, 0, b"X"),
        (filter, 8, &[2, 0]),
        (filter, 10, &[9]),
        (filter, 11, &[1]),
        (filter, 12, &[0, 0, 0, 0]),
        (filter, 12, &[0xff, 0xff, 0xff, 0xff]),
        (filter, BODY, &[32]),
        (filter, BODY, &[2]),
        (filter, BODY, &[8]),
        (filter, BODY + 4, &[0xff, 0xff, 0xff, 0xff]),
        (filter, BODY + 8, &nan),
        (filter, BODY + 8, &zero),
        (filter, BODY + 8, &one),
        (filter, BODY + 16, &[0; 8]),
        (layer, BODY, &[1, 0]),
        (layer, BODY + 2, &[0]),
        (layer, BODY + 2, &[3]),
        (layer, BODY + 3, &[0]),
        (layer, BODY + 3, &[9]),
        (layer, BODY + 4, &[2]),
        (layer, BODY + 4, &[4]),
        (layer, BODY + 5, &[0]),
        (layer, BODY + 5, &[3]),
        (layer, BODY + 5, &[16]),
        (layer, BODY + 6, &[0, 0]),
        (layer, BODY + 6, &[65, 0]),
        (layer, BODY + 6, &[0xff, 0xff]),
        (layer, BODY + 8, &[0; 8]),
        // 65 lines are two chunks, of which the bits record gives one.
        (layer, BODY + 8, &[65, 0, 0, 0, 0, 0, 0, 0]),
        (layer, BODY + 8, &[0, 0, 0, 0, 8, 0, 0, 0]),
        (layer, BODY + 8, &[0xff; 8]),
        (layer, BODY + 16, &[0; 8]),
        (layer, BODY + 24, &nan),
        (layer, BODY + 24, &one),
        (bits, BODY, &[1, 0]),
        (bits, BODY + 2, &[1]),
        (bits, BODY + 4, &[1, 0, 0, 0]),
        (bits, BODY + 8, &[0, 0, 0, 0]),
        (bits, BODY + 8, &[2, 0, 0, 0]),
        (bits, BODY + 8, &[0xff, 0xff, 0xff, 0xff]),
        (bits, BODY + 12, &[0, 0, 0, 0]),
        (bits, BODY + 12, &[2, 0, 0, 0]),
        (bits, BODY + 12, &[0xff, 0xff, 0xff, 0xff]),
        (bits, BODY + 16, &[1, 0, 0, 0]),
        (bits, BODY + 20, &[0, 0]),
        (bits, BODY + 20, &[4, 0]),
        (bits, BODY + 20, &[0xff, 0xff]),
        // A position past the last of three lines, then two in the wrong order.
        (bits, BODY + 26, &[0, 6]),
        (bits, BODY + 22, &[0xff, 2]),
        (end, BODY, &[0, 0]),
        (end, BODY, &[2, 0]),
        (end, BODY + 2, &[1]),
        (end, 10, &[1]),
    ];
    for (range, offset, patch) in patches {
        let what = format!("record {:?}, offset {offset}, {patch:02x?}", records::kinds(&dump[range.clone()]));
        let mut forged = dump.clone();
        let record = &mut forged[range.clone()];
        record[offset..offset + patch.len()].copy_from_slice(patch);
        records::mend(record);
        assert_ne!(forged, dump, "{what}");
        records::mend_dump(&mut forged);
        let text = error(run!(c, "RESTORE", "forged", 0, forged.as_slice()));
        assert!(text.starts_with("ERR Bad data format"), "{what}: {text}");
        assert_eq!(int(run!(c, "EXISTS", "forged")), 0, "{what}");
    }
    // A flipped bit under the record's own checksum.
    let mut forged = dump.clone();
    forged[bits.start + BODY + 22] ^= 1;
    records::mend_dump(&mut forged);
    assert!(error(run!(c, "RESTORE", "forged", 0, forged.as_slice())).starts_with("ERR Bad data format"));
    ok(run!(c, "RESTORE", "whole", 0, dump.as_slice()));
    assert_eq!(int(run!(c, "BF.EXISTS", "whole", "hello")), 1);
}

#[test]
fn f15_damaged_dumps_are_errors_or_filters() {
    needs!(version().has(7, 0), "DEBUG SET-SKIP-CHECKSUM-VALIDATION, of 7.0");
    let server = uncompressed().start();
    let mut c = server.client();
    ok(run!(c, "DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1));
    ok(run!(c, "BF.RESERVE", "k", "0.01", 4, "EXPANSION", 2));
    add(&mut c, "k", &items(0..12));
    let (dump, found) = dumped(&mut c, "k");

    let mut damaged: Vec<Vec<u8>> = (0..dump.len()).map(|length| dump[..length].to_vec()).collect();
    for at in 0..dump.len() {
        damaged.extend((0..8).map(|bit| {
            let mut copy = dump.clone();
            copy[at] ^= 1 << bit;
            copy
        }));
    }
    // Those die of a record's checksum, most of them. So the rest have it mended.
    let mut random = Random::new(15);
    while damaged.len() < 100_000 {
        let mut copy = dump.clone();
        let range = found[random.below(found.len())].clone();
        let record = &mut copy[range];
        for _ in 0..=random.below(3) {
            let at = random.below(record.len());
            record[at] = random.next().to_le_bytes()[0];
        }
        records::mend(record);
        damaged.push(copy);
    }

    let mut restored = 0;
    for batch in damaged.chunks(500) {
        let calls: Vec<redis::Cmd> = batch
            .iter()
            .flat_map(|dump| {
                [
                    redis::cmd("RESTORE").arg("d").arg(0).arg(dump).arg("REPLACE").to_owned(),
                    redis::cmd("BF.EXISTS").arg("d").arg("item1").to_owned(),
                    redis::cmd("BF.MADD").arg("d").arg(&["x", "y", "z"]).to_owned(),
                    redis::cmd("DUMP").arg("d").to_owned(),
                    redis::cmd("DEL").arg("d").to_owned(),
                ]
            })
            .collect();
        restored += c.pipeline(&calls).chunks(5).filter(|replies| replies[0] == Value::Okay).count();
    }
    assert!(server.alive());
    // Counts, ids and the like may be anything; most damage must be seen.
    assert!(restored > 0 && restored < damaged.len() / 2, "{restored} of {} were taken", damaged.len());
    assert_eq!(found_all(&mut c), 12);
}

fn found_all(c: &mut Client) -> usize {
    found(c, "k", &items(0..12))
}

#[test]
fn a_value_that_does_not_check_stops_the_load_and_the_log_says_why() {
    let mut server = uncompressed().config("rdbchecksum", "no").start();
    let mut c = server.client();
    run!(c, "BF.ADD", "k", "hello");
    ok(run!(c, "SAVE"));
    drop(c);
    server.kill();
    let file = server.directory().join("dump.rdb");
    let mut rdb = fs::read(&file).expect("the RDB file");
    let layer = records::find(&rdb)[1].clone();
    let record = &mut rdb[layer];
    // 65 bits an item.
    record[38..40].copy_from_slice(&65_u16.to_le_bytes());
    records::mend(record);
    fs::write(&file, rdb).expect("the RDB file can be written");
    let log = server.try_start().expect_err("it must not start");
    assert!(log.lines().any(|line| line.contains("<bf>") && line.contains("1 to 64 bits an item")), "{log}");
    assert!(!log.contains("crashed by signal") && !log.contains("panicked"), "{log}");
}

#[test]
fn f17_a_filter_that_is_being_loaded_is_saved_and_copied() {
    let mut server = with_aof().config("aof-use-rdb-preamble", "no").start();
    let mut c = server.client();
    ok(run!(c, "BF.LOADCHUNK", "half", 1, Filter::DEFAULT.record().bytes()));
    ok(run!(c, "BF.LOADCHUNK", "layer", 1, Filter::DEFAULT.record().bytes()));
    ok(run!(c, "BF.LOADCHUNK", "layer", 2, Layer::DEFAULT.record().bytes()));
    let digests = |c: &mut Client| ["half", "layer"].map(|key| c.digest(key));
    let before = digests(&mut c);
    assert_eq!(int(run!(c, "COPY", "half", "copy")), 1);
    assert_eq!(c.digest("copy"), before[0]);
    ok(run!(c, "DEBUG", "RELOAD"));
    assert_eq!(digests(&mut c), before);
    drop(c);
    server.kill();
    server.start();
    assert_eq!(digests(&mut server.client()), before);
    rewrite(&server);
    server.kill();
    server.start();
    let mut c = server.client();
    assert_eq!(digests(&mut c), before);
    assert!(error(run!(c, "BF.EXISTS", "half", "x")).contains("load"), "still being loaded");
    // And the rest can be loaded now.
    ok(run!(c, "BF.LOADCHUNK", "half", 2, Layer::DEFAULT.record().bytes()));
    ok(run!(c, "BF.LOADCHUNK", "half", 3, records::bits(0, 0, 1, &[]).bytes()));
    ok(run!(c, "BF.LOADCHUNK", "half", (1_u64 << 46) - 1, records::end(&[0]).bytes()));
    assert_eq!(int(run!(c, "BF.EXISTS", "half", "x")), 0);
}
