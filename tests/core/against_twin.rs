//! Random operations on a filter and on its naive twin: the same answers, counts and bits.

use bloomgate::bloom::chain::{Added, Chain, Head, Room, Stop};
use bloomgate::bloom::geometry::Kind;
use bloomgate::bloom::layer::{GROUP, Plan};
use bloomgate::bloom::sizing::Size;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::twin::{Answer, Twin};

/// An item by its number: a number has one item, and the lengths go round 0 … 300.
type Number = u16;

#[derive(Clone, Debug)]
enum Op {
    Add(Number),
    AddGroup(Vec<Number>),
    /// As a replica does, which never refuses.
    AddBeyond(Vec<Number>),
    Contains(Vec<Number>),
    Grow(Plan),
    Clone,
}

fn item(number: Number) -> Vec<u8> {
    let mut x = u64::from(number) + 1;
    let mut next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 56) as u8
    };
    (0..usize::from(number) * 7 % 301).map(|_| next()).collect()
}

/// Any well-formed size of up to five chunks, the last of any length; few lines as often as many.
fn sizes() -> impl Strategy<Value = Size> {
    let lines = prop_oneof![1..=8u64, 9..=64u64, (1..=4u64, 1..=64u64).prop_map(|(full, last)| 64 * full + last)];
    let bits_of = |spread: u8| (spread..=64u8).prop_map(move |bits| (bits, spread));
    let bits = prop_oneof![bits_of(1), bits_of(2), bits_of(4), bits_of(8)];
    // Small numbers of bits leave rooms for false positives; they are what is used most.
    let bits = (bits, any::<bool>()).prop_map(|((bits, spread), few)| (if few { bits.min(12) } else { bits }, spread));
    (lines, bits).prop_map(|(lines, (bits, spread))| Size { lines, bits, spread })
}

fn plans() -> impl Strategy<Value = Plan> {
    (sizes(), 1..150u64).prop_map(|(size, capacity)| Plan { capacity, rate: 0.01, size })
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    // A narrow range makes duplicates inside groups, across them and across layers; a wide one fills layers.
    let number = || prop_oneof![0..40u16, 0..2000u16];
    let numbers = || vec(number(), 0..100);
    vec(
        prop_oneof![
            4 => number().prop_map(Op::Add),
            4 => numbers().prop_map(Op::AddGroup),
            1 => numbers().prop_map(Op::AddBeyond),
            4 => numbers().prop_map(Op::Contains),
            2 => plans().prop_map(Op::Grow),
            1 => Just(Op::Clone),
        ],
        1..25,
    )
}

fn head(key: Option<[u8; 16]>, expansion: u32) -> Head {
    Head { id: [7; 8], rate: 0.01, capacity: 1, expansion, key, kind: Kind::Plain }
}

/// Adds in groups as a command does, up to the item that stops it.
fn add_groups(chain: &mut Chain, items: &[Vec<u8>], room: Room) -> Vec<Answer> {
    let mut answers = Vec::new();
    for group in items.chunks(GROUP) {
        let group: Vec<&[u8]> = group.iter().map(Vec::as_slice).collect();
        let Added { done, new, stop } = chain.add_group(&group, room);
        answers.extend((0..done).map(|i| if new >> i & 1 == 1 { Answer::New } else { Answer::Known }));
        assert_eq!(new >> done, 0, "new items among those that were not dealt with");
        match stop {
            None => assert_eq!(done, group.len()),
            Some(stop) => {
                assert_eq!(stop, Stop::Full);
                answers.push(Answer::Full);
                return answers;
            }
        }
    }
    answers
}

fn add_to_twin(twin: &mut Twin, items: &[Vec<u8>], beyond: bool) -> Vec<Answer> {
    let mut answers = Vec::new();
    for item in items {
        answers.push(twin.add(item, beyond));
        if answers.last() == Some(&Answer::Full) {
            break;
        }
    }
    answers
}

fn run(first: Plan, key: Option<[u8; 16]>, ops: Vec<Op>) {
    let mut chain = Chain::new(head(key, 2), first).unwrap();
    let mut twin = Twin::new(key, first);
    let items = |numbers: Vec<Number>| numbers.into_iter().map(item).collect::<Vec<_>>();
    for op in ops {
        match op {
            Op::Add(number) => {
                let item = item(number);
                let answer = match chain.add(&item, Room::Kept) {
                    Ok(true) => Answer::New,
                    Ok(false) => Answer::Known,
                    Err(stop) => {
                        assert_eq!(stop, Stop::Full);
                        Answer::Full
                    }
                };
                assert_eq!(answer, twin.add(&item, false));
            }
            Op::AddGroup(numbers) => {
                let items = items(numbers);
                assert_eq!(add_groups(&mut chain, &items, Room::Kept), add_to_twin(&mut twin, &items, false));
            }
            Op::AddBeyond(numbers) => {
                let items = items(numbers);
                assert_eq!(add_groups(&mut chain, &items, Room::Exceeded), add_to_twin(&mut twin, &items, true));
            }
            Op::Contains(numbers) => {
                for group in items(numbers).chunks(GROUP) {
                    let slices: Vec<&[u8]> = group.iter().map(Vec::as_slice).collect();
                    let found = chain.contains_group(&slices);
                    for (i, item) in slices.iter().enumerate() {
                        let expected = twin.contains(item);
                        assert_eq!((found >> i & 1 == 1, chain.contains(item)), (expected, expected));
                    }
                    assert_eq!(found >> slices.len(), 0);
                }
            }
            Op::Grow(plan) => {
                chain.grow(plan).unwrap();
                twin.grow(plan);
            }
            Op::Clone => {
                let copy = chain.try_clone([8; 8]).unwrap();
                assert_eq!(copy.head(), Head { id: [8; 8], ..chain.head() });
                // The original goes: what the copy has must be its own.
                chain = copy;
            }
        }
    }
    twin.assert_same(&chain);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_operations(first in plans(), key in any::<Option<[u8; 16]>>(), ops in ops()) {
        run(first, key, ops);
    }

    /// With the sizes and growth that users get.
    #[test]
    fn random_adds_with_sizes_by_the_rule(
        rate in prop_oneof![Just(0.5), Just(0.1), Just(0.01), Just(1e-4), Just(1e-6)],
        capacity in prop_oneof![1..5u64, 5..300u64],
        expansion in prop_oneof![1..5u32, Just(100u32)],
        key in any::<Option<[u8; 16]>>(),
        numbers in vec(0..3000u16, 1..400),
    ) {
        let head = Head { rate, capacity, ..head(key, expansion) };
        let mut chain = Chain::new(head, head.plan().unwrap()).unwrap();
        let mut twin = Twin::new(key, head.plan().unwrap());
        let items: Vec<_> = numbers.into_iter().map(item).collect();
        let mut at = 0;
        while at < items.len() {
            let answers = add_groups(&mut chain, &items[at..], Room::Kept);
            assert_eq!(answers, add_to_twin(&mut twin, &items[at..], false));
            at += answers.len();
            if answers.last() == Some(&Answer::Full) {
                at -= 1;
                let plan = chain.plan_next().unwrap();
                chain.grow(plan).unwrap();
                twin.grow(plan);
            }
        }
        twin.assert_same(&chain);
    }
}

/// Every number of lines up to two chunks and a bit, at each spread: every length of a last chunk.
#[test]
fn every_length_of_a_last_chunk() {
    for spread in [1, 2, 4, 8] {
        for lines in (1..=130).chain(191..=193) {
            let plan = Plan { capacity: 60, rate: 0.01, size: Size { lines, bits: spread + 3, spread } };
            let ops = vec![Op::AddGroup((0..70).collect()), Op::Contains((0..200).collect())];
            run(plan, None, ops);
        }
    }
}

/// Many chunks, so that tables of chunks have nodes and a root; few of them are ever made.
#[test]
fn sparse_chunks_behind_nodes_and_a_root() {
    for lines in [64 * 511 + 3, 64 * 512, 64 * 512 + 1, 64 * 1024 + 63] {
        let plan = Plan { capacity: 1000, rate: 0.01, size: Size { lines, bits: 6, spread: 2 } };
        run(plan, None, vec![Op::AddGroup((0..80).collect()), Op::Contains((0..200).collect()), Op::Clone]);
    }
}

/// Items of every length to 300, and long ones around a megabyte, keyed and not.
#[test]
fn items_of_every_length() {
    let plan = Plan { capacity: 10_000, rate: 0.01, size: Size { lines: 200, bits: 9, spread: 4 } };
    let bytes: Vec<u8> = (0..1_000_003u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
    let lengths = (0..=300).chain([4095, 4096, 65_537]).chain(999_990..=1_000_003);
    let items: Vec<Vec<u8>> = lengths.map(|length| bytes[..length].to_vec()).collect();
    for key in [None, Some([9; 16])] {
        let mut chain = Chain::new(head(key, 0), plan).unwrap();
        let mut twin = Twin::new(key, plan);
        assert_eq!(add_groups(&mut chain, &items, Room::Kept), add_to_twin(&mut twin, &items, false));
        twin.assert_same(&chain);
        // Prefixes of one another, and yet all told apart.
        assert_eq!(chain.items(), items.len() as u64);
    }
}
