//! Sizes: what is refused before any memory is taken, and what is taken whatever it grows to.

use std::fs;

use crate::harness::records::{Filter, Layer};
use crate::harness::{Client, Options, Server, add, array, error, found, int, items, ok, version};
use crate::{needs, run};

/// What the kernel lets this machine or this container have.
fn memory_of_the_machine() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").expect("/proc/meminfo");
    let kib: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .expect("MemTotal in /proc/meminfo");
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
        .unwrap_or(u64::MAX);
    group.min(kib * 1024)
}

/// Asserts an error that names at least two figures: what it would need, and the limit.
fn too_large(c: &mut Client, call: &[&str]) {
    let text = error(run!(c, call));
    assert!(text.starts_with("ERR "), "{text}");
    let figures = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).count();
    assert!(figures >= 2, "{text:?} names what it would need and the limit");
}

#[test]
fn f01_what_no_machine_can_hold_is_refused() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "SET", "other", "x"));
    for capacity in ["1000000000000000000", "9223372036854775807", "1000000000000"] {
        too_large(&mut c, &["BF.RESERVE", "k", "0.01", capacity]);
        too_large(&mut c, &["BF.RESERVE", "k", "1e-12", capacity]);
        too_large(&mut c, &["BF.RESERVE", "k", "0.01", capacity, "NONSCALING"]);
    }
    assert!(server.alive());
    assert_eq!(int(run!(c, "DBSIZE")), 1);
}

#[test]
fn f71_five_thousand_million_where_the_machine_can_hold_them() {
    let server = Server::new();
    let mut c = server.client();
    let call = ["BF.RESERVE", "k", "0.01", "5000000000", "NONSCALING"];
    // About 6.2 GB of lines.
    if memory_of_the_machine() < 7_000_000_000 {
        return too_large(&mut c, &call);
    }
    ok(run!(c, call.as_slice()));
    assert_eq!(add(&mut c, "k", &items(0..1000)), 1000);
    assert_eq!(found(&mut c, "k", &items(0..1000)), 1000);
    assert_eq!(found(&mut c, "k", &items(1000..2000)), 0);
    let used = int(run!(c, "MEMORY", "USAGE", "k"));
    // 1,000 chunks and as many nodes at most, and a root of 24 KB.
    assert!(used < 9_000_000, "{used} bytes for 1,000 items");
}

#[test]
fn f102_a_filter_that_maxmemory_can_never_hold_is_refused() {
    let server = Options::new().config("maxmemory", "100mb").config("maxmemory-policy", "allkeys-lru").start();
    let mut c = server.client();
    for i in 0..1000 {
        ok(run!(c, "SET", format!("other{i}"), "x"));
    }
    too_large(&mut c, &["BF.RESERVE", "big", "0.001", "1000000000"]);
    // 1.2 MB for 1 % of a million; 120 MB for a hundred million.
    too_large(&mut c, &["BF.RESERVE", "big", "0.01", "100000000"]);
    assert_eq!(int(run!(c, "DBSIZE")), 1000, "nothing was evicted, nothing made");
    ok(run!(c, "BF.RESERVE", "fits", "0.01", 1_000_000));
}

/// A filter whose second layer is of 13 million items, about 17 MB: with this `maxmemory` it can never be added.
const SMALL_MEMORY: &str = "10mb";

fn reserve_steep(c: &mut Client) {
    ok(run!(c, "BF.RESERVE", "k", "0.01", 400, "EXPANSION", 32768));
}

#[test]
fn f102_growth_is_limited_like_creation() {
    let server = Options::new().config("maxmemory", SMALL_MEMORY).start();
    let mut c = server.client();
    reserve_steep(&mut c);
    let mut refused = None;
    for item in items(0..500) {
        let reply = run!(c, "BF.ADD", "k", &item);
        if let redis::Value::ServerError(_) = reply {
            refused = Some(item);
            break;
        }
    }
    let item = refused.expect("the filter cannot grow");
    let digest = c.digest("k");
    too_large(&mut c, &["BF.ADD", "k", &item]);
    assert_eq!(c.digest("k"), digest, "nothing changed");
    assert_eq!(int(run!(c, "BF.ADD", "k", "item0")), 0, "what is there needs no room");
    assert_eq!(found(&mut c, "k", &items(0..400)), 400);
    ok(run!(c, "CONFIG", "SET", "maxmemory", "0"));
    assert_eq!(int(run!(c, "BF.ADD", "k", &item)), 1);
}

#[test]
fn f102_but_never_for_what_a_primary_or_a_file_brings() {
    let mut primary = Options::new().config("appendonly", "yes").config("appendfsync", "always").start();
    // A limit that the filter itself does not reach, as a replica has none of its own by default.
    let replica = Options::new().config("maxmemory", SMALL_MEMORY).config("replica-ignore-maxmemory", "yes").start();
    replica.follow(&primary);
    let mut c = primary.client();
    reserve_steep(&mut c);
    ok(run!(c, "BF.RESERVE", "large", "0.01", 50_000_000));
    add(&mut c, "k", &items(0..600));
    run!(c, "BF.ADD", "large", "x");
    replica.catch_up(&primary);
    let digests = |server: &Server| ["k", "large"].map(|key| server.client().digest(key));
    let expected = digests(&primary);
    assert_eq!(digests(&replica), expected);
    drop(c);
    primary.kill();
    primary.configure("maxmemory", SMALL_MEMORY);
    primary.start();
    assert_eq!(digests(&primary), expected, "from the AOF");
    ok(run!(primary.client(), "DEBUG", "RELOAD"));
    assert_eq!(digests(&primary), expected, "from an RDB file");
}

#[test]
fn f03_f04_slow_growth_refuses_nothing_and_keeps_its_rate() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "p", "0.0001", 1, "EXPANSION", 1));
    add(&mut c, "p", &items(0..5000));
    assert_eq!(found(&mut c, "p", &items(0..5000)), 5000);
    // 200,000 probes at 0.0001 are 20; 45 has a probability under 1e-6.
    let wrong = found(&mut c, "p", &items(10_000..210_000));
    assert!(wrong <= 45, "{wrong} of 200,000 wrong");

    ok(run!(c, "BF.RESERVE", "t", "0.000001", 1, "EXPANSION", 1));
    add(&mut c, "t", &items(0..3000));
    assert_eq!(int(run!(c, "BF.ADD", "t", "new1")), 1);
    assert_eq!(found(&mut c, "t", &items(0..3000)), 3000);
}

#[test]
fn f05_300_single_adds() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "q", "0.01", 1, "EXPANSION", 1));
    let new: i64 = items(0..300).iter().map(|item| int(run!(c, "BF.ADD", "q", item))).sum();
    // 1 % of 300 are 3; 13 has a probability under 1e-4.
    assert!(new >= 300 - 13, "{new} of 300 were new");
    assert!(server.alive());
}

#[test]
fn f61_f74_rates_are_those_asked_for() {
    let server = Server::new();
    let mut c = server.client();
    // rate, capacity, probes, most that may be wrong: the rate and five standard deviations
    for (rate, capacity, probes) in [(0.5, 1000, 20_000), (0.01, 3400, 100_000), (0.001, 10_000, 100_000)] {
        let key = format!("{rate}/{capacity}");
        ok(run!(c, "BF.RESERVE", &key, rate, capacity, "NONSCALING"));
        let (mut new, mut next) = (0, 0);
        // Until as many as the capacity were answered 1, one after the other at the end.
        while new < capacity {
            let some = items(next..next + (capacity - new));
            next += some.len();
            new += add(&mut c, &key, &some);
        }
        let wrong = found(&mut c, &key, &items(1_000_000..1_000_000 + probes));
        let expected = rate * probes as f64;
        let most = expected + 5.0 * (expected * (1.0 - rate)).sqrt();
        assert!(wrong as f64 <= most, "{key}: {wrong} of {probes} wrong, at most {most:.0}");
        // Honoured, not undercut by a filter of twice the size.
        assert!(wrong as f64 > expected * 0.7, "{key}: {wrong} of {probes} wrong, {expected:.0} expected");
    }
}

/// A layer record that announces more than memory could hold is refused with both figures, and one code before them.
#[test]
fn a_record_beyond_memory_is_refused_with_one_code() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.LOADCHUNK", "k", 1, &Filter::DEFAULT.record().bytes()));
    let layer = Layer { lines: 1 << 33, ..Layer::DEFAULT }.record().bytes();
    let text = error(run!(c, "BF.LOADCHUNK", "k", 2, &layer));
    assert!(text.starts_with("ERR the filter needs 549755813888 bytes"), "{text}");
}

/// What is refused is refused before anything is allocated or evicted for it.
#[test]
fn a_refusal_takes_nothing() {
    let server = Options::new().config("maxmemory", "50mb").config("maxmemory-policy", "allkeys-random").start();
    let mut c = server.client();
    for i in 0..100 {
        ok(run!(c, "SET", format!("other{i}"), "x"));
    }
    reserve_steep(&mut c);
    add(&mut c, "k", &items(0..390));
    let in_use = |c: &mut Client| c.info("used_memory").parse::<i64>().expect("a number of bytes");
    let before = in_use(&mut c);
    ok(run!(c, "CONFIG", "SET", "maxmemory", SMALL_MEMORY));
    for _ in 0..20 {
        too_large(&mut c, &["BF.RESERVE", "big", "0.01", "100000000"]);
        too_large(&mut c, &["BF.INSERT", "big", "CAPACITY", "100000000", "ITEMS", "a"]);
        // Each new item asks for the second layer.
        run!(c, "BF.MADD", "k", items(1000..1500));
    }
    let more = in_use(&mut c) - before;
    assert!(more < 1 << 20, "{more} bytes more");
    assert_eq!(c.info("evicted_keys"), "0");
    assert_eq!(int(run!(c, "DBSIZE")), 101);
}

#[test]
fn over_maxmemory_without_eviction_adds_are_refused_and_questions_answered() {
    let server = Options::new().config("maxmemory", "20mb").config("maxmemory-policy", "noeviction").start();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.01", 1_000_000));
    add(&mut c, "k", &items(0..100_000));
    ok(run!(c, "CONFIG", "SET", "maxmemory", "1mb"));
    for call in [
        &["BF.ADD", "k", "new"][..],
        &["BF.MADD", "k", "new", "item1"],
        &["BF.INSERT", "k", "ITEMS", "new"],
        &["BF.RESERVE", "other", "0.01", "10"],
        &["BF.LOADCHUNK", "other", "1", "data"],
    ] {
        assert!(error(run!(c, call)).starts_with("OOM "), "{call:?}");
    }
    assert_eq!(found(&mut c, "k", &items(0..100_000)), 100_000);
    assert_eq!(int(run!(c, "EXISTS", "other")), 0);
    ok(run!(c, "CONFIG", "SET", "maxmemory", "20mb"));
    assert_eq!(int(run!(c, "BF.ADD", "k", "new")), 1);
}

#[test]
fn eviction_makes_room_for_filters_and_takes_them_whole() {
    // A server that frees in the background evicts more than it has to meanwhile, and may be left with nothing.
    let options = Options::new().config("maxmemory", "40mb").config("maxmemory-policy", "allkeys-lru");
    let server = options.config("lazyfree-lazy-eviction", "no").start();
    let mut c = server.client();
    // 120 filters of 0.6 MB and more. Each is filled by one command, so that none is evicted half filled and made anew.
    for i in 0..120 {
        let key = format!("k{i}");
        let reply = run!(c, "BF.INSERT", &key, "CAPACITY", 500_000, "ITEMS", items(0..2_000));
        assert_eq!(array(reply).len(), 2_000);
    }
    ok(run!(c, "CONFIG", "SET", "maxmemory", "0"));
    assert!(c.info("evicted_keys").parse::<u64>().expect("a number") > 20);
    let left = (0..120).filter(|i| int(run!(c, "EXISTS", format!("k{i}"))) == 1);
    let left: Vec<String> = left.map(|i| format!("k{i}")).collect();
    assert!(!left.is_empty());
    for key in left {
        assert_eq!(found(&mut c, &key, &items(0..2_000)), 2_000, "{key}");
    }
}

/// Sets how much address space a process of ours may have beyond what it has; none for no limit.
fn limit_memory(pid: i32, beyond: Option<u64>) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the status of a process");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("its size");
    let size: u64 = size.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    let most = beyond.map_or(libc::RLIM_INFINITY, |beyond| size * 1024 + beyond);
    let limit = libc::rlimit { rlim_cur: most, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a limit to read, and no place for the old one.
    let result = unsafe { libc::prlimit(pid, libc::RLIMIT_AS, &raw const limit, std::ptr::null_mut()) };
    assert_eq!(result, 0, "the limit of a process of ours can be set");
}

/// Where the server lets a module know that there is no memory, it is an error and the filters are what they were. One
/// command at a time under the limit: the server's own allocations end it.
#[test]
fn no_memory_is_an_error_and_not_the_end() {
    needs!(version().has(7, 0), "a server that tells a module that there is no memory");
    let server = Options::new().config("latency-tracking", "no").start();
    let mut c = server.client();
    let pid: i32 = c.info("process_id").parse().expect("a process id");
    // 60 MB, all chunks made.
    ok(run!(c, "BF.RESERVE", "k", "0.01", 50_000_000, "NONSCALING"));
    add(&mut c, "k", &items(0..100_000));
    let digest = c.digest("k");
    // Once: the allocator keeps the addresses of what the failed copy had, so another would get further.
    limit_memory(pid, Some(20 << 20));
    let reply = run!(c, "COPY", "k", "copy");
    limit_memory(pid, None);
    assert!(error(reply).starts_with("ERR "));
    assert_eq!(int(run!(c, "EXISTS", "copy")), 0);
    assert_eq!(c.digest("k"), digest);
    assert_eq!(int(run!(c, "COPY", "k", "copy")), 1);
    assert_eq!(c.digest("copy"), digest);
}
