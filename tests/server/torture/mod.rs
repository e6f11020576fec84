//! Faults under load, and bytes that mean harm. Each part has a short form, which `make test` runs, and a long one, which
//! `make torture` runs:
//!
//! | part | what is done | ends |
//! |---|---|---|
//! | [`kill`] | SIGKILL while items are added, while it saves, rewrites its AOF and loads | after 100 rounds |
//! | [`hostile`] | damaged and forged dumps, records, RDB files and AOFs | after 100,000 |
//! | [`soak`] | 20 connections; saves, rewrites, reloads, restarts, lost links, failovers | after TIME |
//! | [`cluster`] | slots that move under load, primaries that are killed | after TIME |
//!
//! `TIME` is the most seconds that a part may take (300), `SEED` the number that everything is drawn from (each run takes
//! another and prints it). The same seed draws the same; how the threads of a test and the processes meet differs from
//! run to run. What is acknowledged is what [`worker`] says.

mod cluster;
mod hostile;
mod kill;
mod soak;
mod worker;

use std::env;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::{Cmd, ProtocolVersion, Value};

use crate::harness::{Client, Random, Server, version};
use worker::{Reach, Tally, Unsure, Worker, is_not_now};

/// How long a test goes on, and what it draws from.
struct Run {
    seed: u64,
    time: Duration,
}

impl Run {
    /// That of a test which `make test` runs.
    fn short() -> Self {
        Self { seed: 1, time: Duration::from_secs(20) }
    }

    /// What the environment says.
    fn long(part: &str) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
        let run =
            Self { seed: variable("SEED").unwrap_or(now), time: Duration::from_secs(variable("TIME").unwrap_or(300)) };
        println!("{part}: {}, at most {:?}, SEED={}", version(), run.time, run.seed);
        run
    }

    /// What a test's servers may take: its own time, and as much again to come to an end.
    fn deadline(&self) -> Duration {
        self.time * 2 + Duration::from_secs(60)
    }
}

fn variable<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// The server on this port, which may go away and come back, or another one take its place.
struct Single {
    port: Arc<AtomicU16>,
    replicas: u64,
    client: Option<Client>,
}

impl Single {
    fn new(port: &Arc<AtomicU16>, replicas: u64) -> Self {
        Self { port: Arc::clone(port), replicas, client: None }
    }
}

impl Reach for Single {
    fn call(&mut self, command: &Cmd) -> Result<(Value, &mut Client), Unsure> {
        let client = match self.client.take() {
            Some(client) => Ok(client),
            None => Client::connect(self.port.load(Ordering::SeqCst), ProtocolVersion::RESP2),
        };
        match client.and_then(|mut client| client.try_run(command).map(|reply| (client, reply))) {
            Ok((client, reply)) if !is_not_now(&reply) => Ok((reply, self.client.insert(client))),
            _ => {
                thread::sleep(PAUSE);
                Err(Unsure)
            }
        }
    }

    fn replicas(&self) -> u64 {
        self.replicas
    }
}

/// Before an attempt after one that failed.
const PAUSE: Duration = Duration::from_millis(5);

/// Workers with seeds of their own.
fn workers(count: usize, random: &mut Random, reach: impl Fn() -> Box<dyn Reach>) -> Vec<Worker> {
    (0..count).map(|i| Worker::new(format!("w{i}"), random.next(), reach())).collect()
}

/// Does something while the workers work, and waits for them to end their last step.
fn under_load<R>(workers: &mut [Worker], body: impl FnOnce() -> R) -> R {
    /// Also when the body panics, since the scope waits for the workers.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in workers {
            scope.spawn(|| {
                while !stopped.load(Ordering::SeqCst) {
                    worker.step();
                }
            });
        }
        let _stop = Stop(&stopped);
        body()
    })
}

/// Asserts that everything that was acknowledged is there, and that answers are wrong no more often than was asked.
fn check(workers: &mut [Worker]) -> Tally {
    let mut tally = Tally::default();
    thread::scope(|scope| {
        for worker in &mut *workers {
            scope.spawn(|| worker.check());
        }
    });
    for worker in workers {
        tally += worker.tally;
    }
    tally.check_rate();
    tally
}

/// Asserts that no server said that it crashed, or that the module panicked.
fn check_logs<'a>(servers: impl IntoIterator<Item = &'a Server>) {
    for server in servers {
        let log = server.log();
        for bad in ["crashed by signal", "panicked", "BUG REPORT", "ASSERTION FAILED"] {
            assert!(!log.contains(bad), "{bad}:\n{log}");
        }
    }
}
