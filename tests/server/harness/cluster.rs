//! Redis Cluster: nodes, and a cluster of three primaries with a replica each.

use redis::Value;

use super::{Client, Options, Server, array, bytes, int, ok};
use crate::run;

/// How long a node is silent before the others take it for dead, in milliseconds.
const NODE_TIMEOUT: &str = "1500";
const PRIMARIES: usize = 3;
const SLOTS: usize = 16_384;

/// A node of a cluster. Its bus takes the port 10,000 above its own, so some ports will not do.
pub fn node(options: Options) -> Server {
    let options = options.config("cluster-enabled", "yes").config("cluster-require-full-coverage", "no");
    for _ in 0..20 {
        match options.clone().try_start() {
            Ok(server) => return server,
            Err(log) if log.contains("port number too high") || log.contains("port is already busy") => {}
            Err(log) => panic!("the node did not start:\n{log}"),
        }
    }
    panic!("no port whose bus has one too");
}

/// A reply that is text.
pub fn text(reply: Value) -> String {
    String::from_utf8(bytes(reply)).expect("text")
}

/// The slot of a key.
pub fn slot(c: &mut Client, key: &str) -> i64 {
    int(run!(c, "CLUSTER", "KEYSLOT", key))
}

/// Three primaries with all slots between them, and a replica for each.
pub struct Cluster {
    /// The primaries of the beginning and then their replicas; later it may be otherwise.
    pub nodes: Vec<Server>,
}

impl Cluster {
    pub fn start(options: &Options) -> Self {
        let options = options.clone().config("cluster-node-timeout", NODE_TIMEOUT);
        // Otherwise a replica that lost its link a while ago does not stand for election.
        let options = options.config("cluster-replica-validity-factor", "0").config("repl-diskless-sync-delay", "0");
        let nodes: Vec<Server> = (0..2 * PRIMARIES).map(|_| node(options.clone())).collect();
        for (i, server) in nodes.iter().enumerate() {
            let mut c = server.client();
            ok(run!(c, "CLUSTER", "SET-CONFIG-EPOCH", i + 1));
            if i < PRIMARIES {
                let slots: Vec<usize> = (0..SLOTS).filter(|slot| slot * PRIMARIES / SLOTS == i).collect();
                ok(run!(c, "CLUSTER", "ADDSLOTS", slots));
            }
            ok(run!(c, "CLUSTER", "MEET", "127.0.0.1", nodes[0].port()));
        }
        let cluster = Self { nodes };
        cluster.agrees();
        for i in 0..PRIMARIES {
            let primary = text(run!(cluster.nodes[i].client(), "CLUSTER", "MYID"));
            ok(run!(cluster.nodes[PRIMARIES + i].client(), "CLUSTER", "REPLICATE", primary));
            cluster.nodes[PRIMARIES + i].catch_up(&cluster.nodes[i]);
        }
        cluster.agrees();
        cluster
    }

    /// Waits until every node knows all others, and that all slots are served.
    pub fn agrees(&self) {
        let mut clients: Vec<Client> = self.nodes.iter().map(Server::client).collect();
        let good = ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:6"];
        self.nodes[0].until("all nodes know of each other and of all slots", || {
            clients.iter_mut().all(|c| {
                let info = text(run!(c, "CLUSTER", "INFO"));
                good.iter().all(|line| info.contains(line))
            })
        });
    }

    /// The node that serves a slot, by its own word.
    pub fn owner(&self, slot: i64) -> usize {
        let mut found = None;
        self.nodes[0].until("a node serves the slot", || {
            found = (0..self.nodes.len()).find(|&i| self.nodes[i].alive() && serves(&mut self.nodes[i].client(), slot));
            found.is_some()
        });
        found.expect("one was found")
    }

    /// The replica of a primary.
    pub fn replica(&self, primary: usize) -> usize {
        let port = self.nodes[primary].port().to_string();
        let follows = |i: usize| {
            let info = self.nodes[i].client().info_all();
            info["role"] == "slave" && info["master_port"] == port
        };
        (0..self.nodes.len()).find(|&i| i != primary && follows(i)).expect("each primary has a replica")
    }

    /// The primaries.
    pub fn primaries(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&i| self.nodes[i].client().info("role") == "master").collect()
    }

    /// Moves a slot as `redis-cli --cluster reshard` does, key by key, while clients use it.
    pub fn move_slot(&self, slot: i64, to: usize) {
        let from = self.owner(slot);
        let (mut c, mut d) = (self.nodes[from].client(), self.nodes[to].client());
        let (from, to_id) = (text(run!(c, "CLUSTER", "MYID")), text(run!(d, "CLUSTER", "MYID")));
        ok(run!(d, "CLUSTER", "SETSLOT", slot, "IMPORTING", from));
        ok(run!(c, "CLUSTER", "SETSLOT", slot, "MIGRATING", &to_id));
        loop {
            let keys = array(run!(c, "CLUSTER", "GETKEYSINSLOT", slot, 10));
            if keys.is_empty() {
                break;
            }
            let keys: Vec<Vec<u8>> = keys.into_iter().map(bytes).collect();
            let port = self.nodes[to].port();
            let reply = run!(c, "MIGRATE", "127.0.0.1", port, "", 0, 5000, "REPLACE", "KEYS", keys);
            // A client may have deleted them all meanwhile.
            assert!(matches!(&reply, Value::Okay) || text(reply.clone()) == "NOKEY", "MIGRATE was answered {reply:?}");
        }
        ok(run!(d, "CLUSTER", "SETSLOT", slot, "NODE", &to_id));
        ok(run!(c, "CLUSTER", "SETSLOT", slot, "NODE", &to_id));
    }

    /// Moves a slot at once, as Valkey 9 can.
    pub fn migrate_slot(&self, slot: i64, to: usize) {
        let mut c = self.nodes[self.owner(slot)].client();
        let mut d = self.nodes[to].client();
        let id = text(run!(d, "CLUSTER", "MYID"));
        ok(run!(c, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", id));
        self.nodes[to].until("the slot has moved", || serves(&mut d, slot) && !serves(&mut c, slot));
    }

    /// Kills a primary that its replica has caught up with, and starts it again when the replica serves the slot.
    pub fn fail_over(&mut self, slot: i64) {
        let primary = self.owner(slot);
        let replica = self.replica(primary);
        self.nodes[replica].catch_up(&self.nodes[primary]);
        self.nodes[primary].kill();
        let mut c = self.nodes[replica].client();
        self.nodes[replica].until("the replica serves the slot", || serves(&mut c, slot));
        self.nodes[primary].start();
        self.agrees();
        self.nodes[primary].catch_up(&self.nodes[replica]);
    }
}

/// Whether a node serves a slot: it does not send the client elsewhere.
fn serves(c: &mut Client, slot: i64) -> bool {
    // "<id> <address> myself,master - … <slots>"
    let nodes = text(run!(c, "CLUSTER", "NODES"));
    let myself = nodes.lines().find(|line| line.contains("myself")).expect("a node knows itself");
    let ranges = myself.split(' ').skip(8).filter(|range| !range.starts_with('['));
    let number = |text: &str| text.parse::<i64>().expect("a slot");
    let mut bounds = ranges.map(|range| range.split_once('-').unwrap_or((range, range)));
    myself.contains("myself,master") && bounds.any(|(a, b)| (number(a)..=number(b)).contains(&slot))
}
