//! A cluster of three primaries with replicas under load: slots move, primaries are killed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Cmd, ProtocolVersion, Value, cmd};

use super::worker::{Reach, Unsure, digests, is_not_now};
use super::{PAUSE, Run, check, check_logs, under_load, workers};
use crate::harness::cluster::{Cluster, slot};
use crate::harness::{Client, Options, Random, error_text, version};

/// How often a command is sent on to another node before its outcome counts as unknown.
const REDIRECTIONS: usize = 20;

/// The way of one worker, all of whose keys are in one slot.
struct Nodes {
    ports: Arc<Vec<AtomicU16>>,
    clients: HashMap<u16, Client>,
    /// The port that served the slot last.
    at: u16,
    next: usize,
}

impl Nodes {
    fn new(ports: &Arc<Vec<AtomicU16>>) -> Self {
        Self { ports: Arc::clone(ports), clients: HashMap::new(), at: ports[0].load(Ordering::SeqCst), next: 0 }
    }

    fn client(&mut self, port: u16) -> Result<&mut Client, Unsure> {
        if !self.clients.contains_key(&port) {
            let client = Client::connect(port, ProtocolVersion::RESP2).map_err(|_| self.elsewhere())?;
            self.clients.insert(port, client);
        }
        self.clients.get_mut(&port).ok_or(Unsure)
    }

    /// The node does not answer: the next one will know.
    fn elsewhere(&mut self) -> Unsure {
        self.clients.remove(&self.at);
        self.next += 1;
        self.at = self.ports[self.next % self.ports.len()].load(Ordering::SeqCst);
        thread::sleep(PAUSE);
        Unsure
    }
}

/// `MOVED 1234 127.0.0.1:7000` and `ASK …` name the port.
fn redirection(reply: &Value) -> Option<(bool, u16)> {
    let Value::ServerError(error) = reply else { return None };
    let text = error_text(error);
    let ask = text.starts_with("ASK ");
    (ask || text.starts_with("MOVED "))
        .then(|| (ask, text.rsplit(':').next().and_then(|p| p.parse().ok()).expect("a port")))
}

impl Reach for Nodes {
    fn call(&mut self, command: &Cmd) -> Result<(Value, &mut Client), Unsure> {
        let (mut port, mut asking) = (self.at, false);
        for _ in 0..REDIRECTIONS {
            let client = self.client(port)?;
            if asking && client.try_run(&cmd("ASKING")).is_err() {
                return Err(self.elsewhere());
            }
            let Ok(reply) = client.try_run(command) else { return Err(self.elsewhere()) };
            if let Some((ask, to)) = redirection(&reply) {
                (port, asking) = (to, ask);
                if !ask {
                    self.at = to;
                }
            } else if matches!(&reply, Value::ServerError(e) if e.code() == "TRYAGAIN") {
                // Some of its keys have moved and some have not.
                (port, asking) = (self.at, false);
                thread::sleep(PAUSE);
            } else if is_not_now(&reply) {
                return Err(self.elsewhere());
            } else {
                return Ok((reply, self.client(port)?));
            }
        }
        Err(Unsure)
    }

    fn replicas(&self) -> u64 {
        1
    }
}

/// `most` moves, every tenth followed by a kill, or until the time is over.
fn under_faults(run: &Run, connections: usize, most: usize, kill_every: usize) {
    let begun = Instant::now();
    let mut random = Random::new(run.seed);
    let options = Options::new().deadline(run.deadline()).config("appendonly", "yes").config("appendfsync", "always");
    let mut cluster = Cluster::start(&options);
    let ports: Arc<Vec<AtomicU16>> = Arc::new(cluster.nodes.iter().map(|node| AtomicU16::new(node.port())).collect());
    let mut workers = workers(connections, &mut random, || Box::new(Nodes::new(&ports)));
    let slots: Vec<i64> = workers.iter().map(|worker| slot(&mut cluster.nodes[0].client(), &worker.key(0))).collect();
    let (mut by_keys, mut at_once, mut kills) = (0, 0, 0);
    let mut tally = check(&mut workers);
    while by_keys + at_once < most && begun.elapsed() < run.time {
        under_load(&mut workers, || {
            for _ in 0..kill_every {
                thread::sleep(Duration::from_millis(random.below(100) as u64));
                let slot = random.of(&slots);
                let owner = cluster.owner(slot);
                let others: Vec<usize> = cluster.primaries().into_iter().filter(|&i| i != owner).collect();
                let to = random.of(&others);
                if version().valkey && version().number >= (9, 0, 0) && random.one_in(2) {
                    cluster.migrate_slot(slot, to);
                    at_once += 1;
                } else {
                    cluster.move_slot(slot, to);
                    by_keys += 1;
                }
                cluster.agrees();
            }
            cluster.fail_over(random.of(&slots));
            kills += 1;
            for (port, node) in ports.iter().zip(&cluster.nodes) {
                port.store(node.port(), Ordering::SeqCst);
            }
        });
        tally = check(&mut workers);
        for (worker, slot) in workers.iter().zip(&slots) {
            let primary = cluster.owner(*slot);
            let (primary, replica) = (&cluster.nodes[primary], &cluster.nodes[cluster.replica(primary)]);
            replica.catch_up(primary);
            let keys: Vec<String> = worker.filters().collect();
            assert_eq!(digests(&mut primary.client(), &keys), digests(&mut replica.client(), &keys), "{keys:?}");
        }
        check_logs(&cluster.nodes);
    }
    println!(
        "cluster: {:.0?}, {connections} connections, {by_keys} slots moved key by key and {at_once} at once, \
         {kills} primaries killed; {tally}",
        begun.elapsed()
    );
}

#[test]
fn slots_move_and_a_primary_is_killed() {
    under_faults(&Run::short(), 4, 4, 4);
}

#[test]
#[ignore = "make torture"]
fn slots_move_and_primaries_are_killed() {
    under_faults(&Run::long("cluster"), 20, usize::MAX, 10);
}
