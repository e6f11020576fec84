//! The saved format. What the tests share: an encoder of their own, written from `docs/format.md` and not from
//! `src/codec`, and a naive filter that it encodes.

mod bytes;
mod dumps;
mod fixtures;
mod hostile;
mod laws;
mod moving;
mod refused;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::io::Cursor;

use bloomgate::bloom::chain::{Chain, Head, Room, Stop};
use bloomgate::bloom::geometry::Kind;
use bloomgate::bloom::layer::Plan;
use bloomgate::bloom::sizing::Size;
use bloomgate::bloom::whole::Whole;
use bloomgate::codec::filter::{Filter, Source, Taken};
use bloomgate::codec::record::{self, Refused};
use siphasher::sip128::{Hasher128, SipHasher13};
use xxhash_rust::xxh3::xxh3_64;

/// The key of the tests' keyed filters: 00 01 … 0f.
pub const KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// A record from its parts, whatever they are.
#[derive(Clone)]
pub struct Raw {
    pub version: u16,
    pub kind: u8,
    pub id: [u8; 8],
    pub changes: u64,
    pub body: Vec<u8>,
}

impl Raw {
    pub fn new(kind: u8, id: [u8; 8], changes: u64, body: Vec<u8>) -> Raw {
        Raw { version: 1, kind, id, changes, body }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0x42, 0x4c, 0x4f, 0x4f, 0x4d, 0x47, 0x54, 0xf6];
        bytes.extend(self.version.to_le_bytes());
        bytes.extend([self.kind, 0]);
        bytes.extend((32 + self.body.len() as u32 + 8).to_le_bytes());
        bytes.extend(self.id);
        bytes.extend(self.changes.to_le_bytes());
        bytes.extend(&self.body);
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes
    }
}

/// Makes the checksum of a changed record hold again.
pub fn mend(record: &mut [u8]) {
    let at = record.len() - 8;
    let sum = xxh3_64(&record[..at]);
    record[at..].copy_from_slice(&sum.to_le_bytes());
}

/// Bytes one after the other.
pub fn cat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

pub fn filter_body(head: &Head) -> Vec<u8> {
    let flags = u32::from(head.expansion == 0)
        + if head.kind == Kind::Counting { 2 } else { 0 }
        + if head.key.is_some() { 4 } else { 0 };
    let mut body = cat(&[&flags.to_le_bytes(), &head.expansion.to_le_bytes()]);
    body.extend(cat(&[&head.rate.to_le_bytes(), &head.capacity.to_le_bytes()]));
    body.extend(head.key.iter().flatten());
    body
}

/// Layout, family and width of a filter's layers.
pub fn layer_kind(head: &Head) -> [u8; 3] {
    let family = if head.key.is_some() { 2 } else { 1 };
    if head.kind == Kind::Counting { [2, family, 4] } else { [1, family, 1] }
}

/// `kind` is layout, family and width.
pub fn layer_body(number: u16, kind: [u8; 3], plan: &Plan) -> Vec<u8> {
    let Plan { capacity, rate, size: Size { lines, bits, spread } } = *plan;
    let mut body = cat(&[&number.to_le_bytes(), &kind, &[spread], &u16::from(bits).to_le_bytes()]);
    body.extend(cat(&[&lines.to_le_bytes(), &capacity.to_le_bytes(), &rate.to_le_bytes()]));
    body
}

/// A layer of the naive filter: for each chunk the places that are not 0, and their values.
#[derive(Clone)]
pub struct NaiveLayer {
    pub plan: Plan,
    pub items: u64,
    pub chunks: BTreeMap<u32, BTreeMap<u16, u8>>,
}

/// A filter as simple as can be: maps of places.
#[derive(Clone)]
pub struct Naive {
    pub head: Head,
    pub changes: u64,
    pub layers: Vec<NaiveLayer>,
}

impl NaiveLayer {
    pub fn new(plan: Plan) -> NaiveLayer {
        NaiveLayer { plan, items: 0, chunks: BTreeMap::new() }
    }

    pub fn chunk_count(&self) -> u32 {
        self.plan.size.lines.div_ceil(64) as u32
    }

    fn chunk_lines(&self, chunk: u32) -> u64 {
        (self.plan.size.lines - u64::from(chunk) * 64).min(64)
    }

    /// Layouts 1 and 2: the chunk of an item and its places there, each once.
    fn places(&self, item: &[u8], head: &Head) -> (u32, BTreeSet<u16>) {
        const C: u64 = 0xd134_2543_de82_ef95;
        let (h1, h2) = hash(item, head.key);
        let Size { lines, bits, spread } = self.plan.size;
        let product = u128::from(h1) * u128::from(lines);
        let (line, mut rest) = ((product >> 64) as u64, product as u64);
        let (chunk, first) = ((line / 64) as u32, line % 64);
        let c = self.chunk_lines(chunk);
        let mut s = 1;
        while s * 2 <= u64::from(spread).min(c) {
            s *= 2;
        }
        let mut used = vec![first];
        for j in 1..s {
            rest = rest.wrapping_mul(C);
            let (a, b) = (j * c / s, (j + 1) * c / s);
            let drawn = (u128::from(rest) * u128::from(b - a)) >> 64;
            used.push((first + a + drawn as u64) % c);
        }
        let mut x = h2;
        let mut places = BTreeSet::new();
        for i in 0..u64::from(bits) {
            x = x.wrapping_mul(C);
            let line = used[(i % s) as usize];
            places.insert(match head.kind {
                Kind::Plain => line * 512 + (x >> 55),
                Kind::Counting => line * 128 + (x >> 57),
            } as u16);
        }
        (chunk, places)
    }
}

fn hash(item: &[u8], key: Option<[u8; 16]>) -> (u64, u64) {
    match key {
        None => {
            let digest = murmur3::murmur3_x64_128(&mut Cursor::new(item), 0x626c_6f6f).unwrap();
            (digest as u64, (digest >> 64) as u64)
        }
        Some(key) => {
            let mut hasher = SipHasher13::new_with_key(&key);
            hasher.write(item);
            let digest = hasher.finish128();
            (digest.h1, digest.h2)
        }
    }
}

impl Naive {
    pub fn new(head: Head, first: Plan) -> Naive {
        Naive { head, changes: 0, layers: vec![NaiveLayer::new(first)] }
    }

    pub fn contains(&self, item: &[u8]) -> bool {
        self.oldest_with(item).is_some()
    }

    fn oldest_with(&self, item: &[u8]) -> Option<usize> {
        self.layers.iter().position(|layer| {
            let (chunk, places) = layer.places(item, &self.head);
            layer.chunks.get(&chunk).is_some_and(|set| places.iter().all(|place| set.contains_key(place)))
        })
    }

    /// Adds to the newest layer, full or not, or where a counting filter has the item.
    pub fn add(&mut self, item: &[u8]) -> bool {
        let there = self.oldest_with(item);
        if there.is_some() && self.head.kind == Kind::Plain {
            return false;
        }
        let newest = self.layers.len() - 1;
        let layer = &mut self.layers[there.unwrap_or(newest)];
        let (chunk, places) = layer.places(item, &self.head);
        let values = layer.chunks.entry(chunk).or_default();
        for place in places {
            let value = values.entry(place).or_default();
            *value = if self.head.kind == Kind::Counting { (*value + 1).min(15) } else { 1 };
        }
        layer.items += 1;
        self.changes += 1;
        there.is_none()
    }

    /// All records, for filters whose layers fit into a bits record each.
    pub fn records(&self) -> Vec<(u64, Vec<u8>)> {
        let raw = |kind, body| Raw::new(kind, self.head.id, self.changes, body).bytes();
        let mut records = vec![(1, raw(1, filter_body(&self.head)))];
        let mut position = 1;
        for (number, layer) in (0u16..).zip(&self.layers) {
            records.push((position + 1, raw(2, layer_body(number, layer_kind(&self.head), &layer.plan))));
            let chunks = layer.chunk_count();
            let mut body = cat(&[&number.to_le_bytes(), &[0, 0], &[0; 4], &chunks.to_le_bytes()]);
            body.extend((layer.chunks.len() as u32).to_le_bytes());
            for (&index, places) in &layer.chunks {
                body.extend(index.to_le_bytes());
                let size = layer.chunk_lines(index) as usize * 64;
                let counting = self.head.kind == Kind::Counting;
                let values: Vec<u8> = if counting { places.values().copied().collect() } else { vec![] };
                if places.len() * 2 + values.len().div_ceil(2) < size {
                    body.extend((places.len() as u16).to_le_bytes());
                    body.extend(places.keys().flat_map(|place| place.to_le_bytes()));
                    body.extend(values.chunks(2).map(|two| two[0] + 16 * two.get(1).unwrap_or(&0)));
                } else {
                    let mut chunk = vec![0u8; size];
                    for (&place, &value) in places {
                        let (at, shift) = if counting { (place / 2, place % 2 * 4) } else { (place / 8, place % 8) };
                        chunk[usize::from(at)] |= value << shift;
                    }
                    body.extend(u16::MAX.to_le_bytes());
                    body.extend(chunk);
                }
            }
            position += 1 + u64::from(chunks);
            records.push((position, raw(3, body)));
        }
        let mut body = cat(&[&(self.layers.len() as u16).to_le_bytes(), &[0; 6]]);
        body.extend(self.layers.iter().flat_map(|layer| layer.items.to_le_bytes()));
        records.push(((1 << 46) - 1, raw(4, body)));
        records
    }
}

/// What a filter was asked to be; its id is `tests` in ASCII.
pub fn head(rate: f64, capacity: u64, expansion: u32) -> Head {
    Head { id: *b"tests\0\0\0", rate, capacity, expansion, key: None, kind: Kind::Plain }
}

/// The same of a counting filter.
pub fn counting(head: Head) -> Head {
    Head { kind: Kind::Counting, ..head }
}

/// The `i`-th item of the tests.
pub fn item(i: u64) -> Vec<u8> {
    format!("item{i}").into_bytes()
}

/// An empty filter of the size that the rules give it.
pub fn empty(head: Head) -> Chain {
    Chain::new(head, head.plan().unwrap()).unwrap()
}

/// Adds one item, growing where needed; what a filter that cannot grow has no room for is left out.
pub fn add(chain: &mut Chain, item: &[u8]) -> bool {
    loop {
        match chain.add(item, Room::Kept) {
            Ok(new) => return new,
            Err(Stop::Full) if !chain.is_non_scaling() => chain.grow(chain.plan_next().unwrap()).unwrap(),
            Err(Stop::Full) => return false,
            Err(Stop::OutOfMemory) => panic!("out of memory"),
        }
    }
}

/// A filter with the items of these numbers.
pub fn filled(head: Head, items: impl IntoIterator<Item = u64>) -> Filter {
    let mut chain = empty(head);
    for i in items {
        add(&mut chain, &item(i));
    }
    Filter::from(chain)
}

pub fn records(filter: &Filter) -> Vec<(u64, Vec<u8>)> {
    filter.records().collect::<Result<_, _>>().unwrap()
}

pub fn bytes(filter: &Filter) -> Vec<u8> {
    records(filter).into_iter().flat_map(|(_, bytes)| bytes).collect()
}

/// No limit of memory.
pub const UNLIMITED: Source = Source::Client(&|_| Ok(()));

pub fn read(bytes: &[u8]) -> Result<Filter, Refused> {
    Filter::read(bytes, UNLIMITED)
}

/// As BF.LOADCHUNK does it from a client: one record to a filter that is there, or the first ones of a new one.
pub fn load(filter: &mut Option<Filter>, iterator: u64, mut data: &[u8]) -> Result<Taken, Refused> {
    let Some(filter) = filter else {
        assert_eq!(iterator, 1, "the command refuses any other for a missing key");
        *filter = Some(read(data)?);
        return Ok(Taken::Made);
    };
    let record = record::read(&mut data)?;
    assert!(data.is_empty());
    filter.load(iterator, record, UNLIMITED)
}

pub fn whole(filter: &Filter) -> Option<&Chain> {
    match filter {
        Filter::Whole(Whole::Native(chain)) => Some(chain),
        _ => None,
    }
}

/// The filter's records from these bytes, or why not: what accepted bytes must hold to.
///
/// Whatever is accepted is saved as something that is accepted again and saved the same.
pub fn accept(bytes: &[u8]) -> Result<Filter, Refused> {
    let filter = read(bytes)?;
    let saved = self::bytes(&filter);
    let again = read(&saved).expect("what was accepted and saved is accepted again");
    assert!(saved == self::bytes(&again), "saved twice, and not the same");
    assert_eq!(filter.waits_for(), again.waits_for());
    Ok(filter)
}
