//! Filters that come from RedisBloom: all four ways in, and back. The differential tests want RedisBloom itself, which
//! `make test-all` fetches; what it wrote is kept in `tests/fixtures/redisbloom`, so that reading is always tested.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use redis::Value;

use crate::documents::{Program, programs_of};
use crate::harness::{
    Client, Language, Options, Server, add, array, bytes, error, found, int, ints, items, ok, version,
};
use crate::persistence::rewrite;
use crate::{needs, run};

const PEER: &str = "RedisBloom (`make test-all` fetches it)";
const TYPE: &[u8] = b"MBbloom--";

fn redisbloom() -> Option<PathBuf> {
    env::var_os("BLOOMGATE_REDISBLOOM").map(PathBuf::from)
}

/// A server with RedisBloom, whose file is there.
fn theirs(options: Options) -> Server {
    options.without_module().module_before(redisbloom().expect("needs!"), "").start()
}

/// The pieces of a filter's dump, each with its iterator.
fn dump(c: &mut Client, key: &str) -> Vec<(i64, Vec<u8>)> {
    let (mut iterator, mut pieces) = (0, Vec::new());
    loop {
        let [next, piece] = <[Value; 2]>::try_from(array(run!(c, "BF.SCANDUMP", key, iterator))).expect("two elements");
        iterator = int(next);
        if iterator == 0 {
            return pieces;
        }
        pieces.push((iterator, bytes(piece)));
    }
}

/// All bytes of a dump, however it was cut.
fn dumped(c: &mut Client, key: &str) -> Vec<u8> {
    dump(c, key).into_iter().flat_map(|(_, piece)| piece).collect()
}

/// A filter to be compared: what BF.RESERVE gets, and how many items.
struct Shape {
    reserve: Vec<String>,
    items: usize,
}

/// Shapes that are the same in each run: rates, capacities, growths and numbers of layers of every kind.
fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (i, rate) in ["0.5", "0.1", "0.03", "0.01", "0.001", "1e-5", "1e-9", "0.9"].into_iter().enumerate() {
        for (j, capacity) in [2, 10, 100, 777, 5000].into_iter().enumerate() {
            let more = [vec![], vec!["NONSCALING"], vec!["EXPANSION", "1"], vec!["EXPANSION", "5"]];
            let more = &more[(i + j) % 4];
            let reserve = [rate.to_owned(), capacity.to_string()].into_iter().chain(more.iter().map(|&w| w.into()));
            let items = [0, 1, capacity, capacity * 4, capacity + 40][(i * 3 + j) % 5];
            shapes.push(Shape { reserve: reserve.collect(), items });
        }
    }
    shapes
}

fn replies(c: &mut Client, command: &str, key: &str, items: &[String]) -> Vec<Value> {
    items.iter().map(|item| run!(c, command, key, item)).collect()
}

/// Whether both hold the same, answer the same, and take further items in the same way: every bit of their dumps.
fn agree(ours: &mut Client, theirs: &mut Client, key: &str, items: &[String]) {
    assert_eq!(bytes_of_type(ours, key), TYPE);
    assert_eq!(found(ours, key, items), found(theirs, key, items), "{key}");
    assert!(dumped(ours, key) == dumped(theirs, key), "{key}: before");
    let more: Vec<String> = (0..120).map(|i| format!("more{i}")).collect();
    assert_eq!(replies(ours, "BF.ADD", key, &more[..60]), replies(theirs, "BF.ADD", key, &more[..60]), "{key}");
    for batch in [&more[50..90], &more[85..]] {
        let (a, b) = (array(run!(ours, "BF.MADD", key, batch)), array(run!(theirs, "BF.MADD", key, batch)));
        // RedisBloom's array ends at the first item that finds no room.
        assert!(a.starts_with(&b), "{key}: {a:?} {b:?}");
    }
    assert!(dumped(ours, key) == dumped(theirs, key), "{key}: after");
    let probes: Vec<String> = (0..400).map(|i| format!("probe{i}")).collect();
    for (command, of) in [("BF.MEXISTS", 0), ("BF.MEXISTS", 200)] {
        assert_eq!(run!(ours, command, key, &probes[of..]), run!(theirs, command, key, &probes[of..]), "{key}");
    }
    assert_eq!(replies(ours, "BF.EXISTS", key, &probes[..60]), replies(theirs, "BF.EXISTS", key, &probes[..60]));
    for field in ["CAPACITY", "FILTERS", "ITEMS", "EXPANSION"] {
        assert_eq!(run!(ours, "BF.INFO", key, field), run!(theirs, "BF.INFO", key, field), "{key}: {field}");
    }
    assert_eq!(run!(ours, "BF.CARD", key), run!(theirs, "BF.CARD", key), "{key}");
}

fn bytes_of_type(c: &mut Client, key: &str) -> Vec<u8> {
    bytes(run!(c, "TYPE", key))
}

fn key(number: usize) -> String {
    format!("filter{number}")
}

/// Makes them all on RedisBloom; the items of each.
fn make(c: &mut Client) -> Vec<Vec<String>> {
    let make = |(i, shape): (usize, Shape)| {
        ok(run!(c, "BF.RESERVE", key(i), &shape.reserve));
        let items: Vec<String> = (0..shape.items).map(|n| format!("{i}:{n}")).collect();
        for batch in items.chunks(500) {
            run!(c, "BF.MADD", key(i), batch);
        }
        items
    };
    shapes().into_iter().enumerate().map(make).collect()
}

#[test]
fn restore_and_back() {
    needs!(redisbloom().is_some(), PEER);
    let (theirs, ours) = (theirs(Options::new()), Server::new());
    let (mut t, mut o) = (theirs.client(), ours.client());
    for (i, items) in make(&mut t).iter().enumerate() {
        let key = key(i);
        let value = bytes(run!(t, "DUMP", &key));
        ok(run!(o, "RESTORE", &key, 0, value));
        agree(&mut o, &mut t, &key, items);
        let back = bytes(run!(o, "DUMP", &key));
        ok(run!(t, "RESTORE", "back", 0, back, "REPLACE"));
        assert!(dumped(&mut t, "back") == dumped(&mut o, &key), "{key}");
        assert_eq!(found(&mut t, "back", items), found(&mut o, &key, items));
    }
}

#[test]
fn scandump_and_back() {
    needs!(redisbloom().is_some(), PEER);
    let (theirs, ours) = (theirs(Options::new()), Server::new());
    let (mut t, mut o) = (theirs.client(), ours.client());
    for (i, items) in make(&mut t).iter().enumerate() {
        let key = key(i);
        for (iterator, piece) in dump(&mut t, &key) {
            ok(run!(o, "BF.LOADCHUNK", &key, iterator, piece));
        }
        agree(&mut o, &mut t, &key, items);
        for (iterator, piece) in dump(&mut o, &key) {
            ok(run!(t, "BF.LOADCHUNK", format!("back{i}"), iterator, piece));
        }
        assert!(dumped(&mut t, &format!("back{i}")) == dumped(&mut o, &key), "{key}");
    }
}

#[test]
fn an_rdb_file_and_back() {
    needs!(redisbloom().is_some(), PEER);
    let mut theirs = theirs(Options::new());
    let all = make(&mut theirs.client());
    ok(run!(theirs.client(), "SAVE"));
    let mut ours = Server::on_file(&theirs.directory().join("dump.rdb"));
    for (i, items) in all.iter().enumerate() {
        agree(&mut ours.client(), &mut theirs.client(), &key(i), items);
    }
    ours.restart();
    ok(run!(ours.client(), "SAVE"));
    theirs.kill();
    fs::copy(ours.directory().join("dump.rdb"), theirs.directory().join("dump.rdb")).expect("a copy");
    theirs.start();
    for i in 0..all.len() {
        assert!(dumped(&mut theirs.client(), &key(i)) == dumped(&mut ours.client(), &key(i)));
    }
}

fn with_aof(preamble: &str) -> Options {
    Options::new().config("appendonly", "yes").config("appendfsync", "always").config("aof-use-rdb-preamble", preamble)
}

fn an_aof(preamble: &str) {
    needs!(redisbloom().is_some(), PEER);
    let theirs = theirs(with_aof(preamble));
    let mut t = theirs.client();
    let all = make(&mut t);
    rewrite(&theirs);
    // And what is logged as commands: a filter reserved, others made by an add, growth.
    ok(run!(t, "BF.RESERVE", "reserved", "0.02", 30));
    run!(t, "BF.INSERT", "inserted", "CAPACITY", 9, "NOTHING", "ITEMS", "a", "b");
    for i in 0..300 {
        run!(t, "BF.ADD", "added", format!("item{i}"));
        run!(t, "BF.MADD", "reserved", format!("item{i}"), format!("item{i}"));
    }
    let mut ours = with_aof(preamble).start();
    ours.kill();
    copy_aof(theirs.directory(), ours.directory());
    ours.start();
    for again in [false, true] {
        if again {
            // From the AOF that Bloomgate wrote of it.
            rewrite(&ours);
            ours.kill();
            ours.start();
        }
        let mut o = ours.client();
        for key in (0..all.len()).map(key).chain(["reserved", "inserted", "added"].map(str::to_owned)) {
            assert_eq!(bytes_of_type(&mut o, &key), TYPE, "{key}");
            assert!(dumped(&mut o, &key) == dumped(&mut t, &key), "{key}, again: {again}");
        }
    }
}

fn copy_aof(from: &Path, to: &Path) {
    for name in ["appendonly.aof", "appendonlydir"] {
        let (from, to) = (from.join(name), to.join(name));
        if from.is_dir() {
            fs::remove_dir_all(&to).expect("an AOF of its own");
            fs::create_dir(&to).expect("a directory");
            for file in fs::read_dir(from).expect("its files") {
                let file = file.expect("a file");
                fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
            }
        } else if from.exists() {
            fs::copy(from, to).expect("a copy");
        }
    }
}

#[test]
fn an_aof_with_preamble() {
    an_aof("yes");
}

#[test]
fn an_aof_without_preamble() {
    an_aof("no");
}

/// A full sync and the stream of commands, then the replica is promoted and goes on.
#[test]
fn a_live_replica_that_is_promoted() {
    needs!(redisbloom().is_some(), PEER);
    let mut theirs = theirs(Options::new());
    let mut t = theirs.client();
    let all = make(&mut t);
    // A dump of which a part comes before the full sync, the rest in the stream.
    let pieces = dump(&mut t, &key(3));
    ok(run!(t, "BF.LOADCHUNK", "loaded", pieces[0].0, pieces[0].1.as_slice()));
    let mut ours = Options::new().config("appendonly", "yes").config("appendfsync", "always").start();
    ours.follow(&theirs);
    for (iterator, piece) in &pieces[1..] {
        ok(run!(t, "BF.LOADCHUNK", "loaded", *iterator, piece.as_slice()));
    }
    // And one all of which comes in the stream, with adds and growth amid it.
    let other = dump(&mut t, &key(8));
    ok(run!(t, "BF.LOADCHUNK", "amid", other[0].0, other[0].1.as_slice()));
    add(&mut t, "amid", &items(0..2000));
    for (iterator, piece) in &other[1..] {
        ok(run!(t, "BF.LOADCHUNK", "amid", *iterator, piece.as_slice()));
    }
    ok(run!(t, "BF.RESERVE", "reserved", "0.02", 30, "EXPANSION", 3));
    ok(run!(t, "BF.RESERVE", "odd", "1e-13", 30, "FOO", "EXPANSION", 40_000));
    run!(t, "BF.INSERT", "inserted", "CAPPCITY", 9, "E", 3, "ITEMS", "a", "b");
    run!(t, "BF.INSERT", "full", "CAPACITY", 3, "NOTHING", "ITEMS", "a", "b");
    // What it refuses for want of room it sends on all the same.
    ok(run!(t, "BF.RESERVE", "small", "0.01", 2, "NONSCALING"));
    run!(t, "BF.MADD", "small", "a", "b", "c", "d", "e");
    run!(t, "BF.ADD", "small", "f");
    run!(t, "BF.INSERT", "small", "ITEMS", "g", "a", "h");
    let many = items(0..1500);
    for key in ["reserved", "inserted", "added", "odd", "filter0", "filter7"] {
        add(&mut t, key, &many[..700]);
        for item in &many[700..] {
            run!(t, "BF.ADD", key, item);
        }
    }
    ours.catch_up(&theirs);
    let mut o = ours.client();
    let mut keys: Vec<String> = (0..all.len()).map(key).collect();
    keys.extend(["loaded", "reserved", "inserted", "added", "odd", "full", "small"].map(str::to_owned));
    let mut answers = Vec::new();
    for key in &keys {
        assert_eq!(bytes_of_type(&mut o, key), TYPE, "{key}");
        assert!(dumped(&mut o, key) == dumped(&mut t, key), "{key}");
        answers.push(ints(run!(t, "BF.MEXISTS", key, &many)));
    }
    // RedisBloom writes a piece over what adds have set meanwhile; here they stay.
    let amid = ints(run!(t, "BF.MEXISTS", "amid", &many));
    let ours_amid = ints(run!(o, "BF.MEXISTS", "amid", &many));
    assert!(amid.iter().zip(&ours_amid).all(|(theirs, ours)| theirs <= ours), "a false negative");
    theirs.kill();
    ok(run!(o, "REPLICAOF", "NO", "ONE"));
    for (key, before) in keys.iter().zip(&answers) {
        assert_eq!(&ints(run!(o, "BF.MEXISTS", key, &many)), before, "{key}");
    }
    for (i, items) in all.iter().enumerate() {
        // What found no room in a filter that does not scale is not in it.
        let scaling = !shapes()[i].reserve.contains(&"NONSCALING".to_owned());
        assert!(!scaling || found(&mut o, &key(i), items) == items.len(), "{i}");
    }
    run!(o, "BF.ADD", "filter0", "after the promotion");
    let digests: Vec<String> = keys.iter().map(|key| o.digest(key)).collect();
    drop(o);
    // Its own AOF has it all.
    ours.kill();
    ours.start();
    let mut o = ours.client();
    for (key, digest) in keys.iter().zip(digests) {
        assert_eq!(o.digest(key), digest, "{key}");
    }
    assert_eq!(int(run!(o, "BF.EXISTS", "filter0", "after the promotion")), 1);
}

/// RedisBloom reads numbers as C does, and passes them on as they were written: nothing of what follows them may be lost.
#[test]
fn numbers_that_redisbloom_alone_reads() {
    needs!(redisbloom().is_some(), PEER);
    let (theirs, ours) = (theirs(Options::new()), Server::new());
    let (mut t, mut o) = (theirs.client(), ours.client());
    ours.follow(&theirs);
    let rates = ["+0.01", "0x1p-4", "+0X.8P-1", "0x1.fffffffffffffffffp-4", "1e-320"];
    // Each with what the header states here, where the growths of RedisBloom end at 2^31 - 1 and begin at 1.
    let growths = [
        ("2147483648", i32::MAX as u32),
        ("4294967295", i32::MAX as u32),
        ("4294967296", 1),
        ("4294967297", 1),
        ("4294967299", 3),
        ("9223372036854775807", i32::MAX as u32),
    ];
    // Valkey 9.1 reads no hexadecimal numbers for its modules.
    let rates = rates.into_iter().filter(|rate| !version().valkey || !rate.contains(['x', 'X']));
    let all = rates.map(|rate| ("ERROR", rate, 2));
    let all: Vec<_> = all.chain(growths.map(|(text, growth)| ("EXPANSION", text, growth))).collect();
    let reserve = |option: &str, value: &str| {
        let words = if option == "ERROR" { vec![value, "100"] } else { vec!["0.01", "100", option, value] };
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    for (option, value, _) in &all {
        assert_eq!(ints(run!(t, "BF.INSERT", value, *option, *value, "ITEMS", "a", "b")), [1, 1], "{value}");
        ok(run!(t, "BF.RESERVE", format!("reserved {value}"), reserve(option, value)));
        assert_eq!(ints(run!(t, "BF.MADD", format!("reserved {value}"), "a", "b")), [1, 1], "{value}");
    }
    ours.catch_up(&theirs);
    for (_, value, growth) in &all {
        for key in [(*value).to_owned(), format!("reserved {value}")] {
            let mut wanted = dumped(&mut t, &key);
            wanted[16..20].copy_from_slice(&growth.to_le_bytes());
            assert!(dumped(&mut o, &key) == wanted, "{key}");
        }
    }
    ok(run!(o, "REPLICAOF", "NO", "ONE"));
    // RedisBloom's would be full for ever.
    add(&mut o, "4294967296", &items(0..300));
    assert_eq!(found(&mut o, "4294967296", &items(0..300)), 300);
    // A client is read strictly.
    for (option, value, _) in &all {
        let texts = [
            error(run!(o, "BF.INSERT", "strict", *option, *value, "ITEMS", "a")),
            error(run!(o, "BF.RESERVE", "strict", reserve(option, value))),
        ];
        assert!(texts.iter().all(|text| text.starts_with("ERR bad e")), "{texts:?}");
    }
    assert_eq!(int(run!(o, "EXISTS", "strict")), 0);
}

/// Bloomgate to Bloomgate: a filter in RedisBloom's layout is replicated, bit for bit, and grows on both sides.
#[test]
fn replicas_of_our_own() {
    let (primary, replica) = (Server::new(), Server::new());
    let mut c = primary.client();
    load(&mut c, "k", &empty(1, 100, 144));
    replica.follow(&primary);
    add(&mut c, "k", &items(0..3000));
    load(&mut c, "later", &empty(1, 100, 144));
    add(&mut c, "later", &items(0..500));
    replica.catch_up(&primary);
    let mut r = replica.client();
    for (key, n) in [("k", 3000), ("later", 500)] {
        assert_eq!(r.digest(key), c.digest(key), "{key}");
        assert_eq!(bytes_of_type(&mut r, key), TYPE);
        assert_eq!(found(&mut r, key, &items(0..n)), n);
    }
}

/// A filter header of these layers of 8 hashes.
fn header(layers: u32, capacity: u64, bytes: u64) -> Vec<u8> {
    let mut header = 0u64.to_le_bytes().to_vec();
    for field in [layers, 5, 2] {
        header.extend(field.to_le_bytes());
    }
    for _ in 0..layers {
        header.extend([bytes, bytes * 8, 0].map(u64::to_le_bytes).as_flattened());
        header.extend([0.005f64, 11.027753418256411].map(f64::to_le_bytes).as_flattened());
        header.extend(8u32.to_le_bytes());
        header.extend(capacity.to_le_bytes());
        header.push(0);
    }
    header
}

/// The dump of an empty filter.
fn empty(layers: u32, capacity: u64, bytes: usize) -> Vec<(i64, Vec<u8>)> {
    let zeros = vec![0; bytes];
    let length = i64::try_from(bytes).expect("a small filter");
    let pieces = (1..=i64::from(layers)).map(|i| (1 + i * length, zeros.clone()));
    std::iter::once((1, header(layers, capacity, bytes as u64))).chain(pieces).collect()
}

fn load(c: &mut Client, key: &str, dump: &[(i64, Vec<u8>)]) {
    for (iterator, piece) in dump {
        ok(run!(c, "BF.LOADCHUNK", key, *iterator, piece.as_slice()));
    }
}

/// The one that the format's description gives.
#[test]
fn the_vector() {
    let server = Server::new();
    let mut c = server.client();
    let mut header = 0u64.to_le_bytes().to_vec();
    header.extend([1u32, 5, 2].map(u32::to_le_bytes).as_flattened());
    header.extend([8u64, 64, 0].map(u64::to_le_bytes).as_flattened());
    header.extend([0.05f64, 6.2352242295726885].map(f64::to_le_bytes).as_flattened());
    header.extend(5u32.to_le_bytes());
    header.extend(10u64.to_le_bytes());
    header.push(0);
    load(&mut c, "bf", &[(1, header), (9, vec![0; 8])]);
    assert_eq!(int(run!(c, "BF.ADD", "bf", "item1")), 1);
    let [(1, header), (9, bits)] = &dump(&mut c, "bf")[..] else { panic!("two pieces") };
    assert_eq!(header.len(), 73);
    assert_eq!(bits, &[0x01, 0x08, 0x00, 0x80, 0x00, 0x04, 0x20, 0x00]);
}

#[test]
fn f53_half_a_dump_answers_no_question_and_goes_on_after_everything() {
    let mut server = with_aof("no").start();
    let mut c = server.client();
    let pieces = empty(2, 100, 144);
    load(&mut c, "k", &pieces[..2]);
    assert_eq!(bytes_of_type(&mut c, "k"), b"bloomgate");
    for command in ["BF.EXISTS", "BF.ADD", "BF.MADD", "BF.MEXISTS"] {
        assert!(error(run!(c, command, "k", "x")).contains("being loaded"));
    }
    assert!(error(run!(c, "BF.CARD", "k")).contains("being loaded"));
    assert!(error(run!(c, "BF.SCANDUMP", "k", 0)).contains("being loaded"));
    // The header and the last piece again are OK, a piece out of order is not.
    load(&mut c, "k", &pieces[..2]);
    assert!(error(run!(c, "BF.LOADCHUNK", "k", 289, vec![0u8; 8])).contains("in order"));
    for iterator in [0i64, 2, 1000] {
        assert!(error(run!(c, "BF.LOADCHUNK", "k", iterator, "zzzzzzzz")).contains("iterator"), "{iterator}");
    }
    assert_eq!(int(run!(c, "PEXPIRE", "k", 1_000_000)), 1);
    assert_eq!(int(run!(c, "COPY", "k", "copy")), 1);
    let digest = c.digest("k");
    assert_eq!(c.digest("copy"), digest);
    ok(run!(c, "DEBUG", "RELOAD"));
    assert_eq!(c.digest("k"), digest);
    rewrite(&server);
    drop(c);
    server.kill();
    server.start();
    let mut c = server.client();
    assert_eq!(c.digest("k"), digest);
    load(&mut c, "k", &pieces[2..]);
    assert_eq!(bytes_of_type(&mut c, "k"), TYPE);
    let left = int(run!(c, "PTTL", "k"));
    assert!((900_000..=1_000_000).contains(&left), "{left}");
    assert_eq!(int(run!(c, "BF.ADD", "k", "x")), 1);
    assert!(error(run!(c, "BF.EXISTS", "copy", "x")).contains("being loaded"));
    // All of it is there: bits that it has are OK, others are refused.
    assert!(error(run!(c, "BF.LOADCHUNK", "k", 3, "zz")).contains("complete"));
    let digest = c.digest("k");
    drop(c);
    server.kill();
    server.start();
    assert_eq!(server.client().digest("k"), digest);
}

/// The header of a dump for a key that exists: OK where it is that of the dump that is being loaded.
#[test]
fn a_header_for_a_key_that_exists() {
    let server = Server::new();
    let mut c = server.client();
    let pieces = empty(2, 100, 144);
    let header = pieces[0].1.as_slice();
    let other = header_with(header, 16, &3u32.to_le_bytes());
    load(&mut c, "half", &pieces[..2]);
    load(&mut c, "whole", &pieces);
    ok(run!(c, "BF.RESERVE", "native", "0.01", 100));
    let first = &dump(&mut c, "native")[..1];
    load(&mut c, "native half", first);
    let keys = ["half", "whole", "native", "native half"];
    let digests = keys.map(|key| c.digest(key));
    ok(run!(c, "BF.LOADCHUNK", "half", 1, header));
    ok(run!(c, "DEBUG", "RELOAD"));
    ok(run!(c, "BF.LOADCHUNK", "half", 1, header));
    let refused = [
        ("half", other.as_slice()),
        ("half", &header[..header.len() - 1]),
        ("half", b""),
        ("whole", header),
        ("whole", &other),
        ("native", header),
        ("native half", header),
    ];
    for (key, header) in refused {
        let text = error(run!(c, "BF.LOADCHUNK", key, 1, header));
        assert!(text.starts_with("ERR item exists: delete the key"), "{key}: {text}");
    }
    assert_eq!(keys.map(|key| c.digest(key)), digests);
    load(&mut c, "half", &pieces[2..]);
    assert_eq!(bytes_of_type(&mut c, "half"), TYPE);
}

/// A header with other bytes from there on.
fn header_with(header: &[u8], at: usize, patch: &[u8]) -> Vec<u8> {
    let mut patched = header.to_vec();
    patched[at..at + patch.len()].copy_from_slice(patch);
    patched
}

/// Patches of a header: at, bytes. Each is refused, and no key is made.
#[test]
fn f09_f10_f11_hostile_headers() {
    let server = Server::new();
    let mut c = server.client();
    let good = header(1, 100, 144);
    let nan = f64::NAN.to_le_bytes();
    let patches: Vec<(usize, Vec<u8>)> = vec![
        (8, vec![0; 4]),
        (8, 2u32.to_le_bytes().into()),
        (8, 100_000u32.to_le_bytes().into()),
        (12, 16u32.to_le_bytes().into()),
        (16, vec![0; 4]),
        (16, 4_000_000_000u32.to_le_bytes().into()),
        (20, vec![0; 8]),
        (20, ((1u64 << 61) + 8).to_le_bytes().into()),
        (20, (1u64 << 40).to_le_bytes().into()),
        (20, u64::MAX.to_le_bytes().into()),
        (28, vec![0; 8]),
        (28, 1153u64.to_le_bytes().into()),
        (28, u64::MAX.to_le_bytes().into()),
        (44, nan.into()),
        (44, vec![0; 8]),
        (44, 1f64.to_le_bytes().into()),
        (44, 0.004f64.to_le_bytes().into()),
        (52, nan.into()),
        (52, (-3f64).to_le_bytes().into()),
        (52, 1.5e9f64.to_le_bytes().into()),
        (60, 7u32.to_le_bytes().into()),
        (60, u32::MAX.to_le_bytes().into()),
        (60, (u32::MAX - 1).to_le_bytes().into()),
        (64, vec![0; 8]),
        (64, (1u64 << 63).to_le_bytes().into()),
        (72, vec![11]),
        (72, vec![64]),
        (72, vec![255]),
    ];
    for (at, patch) in patches {
        let text = error(run!(c, "BF.LOADCHUNK", "k", 1, header_with(&good, at, &patch)));
        assert!(text.starts_with("ERR "), "{text}");
        assert_eq!(int(run!(c, "EXISTS", "k")), 0, "{at}: {patch:?}");
    }
    for length in 0..good.len() {
        error(run!(c, "BF.LOADCHUNK", "k", 1, &good[..length]));
    }
    error(run!(c, "BF.LOADCHUNK", "k", 2, good.as_slice()));
    // What memory could never hold is for clients too large: a layer of 1 TiB whose numbers agree.
    let capacity = (8.0 * (1u64 << 40) as f64 / 11.027753418256411) as u64;
    let text = error(run!(c, "BF.LOADCHUNK", "k", 1, header(1, capacity, 1 << 40)));
    assert!(text.contains("bytes at its full size"), "{text}");
    assert_eq!(int(run!(c, "EXISTS", "k")), 0);
    ok(run!(c, "BF.LOADCHUNK", "k", 1, good.as_slice()));
}

/// DUMP values of RedisBloom's type cut or flipped at every byte.
#[test]
fn f15_damaged_values_are_errors_or_filters() {
    needs!(version().has(7, 0), "DEBUG SET-SKIP-CHECKSUM-VALIDATION, of 7.0");
    let server = Options::new().config("rdbcompression", "no").start();
    let mut c = server.client();
    ok(run!(c, "DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", 1));
    load(&mut c, "k", &empty(1, 10, 24));
    add(&mut c, "k", &items(0..30));
    let value = bytes(run!(c, "DUMP", "k"));
    let mut damaged: Vec<Vec<u8>> = (0..value.len()).map(|length| value[..length].to_vec()).collect();
    for at in 0..value.len() {
        damaged.extend((0..=255u8).filter(|&byte| byte != value[at]).map(|byte| {
            let mut copy = value.clone();
            copy[at] = byte;
            copy
        }));
    }
    let mut taken = 0;
    for batch in damaged.chunks(500) {
        let calls: Vec<redis::Cmd> = batch
            .iter()
            .flat_map(|value| {
                [
                    redis::cmd("RESTORE").arg("d").arg(0).arg(value).arg("REPLACE").to_owned(),
                    redis::cmd("BF.EXISTS").arg("d").arg("item1").to_owned(),
                    redis::cmd("BF.MADD").arg("d").arg(&["x", "y", "z"]).to_owned(),
                    redis::cmd("DUMP").arg("d").to_owned(),
                    redis::cmd("DEL").arg("d").to_owned(),
                ]
            })
            .collect();
        taken += c.pipeline(&calls).chunks(5).filter(|replies| replies[0] == Value::Okay).count();
    }
    assert!(server.alive());
    assert!(taken > 0 && taken < damaged.len(), "{taken} of {}", damaged.len());
    assert_eq!(found(&mut c, "k", &items(0..30)), 30);
}

/// Where RedisBloom could not read a further layer, a client is told what to do.
#[test]
fn a_filter_that_redisbloom_could_not_read_does_not_grow() {
    let server = Server::new();
    let mut c = server.client();
    load(&mut c, "k", &empty(1, (1 << 62) + 1, 144));
    let key = |c: &mut Client| ints(run!(c, "BF.MADD", "k", "a", "b"));
    assert_eq!(key(&mut c), [1, 1]);
    // Full by its own count.
    let mut full = empty(1, 1 << 62, 144);
    full[0].1[36..44].copy_from_slice(&(1u64 << 62).to_le_bytes());
    load(&mut c, "full", &full);
    let text = error(run!(c, "BF.ADD", "full", "a"));
    assert!(text.contains("reserve a new filter beside it"), "{text}");
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/redisbloom").join(name)
}

/// Each key, its items, and those of `absent0` … `absent999` that RedisBloom answered 1 for.
const FIXTURES: [(&str, usize, usize); 4] =
    [("default", 80, 1), ("grown", 500, 36), ("non-scaling", 1000, 203), ("old", 300, 13)];

fn check_fixtures(c: &mut Client) {
    for (key, n, wrong) in FIXTURES {
        assert_eq!(bytes_of_type(c, key), TYPE, "{key}");
        assert_eq!(found(c, key, &items(0..n)), n, "{key}");
        let absent: Vec<String> = (0..1000).map(|i| format!("absent{i}")).collect();
        assert_eq!(found(c, key, &absent), wrong, "{key}");
    }
}

#[test]
fn a_file_that_redisbloom_wrote() {
    needs!(version().has(7, 0), "RDB files of Redis 7.0");
    let mut server = Server::on_file(&fixture("dump.rdb"));
    check_fixtures(&mut server.client());
    server.restart();
    let mut c = server.client();
    check_fixtures(&mut c);
    for (key, ..) in FIXTURES {
        let stored = fs::read(fixture(&format!("{key}.dump"))).expect("the fixture");
        assert!(dumped(&mut c, key) == stored, "{key}");
    }
}

#[test]
fn dumps_that_redisbloom_wrote() {
    let server = Server::new();
    let mut c = server.client();
    for (key, ..) in FIXTURES {
        let stored = fs::read(fixture(&format!("{key}.dump"))).expect("the fixture");
        let layers = usize::from(stored[8]);
        let (header, rest) = stored.split_at(20 + 53 * layers);
        ok(run!(c, "BF.LOADCHUNK", key, 1, header));
        let mut offset = 0;
        // In awkward pieces, which may cross from one layer to the next.
        for piece in rest.chunks(101) {
            offset += piece.len();
            ok(run!(c, "BF.LOADCHUNK", key, offset + 1, piece));
        }
        assert!(dumped(&mut c, key) == stored, "{key}");
    }
    check_fixtures(&mut c);
}

/// What the page for those who move shows: each section on two servers of its own.
fn the_page(language: Language, mark: &str, file: &str) {
    needs!(redisbloom().is_some(), PEER);
    needs!(language.is_there(), language.needs());
    for Program { section, text } in programs_of(&[("redisbloom", include_str!("../../docs/redisbloom.md"))], mark) {
        println!("{section}");
        let (theirs, ours) = (theirs(Options::new()), Server::new());
        let text = text.replace("6379", &theirs.port().to_string()).replace("6380", &ours.port().to_string());
        // A shell goes on after a line that fails, unless it is told not to.
        let text = if language == Language::Shell { format!("set -e\n{text}") } else { text };
        language.run(file, &text, &[]);
    }
}

#[test]
fn the_page_in_shell() {
    the_page(Language::Shell, "sh", "moving.sh");
}

#[test]
fn the_page_in_python() {
    the_page(Language::Python, "python", "moving.py");
}
