//! What holds of every filter, checked against a set.

use std::collections::HashSet;

use bloomgate::bloom::chain::{Added, Chain, Head, Room, Stop};
use bloomgate::bloom::error::Error;
use bloomgate::bloom::geometry::Kind;
use bloomgate::bloom::layer::{GROUP, Layer, Plan};
use bloomgate::bloom::sizing::Size;
use proptest::collection::vec;
use proptest::prelude::*;

fn chain(rate: f64, capacity: u64, expansion: u32) -> Chain {
    let head = Head { id: [1; 8], rate, capacity, expansion, key: None, kind: Kind::Plain };
    Chain::new(head, head.plan().unwrap()).unwrap()
}

fn grow(chain: &mut Chain) {
    let plan = chain.plan_next().unwrap();
    chain.grow(plan).unwrap();
}

fn contains_all<'a>(chain: &Chain, items: impl IntoIterator<Item = &'a Vec<u8>>) -> bool {
    let items: Vec<&[u8]> = items.into_iter().map(Vec::as_slice).collect();
    items.iter().all(|item| chain.contains(item))
        && items.chunks(GROUP).all(|group| chain.contains_group(group).count_ones() as usize == group.len())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// What was answered 1 or 0 to an add is there from then on: through further adds, growth and copies, by both paths.
    #[test]
    fn no_false_negative_ever(
        rate in prop_oneof![Just(0.9), Just(0.5), Just(0.01), Just(1e-5), Just(1e-12)],
        capacity in 1..200u64,
        expansion in 0..4u32,
        groups in vec(vec(vec(any::<u8>(), 0..20), 0..=GROUP), 1..30),
        single in any::<bool>(),
    ) {
        let mut chain = chain(rate, capacity, expansion);
        let mut there = HashSet::new();
        let mut new = 0;
        for group in groups {
            let mut rest: Vec<&[u8]> = group.iter().map(Vec::as_slice).collect();
            while !rest.is_empty() {
                let stop = if single {
                    let added = chain.add(rest[0], Room::Kept);
                    new += u64::from(added == Ok(true));
                    there.extend(added.is_ok().then(|| rest.remove(0).to_vec()));
                    added.err()
                } else {
                    let added = chain.add_group(&rest, Room::Kept);
                    new += u64::from(added.new.count_ones());
                    there.extend(rest.drain(..added.done).map(<[u8]>::to_vec));
                    added.stop
                };
                match stop {
                    None => {}
                    Some(Stop::Full) if chain.is_non_scaling() => {
                        prop_assert!(!chain.contains(rest[0]), "only a new item is refused");
                        prop_assert_eq!(chain.items(), capacity);
                        rest.remove(0);
                    }
                    Some(Stop::Full) => grow(&mut chain),
                    Some(Stop::OutOfMemory) => prop_assert!(false, "out of memory"),
                }
            }
            prop_assert!(contains_all(&chain, &there));
        }
        prop_assert_eq!((chain.items(), chain.changes()), (new, new));
        prop_assert!(contains_all(&chain.try_clone([2; 8]).unwrap(), &there));
    }

    /// Adding a group is adding its items one by one.
    #[test]
    fn a_group_is_its_items_in_order(numbers in vec(0..60u8, 0..=GROUP), layers in 1..4usize, capacity in 1..40u64) {
        let mut by_group = chain(0.1, capacity, 1);
        for _ in 1..layers {
            grow(&mut by_group);
        }
        let mut one_by_one = by_group.try_clone([1; 8]).unwrap();
        let items: Vec<[u8; 1]> = numbers.into_iter().map(|n| [n]).collect();
        let group: Vec<&[u8]> = items.iter().map(<[u8; 1]>::as_slice).collect();

        let mut expected = Added { done: 0, new: 0, stop: None };
        for item in &group {
            match one_by_one.add(item, Room::Kept) {
                Ok(new) => expected.new |= u64::from(new) << expected.done,
                Err(stop) => {
                    expected.stop = Some(stop);
                    break;
                }
            }
            expected.done += 1;
        }
        prop_assert_eq!(by_group.add_group(&group, Room::Kept), expected);
        prop_assert_eq!(by_group.items(), one_by_one.items());
        let newest = |chain: &Chain| chain.layers().next_back().unwrap().chunk(0).map(<[_]>::to_vec);
        prop_assert_eq!(newest(&by_group), newest(&one_by_one));
    }
}

/// `k a a` is answered 1, 0: next to each other, at both ends of a group, and on both sides of its border.
#[test]
fn the_same_item_twice_is_new_once() {
    for layers in [1, 2, 5] {
        for (first, second) in [(0, 1), (0, 31), (30, 31), (31, 32), (0, 32), (5, 63)] {
            let mut chain = chain(1e-6, 1000, 2);
            for _ in 1..layers {
                grow(&mut chain);
            }
            let mut items: Vec<Vec<u8>> = (0..64u8).map(|i| vec![i; 5]).collect();
            items[second] = items[first].clone();
            let mut new = 0u128;
            for (i, group) in items.chunks(GROUP).enumerate() {
                let group: Vec<&[u8]> = group.iter().map(Vec::as_slice).collect();
                let added = chain.add_group(&group, Room::Kept);
                assert_eq!((added.done, added.stop), (group.len(), None));
                new |= u128::from(added.new) << (i * GROUP);
            }
            assert_eq!(new, u128::from(!(1u64 << second)), "{first} {second}");
        }
    }
}

#[test]
fn an_empty_filter_and_an_empty_group_answer_no() {
    let mut chain = chain(0.9, 1, 0);
    assert!(!chain.contains(b"") && !chain.contains(b"x"));
    assert_eq!(chain.contains_group(&[b"", b"x"]), 0);
    assert_eq!(chain.contains_group(&[]), 0);
    assert_eq!(chain.add_group(&[], Room::Kept), Added { done: 0, new: 0, stop: None });
    assert_eq!(chain.items(), 0);
}

/// A full filter keeps answering for what it has, refuses what is new, and takes it all the same from a primary.
#[test]
fn a_full_filter() {
    let mut chain = chain(1e-6, 3, 0);
    let added = chain.add_group(&[b"a", b"b", b"a", b"c", b"b", b"d", b"e"], Room::Kept);
    assert_eq!(added, Added { done: 5, new: 0b01011, stop: Some(Stop::Full) });
    assert_eq!(chain.add(b"c", Room::Kept), Ok(false));
    assert_eq!(chain.add(b"d", Room::Kept), Err(Stop::Full));
    assert!(!chain.contains(b"d"), "a refused item leaves nothing behind");
    assert_eq!((chain.items(), chain.changes()), (3, 3));

    assert_eq!(chain.add(b"d", Room::Exceeded), Ok(true));
    assert_eq!(chain.add_group(&[b"e", b"d"], Room::Exceeded), Added { done: 2, new: 1, stop: None });
    assert_eq!((chain.items(), chain.changes()), (5, 5));
    assert_eq!(chain.add(b"f", Room::Kept), Err(Stop::Full));
}

/// A key makes another filter of the same items, and bits of one key mean nothing under another.
#[test]
fn keys_matter() {
    let head = |key| Head { id: [0; 8], rate: 1e-6, capacity: 100, expansion: 2, key, kind: Kind::Plain };
    let bits = |key| {
        let mut chain = Chain::new(head(key), head(key).plan().unwrap()).unwrap();
        chain.add(b"item", Room::Kept).unwrap();
        assert!(chain.contains(b"item"));
        assert_eq!(chain.head(), head(key));
        chain.layers().next().unwrap().chunk(0).unwrap().to_vec()
    };
    assert_ne!(bits(None), bits(Some([0; 16])));
    assert_ne!(bits(Some([1; 16])), bits(Some([0; 16])));
}

#[test]
fn a_head_or_plan_that_breaks_a_rule_is_refused() {
    let good = Head { id: [0; 8], rate: 0.01, capacity: 100, expansion: 2, key: None, kind: Kind::Plain };
    let plan = good.plan().unwrap();
    let refused = |head, plan| matches!(Chain::new(head, plan), Err(Error::Malformed(_)));
    assert!(!refused(good, plan));
    for rate in [0.0, 1.0, -0.1, f64::NAN, f64::INFINITY] {
        assert!(refused(Head { rate, ..good }, plan), "{rate}");
        assert!(refused(good, Plan { rate, ..plan }), "{rate}");
    }
    assert!(refused(Head { capacity: 0, ..good }, plan));
    assert!(refused(Head { expansion: 32_769, ..good }, plan));
    assert!(refused(good, Plan { capacity: 0, ..plan }));
    for size in [(0, 1, 1), (1, 0, 1), (1, 65, 1), (1, 3, 4), (1, 8, 0), (1, 32, 16), (1, 8, 3), ((1 << 34) + 1, 1, 1)]
    {
        let (lines, bits, spread) = size;
        assert!(refused(good, Plan { size: Size { lines, bits, spread }, ..plan }), "{size:?}");
    }
}

/// What a loaded value may state and no command makes.
#[test]
fn rates_at_the_ends_of_their_range_do_not_hang_or_overflow() {
    for rate in [f64::from_bits(1), f64::MIN_POSITIVE, 1e-300, 1e-18, 1.0 - f64::EPSILON / 2.0] {
        for capacity in [1, 1000, 1 << 40, i64::MAX as u64] {
            let size = Size { lines: 1, bits: 1, spread: 1 };
            let head = Head { id: [0; 8], rate, capacity, expansion: 2, key: None, kind: Kind::Plain };
            let mut chain = Chain::new(head, Plan { capacity, rate, size }).unwrap();
            for _ in 0..20 {
                if let Ok(plan) = chain.plan_next() {
                    let refused = chain.grow(plan).err();
                    assert!(matches!(refused, None | Some(Error::Malformed(_))), "{rate} {capacity} {refused:?}");
                }
            }
        }
    }
}

/// A chunk beyond the last one is none, whoever asks.
#[test]
fn chunks_beyond_the_last() {
    for lines in [1, 64, 65, 64 * 513, 1 << 34] {
        let plan = Plan { capacity: 1, rate: 0.01, size: Size { lines, bits: 1, spread: 1 } };
        let mut layer = Layer::new(plan, Kind::Plain).unwrap();
        for chunk in [layer.geometry().chunks(), layer.geometry().chunks() + 600, u32::MAX] {
            assert!(layer.chunk(chunk).is_none());
            assert!(matches!(layer.make_chunk(chunk), Err(Error::Malformed(_))));
            assert_eq!(layer.made_from(chunk).count(), 0);
        }
    }
}
