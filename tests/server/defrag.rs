//! Active defragmentation, where the server has it: filters' memory moves while they are used, and nothing else changes.

use redis::Cmd;

use crate::harness::{Client, Options, Server, add, array, found, int, ints, items, ok, strings};
use crate::{needs, run};

/// Filters made first, of which one in [`KEPT`] stays.
const MADE: usize = 24_000;
const KEPT: usize = 6;

/// Settings under which a server defragments as soon as it may and as much as it may. The last one is how large a value
/// may be, by its `free_effort`, to be moved in one go; the others are moved in steps.
fn eager(at_once: &str) -> Options {
    Options::new()
        .config("hz", "100")
        .config("active-defrag-ignore-bytes", "1")
        .config("active-defrag-threshold-lower", "1")
        .config("active-defrag-threshold-upper", "10")
        .config("active-defrag-cycle-min", "60")
        .config("active-defrag-cycle-max", "90")
        .config("active-defrag-max-scan-fields", at_once)
}

/// Whether the server's allocator can tell which blocks are worth moving.
fn can_defragment(c: &mut Client) -> bool {
    let can = run!(c, "CONFIG", "SET", "activedefrag", "yes") == redis::Value::Okay;
    run!(c, "CONFIG", "SET", "activedefrag", "no");
    can
}

fn number(c: &mut Client, field: &str) -> i64 {
    c.info(field).parse().expect("a number")
}

/// A filter of a few chunks, with a short one, and a table; every third one has several layers; every seventh a key.
fn fill(c: &mut Client, name: &str, i: usize) {
    let hash = if i.is_multiple_of(7) { "siphash" } else { "murmur3" };
    let size = if i.is_multiple_of(3) { "60" } else { "4200" };
    let count = if i.is_multiple_of(3) { 500 } else { 40 };
    ok(run!(c, "BF.RESERVE", name, "0.01", size, "HASH", hash));
    add(c, name, &items(0..count));
}

fn digests(c: &mut Client, keys: &[String]) -> Vec<String> {
    strings(run!(c, "DEBUG", "DIGEST-VALUE", keys))
}

/// Leaves the server with pages that are used a little each.
fn fragment(c: &mut Client) -> Vec<String> {
    let adds: Vec<Cmd> =
        (0..MADE).map(|i| redis::cmd("BF.MADD").arg(format!("small{i}")).arg("a").arg(i).to_owned()).collect();
    c.pipeline(&adds);
    for i in 0..240 {
        fill(c, &format!("large{i}"), i);
    }
    // Tables of 300,000 chunks of which hardly any is there: more than there is time for in one step.
    ok(run!(c, "BF.RESERVE", "sparse", "0.01", 1_000_000_000));
    add(c, "sparse", &items(0..2000));
    let gone = (0..MADE).filter(|i| !i.is_multiple_of(KEPT)).map(|i| format!("small{i}"));
    let gone: Vec<String> = gone.chain((60..240).map(|i| format!("large{i}"))).collect();
    assert_eq!(int(run!(c, "DEL", &gone)), gone.len() as i64);
    let large = (0..60).map(|i| format!("large{i}")).chain(["sparse".into()]);
    (0..MADE).step_by(KEPT).map(|i| format!("small{i}")).chain(large).collect()
}

/// Has the server defragment until its allocator wastes half of what it wasted, doing `meanwhile` all the time.
fn defragment(server: &Server, c: &mut Client, mut meanwhile: impl FnMut(&mut Client)) {
    // It looks at its allocator some times a second.
    let mut before = 0;
    server.until("the server has seen that over 2 MiB are wasted", || {
        before = number(c, "allocator_frag_bytes");
        before > 2 << 20
    });
    ok(run!(c, "CONFIG", "SET", "activedefrag", "yes"));
    server.until("half of what was wasted is gone", || {
        meanwhile(c);
        number(c, "allocator_frag_bytes") * 2 < before && number(c, "active_defrag_hits") > 0
    });
}

#[test]
fn f50_filters_are_moved_at_once_or_in_steps() {
    for at_once in ["1000", "1"] {
        let server = eager(at_once).start();
        let mut c = server.client();
        needs!(can_defragment(&mut c), "a server that was built with active defragmentation");
        let keys = fragment(&mut c);
        let (before, sizes) = (digests(&mut c, &keys), sizes(&mut c, &keys));
        defragment(&server, &mut c, |_| ());
        assert!(digests(&mut c, &keys) == before, "what is in the filters is what it was");
        assert_eq!(self::sizes(&mut c, &keys), sizes);
        assert_eq!(found(&mut c, "sparse", &items(0..2000)), 2000);
        // Nothing of it is left in a state that only this process could read.
        ok(run!(c, "DEBUG", "RELOAD"));
        assert!(digests(&mut c, &keys) == before);
        ok(run!(c, "FLUSHALL"));
        assert!(server.alive());
    }
}

fn sizes(c: &mut Client, keys: &[String]) -> Vec<i64> {
    let asked: Vec<Cmd> = keys.iter().map(|key| redis::cmd("BF.INFO").arg(key).arg("SIZE").to_owned()).collect();
    c.pipeline(&asked).into_iter().flat_map(ints).collect()
}

#[test]
fn f50_filters_change_while_they_are_moved() {
    for at_once in ["1000", "1"] {
        let server = eager(at_once).start();
        let mut c = server.client();
        needs!(can_defragment(&mut c), "a server that was built with active defragmentation");
        let keys = fragment(&mut c);
        let large: Vec<&String> = keys.iter().filter(|key| key.starts_with("large")).collect();
        // The items that each of the large ones holds, from 0 on.
        let mut held: Vec<usize> = (0..large.len()).map(|i| if i.is_multiple_of(3) { 500 } else { 40 }).collect();
        let mut turn = 0;
        defragment(&server, &mut c, |c| {
            for _ in 0..10 {
                turn += 1;
                let i = turn * 7 % large.len();
                match turn % 5 {
                    // Deleted and made anew, smaller or larger than it was.
                    0 => {
                        assert_eq!(int(run!(c, if turn % 2 == 0 { "DEL" } else { "UNLINK" }, large[i])), 1);
                        fill(c, large[i], i);
                        held[i] = if i.is_multiple_of(3) { 500 } else { 40 };
                    }
                    1 => {
                        let copy = format!("copy-{}", large[i]);
                        run!(c, "COPY", large[i], &copy, "REPLACE");
                        assert_eq!(found(c, &copy, &items(0..held[i])), held[i]);
                    }
                    // Items, and with them chunks and layers.
                    _ => {
                        add(c, large[i], &items(held[i]..held[i] + 400));
                        held[i] += 400;
                    }
                }
            }
        });
        for (key, &count) in large.iter().zip(&held) {
            assert_eq!(found(&mut c, key, &items(0..count)), count, "{key}");
        }
        for key in keys.iter().filter(|key| key.starts_with("small")) {
            assert_eq!(ints(run!(c, "BF.MEXISTS", key, "a", &key["small".len()..])), [1, 1], "{key}");
        }
        assert_eq!(array(run!(c, "COMMAND", "INFO", "PING")).len(), 1, "the server answers");
    }
}
