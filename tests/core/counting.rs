//! Counting filters against a multiset, and against a twin as simple as can be.
//!
//! The twin shares no code with the filter: counters are whole numbers in maps, whole numbers are `u128`, hashes come from
//! another crate. Only sizes are given to it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use bloomgate::bloom::chain::{Added, Chain, Head, Room, Stop};
use bloomgate::bloom::geometry::Kind;
use bloomgate::bloom::layer::{GROUP, Plan};
use bloomgate::bloom::sizing::Size;
use bloomgate::bloom::stats::Stats;
use proptest::collection::vec;
use proptest::prelude::*;

/// An item by its number.
type Number = u16;

fn item(number: Number) -> Vec<u8> {
    format!("item{number}").into_bytes()
}

fn head(key: Option<[u8; 16]>, expansion: u32) -> Head {
    Head { id: [7; 8], rate: 0.01, capacity: 1, expansion, key, kind: Kind::Counting }
}

struct Layer {
    plan: Plan,
    items: u64,
    /// Counters that are not 0, by line of the layer and place.
    counters: BTreeMap<(u128, u128), u8>,
}

impl Layer {
    fn new(plan: Plan) -> Layer {
        Layer { plan, items: 0, counters: BTreeMap::new() }
    }

    /// Layout 2: the item's places, each once.
    fn places(&self, item: &[u8]) -> BTreeSet<(u128, u128)> {
        const C: u128 = 0xd134_2543_de82_ef95;
        const TWO_64: u128 = 1 << 64;
        let digest = murmur3::murmur3_x64_128(&mut Cursor::new(item), 0x626c_6f6f).unwrap();
        let (h1, h2) = (digest % TWO_64, digest / TWO_64);
        let Size { lines, bits, spread } = self.plan.size;
        let (line, mut rest) = (h1 * u128::from(lines) / TWO_64, h1 * u128::from(lines) % TWO_64);
        let (begin, first) = (line / 64 * 64, line % 64);
        let c = (u128::from(lines) - begin).min(64);
        let s = [8, 4, 2, 1].into_iter().find(|&s| s <= u128::from(spread) && s <= c).unwrap();
        let mut used = vec![first];
        for j in 1..s {
            rest = rest * C % TWO_64;
            let (a, b) = (j * c / s, (j + 1) * c / s);
            used.push((first + a + rest * (b - a) / TWO_64) % c);
        }
        let mut x = h2;
        let place = |i: usize| {
            x = x * C % TWO_64;
            (begin + used[i % used.len()], x / (TWO_64 / 128))
        };
        (0..bits.into()).map(place).collect()
    }

    /// The least of the item's counters.
    fn times(&self, item: &[u8]) -> u8 {
        self.places(item).iter().map(|place| self.counters.get(place).copied().unwrap_or(0)).min().unwrap()
    }

    /// Counts the item's places by one, but those that are stuck.
    fn step(&mut self, item: &[u8], by: i8) {
        for place in self.places(item) {
            let counter = self.counters.entry(place).or_default();
            if *counter < 15 {
                *counter = counter.checked_add_signed(by).unwrap();
            }
            if *counter == 0 {
                self.counters.remove(&place);
            }
        }
        self.items = if by > 0 { self.items + 1 } else { self.items.saturating_sub(1) };
    }
}

/// The twin: layers, oldest first.
struct Twin {
    layers: Vec<Layer>,
    changes: u64,
}

impl Twin {
    fn times(&self, item: &[u8]) -> u8 {
        self.layers.iter().map(|layer| layer.times(item)).find(|&times| times > 0).unwrap_or(0)
    }

    fn add(&mut self, item: &[u8], room: Room) -> Result<bool, Stop> {
        let found = self.layers.iter().position(|layer| layer.times(item) > 0);
        let at = found.unwrap_or(self.layers.len() - 1);
        let layer = &mut self.layers[at];
        if found.is_none() && layer.items >= layer.plan.capacity && room == Room::Kept {
            return Err(Stop::Full);
        }
        layer.step(item, 1);
        self.changes += 1;
        Ok(found.is_none())
    }

    fn remove(&mut self, item: &[u8]) -> bool {
        let found = self.layers.iter_mut().find(|layer| layer.times(item) > 0);
        let was = found.map(|layer| layer.step(item, -1)).is_some();
        self.changes += u64::from(was);
        was
    }

    /// Panics unless the filter has the same layers, counts and counters.
    fn assert_same(&self, chain: &Chain) {
        assert_eq!(chain.layer_count(), self.layers.len());
        assert_eq!(chain.changes(), self.changes);
        for (layer, twin) in chain.layers().zip(&self.layers) {
            assert_eq!((layer.items(), layer.plan()), (twin.items, twin.plan));
            let mut counters = BTreeMap::new();
            for chunk in layer.made_from(0) {
                for (line, words) in layer.chunk(chunk).unwrap().iter().enumerate() {
                    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                    for place in 0..128 {
                        let counter = bytes[place / 2] >> (4 * (place % 2)) & 15;
                        if counter > 0 {
                            counters.insert((u128::from(chunk) * 64 + line as u128, place as u128), counter);
                        }
                    }
                }
            }
            assert_eq!(counters, twin.counters);
        }
    }
}

/// The filter, its twin, and how often each item is in.
struct Model {
    chain: Chain,
    twin: Twin,
    there: BTreeMap<Number, u64>,
}

impl Model {
    fn new(head: Head, plan: Plan) -> Model {
        let twin = Twin { layers: vec![Layer::new(plan)], changes: 0 };
        Model { chain: Chain::new(head, plan).unwrap(), twin, there: BTreeMap::new() }
    }

    fn grow(&mut self, plan: Plan) {
        self.chain.grow(plan).unwrap();
        self.twin.layers.push(Layer::new(plan));
    }

    /// Adds the items in groups, or one by one if `single`, up to the one that stops it; how many were added.
    fn add(&mut self, numbers: &[Number], room: Room, single: bool) -> usize {
        let size = if single { 1 } else { GROUP };
        let mut done = 0;
        for group in numbers.chunks(size) {
            let items: Vec<Vec<u8>> = group.iter().map(|&number| item(number)).collect();
            let slices: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
            let added = if single {
                let added = self.chain.add(slices[0], room);
                let (new, stop) = (u64::from(added == Ok(true)), added.err());
                Added { done: usize::from(stop.is_none()), new, stop }
            } else {
                self.chain.add_group(&slices, room)
            };
            for (i, item) in items[..added.done].iter().enumerate() {
                assert_eq!(self.twin.add(item, room), Ok(added.new >> i & 1 == 1));
                *self.there.entry(group[i]).or_default() += 1;
            }
            assert_eq!(added.new >> added.done, 0);
            done += added.done;
            if let Some(stop) = added.stop {
                assert_eq!(self.twin.add(&items[added.done], room), Err(stop));
                return done;
            }
        }
        done
    }

    /// Deletes the items, with all consequences.
    fn remove(&mut self, numbers: &[Number], single: bool) {
        let size = if single { 1 } else { GROUP };
        for group in numbers.chunks(size) {
            let items: Vec<Vec<u8>> = group.iter().map(|&number| item(number)).collect();
            let slices: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
            let was = if single { self.chain.remove(slices[0]).into() } else { self.chain.remove_group(&slices) };
            for (i, number) in group.iter().enumerate() {
                assert_eq!(self.twin.remove(&items[i]), was >> i & 1 == 1);
                if let Some(times) = self.there.get_mut(number) {
                    *times = times.saturating_sub(1);
                }
            }
            assert_eq!(was >> group.len(), 0);
        }
    }

    /// The promise: what is in is found, and counted at least as often as it is in.
    fn assert_no_false_negative(&self) {
        for (&number, &times) in self.there.iter().filter(|(_, times)| **times > 0) {
            let item = item(number);
            assert!(self.chain.contains(&item), "{number} is missed");
            assert!(u64::from(self.chain.times(&item)) >= times.min(15), "{number}");
        }
    }

    /// The filter and its twin answer the same.
    fn assert_same(&self, numbers: impl IntoIterator<Item = Number>) {
        self.twin.assert_same(&self.chain);
        let items: Vec<Vec<u8>> = numbers.into_iter().map(item).collect();
        for group in items.chunks(GROUP) {
            let slices: Vec<&[u8]> = group.iter().map(Vec::as_slice).collect();
            let found = self.chain.contains_group(&slices);
            for (i, item) in slices.iter().enumerate() {
                let times = self.twin.times(item);
                assert_eq!(self.chain.times(item), times);
                assert_eq!((self.chain.contains(item), found >> i & 1 == 1), (times > 0, times > 0));
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Add(Vec<Number>, bool),
    /// As a replica does, which never refuses.
    AddBeyond(Vec<Number>, bool),
    /// Of the items that are in, those of these numbers, counted round.
    Remove(Vec<usize>, bool),
    /// Whether they were added or not.
    RemoveAny(Vec<Number>, bool),
    Grow(Plan),
    Clone,
}

/// Any well-formed size, small ones mostly: these err often.
fn plans() -> impl Strategy<Value = Plan> {
    let lines = prop_oneof![1..=8u64, 9..=70u64, 1..=200u64];
    let bits = (0..4u32, 0..64u8).prop_map(|(log, more)| (1 << log, (more % 10 + (1 << log)).min(64)));
    (lines, bits, 1..80u64).prop_map(|(lines, (spread, bits), capacity)| Plan {
        capacity,
        rate: 0.01,
        size: Size { lines, bits, spread },
    })
}

/// Deletes of items whether they are in or not are of at most so many.
fn ops(blind: usize) -> impl Strategy<Value = Vec<Op>> {
    let numbers = || vec(prop_oneof![0..20u16, 0..400u16], 0..70);
    vec(
        prop_oneof![
            5 => (numbers(), any::<bool>()).prop_map(|(numbers, single)| Op::Add(numbers, single)),
            1 => (numbers(), any::<bool>()).prop_map(|(numbers, single)| Op::AddBeyond(numbers, single)),
            5 => (vec(any::<usize>(), 0..70), any::<bool>()).prop_map(|(picks, single)| Op::Remove(picks, single)),
            4 => (vec(0..400u16, 0..=blind), any::<bool>()).prop_map(|(numbers, single)| Op::RemoveAny(numbers, single)),
            2 => plans().prop_map(Op::Grow),
            1 => Just(Op::Clone),
        ],
        1..40,
    )
}

/// Runs operations; the promise holds after each if only items that are in were deleted.
fn run(head: Head, first: Plan, ops: Vec<Op>, promised: bool) {
    let mut model = Model::new(head, first);
    for op in ops {
        match op {
            Op::Add(numbers, single) => _ = model.add(&numbers, Room::Kept, single),
            Op::AddBeyond(numbers, single) => assert_eq!(model.add(&numbers, Room::Exceeded, single), numbers.len()),
            Op::Remove(picks, single) => {
                let mut bag: Vec<Number> =
                    model.there.iter().flat_map(|(&n, &times)| vec![n; times as usize]).collect();
                let mut numbers = Vec::new();
                for pick in picks {
                    if bag.is_empty() {
                        break;
                    }
                    numbers.push(bag.swap_remove(pick % bag.len()));
                }
                model.remove(&numbers, single);
            }
            Op::RemoveAny(numbers, single) => model.remove(&numbers, single),
            Op::Grow(plan) => model.grow(plan),
            Op::Clone => model.chain = model.chain.try_clone(model.chain.head().id).unwrap(),
        }
        if promised {
            model.assert_no_false_negative();
        }
    }
    model.assert_same(0..450);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any sequence of adds, and deletes of items that are in, nothing that is in is missed: also where filters are far
    /// beyond their capacity and err all the time.
    #[test]
    fn no_false_negative_through_any_deletes(first in plans(), ops in ops(0)) {
        run(head(None, 2), first, ops, true);
    }

    /// Whatever is deleted, filter and twin agree in every counter.
    #[test]
    fn any_operations_as_the_twin(first in plans(), ops in ops(70)) {
        run(head(None, 2), first, ops, false);
    }

    /// With the sizes and growth that users get.
    #[test]
    fn with_sizes_by_the_rule(
        rate in prop_oneof![Just(0.5), Just(0.1), Just(0.01), Just(1e-4)],
        capacity in 1..60u64,
        expansion in 0..4u32,
        steps in vec((vec(0..300u16, 0..60), vec(any::<usize>(), 0..40)), 1..20),
    ) {
        let head = Head { rate, capacity, ..head(None, expansion) };
        let mut model = Model::new(head, head.plan().unwrap());
        for (adds, picks) in steps {
            let mut rest = &adds[..];
            while !rest.is_empty() {
                rest = &rest[model.add(rest, Room::Kept, false)..];
                if rest.is_empty() {
                    break;
                }
                if expansion == 0 {
                    prop_assert!(!model.chain.contains(&item(rest[0])), "only a new item is refused");
                    rest = &rest[1..];
                } else {
                    let plan = model.chain.plan_next().unwrap();
                    model.grow(plan);
                }
            }
            for pick in picks {
                let there: Vec<Number> = model.there.iter().filter(|(_, n)| **n > 0).map(|(&n, _)| n).collect();
                if !there.is_empty() {
                    model.remove(&[there[pick % there.len()]], pick % 2 == 0);
                }
            }
            model.assert_no_false_negative();
            let there: u64 = model.there.values().sum();
            prop_assert_eq!(model.chain.items(), there, "adds less deletes");
        }
        model.assert_same(0..320);
    }
}

/// An empty filter of a size by the rule.
fn reserved(rate: f64, capacity: u64, expansion: u32, key: Option<[u8; 16]>) -> Chain {
    let head = Head { rate, capacity, ..head(key, expansion) };
    Chain::new(head, head.plan().unwrap()).unwrap()
}

#[test]
fn an_add_counts_each_time_and_a_delete_once() {
    for key in [None, Some([9; 16])] {
        let mut chain = reserved(1e-6, 100, 2, key);
        assert_eq!((chain.add(b"a", Room::Kept), chain.add(b"a", Room::Kept)), (Ok(true), Ok(false)));
        assert_eq!((chain.times(b"a"), chain.times(b"b"), chain.items(), chain.changes()), (2, 0, 2, 2));
        assert!(chain.remove(b"a") && chain.contains(b"a") && chain.remove(b"a") && !chain.contains(b"a"));
        assert_eq!((chain.remove(b"a"), chain.times(b"a"), chain.items(), chain.changes()), (false, 0, 0, 4));
        let group: [&[u8]; 5] = [b"a", b"b", b"a", b"a", b"c"];
        assert_eq!(chain.add_group(&group, Room::Kept), Added { done: 5, new: 0b10011, stop: None });
        assert_eq!((chain.times(b"a"), chain.times(b"b"), chain.items()), (3, 1, 5));
        assert_eq!(chain.remove_group(&[b"b", b"a", b"b", b"x", b"a", b"a", b"a"]), 0b0110011);
        assert_eq!((chain.items(), chain.changes()), (1, 13));
        assert_eq!((chain.remove_group(&[]), chain.add_group(&[], Room::Kept).done), (0, 0));
    }
}

/// At 15 a counter stays, up and down, and what is in is found.
#[test]
fn counters_stick_at_15() {
    let mut chain = reserved(0.01, 1000, 0, None);
    for added in 1..=40u8 {
        assert_eq!(chain.add(b"hot", Room::Kept), Ok(added == 1));
        assert_eq!(chain.times(b"hot"), added.min(15));
    }
    for _ in 0..100 {
        assert!(chain.remove(b"hot"));
        assert_eq!(chain.times(b"hot"), 15);
    }
    assert_eq!(chain.items(), 0, "never below 0");
    // Fourteen are forgotten.
    let mut chain = reserved(0.01, 1000, 0, None);
    (0..14).for_each(|_| _ = chain.add(b"warm", Room::Kept));
    assert!((0..14).all(|_| chain.remove(b"warm")) && !chain.contains(b"warm"));
    let nothing = |chain: &Chain| chain.layers().all(|l| l.chunk(0).unwrap().iter().flatten().all(|&word| word == 0));
    assert!(nothing(&chain));
}

/// An item all of whose places are one counts it once.
#[test]
fn places_that_coincide_count_once() {
    let plan = |lines| Plan { capacity: 1000, rate: 0.5, size: Size { lines, bits: 64, spread: 1 } };
    // 64 places of 128: many coincide, in every item.
    for lines in [1, 64, 65] {
        let mut model = Model::new(head(None, 0), plan(lines));
        let item = item(1);
        assert!(model.twin.layers[0].places(&item).len() < 64);
        assert_eq!(model.add(&[1], Room::Kept, true), 1);
        assert_eq!(model.chain.times(&item), 1);
        model.assert_same(0..10);
        model.remove(&[1], true);
        assert!(model.twin.layers[0].counters.is_empty());
        model.assert_same(0..10);
    }
}

/// A full filter takes further copies of what it finds, refuses what is new, and takes that again after a delete.
#[test]
fn a_full_filter() {
    let mut chain = reserved(1e-6, 3, 0, None);
    let added = chain.add_group(&[b"a", b"b", b"a", b"a", b"c", b"b"], Room::Kept);
    assert_eq!(added, Added { done: 4, new: 0b0011, stop: Some(Stop::Full) });
    assert_eq!((chain.add(b"b", Room::Kept), chain.items()), (Ok(false), 5));
    assert_eq!((chain.add(b"c", Room::Kept), chain.contains(b"c")), (Err(Stop::Full), false));
    assert!(chain.remove(b"a") && chain.remove(b"a"));
    assert_eq!(chain.add(b"c", Room::Kept), Err(Stop::Full));
    assert!(chain.remove(b"a"));
    assert_eq!((chain.add(b"c", Room::Kept), chain.items()), (Ok(true), 3));
    assert_eq!((chain.add(b"d", Room::Exceeded), chain.items()), (Ok(true), 4));
}

/// A constant number of items that come and go needs no more layers than it needs at first.
#[test]
fn churn_at_a_constant_size_does_not_grow_a_filter() {
    let mut chain = reserved(0.01, 100, 2, None);
    let add = |chain: &mut Chain, i: u32| {
        if chain.add(&i.to_le_bytes(), Room::Kept) == Err(Stop::Full) {
            chain.grow(chain.plan_next().unwrap()).unwrap();
            assert_eq!(chain.add(&i.to_le_bytes(), Room::Kept), Ok(true));
        }
    };
    (0..250).for_each(|i| add(&mut chain, i));
    assert_eq!(chain.layer_count(), 2);
    for i in 0..10_000 {
        assert!(chain.remove(&u32::to_le_bytes(i)));
        add(&mut chain, 250 + i);
    }
    assert_eq!((chain.layer_count(), chain.items()), (3, 250));
    assert!((10_000..10_250u32).all(|i| chain.contains(&i.to_le_bytes())));
}

/// The rate and the number of items, read off the counters, go down with deletes.
#[test]
fn estimates_go_down_again() {
    let mut chain = reserved(0.01, 20_000, 0, None);
    (0..20_000u32).for_each(|i| _ = chain.add(&i.to_le_bytes(), Room::Kept));
    let full = Stats::of(&chain);
    assert!((full.rate / 0.01 - 1.0).abs() < 0.1 && (full.distinct / 20_000.0 - 1.0).abs() < 0.02, "{full:?}");
    let wrong = (1 << 20..).take(200_000).filter(|i: &u32| chain.contains(&i.to_le_bytes())).count();
    assert!((wrong as f64 / 200_000.0 / full.rate - 1.0).abs() < 0.15, "{wrong} {full:?}");
    (0..15_000u32).for_each(|i| assert!(chain.remove(&i.to_le_bytes())));
    let less = Stats::of(&chain);
    assert!(less.rate < 1e-4 && (less.distinct / 5_000.0 - 1.0).abs() < 0.03, "{less:?}");
    (15_000..20_000u32).for_each(|i| assert!(chain.remove(&i.to_le_bytes())));
    let empty = Stats::of(&chain);
    assert_eq!((empty.rate, empty.distinct, chain.items(), empty.layers[0].fill), (0.0, 0.0, 0, 0.0));
}
