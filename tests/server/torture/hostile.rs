//! Dumps, records, RDB files and AOFs that were damaged or forged: an error or a filter that works, and never a crash.
//!
//! A value is taken apart into its records; these are damaged with or without their checksums mended, dropped, doubled
//! and mixed; and what becomes of them is put into what the server reads, whose checksum is mended too, or not.

use std::cmp::Ordering;
use std::fs;
use std::time::{Duration, Instant};

use redis::{Cmd, Value, cmd};

use super::{Run, check_logs};
use crate::harness::records::{self, Filter, Layer};
use crate::harness::{Client, Options, Random, Server, add, array, bytes, error_text, int, items, ok};
use crate::run;

/// What a forger writes into a number.
const NUMBERS: [u64; 22] = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    63,
    64,
    65,
    127,
    128,
    255,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 34,
    (1 << 46) - 1,
    1 << 63,
    u64::MAX - 7,
    u64::MAX,
];

/// One in so many is tried as a file, and another one as an AOF, which takes a start of the server each.
const FILES: usize = 200;
/// Sent at once.
const BATCH: usize = 100;
/// The root of the largest table of chunks that a value can announce, and what there is besides.
const ANNOUNCED: i64 = 5 << 20;
/// Each chunk of one bit takes 8 bytes of a record and 4096 of memory, and its share of a node.
const TIMES: i64 = 520;

/// A filter's records as BF.SCANDUMP gives them, each with its iterator, and what is around them in a DUMP.
struct Seed {
    records: Vec<(i64, Vec<u8>)>,
    /// The type, and the module's id.
    head: Vec<u8>,
    /// The version of the RDB format.
    version: Vec<u8>,
}

/// Filters of several shapes; small ones, so that damage falls on everything.
fn seeds(c: &mut Client) -> Vec<Seed> {
    add(c, "default", &items(0..20));
    ok(run!(c, "BF.RESERVE", "grown", "0.01", 4, "EXPANSION", 2));
    add(c, "grown", &items(0..60));
    ok(run!(c, "BF.RESERVE", "full", "0.2", 1000, "NONSCALING"));
    add(c, "full", &items(0..1000));
    ok(run!(c, "BF.RESERVE", "gaps", "0.001", 50_000_000));
    add(c, "gaps", &items(0..30));
    ok(run!(c, "BF.RESERVE", "chunks", "0.01", 20_000));
    add(c, "chunks", &items(0..500));
    let keys = ["default", "grown", "full", "gaps", "chunks"];
    keys.map(|key| {
        let mut records = Vec::new();
        let mut iterator = 0;
        loop {
            let mut pair = array(run!(c, "BF.SCANDUMP", key, iterator));
            let data = bytes(pair.pop().expect("iterator and record"));
            iterator = int(pair.pop().expect("iterator and record"));
            if iterator == 0 {
                break;
            }
            records.push((iterator, data));
        }
        let dump = bytes(run!(c, "DUMP", key));
        let head = dump[..10].to_vec();
        let seed = Seed { records, head, version: dump[dump.len() - 10..dump.len() - 8].to_vec() };
        assert_eq!(seed.dump(&seed.records, true), dump, "{key}: a DUMP is what this test believes it to be");
        seed
    })
    .into()
}

impl Seed {
    /// What DUMP would give for these records.
    fn dump(&self, records: &[(i64, Vec<u8>)], mended: bool) -> Vec<u8> {
        let mut dump = self.head.clone();
        for record in records.iter().map(|(_, record)| record.as_slice()).chain([&[][..]]) {
            // A string follows; its length.
            dump.push(5);
            match u32::try_from(record.len()).expect("a short record").to_be_bytes() {
                [0, 0, 0, low @ 0..64] => dump.push(low),
                [0, 0, high @ 0..64, low] => dump.extend([0x40 | high, low]),
                long => {
                    dump.push(0x80);
                    dump.extend(long);
                }
            }
            dump.extend(record);
        }
        // The value ends.
        dump.push(0);
        dump.extend(&self.version);
        dump.extend([0; 8]);
        if mended {
            records::mend_dump(&mut dump);
        }
        dump
    }
}

/// Some bits of it are not what they were, or its end is missing.
fn break_bytes(bytes: &mut Vec<u8>, from: usize, random: &mut Random) {
    if bytes.len() <= from {
        return;
    }
    if random.one_in(4) {
        bytes.truncate(from + random.below(bytes.len() - from));
    }
    for _ in 0..random.below(4) {
        if bytes.len() > from {
            let at = from + random.below(bytes.len() - from);
            bytes[at] ^= 1 << random.below(8);
        }
    }
}

/// One record with something in it that somebody wants to be believed.
fn forge(record: &mut Vec<u8>, random: &mut Random) {
    let length = record.len();
    match random.below(6) {
        // A number, in the head after the magic or in the body.
        0..=2 => {
            let width = random.of(&[1, 2, 4, 8]);
            let at = if random.one_in(4) { 8 + random.below(24) } else { 32 + random.below(length - 40) };
            let number = random.of(&NUMBERS).wrapping_add(if random.one_in(4) { random.next() % 5 } else { 0 });
            let end = (at + width).min(length - 8);
            record[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
        }
        3 => {
            for _ in 0..=random.below(4) {
                let at = 8 + random.below(length - 16);
                record[at] = random.next().to_le_bytes()[0];
            }
        }
        // Bytes more or fewer, and the length that says so.
        4 => {
            let at = 32 + random.below(length - 40);
            if random.one_in(2) {
                record.drain(at..(at + 1 + random.below(16)).min(length - 8));
            } else {
                let more: Vec<u8> = (0..=random.below(16)).map(|_| random.next().to_le_bytes()[0]).collect();
                record.splice(at..at, more);
            }
            let length = u32::try_from(record.len()).expect("a short record");
            record[12..16].copy_from_slice(&length.to_le_bytes());
        }
        // As of another release.
        _ => record[8..10].copy_from_slice(&2_u16.to_le_bytes()),
    }
    records::mend(record);
}

/// Records that were tampered with.
fn tamper(seeds: &[Seed], records: &mut Vec<(i64, Vec<u8>)>, random: &mut Random) {
    for _ in 0..=random.below(2) {
        if records.is_empty() {
            return;
        }
        let at = random.below(records.len());
        match random.below(12) {
            0..=5 => forge(&mut records[at].1, random),
            6 | 7 => break_bytes(&mut records[at].1, 0, random),
            8 => _ = records.remove(at),
            9 => {
                let doubled = records[at].clone();
                records.insert(random.below(records.len()), doubled);
            }
            10 => {
                let other = random.below(records.len());
                records.swap(at, other);
            }
            _ => {
                let other = &seeds[random.below(seeds.len())].records;
                records[at] = other[random.below(other.len())].clone();
            }
        }
        // What is broken already is forged no further: its length may be anything.
        if records.iter().any(|(_, record)| record.len() < 41) {
            return;
        }
    }
}

/// What happened to all that was tried.
#[derive(Default)]
struct Counts {
    tried: usize,
    accepted: usize,
    /// In `accepted`; a record that makes half a filter is one.
    half: usize,
    /// The largest filter that an accepted payload made, in bytes for each of the payload's.
    times: f64,
    largest: i64,
}

/// What is asked of a key after each attempt to fill it.
fn questions(key: &str) -> Vec<Cmd> {
    vec![
        cmd("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg(0).to_owned(),
        cmd("BF.INFO").arg(key).to_owned(),
        cmd("BF.EXISTS").arg(key).arg("item1").to_owned(),
        cmd("BF.MADD").arg(key).arg(&["x", "y", "z"]).to_owned(),
        cmd("BF.MEXISTS").arg(key).arg(&["x", "y", "z"]).to_owned(),
        cmd("DUMP").arg(key).to_owned(),
        cmd("DEL").arg(key).to_owned(),
    ]
}

const QUESTIONS: usize = 7;

impl Counts {
    /// Sends what makes the key and looks at what came of it.
    fn attempt(&mut self, c: &mut Client, attempts: &[(Vec<Cmd>, usize)]) {
        let key = "hostile";
        let calls: Vec<Cmd> =
            attempts.iter().flat_map(|(calls, _)| calls.iter().cloned().chain(questions(key))).collect();
        let mut replies = c.pipeline(&calls).into_iter();
        for (calls, size) in attempts {
            self.tried += 1;
            for reply in replies.by_ref().take(calls.len()) {
                assert!(matches!(reply, Value::Okay | Value::ServerError(_)), "{reply:?}");
            }
            let answers: Vec<Value> = replies.by_ref().take(QUESTIONS).collect();
            if answers[QUESTIONS - 1] == Value::Int(1) && !matches!(answers[0], Value::Nil) {
                self.accepted += 1;
                self.works(c, &answers, *size);
            }
        }
    }

    /// What was accepted is a filter, which takes items and can be saved, and no larger than it may be.
    fn works(&mut self, c: &mut Client, answers: &[Value], size: usize) {
        let [Value::Int(usage), Value::Array(_), exists, madd, mexists, Value::BulkString(dump), _] = answers else {
            panic!("no filter: {answers:?}");
        };
        let size = i64::try_from(size).expect("a small payload");
        assert!(*usage <= ANNOUNCED + TIMES * size, "{usage} bytes for a payload of {size}");
        if *usage > self.largest {
            self.largest = *usage;
        }
        let times = *usage as f64 / size as f64;
        if times.total_cmp(&self.times) == Ordering::Greater {
            self.times = times;
        }
        ok(run!(c, "RESTORE", "again", 0, dump, "REPLACE"));
        assert_eq!(bytes(run!(c, "DUMP", "again")), *dump, "saved, loaded and saved");
        run!(c, "DEL", "again");
        if let Value::ServerError(error) = exists {
            assert!(error_text(error).contains("load"), "{exists:?}");
            self.half += 1;
            return;
        }
        match (madd, mexists) {
            (Value::Array(added), Value::Array(found)) => {
                for (added, found) in added.iter().zip(found) {
                    assert!(matches!(added, Value::ServerError(_)) || *found == Value::Int(1), "{added:?} {found:?}");
                }
            }
            // Too large to grow.
            (Value::ServerError(_), Value::Array(_)) => {}
            _ => panic!("{madd:?} {mexists:?}"),
        }
    }
}

/// A RESTORE, or BF.LOADCHUNKs, and how many bytes they bring.
fn attempt(seeds: &[Seed], random: &mut Random) -> (Vec<Cmd>, usize) {
    let seed = &seeds[random.below(seeds.len())];
    let mut records = seed.records.clone();
    if random.one_in(2) {
        if !random.one_in(8) {
            tamper(seeds, &mut records, random);
        }
        let mended = !random.one_in(8);
        let mut dump = seed.dump(&records, mended);
        if random.one_in(4) {
            // Not the type: what other types make of damage is the server's.
            break_bytes(&mut dump, seed.head.len(), random);
            if mended && dump.len() > seed.head.len() + 8 {
                records::mend_dump(&mut dump);
            }
        }
        let size = dump.len();
        return (vec![cmd("RESTORE").arg("hostile").arg(0).arg(dump).to_owned()], size);
    }
    tamper(seeds, &mut records, random);
    let size = records.iter().map(|(_, record)| record.len()).sum();
    let load = |iterator: i64, data: &[u8]| cmd("BF.LOADCHUNK").arg("hostile").arg(iterator).arg(data).to_owned();
    if random.one_in(2) {
        let joined = records.into_iter().flat_map(|(_, record)| record).collect::<Vec<u8>>();
        return (vec![load(1, &joined)], size);
    }
    let forged = random.one_in(4).then(|| random.below(records.len().max(1)));
    let calls = records.iter().enumerate().map(|(i, (iterator, record))| {
        let number = if forged == Some(i) { random.of(&NUMBERS).cast_signed() } else { *iterator };
        load(number, record)
    });
    (calls.collect(), size)
}

/// Servers that start on a forged file: they start, or they end and say why.
struct Files {
    server: Server,
    started: usize,
    refused: usize,
    options: Options,
}

impl Files {
    fn new(options: Options) -> Self {
        Self { server: options.clone().start(), started: 0, refused: 0, options }
    }

    fn start(&mut self) {
        match self.server.try_start() {
            Ok(()) => {
                self.started += 1;
                let mut c = self.server.client();
                if int(run!(c, "EXISTS", "k")) == 1 {
                    run!(c, "BF.MADD", "k", "x", "y", "z");
                    assert!(matches!(run!(c, "DUMP", "k"), Value::BulkString(_)));
                }
            }
            Err(_) => self.refused += 1,
        }
        check_logs([&self.server]);
        // Its log is read again at each start.
        self.server = self.options.clone().start();
    }

    /// An RDB file in which the value of the only key is another one. Nothing else in it is damaged: a server that finds
    /// an RDB file damaged runs its own redis-check-rdb on it, and those of Redis 7.0.15, 8.2.3 and Valkey 9.1 never end
    /// where a file breaks off within a module's value.
    fn rdb(&mut self, seeds: &[Seed], random: &mut Random) {
        let mut c = self.server.client();
        run!(c, "BF.ADD", "k", "x");
        let (dump, path) = (bytes(run!(c, "DUMP", "k")), self.server.directory().join("dump.rdb"));
        ok(run!(c, "SAVE"));
        self.server.kill();
        let mut file = fs::read(&path).expect("the RDB file");
        let own = &dump[1..dump.len() - 10];
        let at = file.windows(own.len()).position(|window| window == own).expect("the value in the file");
        let seed = &seeds[random.below(seeds.len())];
        let mut records = seed.records.clone();
        tamper(seeds, &mut records, random);
        let forged = seed.dump(&records, false);
        file.splice(at..at + own.len(), forged[1..forged.len() - 10].iter().copied());
        if !random.one_in(8) {
            records::mend_dump(&mut file);
        }
        fs::write(path, file).expect("the RDB file can be written");
        self.start();
    }

    /// An AOF of BF.LOADCHUNKs.
    fn aof(&mut self, seeds: &[Seed], random: &mut Random) {
        run!(self.server.client(), "BF.ADD", "other", "x");
        self.server.kill();
        let mut records = seeds[random.below(seeds.len())].records.clone();
        if !random.one_in(8) {
            tamper(seeds, &mut records, random);
        }
        let path = self.server.aof_file();
        let mut file = fs::read(&path).expect("the AOF");
        let was = file.len();
        for (iterator, record) in &records {
            file.extend(cmd("BF.LOADCHUNK").arg("k").arg(*iterator).arg(record).get_packed_command());
        }
        if random.one_in(4) {
            break_bytes(&mut file, was, random);
        }
        fs::write(path, file).expect("the AOF can be written");
        self.start();
    }
}

/// The longest that the server was at one command, and the command.
fn slowest(c: &mut Client) -> (Duration, String) {
    let entries = array(run!(c, "SLOWLOG", "GET", 10_000)).into_iter().map(|entry| {
        let mut fields = array(entry).into_iter().skip(2);
        let time = int(fields.next().expect("a time")).unsigned_abs();
        let words = array(fields.next().expect("a command"));
        (Duration::from_micros(time), String::from_utf8_lossy(&bytes(words[0].clone())).into_owned())
    });
    entries.max().unwrap_or_default()
}

/// The most chunks that a client's record may name, one bit in each.
fn most_chunks(c: &mut Client) -> String {
    const CHUNKS: u32 = 8192;
    let layer = Layer { lines: u64::from(CHUNKS) * 64, capacity: 1 << 30, ..Layer::DEFAULT };
    let chunks: Vec<(u32, &[u16])> = (0..CHUNKS).map(|index| (index, &[7_u16][..])).collect();
    let payload = records::joined(&[Filter::DEFAULT.record(), layer.record(), records::bits(0, 0, CHUNKS, &chunks)]);
    ok(run!(c, "SLOWLOG", "RESET"));
    ok(run!(c, "BF.LOADCHUNK", "most", 1, &payload));
    let usage = int(run!(c, "MEMORY", "USAGE", "most"));
    let (time, _) = slowest(c);
    run!(c, "DEL", "most");
    let times = usage as f64 / payload.len() as f64;
    format!("{} bytes that name {CHUNKS} chunks: {usage} bytes, {times:.0} times as many, in {time:.0?}", payload.len())
}

fn hostile(run: &Run, payloads: usize) {
    let begun = Instant::now();
    let mut random = Random::new(run.seed);
    let options = || Options::new().deadline(run.deadline()).config("rdbcompression", "no");
    // Times of single commands as the server measures them.
    let server = options().config("slowlog-log-slower-than", "1000").config("slowlog-max-len", "10000").start();
    let mut c = server.client();
    let seeds = seeds(&mut c);
    let filters = int(run!(c, "DBSIZE"));
    let mut rdb = Files::new(options());
    let mut aof = Files::new(options().config("appendonly", "yes").config("appendfsync", "always"));
    let mut counts = Counts::default();
    let in_files = payloads / FILES;
    while counts.tried < payloads - 2 * in_files && begun.elapsed() < run.time {
        let attempts: Vec<_> = (0..BATCH).map(|_| attempt(&seeds, &mut random)).collect();
        counts.attempt(&mut c, &attempts);
        // As many files as their share of what was tried by now.
        while (rdb.started + rdb.refused) * FILES < counts.tried {
            rdb.rdb(&seeds, &mut random);
            aof.aof(&seeds, &mut random);
        }
    }
    assert!(server.alive());
    assert_eq!(int(run!(c, "DBSIZE")), filters, "nothing was left");
    check_logs([&server]);
    // Ids, counts and the like may be anything, and half a filter is one; most damage must be seen.
    let Counts { tried, accepted, half, times, largest } = counts;
    assert!(accepted > 0 && accepted < tried * 3 / 4, "{accepted} of {tried} were taken");
    let (slowest, name) = slowest(&mut c);
    let peak: i64 = c.info("used_memory_peak").parse().expect("a number");
    println!(
        "hostile: {tried} payloads, {accepted} taken ({half} of them half a filter), the slowest command {slowest:.1?} \
         ({name}), the largest filter {largest} bytes, at most {times:.0} times its payload, peak {peak} bytes; \
         RDB files {} loaded and {} refused; AOFs {} and {}; {:.0?}",
        rdb.started,
        rdb.refused,
        aof.started,
        aof.refused,
        begun.elapsed(),
    );
    println!("hostile: {}", most_chunks(&mut c));
}

#[test]
fn two_thousand_forgeries() {
    hostile(&Run::short(), 2000);
}

#[test]
#[ignore = "make torture"]
fn a_hundred_thousand_forgeries() {
    hostile(&Run::long("hostile"), 100_000);
}
