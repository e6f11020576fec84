//! What goes over the wire: requests made beforehand, sent through one connection, and replies that are only counted.
//!
//! A client that parses and allocates costs as much as the server, and on a machine with few processors it takes the
//! server's time. So a round's requests are bytes before the clock starts, one thread writes them all, and the
//! other looks only for the replies `:0` and `:1`.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::server::Server;

/// The longest silence that is not an error; one huge command is silent for long.
const SILENCE: Duration = Duration::from_secs(300);
/// Every item is text of this many bytes: `item`, then 20 digits.
const ITEM_BYTES: usize = 24;

/// Turns a number into another one, each into a different one (the finalizer of splitmix64, Steele and others 2014).
///
/// Items are made from mixed numbers, so that neighbours have nothing in common, and the same mixing picks at random.
pub fn mix(number: u64) -> u64 {
    let x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// `count` numbers below `end`, picked at random, others for each `round`.
pub fn any_below(end: u64, round: u64, count: u64) -> Vec<u64> {
    let picked = |i| (u128::from(mix(mix(round) ^ i)) * u128::from(end)) >> 64;
    (0..count).filter_map(|i| u64::try_from(picked(i)).ok()).collect()
}

/// `count` numbers that no filter here ever holds, others for each `round`.
pub fn never_added(round: u64, count: u64) -> Vec<u64> {
    let first = (1 << 60) + (round << 40);
    (first..first + count).collect()
}

/// The numbers of a range, `size` at a time.
pub fn slices(range: Range<u64>, size: u64) -> impl Iterator<Item = Vec<u64>> {
    let begins = (range.start..range.end).step_by(usize::try_from(size).unwrap_or(usize::MAX));
    begins.map(move |begin| (begin..range.end.min(begin + size)).collect())
}

/// Commands in the wire format, ready to be sent.
pub struct Requests {
    prefix: &'static str,
    bytes: Vec<u8>,
    items: u64,
}

impl Requests {
    /// No command yet; `prefix` is what stands before the dot in the names of a module's commands.
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, bytes: Vec::new(), items: 0 }
    }

    /// Commands `prefix.verb key item …` over the items of these numbers, `batch` in each.
    pub fn push(&mut self, verb: &str, key: &str, numbers: &[u64], batch: usize) {
        self.bytes.reserve(numbers.len() * (ITEM_BYTES + 7) + numbers.len().div_ceil(batch) * (48 + key.len()));
        for numbers in numbers.chunks(batch) {
            let name_length = self.prefix.len() + 1 + verb.len();
            let head = format!(
                "*{}\r\n${name_length}\r\n{}.{verb}\r\n${}\r\n{key}\r\n",
                2 + numbers.len(),
                self.prefix,
                key.len()
            );
            self.bytes.extend_from_slice(head.as_bytes());
            for &number in numbers {
                self.bytes.extend_from_slice(b"$24\r\n");
                self.bytes.extend_from_slice(&item(number));
                self.bytes.extend_from_slice(b"\r\n");
            }
        }
        self.items += numbers.len() as u64;
    }
}

/// The item of a number.
fn item(number: u64) -> [u8; ITEM_BYTES] {
    let mut text = *b"item00000000000000000000";
    let mut rest = mix(number);
    for digit in text[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

/// What a round of requests cost and answered.
#[derive(Clone, Copy)]
pub struct Round {
    /// Items in it.
    pub items: u64,
    /// The server's processor time.
    pub processor: Duration,
    /// From the first byte sent to the last reply.
    pub wall: Duration,
    /// Items that were answered with 1.
    pub ones: u64,
}

impl Round {
    /// The server's processor time an item, in nanoseconds.
    pub fn processor_ns(&self) -> f64 {
        self.processor.as_nanos() as f64 / self.items as f64
    }

    /// Time an item that passed for the client, in nanoseconds.
    pub fn wall_ns(&self) -> f64 {
        self.wall.as_nanos() as f64 / self.items as f64
    }

    /// Two rounds as one.
    pub fn and(self, other: Self) -> Self {
        Self {
            items: self.items + other.items,
            processor: self.processor + other.processor,
            wall: self.wall + other.wall,
            ones: self.ones + other.ones,
        }
    }
}

/// Sends the requests to the server and waits for every reply.
pub fn send(server: &mut Server, requests: &Requests) -> Result<Round> {
    let mut reader = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port()))?;
    reader.set_nodelay(true)?;
    reader.set_read_timeout(Some(SILENCE))?;
    let mut writer = reader.try_clone()?;
    let used_before = server.processor_time()?;
    let begun = Instant::now();
    let ones = thread::scope(|scope| {
        let writing = scope.spawn(move || writer.write_all(&requests.bytes));
        let ones = read_replies(&mut reader, requests.items);
        if ones.is_err() {
            // Or the writer waits for ever for a server that nobody reads from.
            reader.shutdown(Shutdown::Both)?;
        }
        let written = writing.join().map_err(|_| io::Error::other("the writing thread panicked"))?;
        let ones = ones?;
        written.map(|()| ones)
    })?;
    let wall = begun.elapsed();
    let processor = server.processor_time()?.saturating_sub(used_before);
    Ok(Round { items: requests.items, processor, wall, ones })
}

/// Reads until `items` integers have come, and gives how many of them were 1.
///
/// Replies are `:0` and `:1`, alone or after an array's `*500`; anything with a `-` is an error.
fn read_replies(reader: &mut TcpStream, items: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 18];
    let (mut before, mut in_integer) = (0, false);
    let (mut seen, mut ones) = (0, 0);
    while seen < items {
        let length = reader.read(&mut buffer)?;
        let received = &buffer[..length];
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(at) = received.iter().position(|&byte| byte == b'-') {
            let text = received[at..].split(|&byte| byte == b'\r').next().unwrap_or_default();
            return Err(io::Error::other(format!("the server answered {}", String::from_utf8_lossy(text))));
        }
        for &byte in received {
            match byte {
                b':' => in_integer = true,
                b'1' if before == b':' => ones += 1,
                b'\n' if in_integer => {
                    in_integer = false;
                    seen += 1;
                }
                _ => {}
            }
            before = byte;
        }
    }
    Ok(ones)
}
