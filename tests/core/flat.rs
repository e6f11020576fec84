//! Filters in RedisBloom's layout, without a server: a naive twin written from the description, RDB values of every version, the
//! records they travel in, and damage.

use std::collections::VecDeque;

use bloomgate::bloom::chain::{Head, Room, Stop};
use bloomgate::bloom::flat::{Flat, FlatHead, FlatLayer, FlatPlan};
use bloomgate::bloom::geometry::Kind;
use bloomgate::bloom::layer::GROUP;
use bloomgate::bloom::whole::Whole;
use bloomgate::codec::filter::{Filter, Source, Taken};
use bloomgate::codec::record::Refused;
use bloomgate::codec::redisbloom::{self, Fields, Saver, header, piece_at};
use proptest::prelude::*;

/// A field of an RDB value.
#[derive(Clone, Debug, PartialEq)]
enum Field {
    Unsigned(u64),
    Double(f64),
    Bytes(Vec<u8>),
}

#[derive(Clone, Default)]
struct Value(VecDeque<Field>);

const CUT: Refused = Refused::Bad("cut");

impl Fields for Value {
    type Bytes = Vec<u8>;

    fn unsigned(&mut self) -> Result<u64, Refused> {
        if let Some(Field::Unsigned(value)) = self.0.pop_front() { Ok(value) } else { Err(CUT) }
    }

    fn double(&mut self) -> Result<f64, Refused> {
        if let Some(Field::Double(value)) = self.0.pop_front() { Ok(value) } else { Err(CUT) }
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Refused> {
        if let Some(Field::Bytes(value)) = self.0.pop_front() { Ok(value) } else { Err(CUT) }
    }
}

impl Saver for Value {
    fn unsigned(&mut self, value: u64) {
        self.0.push_back(Field::Unsigned(value));
    }

    fn double(&mut self, value: f64) {
        self.0.push_back(Field::Double(value));
    }

    fn bytes(&mut self, value: &[u8]) {
        self.0.push_back(Field::Bytes(value.to_vec()));
    }
}

fn saved(flat: &Flat) -> Value {
    let mut value = Value::default();
    redisbloom::write(flat, &mut value).unwrap();
    value
}

/// The places of an item, one 128-bit sum at a time.
fn places(plan: &FlatPlan, options: u32, item: &[u8]) -> Vec<u64> {
    let (a, b) = if options & 4 != 0 { wide(item) } else { narrow(item) };
    let modulus = if plan.log2 > 0 { 1 << plan.log2 } else { plan.bits };
    (0..u64::from(plan.hashes)).map(|i| a.wrapping_add(i.wrapping_mul(b)) % modulus).collect()
}

/// MurmurHash64A under its own multiplier, then under the result.
fn wide(item: &[u8]) -> (u64, u64) {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let hash = |seed: u64| {
        let mut h = seed ^ (item.len() as u64).wrapping_mul(M);
        for chunk in item.chunks(8) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            let k = u64::from_le_bytes(bytes);
            if chunk.len() == 8 {
                let k = k.wrapping_mul(M);
                h ^= (k ^ (k >> 47)).wrapping_mul(M);
            } else {
                h ^= k;
            }
            h = h.wrapping_mul(M);
        }
        h = (h ^ (h >> 47)).wrapping_mul(M);
        h ^ (h >> 47)
    };
    (hash(M), hash(hash(M)))
}

/// MurmurHash2 likewise.
fn narrow(item: &[u8]) -> (u64, u64) {
    const M: u32 = 0x5bd1_e995;
    let hash = |seed: u32| {
        let mut h = seed ^ item.len() as u32;
        for chunk in item.chunks(4) {
            let mut bytes = [0; 4];
            bytes[..chunk.len()].copy_from_slice(chunk);
            let k = u32::from_le_bytes(bytes);
            if chunk.len() == 4 {
                let k = k.wrapping_mul(M);
                h = h.wrapping_mul(M) ^ (k ^ (k >> 24)).wrapping_mul(M);
            } else {
                h = (h ^ k).wrapping_mul(M);
            }
        }
        h = (h ^ (h >> 13)).wrapping_mul(M);
        h ^ (h >> 15)
    };
    (hash(0x9747_b28c).into(), hash(hash(0x9747_b28c)).into())
}

/// Hashes that RedisBloom's bits were seen to come of: the vector of its dump has these eight bytes.
#[test]
fn the_vector() {
    let mut flat =
        Flat::new(&Head { id: [0; 8], rate: 0.1, capacity: 10, expansion: 2, key: None, kind: Kind::Plain }).unwrap();
    assert_eq!(flat.add(b"item1", Room::Kept), Ok(true));
    assert_eq!(piece_at(&flat, 1).unwrap(), Some((9, vec![0x01, 0x08, 0x00, 0x80, 0x00, 0x04, 0x20, 0x00])));
    assert_eq!(piece_at(&flat, 9).unwrap(), None);
    assert!(piece_at(&flat, 10).is_err());
    assert_eq!(piece_at(&flat, 0).unwrap().unwrap().1.len(), 73);
}

/// What old releases made, and so what a layer is that their filters get: seen on RedisBloom.
#[test]
fn sizes_are_redisblooms() {
    let plan = |capacity, rate, options| {
        let plan = FlatPlan::new(capacity, rate, options).unwrap();
        (plan.bytes, plan.bits, plan.hashes, plan.capacity, plan.log2)
    };
    assert_eq!(plan(20, 0.025, 0), (32, 256, 6, 33, 8));
    assert_eq!(plan(300, 0.0025, 4), (512, 4096, 9, 328, 12));
    assert_eq!(plan(21, 0.15, 0), (16, 128, 3, 32, 7));
    // The spare bits are a difference of fractions, rounded down: with whole bits it would be an item more.
    assert_eq!(plan(58, 0.1, 4), (64, 512, 4, 106, 9));
    assert_eq!(plan(20, 0.025, 2), (131_072, 1 << 20, 6, 136_570, 20));
    assert_eq!(plan(20, 0.025, 5), (24, 192, 6, 20, 0));
    assert_eq!(plan(300, 0.0025, 1), (472, 3776, 9, 300, 0));
    assert_eq!(plan(10, 5e-321, 5), (1920, 15_360, 1065, 10, 0));
    assert_eq!(FlatPlan::new(100, 0.005, 5).unwrap().bits_per_item, 11.027753418256411);
    assert!(FlatPlan::new(300, 0.0025, 2).is_err());
}

/// One of every kind: options, a modulus of either form, rates, growth.
fn heads() -> impl Strategy<Value = (u32, u32, u64, f64)> {
    (0..8u32, 1..5u32, 1..200u64, 1e-9..0.9f64).prop_map(|(options, growth, capacity, rate)| {
        // A capacity that is a logarithm is one of a modest size.
        let capacity = if options & 2 != 0 { capacity % 6 + 7 } else { capacity };
        (options, growth, capacity, rate)
    })
}

fn make((options, growth, capacity, rate): (u32, u32, u64, f64)) -> Flat {
    let plan = FlatPlan::new(capacity, rate, options).unwrap();
    let head = FlatHead { options, growth, items: 0 };
    Flat::from_layers(head, vec![FlatLayer::new(plan).unwrap()]).unwrap()
}

fn bits_of(flat: &Flat) -> Vec<u8> {
    let (mut iterator, mut all) = (1, Vec::new());
    while let Some((next, piece)) = piece_at(flat, iterator).unwrap() {
        all.extend(piece);
        iterator = next;
    }
    all
}

proptest! {
    /// Against a twin that keeps sets of places, one at a time and in groups; what comes of it is saved and read, sent in records and
    /// in pieces of any length, and is the same to the bit.
    #[test]
    fn against_a_twin(head in heads(), items in 0..400u64, cut in 1..500usize) {
        let (mut flat, mut twin) = (make(head), make(head));
        let mut sets: Vec<std::collections::HashSet<u64>> = vec![Default::default()];
        for group in (0..items).collect::<Vec<_>>().chunks(GROUP) {
            let names: Vec<Vec<u8>> = group.iter().map(|i| vec![b'x'; (i % 23) as usize].into_iter().chain(i.to_le_bytes()).collect()).collect();
            let mut rest: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            for name in &names {
                let plans: Vec<FlatPlan> = flat.layers().iter().map(FlatLayer::plan).collect();
                let known = sets.iter().zip(&plans).any(|(set, plan)| places(plan, head.0, name).iter().all(|p| set.contains(p)));
                let mut room = Room::Kept;
                let new = loop {
                    match flat.add(name, room) {
                        Ok(new) => break new,
                        Err(Stop::Full) => match flat.plan_next() {
                            Ok(plan) if plan.bytes < 1 << 22 => { flat.grow(plan).unwrap(); sets.push(Default::default()); }
                            _ => room = Room::Exceeded,
                        },
                        Err(Stop::OutOfMemory) => panic!("memory"),
                    }
                };
                prop_assert_eq!(new, !known);
                if new {
                    let plan = flat.layers().last().unwrap().plan();
                    sets.last_mut().unwrap().extend(places(&plan, head.0, name));
                }
            }
            let mut room = Room::Kept;
            while !rest.is_empty() {
                let added = twin.add_group(&rest, room);
                rest.drain(..added.done);
                if added.stop.is_some() {
                    match twin.plan_next() {
                        Ok(plan) if plan.bytes < 1 << 22 => twin.grow(plan).unwrap(),
                        _ => room = Room::Exceeded,
                    }
                }
            }
            let found = flat.contains_group(&names.iter().map(Vec::as_slice).collect::<Vec<_>>());
            prop_assert_eq!(found.count_ones() as usize, names.len());
        }
        let bits = bits_of(&flat);
        prop_assert!(bits == bits_of(&twin) && header(&flat).unwrap() == header(&twin).unwrap());
        let total = flat.layers().iter().map(|layer| layer.plan().bytes as usize).sum::<usize>();
        prop_assert_eq!(bits.len(), total);
        for (set, at) in sets.iter().zip(flat.layers().iter().scan(0, |at, layer| { let begin = *at; *at += layer.plan().bytes; Some(begin) })) {
            for place in set {
                prop_assert!(bits[(at + place / 8) as usize] >> (place % 8) & 1 == 1);
            }
        }
        // RDB.
        let value = saved(&flat);
        let read = redisbloom::read(4, &mut value.clone()).unwrap();
        prop_assert!(saved(&read).0 == value.0);
        // Records, one after the other; part of them is saved as it came.
        let filter = Filter::Whole(Whole::Flat(Box::new(read)));
        let records: Vec<(u64, Vec<u8>)> = filter.records().collect::<Result<_, _>>().unwrap();
        let all: Vec<u8> = records.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        // From a client only what BF.SCANDUMP gives of it.
        prop_assert!(Filter::read(&all, Source::Client(&|_| Ok(()))).is_err());
        let again = Filter::read(&all, Source::Trusted).unwrap();
        prop_assert!(again.is_redisblooms());
        prop_assert!(again.records().flat_map(|record| record.unwrap().1).eq(all.iter().copied()));
        for cut in 1..records.len() {
            let part: Vec<u8> = records[..cut].iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            let partial = Filter::read(&part, Source::Trusted).unwrap();
            prop_assert!(partial.waits_for().is_some());
            prop_assert!(partial.records().flat_map(|record| record.unwrap().1).eq(part.iter().copied()));
        }
        // RedisBloom's dump, in pieces, each sent twice and the filter saved as records in between.
        let mut half = Filter::from_dump(&header(&flat).unwrap(), Source::Trusted).unwrap();
        let mut offset = 0;
        let client = Source::Client(&|_| Ok(()));
        for piece in bits.chunks(cut.max(bits.len() / 20)) {
            prop_assert_eq!(half.waits_for(), Some(offset as u64));
            offset += piece.len();
            prop_assert_eq!(half.load_piece(offset as u64 + 1, piece, client), Ok(Some(Taken::Changed)));
            prop_assert_eq!(half.load_piece(offset as u64 + 1, piece, client), Ok(Some(Taken::Unchanged)));
            let saved: Vec<u8> = half.records().flat_map(|record| record.unwrap().1).collect();
            half = Filter::read(&saved, Source::Trusted).unwrap();
        }
        prop_assert!(half.is_redisblooms() && bits_of(half.flat().unwrap()) == bits);
    }

    /// Each field of a value replaced by one that is much like another, or left out: an error or a filter that can be used.
    #[test]
    fn hostile_values(head in heads(), at in 0..12usize, number in prop_oneof![Just(0), Just(1), Just(8), Just(63), Just(64), Just(u64::MAX), Just(1 << 40), Just((1 << 61) + 8), any::<u64>()], double in any::<f64>(), version in 0..7u64) {
        let mut value = saved(&make(head));
        match &mut value.0[at] {
            Field::Unsigned(field) => *field = number,
            Field::Double(field) => *field = double,
            Field::Bytes(field) => field.truncate((number % 9) as usize),
        }
        if let Ok(mut flat) = redisbloom::read(version, &mut value) {
            let _ = flat.add(b"x", Room::Exceeded).unwrap();
            prop_assert!(flat.contains(b"x"));
            let again = saved(&flat);
            prop_assert!(saved(&redisbloom::read(4, &mut again.clone()).unwrap()).0 == again.0);
        }
    }
}

/// Versions 0 to 3 state less: what they leave out is what it was.
#[test]
fn older_versions() {
    let fields = |version: u64| {
        use Field::{Bytes, Double, Unsigned};
        let bits_per_item = 0.01f64.ln().abs() / 0.480453013918201;
        let mut value = vec![Unsigned(1), Unsigned(1)];
        value.extend((version >= 2).then_some(Unsigned(4)));
        value.extend((version >= 4).then_some(Unsigned(3)));
        value.extend([Unsigned(100), Double(0.01), Unsigned(7), Double(bits_per_item)]);
        value.extend((version >= 1).then_some([Unsigned(1024), Unsigned(10)]).into_iter().flatten());
        value.extend([Bytes(vec![0xff; 128]), Unsigned(1)]);
        Value(value.into())
    };
    for version in 0..=4 {
        let flat = redisbloom::read(version, &mut fields(version)).unwrap();
        let plan = flat.layers()[0].plan();
        assert_eq!((plan.bits, plan.log2), if version >= 1 { (1024, 10) } else { (958, 0) }, "{version}");
        let head =
            FlatHead { options: if version >= 2 { 4 } else { 0 }, growth: if version >= 4 { 3 } else { 2 }, items: 1 };
        assert_eq!(flat.flat_head(), head);
        assert!(flat.contains(b"anything"));
        // Cut at every field.
        for length in 0..fields(version).0.len() {
            let mut cut = fields(version);
            cut.0.truncate(length);
            assert!(redisbloom::read(version, &mut cut).is_err());
        }
    }
    assert!(redisbloom::read(5, &mut fields(4)).is_err());
}

/// From a primary: RedisBloom adds to what is half loaded, and it grows. The dump ends where its header ends.
#[test]
fn a_half_loaded_filter_that_grows() {
    let flat = make((5, 2, 10, 0.01));
    let bytes = flat.full_bytes();
    let mut half = Filter::from_dump(&header(&flat).unwrap(), Source::Trusted).unwrap();
    assert!(half.whole_mut(|| false).is_none());
    let whole = half.whole_mut(|| true).unwrap();
    for i in 0..30u64 {
        while whole.add(&i.to_le_bytes(), Room::Kept) == Err(Stop::Full) {
            let plan = whole.plan_next().unwrap();
            whole.grow(plan).unwrap();
        }
    }
    let saved: Vec<u8> = half.records().flat_map(|record| record.unwrap().1).collect();
    let mut half = Filter::read(&saved, Source::Trusted).unwrap();
    assert!(half.records().flat_map(|record| record.unwrap().1).eq(saved.iter().copied()));
    let zeros = vec![0; bytes as usize];
    assert_eq!(half.load_piece(bytes + 1, &zeros, Source::Trusted), Ok(Some(Taken::Changed)));
    let whole = half.whole().expect("all of it");
    assert!((0..30u64).all(|i| whole.contains(&i.to_le_bytes())));
    // Further pieces are laid over what is there, within the arrays.
    let ones = vec![0xff; 8];
    assert!(half.load_piece(9, &ones, Source::Client(&|_| Ok(()))).is_err());
    assert_eq!(half.load_piece(9, &ones, Source::Trusted), Ok(Some(Taken::Changed)));
    assert_eq!(half.load_piece(9, &ones, Source::Client(&|_| Ok(()))), Ok(Some(Taken::Unchanged)));
    assert!(half.load_piece(1 << 40, &ones, Source::Trusted).is_err());
}
