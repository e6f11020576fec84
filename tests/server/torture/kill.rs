//! SIGKILL at any moment, with an AOF that is synchronised before each answer: every item that was acknowledged is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Run, Single, check, check_logs, under_load, workers};
use crate::harness::{Options, Random, Server};
use crate::run;

/// What the server does when it is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Adds,
    Save,
    Rewrite,
    Load,
}

const MOMENTS: [Moment; 4] = [Moment::Adds, Moment::Save, Moment::Rewrite, Moment::Load];

fn rounds(run: &Run, rounds: usize) {
    let begun = Instant::now();
    let mut random = Random::new(run.seed);
    let options = Options::new().deadline(run.deadline()).config("appendonly", "yes").config("appendfsync", "always");
    let mut server = options.config("auto-aof-rewrite-percentage", "0").start();
    let port = Arc::new(AtomicU16::new(server.port()));
    let mut workers = workers(4, &mut random, || Box::new(Single::new(&port, 0)));
    let (mut done, mut kills) = ([0; MOMENTS.len()], 0);
    let mut starting = Duration::from_millis(50);
    let mut tally = check(&mut workers);
    while done.iter().sum::<usize>() < rounds && begun.elapsed() < run.time {
        let round = done.iter().sum::<usize>();
        let moment = MOMENTS[round % MOMENTS.len()];
        under_load(&mut workers, || {
            pause(&mut random, 200);
            begin(&server, moment, &mut random);
            pause(&mut random, 40);
            server.kill();
            kills += 1;
        });
        if let Moment::Load = moment {
            for _ in 0..=random.below(3) {
                let most = usize::try_from(starting.as_micros()).expect("seconds");
                server.start_and_kill(Duration::from_micros(random.below(most) as u64));
                kills += 1;
            }
        }
        server.configure("aof-use-rdb-preamble", random.of(&["yes", "no"]));
        let start = Instant::now();
        server.start();
        starting = start.elapsed();
        port.store(server.port(), Ordering::SeqCst);
        tally = check(&mut workers);
        done[round % MOMENTS.len()] += 1;
    }
    check_logs([&server]);
    println!("kill: {kills} kills, rounds {MOMENTS:?}: {done:?}, {:.0?}; {tally}", begun.elapsed());
}

fn pause(random: &mut Random, most_ms: usize) {
    thread::sleep(Duration::from_micros(random.below(most_ms * 1000) as u64));
}

fn begin(server: &Server, moment: Moment, random: &mut Random) {
    let mut c = server.client();
    match moment {
        Moment::Adds | Moment::Load => {}
        Moment::Save => _ = run!(c, "BGSAVE"),
        Moment::Rewrite => {
            run!(c, "CONFIG", "SET", "aof-use-rdb-preamble", random.of(&["yes", "no"]));
            run!(c, "BGREWRITEAOF");
        }
    }
}

#[test]
fn four_kills_lose_nothing() {
    rounds(&Run::short(), 4);
}

#[test]
#[ignore = "make torture"]
fn a_hundred_kills_lose_nothing() {
    rounds(&Run::long("kill"), 100);
}
