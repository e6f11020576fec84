//! A Bloom filter over real data, in a Redis that this program starts and ends: `make demo`.
//!
//! 100,000 words of Debian's list are the blacklist. Every one of them is asked for, and 100,000 that are not in it: the
//! same words spelt backwards, without those that are words that way round too.

#[path = "../tests/server/harness/mod.rs"]
#[allow(dead_code, unused_imports, unused_macros)]
mod harness;

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::time::Instant;

use harness::{Client, Server, int, ints, ok};

const WORDS: &str = "/usr/share/dict/american-english";
const COUNT: usize = 100_000;
const RATE: f64 = 0.01;
/// Items a command: enough that the network does not matter, few enough that nobody waits for one command.
const BATCH: usize = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(WORDS).map_err(|e| format!("{WORDS}: {e}; it is in the package wamerican"))?;
    let listed: Vec<&str> = text.lines().take(COUNT).collect();
    let known: HashSet<&str> = listed.iter().copied().collect();
    let backwards = text.lines().map(|word| word.chars().rev().collect::<String>());
    let others: Vec<String> = backwards.filter(|word| !known.contains(word.as_str())).take(COUNT).collect();

    let mut server = Server::new();
    let mut c = server.client();
    println!("BF.RESERVE blacklist {RATE} {COUNT}, on {}", harness::version());
    ok(run!(c, "BF.RESERVE", "blacklist", RATE, COUNT));
    let start = Instant::now();
    let new = count(&mut c, "BF.MADD", &listed);
    println!("BF.MADD of {} words: {new} answered 1, in {:.2?}\n", listed.len(), start.elapsed());

    println!("{:16}{:>16}{:>16}{:>12}{:>12}{:>14}", "", "words found", "others found", "measured", "asked", "memory");
    report(&mut c, "as loaded", &listed, &others);
    drop(c);
    server.restart();
    report(&mut server.client(), "after a restart", &listed, &others);
    Ok(())
}

/// How many items a command answers with 1.
fn count(c: &mut Client, command: &str, items: &[impl AsRef<str>]) -> i64 {
    let batches = items.chunks(BATCH).map(|batch| batch.iter().map(AsRef::as_ref).collect::<Vec<&str>>());
    batches.map(|batch| ints(run!(c, command, "blacklist", batch)).iter().sum::<i64>()).sum()
}

fn report(c: &mut Client, when: &str, listed: &[&str], others: &[String]) {
    let found = count(c, "BF.MEXISTS", listed);
    let wrong = count(c, "BF.MEXISTS", others);
    let measured = format!("{:.3} %", 100.0 * wrong as f64 / others.len() as f64);
    let memory = int(run!(c, "MEMORY", "USAGE", "blacklist"));
    let asked = format!("{:.3} %", 100.0 * RATE);
    println!("{when:16}{found:>16}{wrong:>16}{measured:>12}{asked:>12}{memory:>12} B");
}
