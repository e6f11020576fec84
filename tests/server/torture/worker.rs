//! One connection that does everything to filters of its own and remembers what was acknowledged.
//!
//! A worker believes only what it was told, and only if what told it would survive the fault that the test injects: the
//! server itself with an AOF that is synchronised always, or a replica too ([`Reach::write`]). What it was not told, or
//! told too early, it does not claim: such adds may or may not be in, and a key that was to be deleted, renamed or
//! loaded then is deleted before it is used again.

use std::fmt;
use std::mem::replace;
use std::ops::AddAssign;
use std::thread;
use std::time::{Duration, Instant};

use redis::{Cmd, Value, cmd};

use crate::harness::{Client, Random, bytes, error_text, int, strings};

/// Filters of a worker.
const KEYS: usize = 6;
/// A filter that holds more items than this is deleted.
const MOST_ITEMS: usize = 4000;
/// How long a worker asks after its items before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a command waits for a replica before its outcome counts as unknown.
const WAIT_MS: u64 = 500;
/// What a server says that cannot answer just now.
const NOT_NOW: [&str; 8] =
    ["LOADING", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "UNBLOCKED", "NOREPLICAS", "MISCONF"];

/// No reply came, or none that can be relied upon.
pub struct Unsure;

/// A way to the server, or to the one of several that answers for a key.
pub trait Reach: Send {
    /// Sends a command and gives the connection that it was answered on.
    fn call(&mut self, command: &Cmd) -> Result<(Value, &mut Client), Unsure>;

    /// How many replicas have to have a write before it counts.
    fn replicas(&self) -> u64;

    /// A command that changes nothing.
    fn read(&mut self, command: &Cmd) -> Result<Value, Unsure> {
        self.call(command).map(|(reply, _)| reply)
    }

    /// A command whose change is there to stay.
    fn write(&mut self, command: &Cmd) -> Result<Value, Unsure> {
        let replicas = self.replicas();
        let (reply, client) = self.call(command)?;
        if replicas == 0 {
            return Ok(reply);
        }
        match client.try_run(cmd("WAIT").arg(replicas).arg(WAIT_MS)) {
            Ok(Value::Int(n)) if n.cast_unsigned() >= replicas => Ok(reply),
            _ => Err(Unsure),
        }
    }
}

/// Whether the server says that it cannot answer now.
pub fn is_not_now(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(e) if NOT_NOW.contains(&e.code()))
}

/// What workers did and saw.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    pub commands: u64,
    pub acknowledged: u64,
    pub unsure: u64,
    /// Answers 1 that were looked for and seen.
    pub verified: u64,
    /// Questions about items that were never added, how many were answered 1, and how many may be.
    pub probes: u64,
    pub wrong: u64,
    pub allowed: f64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.commands += other.commands;
        self.acknowledged += other.acknowledged;
        self.unsure += other.unsure;
        self.verified += other.verified;
        self.probes += other.probes;
        self.wrong += other.wrong;
        self.allowed += other.allowed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commands, acknowledged, unsure, verified, probes, wrong, allowed } = self;
        write!(
            f,
            "{commands} commands, {acknowledged} adds acknowledged, {unsure} outcomes unknown, \
             {verified} times an item was asked for and there, 0 lost; \
             {probes} questions about others, {wrong} answered 1, {allowed:.0} allowed"
        )
    }
}

impl Tally {
    /// Asserts that the false positives are within what was asked: filters are far fewer than questions, so their own
    /// chance counts too, a tenth.
    pub fn check_rate(&self) {
        let most = 1.1 * self.allowed + 6.0 * self.allowed.sqrt();
        assert!(self.wrong as f64 <= most, "{} false positives, at most {most:.0} are allowed", self.wrong);
    }
}

/// What a worker knows of one of its keys.
enum State {
    Absent,
    Unknown,
    Held(Held),
}

#[derive(Clone)]
struct Held {
    /// Numbers of the items whose adds were acknowledged.
    items: Vec<u32>,
    rate: f64,
}

/// See the top of this file.
pub struct Worker {
    name: String,
    random: Random,
    reach: Box<dyn Reach>,
    keys: [State; KEYS],
    next: u32,
    next_absent: u32,
    /// The last command had no certain outcome.
    lost_touch: bool,
    pub tally: Tally,
}

impl Worker {
    pub fn new(name: String, seed: u64, reach: Box<dyn Reach>) -> Self {
        let keys = [const { State::Absent }; KEYS];
        let random = Random::new(seed);
        Self { name, random, reach, keys, next: 0, next_absent: 0, lost_touch: false, tally: Tally::default() }
    }

    /// Its keys have one tag, so that each can be copied to each in a cluster.
    pub fn key(&self, i: usize) -> String {
        format!("{{{}}}:{i}", self.name)
    }

    fn item(&self, number: u32) -> String {
        format!("{}-{number}", self.name)
    }

    fn read(&mut self, command: &Cmd) -> Result<Value, Unsure> {
        self.tally.commands += 1;
        self.reach.read(command).inspect_err(|_| self.lose_touch())
    }

    fn write(&mut self, command: &Cmd) -> Result<Value, Unsure> {
        self.tally.commands += 1;
        self.reach.write(command).inspect_err(|_| self.lose_touch())
    }

    fn lose_touch(&mut self) {
        self.tally.unsure += 1;
        self.lost_touch = true;
    }

    /// One thing to one of its filters.
    pub fn step(&mut self) {
        if self.lost_touch {
            // While nobody answers, it would do nothing but forget what its filters hold.
            self.lost_touch = self.reach.call(cmd("SET").arg(format!("{{{}}}", self.name)).arg(1)).is_err();
            return;
        }
        let i = self.random.below(KEYS);
        match replace(&mut self.keys[i], State::Unknown) {
            State::Absent => self.make(i),
            State::Unknown => self.clear(i),
            State::Held(held) if held.items.len() > MOST_ITEMS => self.clear(i),
            State::Held(mut held) => {
                let j = (i + 1 + self.random.below(KEYS - 1)) % KEYS;
                match self.random.below(32) {
                    0..=12 => _ = self.add(i, &mut held),
                    13..=16 => self.ask(i, &held),
                    17..=22 => self.probe(i, &held),
                    23 | 24 => self.copy(i, j, &held),
                    25 => return self.rename(i, j, held),
                    26 | 27 => self.restore(i, j, &held),
                    28 | 29 => self.dump(i, j, &mut held),
                    30 => _ = self.read(cmd("BF.INFO").arg(self.key(i))),
                    _ => return self.clear(i),
                }
                self.keys[i] = State::Held(held);
            }
        }
    }

    fn make(&mut self, i: usize) {
        let mut held = Held { items: Vec::new(), rate: 0.01 };
        if !self.random.one_in(3) {
            held.rate = self.random.of(&[0.1, 0.01, 0.001, 1e-4, 1e-6]);
            let mut call = cmd("BF.RESERVE");
            call.arg(self.key(i)).arg(held.rate).arg(self.random.of(&[20, 100, 1000, 20_000, 1_000_000]));
            match self.random.below(4) {
                0 => call.arg("NONSCALING"),
                1 => call.arg("EXPANSION").arg(self.random.of(&[1, 4])),
                _ => &mut call,
            };
            if self.random.one_in(4) {
                call.arg("HASH").arg("siphash");
            }
            match self.write(&call) {
                Ok(Value::Okay) => {}
                Ok(other) => panic!("{}: BF.RESERVE was answered {other:?}", self.name),
                Err(Unsure) => return,
            }
        } else if !self.add(i, &mut held) {
            // Whether there is a filter now is not known.
            return;
        }
        self.keys[i] = State::Held(held);
    }

    /// Adds new items; false where the outcome is not known.
    fn add(&mut self, i: usize, held: &mut Held) -> bool {
        let count = match self.random.below(8) {
            0..=3 => 1,
            4..=6 => 1 + self.random.below(20),
            _ => 1 + self.random.below(400),
        };
        let numbers = self.next..self.next + u32::try_from(count).expect("few items");
        self.next = numbers.end;
        let items: Vec<String> = numbers.clone().map(|number| self.item(number)).collect();
        let key = self.key(i);
        let call = match self.random.below(4) {
            0 => cmd("BF.INSERT").arg(key).arg("ITEMS").arg(items).to_owned(),
            1 => {
                let script = "return redis.pcall('BF.MADD', KEYS[1], unpack(ARGV))";
                cmd("EVAL").arg(script).arg(1).arg(key).arg(items).to_owned()
            }
            _ if count == 1 => cmd("BF.ADD").arg(key).arg(items).to_owned(),
            _ => cmd("BF.MADD").arg(key).arg(items).to_owned(),
        };
        let Ok(reply) = self.write(&call) else { return false };
        let replies = match reply {
            Value::Array(replies) => replies,
            single => vec![single],
        };
        assert!(replies.len() == count || is_full(&replies[0]), "{}: {replies:?} for {count} items", self.name);
        for (number, reply) in numbers.zip(replies) {
            match reply {
                // 0: it was in before, as a false positive, and has to be from now on as much.
                Value::Int(0 | 1) => {
                    held.items.push(number);
                    self.tally.acknowledged += 1;
                }
                full if is_full(&full) => {}
                other => panic!("{}: an add was answered {other:?}", self.name),
            }
        }
        true
    }

    /// Asks for some of the items that are in.
    fn ask(&mut self, i: usize, held: &Held) {
        if held.items.is_empty() {
            return;
        }
        let count = if self.random.one_in(2) { 1 } else { 1 + self.random.below(100) };
        let numbers: Vec<u32> = (0..count).map(|_| self.random.of(&held.items)).collect();
        _ = self.verify(i, &numbers);
    }

    /// Asserts that these are answered 1.
    fn verify(&mut self, i: usize, numbers: &[u32]) -> Result<(), Unsure> {
        let items: Vec<String> = numbers.iter().map(|&number| self.item(number)).collect();
        let key = self.key(i);
        let replies = match items.as_slice() {
            [item] => vec![self.read(cmd("BF.EXISTS").arg(&key).arg(item))?],
            items => match self.read(cmd("BF.MEXISTS").arg(&key).arg(items))? {
                Value::Array(replies) => replies,
                other => panic!("{key}: BF.MEXISTS was answered {other:?}"),
            },
        };
        for (item, reply) in items.iter().zip(replies) {
            assert!(reply == Value::Int(1), "LOST: {item} in {key} was acknowledged, and is answered {reply:?}");
            self.tally.verified += 1;
        }
        Ok(())
    }

    /// Asks for items that nobody added.
    fn probe(&mut self, i: usize, held: &Held) {
        let items: Vec<String> = (0..20).map(|n| format!("{}-absent-{}", self.name, self.next_absent + n)).collect();
        self.next_absent += 20;
        let Ok(reply) = self.read(cmd("BF.MEXISTS").arg(self.key(i)).arg(&items)) else { return };
        let Value::Array(replies) = reply else { panic!("{}: BF.MEXISTS was answered {reply:?}", self.key(i)) };
        self.tally.probes += 20;
        self.tally.allowed += 20.0 * held.rate;
        self.tally.wrong += replies.into_iter().map(|reply| int(reply).unsigned_abs()).sum::<u64>();
    }

    fn copy(&mut self, i: usize, j: usize, held: &Held) {
        let reply = self.write(cmd("COPY").arg(self.key(i)).arg(self.key(j)).arg("REPLACE"));
        self.keys[j] = self.done(reply, &Value::Int(1), held);
    }

    fn rename(&mut self, i: usize, j: usize, held: Held) {
        let reply = self.write(cmd("RENAME").arg(self.key(i)).arg(self.key(j)));
        self.keys[j] = self.done(reply, &Value::Okay, &held);
        self.keys[i] = if matches!(self.keys[j], State::Held(_)) { State::Absent } else { State::Unknown };
    }

    fn restore(&mut self, i: usize, j: usize, held: &Held) {
        let Ok(dump) = self.read(cmd("DUMP").arg(self.key(i))) else { return };
        let reply = self.write(cmd("RESTORE").arg(self.key(j)).arg(0).arg(bytes(dump)).arg("REPLACE"));
        self.keys[j] = self.done(reply, &Value::Okay, held);
    }

    /// What a key holds after a command that was to make it so.
    fn done(&self, reply: Result<Value, Unsure>, good: &Value, held: &Held) -> State {
        match reply {
            Ok(reply) if reply == *good => State::Held(held.clone()),
            Ok(other) => panic!("{}: answered {other:?} instead of {good:?}", self.name),
            Err(Unsure) => State::Unknown,
        }
    }

    /// BF.SCANDUMP and BF.LOADCHUNK, record by record, with adds in between: what was in before is in the copy.
    fn dump(&mut self, i: usize, j: usize, held: &mut Held) {
        self.clear(j);
        if !matches!(self.keys[j], State::Absent) {
            return;
        }
        self.keys[j] = State::Unknown;
        let before = held.clone();
        let mut iterator = 0;
        loop {
            let Ok(reply) = self.read(cmd("BF.SCANDUMP").arg(self.key(i)).arg(iterator)) else { return };
            let Value::Array(mut pair) = reply else { panic!("{}: BF.SCANDUMP was answered {reply:?}", self.name) };
            let data = bytes(pair.pop().expect("iterator and record"));
            iterator = int(pair.pop().expect("iterator and record"));
            if iterator == 0 {
                break;
            }
            match self.write(cmd("BF.LOADCHUNK").arg(self.key(j)).arg(iterator).arg(data)) {
                Ok(Value::Okay) => {}
                Ok(other) => panic!("{}: BF.LOADCHUNK was answered {other:?}", self.name),
                Err(Unsure) => return,
            }
            if self.random.one_in(4) {
                self.add(i, held);
            }
        }
        self.keys[j] = State::Held(before);
    }

    fn clear(&mut self, i: usize) {
        let name = self.random.of(&["DEL", "UNLINK"]);
        self.keys[i] = match self.write(cmd(name).arg(self.key(i))) {
            Ok(_) => State::Absent,
            Err(Unsure) => State::Unknown,
        };
    }

    /// Asserts, when all is quiet again, that everything that was acknowledged is there.
    pub fn check(&mut self) {
        for i in 0..KEYS {
            let State::Held(Held { items, .. }) = &self.keys[i] else { continue };
            let items = items.clone();
            for some in items.chunks(500) {
                let end = Instant::now() + PATIENCE;
                while self.verify(i, some).is_err() {
                    assert!(Instant::now() < end, "{} gets no answer for {PATIENCE:?}", self.name);
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
    }

    /// The keys that hold a filter.
    pub fn filters(&self) -> impl Iterator<Item = String> {
        (0..KEYS).filter(|&i| matches!(self.keys[i], State::Held(_))).map(|i| self.key(i))
    }
}

fn is_full(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(e) if error_text(e).contains("non scaling filter is full"))
}

/// DEBUG DIGEST-VALUE of each of these keys.
pub fn digests(c: &mut Client, keys: &[String]) -> Vec<String> {
    if keys.is_empty() { Vec::new() } else { strings(c.run(cmd("DEBUG").arg("DIGEST-VALUE").arg(keys))) }
}
