//! A primary and its replica under load, and whatever happens to servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::worker::{Worker, digests};
use super::{Run, Single, check, check_logs, under_load, workers};
use crate::harness::{Client, Options, Random, Server, bytes, ok};
use crate::run;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Save,
    Rewrite,
    Reload,
    Restart,
    Kill,
    RestartReplica,
    BreakLink,
    HandOver,
    FailOver,
}

const FAULTS: [Fault; 9] = [
    Fault::Save,
    Fault::Rewrite,
    Fault::Reload,
    Fault::Restart,
    Fault::Kill,
    Fault::RestartReplica,
    Fault::BreakLink,
    Fault::HandOver,
    Fault::FailOver,
];

/// Bytes in use without a filter, beyond those at the start: buffers of clients and of replication.
const LEVEL: i64 = 16 << 20;

struct Pair {
    servers: [Server; 2],
    /// Which of them is the primary.
    primary: usize,
    port: Arc<AtomicU16>,
}

impl Pair {
    fn start(run: &Run) -> Self {
        let options = || {
            let options = Options::new().deadline(run.deadline()).config("appendonly", "yes");
            options.config("appendfsync", "always").config("repl-diskless-sync-delay", "0")
        };
        let diskless = options().config("repl-diskless-sync", "yes").config("repl-diskless-load", "swapdb");
        let servers = [options().start(), diskless.start()];
        servers[1].follow(&servers[0]);
        let port = Arc::new(AtomicU16::new(servers[0].port()));
        Self { servers, primary: 0, port }
    }

    fn primary(&self) -> &Server {
        &self.servers[self.primary]
    }

    fn replica(&self) -> &Server {
        &self.servers[1 - self.primary]
    }

    /// After one of them was started or took the other's place.
    fn meet(&mut self) {
        self.port.store(self.primary().port(), Ordering::SeqCst);
        // Answered with more than OK where it is known already.
        run!(self.replica().client(), "REPLICAOF", "127.0.0.1", self.primary().port());
    }

    /// SHUTDOWN SAVE and start. It is refused by a server whose first AOF, of what its primary sent, is being written.
    fn restart(&mut self, which: usize) {
        let server = &mut self.servers[which];
        let mut c = server.client();
        server.until("no child saves", || idle(&mut c));
        server.restart();
    }

    fn happen(&mut self, fault: Fault, random: &mut Random) {
        let primary = self.primary;
        let mut c = self.primary().client();
        match fault {
            Fault::Save => _ = run!(c, "BGSAVE"),
            Fault::Rewrite => {
                let mut c = self.servers[random.below(2)].client();
                run!(c, "CONFIG", "SET", "aof-use-rdb-preamble", random.of(&["yes", "no"]));
                run!(c, "BGREWRITEAOF");
            }
            Fault::Reload => {
                // A child that saves keeps it from being done.
                self.primary().until("no child saves", || idle(&mut c));
                ok(run!(c, "DEBUG", "RELOAD"));
            }
            Fault::Restart => {
                self.restart(primary);
                self.meet();
            }
            Fault::Kill => {
                self.servers[primary].kill();
                self.servers[primary].start();
                self.meet();
            }
            Fault::RestartReplica => {
                self.restart(1 - primary);
                self.meet();
            }
            Fault::BreakLink => _ = run!(c, "CLIENT", "KILL", "TYPE", "replica"),
            Fault::HandOver => {
                self.replica().catch_up(self.primary());
                ok(run!(c, "FAILOVER", "TO", "127.0.0.1", self.replica().port(), "TIMEOUT", 5000));
                self.primary().until("the failover is over", || c.info("master_failover_state") == "no-failover");
                if c.info("role") == "slave" {
                    self.primary = 1 - primary;
                }
                self.meet();
            }
            Fault::FailOver => {
                self.replica().catch_up(self.primary());
                self.servers[primary].kill();
                ok(run!(self.replica().client(), "REPLICAOF", "NO", "ONE"));
                self.primary = 1 - primary;
                self.port.store(self.primary().port(), Ordering::SeqCst);
                self.servers[primary].start();
                self.meet();
            }
        }
        self.replica().catch_up(self.primary());
    }

    /// Both servers hold the same bits, and a save and a rewrite may end.
    fn check(&self, workers: &[Worker]) {
        self.replica().catch_up(self.primary());
        let (mut c, mut d) = (self.primary().client(), self.replica().client());
        for worker in workers {
            let keys: Vec<String> = worker.filters().collect();
            assert_eq!(digests(&mut c, &keys), digests(&mut d, &keys), "{keys:?}");
        }
        check_logs(&self.servers);
    }
}

fn idle(c: &mut Client) -> bool {
    let info = c.info_all();
    ["rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled"].iter().all(|name| info[*name] == "0")
}

fn number(c: &mut Client, field: &str) -> i64 {
    c.info(field).parse().expect("a number")
}

/// One of the module's own figures.
fn bf(c: &mut Client, name: &str) -> i64 {
    let text = String::from_utf8(bytes(run!(c, "INFO", "bf"))).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|figure| figure.parse().ok()).unwrap_or_else(|| panic!("no {name} in INFO bf"))
}

/// `faults` come in turn, or, where they are none, as drawn until the time is over.
fn soak(run: &Run, connections: usize, faults: &[Fault]) {
    let begun = Instant::now();
    let mut random = Random::new(run.seed);
    let mut pair = Pair::start(run);
    let empty = number(&mut pair.primary().client(), "used_memory");
    let port = Arc::clone(&pair.port);
    let mut workers = workers(connections, &mut random, || Box::new(Single::new(&port, 1)));
    let mut done = [0; FAULTS.len()];
    let mut levels = Vec::new();
    let mut tally = check(&mut workers);
    let mut in_turn = faults.iter().copied();
    let mut over = false;
    while !over {
        under_load(&mut workers, || {
            for _ in 0..10 {
                let drawn = (begun.elapsed() < run.time).then(|| random.of(&FAULTS));
                let Some(fault) = (if faults.is_empty() { drawn } else { in_turn.next() }) else {
                    over = true;
                    break;
                };
                thread::sleep(Duration::from_millis(random.below(if faults.is_empty() { 1000 } else { 100 }) as u64));
                pair.happen(fault, &mut random);
                done[FAULTS.iter().position(|known| *known == fault).expect("a fault of ours")] += 1;
            }
        });
        tally = check(&mut workers);
        pair.check(&workers);
        levels.push(number(&mut pair.primary().client(), "used_memory") / 1000);
    }
    // A quarter of the rounds at the beginning against one at the end, where there are enough of them.
    let quarter = levels.len() / 4;
    let most = |levels: &[i64]| levels.iter().max().copied().unwrap_or_default();
    let (early, late) = (most(&levels[..quarter]), most(&levels[levels.len() - quarter..]));
    assert!(quarter < 5 || late <= early * 3 / 2, "{early} kB in use at first, {late} in the end");
    let mut c = pair.primary().client();
    ok(run!(c, "FLUSHALL"));
    pair.primary().until("nothing is held any more", || bf(&mut c, "bf_filters") == 0);
    let left = number(&mut c, "used_memory") - empty;
    assert!(left < LEVEL, "{left} bytes more than at the start are in use without a filter");
    assert!(bf(&mut c, "bf_bytes") < 1 << 20);
    println!(
        "soak: {:.0?}, {connections} connections, faults {FAULTS:?}: {done:?}; {tally}; kB in use {}…{}, at most {early} \
         in the first quarter and {late} in the last, {} without a filter",
        begun.elapsed(),
        levels.iter().min().expect("a round"),
        most(&levels),
        left / 1000,
    );
}

#[test]
fn each_fault_once() {
    soak(&Run::short(), 4, &FAULTS);
}

#[test]
#[ignore = "make torture"]
fn twenty_connections_and_any_fault() {
    soak(&Run::long("soak"), 20, &[]);
}
