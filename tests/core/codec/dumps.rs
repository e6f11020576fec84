//! Dumps under everything that can happen meanwhile, against a set; and what replicas are sent.

use std::collections::{HashMap, HashSet};

use bloomgate::bloom::whole::{NextPlan, Whole};
use bloomgate::codec::filter::next_layer_record;
use proptest::prelude::*;

use super::*;

/// What a primary sends to its replica.
#[derive(Clone, Debug)]
enum Sent {
    Load(u64, Vec<u8>),
    Add(Vec<u64>),
    Delete,
}

/// A server with one filter, and what it sent.
#[derive(Default)]
struct Primary {
    filter: Option<Filter>,
    /// What is in it: every item whose add was answered.
    items: HashSet<u64>,
    made: u64,
    sent: Vec<Sent>,
}

impl Primary {
    fn make(&mut self, seed: u64) {
        self.made += 1;
        let id = (seed << 8 | self.made).to_le_bytes();
        // Awkward and small, so that a layer has several chunks and bits fill them quickly.
        let (capacity, expansion) = [(60, 2), (1, 1), (9000, 2), (30, 0)][(seed % 4) as usize];
        let head = Head { id, key: seed.is_multiple_of(3).then_some(KEY), ..head(0.05, capacity, expansion) };
        self.filter = Some(Filter::from(empty(head)));
        self.items.clear();
        self.sent.push(Sent::Load(1, bytes(self.filter.as_ref().unwrap())));
    }

    fn delete(&mut self) {
        self.filter = None;
        self.items.clear();
        self.sent.push(Sent::Delete);
    }

    /// As BF.MADD: what changed is sent, a further layer in its place between the items.
    fn add(&mut self, items: impl Iterator<Item = u64>) {
        let Some(Filter::Whole(chain)) = &mut self.filter else { return };
        let mut untold = Vec::new();
        for i in items {
            loop {
                match chain.add(&item(i), Room::Kept) {
                    Ok(new) => {
                        self.items.insert(i);
                        untold.extend(new.then_some(i));
                        break;
                    }
                    Err(Stop::Full) if !chain.is_non_scaling() => {
                        let plan = chain.plan_next().unwrap();
                        let (iterator, record) = next_layer_record(chain, plan).unwrap();
                        chain.grow(plan).unwrap();
                        self.sent.extend([Sent::Add(std::mem::take(&mut untold)), Sent::Load(iterator, record)]);
                    }
                    Err(_) => break,
                }
            }
        }
        self.sent.push(Sent::Add(untold));
    }
}

/// A server that gets what a primary sent, sooner or later.
#[derive(Default)]
struct Replica {
    filter: Option<Filter>,
    items: HashSet<u64>,
    applied: usize,
}

impl Replica {
    fn apply(&mut self, sent: &[Sent], steps: usize) {
        for command in sent.iter().skip(self.applied).take(steps) {
            self.applied += 1;
            match command {
                Sent::Delete => (self.filter, self.items) = (None, HashSet::new()),
                Sent::Add(items) => {
                    let Some(Filter::Whole(Whole::Native(chain))) = &mut self.filter else {
                        panic!("nothing to add to")
                    };
                    for &i in items {
                        assert_eq!(chain.add(&item(i), Room::Kept), Ok(true), "the primary said that it changed");
                        self.items.insert(i);
                    }
                }
                Sent::Load(iterator, data) => match &mut self.filter {
                    Some(filter) => {
                        let record = record::read(&mut data.as_slice()).unwrap();
                        assert_eq!(filter.load(*iterator, record, Source::Trusted), Ok(Taken::Changed));
                    }
                    None => {
                        assert_eq!(*iterator, 1);
                        self.filter = Some(Filter::read(data, Source::Trusted).unwrap());
                        self.items.clear();
                    }
                },
            }
        }
    }
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Event {
    Make(u64),
    Delete,
    Copy,
    Add(u64, u64),
    Replicate(usize),
    /// BF.SCANDUMP of the primary's filter, its replica's or the copy, at an iterator seen before (0: the last one).
    Dump(u8, usize),
    /// BF.LOADCHUNK of a record dumped before (0: the last one).
    Load(usize),
    /// The next step of one dump and one load that run to their end, as a client does it.
    Step(u8),
    Restart,
    CopyTarget,
    DeleteTarget,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        1 => any::<u64>().prop_map(Event::Make),
        1 => Just(Event::Delete),
        1 => Just(Event::Copy),
        12 => (0..3000u64, 1..150u64).prop_map(|(from, n)| Event::Add(from, n)),
        6 => (0..6usize).prop_map(Event::Replicate),
        4 => (0..3u8, 0..4usize).prop_map(|(which, back)| Event::Dump(which, back)),
        6 => (0..6usize).prop_map(Event::Load),
        40 => prop_oneof![8 => Just(0u8), 1 => 0..3u8].prop_map(Event::Step),
        1 => Just(Event::Restart),
        1 => Just(Event::CopyTarget),
        1 => Just(Event::DeleteTarget),
    ];
    (any::<u64>(), proptest::collection::vec(event, 1..250)).prop_map(|(seed, mut events)| {
        events.insert(0, Event::Make(seed));
        events
    })
}

/// A dumping and loading client with all that it has seen, and the key that it loads into.
#[derive(Default)]
struct World {
    primary: Primary,
    replica: Replica,
    copy: Option<(Filter, HashSet<u64>)>,
    iterators: Vec<u64>,
    dumped: Vec<(u64, Vec<u8>)>,
    /// What was in the filter when this filter record was dumped: what must be in once it is loaded.
    held: HashMap<Vec<u8>, HashSet<u64>>,
    target: Option<Filter>,
    begun: Vec<u8>,
    completed: usize,
}

impl World {
    fn source(&self, which: u8) -> Option<(&Filter, &HashSet<u64>)> {
        match which {
            0 => self.primary.filter.as_ref().map(|filter| (filter, &self.primary.items)),
            1 => self.replica.filter.as_ref().map(|filter| (filter, &self.replica.items)),
            _ => self.copy.as_ref().map(|(filter, items)| (filter, items)),
        }
    }

    fn dump(&mut self, which: u8, iterator: u64) {
        let Some((filter, items)) = self.source(which) else { return };
        match filter.record_at(iterator) {
            Ok(Some((next, record))) => {
                if iterator == 0 {
                    // Of the same id and changes: the same bits. Items that were in without an add of their own may
                    // have been added to either set.
                    let items = items.clone();
                    self.held.entry(record.clone()).or_default().extend(items);
                }
                self.dumped.push((next, record));
                self.iterators.push(next);
            }
            Ok(None) => self.iterators.push(0),
            // Another filter than that of the iterator: the client begins again.
            Err(_) => self.iterators.push(0),
        }
    }

    fn load(&mut self, iterator: u64, record: Vec<u8>) -> Option<Taken> {
        if self.target.is_none() && iterator != 1 {
            return None;
        }
        let before = self.target.as_ref().map(bytes);
        let was_whole = self.target.as_ref().is_some_and(|filter| whole(filter).is_some());
        let taken = load(&mut self.target, iterator, &record).ok();
        match taken {
            Some(Taken::Made) => self.begun = record,
            Some(Taken::Changed) => {}
            _ => assert!(self.target.as_ref().map(bytes) == before, "refused or unchanged, and yet another"),
        }
        if let Some(chain) = self.target.as_ref().and_then(whole).filter(|_| !was_whole) {
            let items = &self.held[&self.begun];
            assert!(items.iter().all(|&i| chain.contains(&item(i))), "what was in when the dump began is not in");
            self.completed += 1;
        }
        taken
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Make(seed) => {
                if self.primary.filter.is_none() {
                    self.primary.make(seed);
                }
            }
            Event::Delete => {
                if self.primary.filter.is_some() {
                    self.primary.delete();
                }
            }
            Event::Copy => {
                let copy = |filter: &Filter| filter.try_clone(b"copy").unwrap();
                self.copy = self.primary.filter.as_ref().map(|filter| (copy(filter), self.primary.items.clone()));
            }
            Event::Add(from, n) => self.primary.add(from..from + n),
            Event::Replicate(steps) => self.replica.apply(&self.primary.sent, steps),
            Event::Dump(which, back) => {
                let iterator = self.iterators.iter().rev().nth(back).copied().unwrap_or(0);
                self.dump(which, iterator);
            }
            Event::Load(back) => {
                if let Some((iterator, record)) = self.dumped.iter().rev().nth(back).cloned() {
                    self.load(iterator, record);
                }
            }
            Event::Step(which) => {
                if self.target.as_ref().is_some_and(|filter| whole(filter).is_some()) {
                    self.target = None;
                }
                let iterator = self.target.as_ref().and_then(Filter::waits_for).unwrap_or(0);
                let dumps = self.dumped.len();
                self.dump(which, iterator);
                if self.dumped.len() > dumps {
                    let (iterator, record) = self.dumped[dumps].clone();
                    if self.load(iterator, record.clone()).is_some() {
                        assert_eq!(self.load(iterator, record), Some(Taken::Unchanged), "sent again");
                    } else {
                        // Another filter, or an older copy: the client begins again.
                        self.target = None;
                    }
                }
            }
            Event::Restart => {
                if let Some(filter) = &self.target {
                    self.target = Some(accept(&bytes(filter)).unwrap());
                }
            }
            Event::CopyTarget => {
                // A copy of a whole filter is another filter; one of a filter that is being loaded goes on.
                if let Some(filter @ Filter::Partial(_)) = &self.target {
                    self.target = Some(filter.try_clone(b"elsewhere").unwrap());
                }
            }
            Event::DeleteTarget => self.target = None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    /// What was in when a dump began is in once it is loaded, whatever happened meanwhile; or nothing is whole.
    #[test]
    fn never_silently_wrong(events in events()) {
        let mut world = World::default();
        for event in events {
            world.happen(event);
        }
        // The replica, once it has caught up, is the primary.
        world.replica.apply(&world.primary.sent, usize::MAX);
        prop_assert_eq!(world.replica.filter.as_ref().map(bytes), world.primary.filter.as_ref().map(bytes));
        prop_assert_eq!(world.replica.items.len() <= world.primary.items.len(), true);
    }
}

/// The model above would prove nothing if no dump ever came to its end.
#[test]
fn dumps_under_writes_complete() {
    let mut world = World::default();
    for seed in 0..12 {
        world.happen(Event::Delete);
        world.happen(Event::Make(seed));
        for i in 0..40 {
            world.happen(Event::Add(i * 37, 60));
            (0..4).for_each(|_| world.happen(Event::Step(0)));
            world.happen(Event::Replicate(3));
        }
    }
    assert!(world.completed > 12, "{}", world.completed);
}

/// A filter of two layers, its records, and the ways in which they may not come.
#[test]
fn order() {
    let filter = filled(head(0.05, 3000, 2), 0..5000);
    let records = records(&filter);
    let [f, l0, b0, l1, b1, e] = &records[..] else { panic!("{}", records.len()) };
    let after = |records: &[&(u64, Vec<u8>)]| {
        let mut target = None;
        for (iterator, record) in records {
            load(&mut target, *iterator, record).unwrap();
        }
        target
    };
    let all = [f, l0, b0, l1, b1, e];
    for have in 1..=all.len() {
        for (i, (iterator, record)) in all.iter().enumerate() {
            let mut target = after(&all[..have]);
            let before = bytes(target.as_ref().unwrap());
            let taken = load(&mut target, *iterator, record);
            let is_whole = have == all.len();
            let expected = match i {
                // The filter record, again while loading; the newest layer's before its bits, its bits at the end.
                0 => (!is_whole).then_some(Taken::Unchanged),
                _ if i == have => Some(Taken::Changed),
                _ if i + 1 == have => Some(Taken::Unchanged),
                // A whole filter knows its layers.
                1 | 3 if is_whole => Some(Taken::Unchanged),
                _ => None,
            };
            assert_eq!(taken.clone().ok(), expected, "record {i} to {have}: {taken:?}");
            assert!(taken == Ok(Taken::Changed) || bytes(target.as_ref().unwrap()) == before);
            // The same record with any other iterator is refused, and changes nothing.
            for wrong in [0, 1, iterator - 1, iterator + 1, (1 << 46) - 1, u64::MAX] {
                if wrong != *iterator {
                    let mut target = after(&all[..have]);
                    assert!(load(&mut target, wrong, record).is_err(), "record {i} to {have} at {wrong}");
                    assert!(bytes(target.as_ref().unwrap()) == before);
                }
            }
        }
    }
    for (iterator, record) in [l0, b0, e] {
        assert!(read(record).is_err(), "the first record is the filter record, not that of {iterator}");
    }
    assert!(read(&cat(&[&f.1, &f.1])).is_err(), "twice in a payload");
    assert!(read(&cat(&[&f.1, &l0.1, &b0.1, &l1.1, &b1.1, &e.1, &e.1])).is_err());
}

/// A record that says the same with other `changes`.
fn at_changes(record: &[u8], changes: u64) -> Vec<u8> {
    let mut record = record.to_vec();
    record[24..32].copy_from_slice(&changes.to_le_bytes());
    mend(&mut record);
    record
}

#[test]
fn changes_never_fall_while_loading() {
    let filter = filled(head(0.05, 300, 0), 0..200);
    let changes = whole(&filter).unwrap().changes();
    let [f, l, b, e] = &records(&filter)[..] else { panic!() };
    let start = || read(&cat(&[&f.1, &l.1])).map(Some).unwrap();

    let mut target = start();
    let refused = load(&mut target, b.0, &at_changes(&b.1, changes - 1)).unwrap_err().to_string();
    assert!(refused.contains("older"), "{refused}");
    assert!(load(&mut target, b.0, &at_changes(&b.1, changes + 5)).is_ok());
    assert!(load(&mut target, e.0, &e.1).is_err(), "the end record is older than the bits");
    assert!(load(&mut target, e.0, &at_changes(&e.1, changes + 5)).is_ok());
    assert_eq!(whole(target.as_ref().unwrap()).unwrap().changes(), changes + 5);

    // A repeat that raises `changes` changes what is saved: the filter record as it came, the others with the highest.
    let mut target = start();
    assert_eq!(load(&mut target, l.0, &l.1), Ok(Taken::Unchanged));
    assert_eq!(load(&mut target, l.0, &at_changes(&l.1, changes + 1)), Ok(Taken::Changed));
    assert!(load(&mut target, l.0, &l.1).is_err());
    assert!(bytes(target.as_ref().unwrap()) == cat(&[&f.1, &at_changes(&l.1, changes + 1)]));
    assert_eq!(load(&mut target, f.0, &f.1), Ok(Taken::Unchanged), "the filter record, byte for byte");
    let refused = load(&mut target, f.0, &at_changes(&f.1, changes + 1)).unwrap_err().to_string();
    assert!(refused.contains("delete the key"), "{refused}");
}

/// Chunks of a counting filter are of one moment, or are refused, with the way to dump it.
#[test]
fn a_counting_filter_that_changes_is_dumped_as_a_copy() {
    type Change = fn(&mut Chain);
    let changes: [Change; 3] = [
        |chain| assert!(!add(chain, &item(1)), "it was there, and counts"),
        |chain| assert!(chain.remove(&item(1))),
        |chain| _ = chain.remove_group(&[&item(1), &item(2)]),
    ];
    for change in changes {
        for before in 1..6 {
            let mut filter = filled(counting(head(0.05, 300, 2)), 0..500);
            let mut target = None;
            let mut position = 0;
            let mut refused = None;
            for number in 0..6 {
                if number == before {
                    let Filter::Whole(Whole::Native(chain)) = &mut filter else { panic!() };
                    change(chain);
                }
                let (next, record) = filter.record_at(position).unwrap().unwrap();
                match load(&mut target, next, &record) {
                    Ok(_) => position = next,
                    Err(error) => {
                        refused = Some((number, error.to_string()));
                        break;
                    }
                }
            }
            let (number, text) = refused.expect("some record is of another moment");
            assert_eq!(number, before);
            assert!(text.contains("COPY key tmp") && text.contains("BF.SCANDUMP tmp"), "{text}");
            // Not even where more had changed by then: nothing is whole.
            assert!(whole(target.as_ref().unwrap()).is_none());
            let copy = filter.try_clone(b"tmp").unwrap();
            let mut target = None;
            for (iterator, record) in records(&copy) {
                load(&mut target, iterator, &record).unwrap();
                assert_eq!(load(&mut target, iterator, &record), Ok(Taken::Unchanged), "sent again");
            }
            assert!(bytes(target.as_ref().unwrap()) == bytes(&copy));
        }
    }
    // A layer of the other kind is none of the filter's, whoever sends it.
    for (own, other) in
        [(head(0.05, 300, 2), counting(head(0.05, 300, 2))), (counting(head(0.05, 300, 2)), head(0.05, 300, 2))]
    {
        let mut filter = filled(own, 0..200);
        let (Filter::Whole(chain), before) = (&filter, bytes(&filter)) else { panic!() };
        let next = chain.plan_next().unwrap();
        let (iterator, _) = next_layer_record(chain, next).unwrap();
        let NextPlan::Native(plan) = next else { panic!() };
        let record = Raw::new(2, own.id, 0, layer_body(1, layer_kind(&other), &plan)).bytes();
        for source in [UNLIMITED, Source::Trusted] {
            assert!(filter.load(iterator, record::read(&mut record.as_slice()).unwrap(), source).is_err());
            assert!(bytes(&filter) == before);
        }
    }
}

#[test]
fn what_a_whole_filter_takes() {
    let make = || filled(head(0.05, 300, 2), 0..200);
    let filter = make();
    let Filter::Whole(chain) = &filter else { panic!() };
    let next = chain.plan_next().unwrap();
    let (iterator, layer) = next_layer_record(chain, next).unwrap();
    let NextPlan::Native(plan) = next else { panic!() };
    let take = |filter: &mut Filter, iterator, mut bytes: &[u8], source| {
        record::read(&mut bytes).and_then(|record| filter.load(iterator, record, source))
    };
    let other_id = |record: &[u8]| {
        let mut record = record.to_vec();
        record[16] ^= 1;
        mend(&mut record);
        record
    };
    let other_plan = Raw::new(2, chain.head().id, 0, layer_body(1, [1, 1, 1], &Plan { capacity: 7, ..plan })).bytes();
    let other_family = Raw::new(2, chain.head().id, 0, layer_body(1, [1, 2, 1], &plan)).bytes();
    let too_far = Raw::new(2, chain.head().id, 0, layer_body(2, [1, 1, 1], &plan)).bytes();

    let mut filter = make();
    assert!(take(&mut filter, iterator, &other_id(&layer), UNLIMITED).is_err());
    assert!(take(&mut filter, iterator + 1, &layer, UNLIMITED).is_err());
    assert!(take(&mut filter, iterator, &other_family, UNLIMITED).is_err());
    assert!(take(&mut filter, iterator, &other_family, Source::Trusted).is_err());
    assert!(take(&mut filter, iterator, &too_far, Source::Trusted).is_err());
    assert!(bytes(&filter) == bytes(&make()));
    assert_eq!(take(&mut filter, iterator, &layer, UNLIMITED), Ok(Taken::Changed));
    assert_eq!(take(&mut filter, iterator, &layer, UNLIMITED), Ok(Taken::Unchanged));
    assert!(take(&mut filter, iterator, &other_plan, UNLIMITED).is_err());
    assert!(take(&mut filter, iterator, &other_family, UNLIMITED).is_err());
    // A primary has added it already: whatever we have of our own is kept, and nothing is an error.
    let grown = bytes(&filter);
    assert_eq!(take(&mut filter, 99, &other_id(&layer), Source::Trusted), Ok(Taken::Unchanged));
    assert_eq!(take(&mut filter, iterator, &other_plan, Source::Trusted), Ok(Taken::KeptOwnLayer));
    assert_eq!(take(&mut filter, iterator, &other_family, Source::Trusted), Ok(Taken::KeptOwnLayer));
    assert!(bytes(&filter) == grown);
    // And one that differs gets the next layer all the same.
    let mut filter = make();
    assert_eq!(take(&mut filter, 99, &other_id(&layer), Source::Trusted), Ok(Taken::Changed));

    let mut filter = make();
    let [f, l, b, e] = &records(&make())[..] else { panic!() };
    for source in [UNLIMITED, Source::Trusted] {
        assert!(take(&mut filter, f.0, &f.1, source).is_err());
        assert!(take(&mut filter, b.0, &b.1, source).is_err());
        assert_eq!(take(&mut filter, l.0, &l.1, source), Ok(Taken::Unchanged));
        assert_eq!(take(&mut filter, e.0, &e.1, source), Ok(Taken::Unchanged));
        assert!(take(&mut filter, e.0, &other_id(&e.1), source).is_err());
        assert!(take(&mut filter, e.0 - 1, &e.1, source).is_err());
    }
    let Filter::Whole(Whole::Native(chain)) = &mut filter else { panic!() };
    while !add(chain, b"one more") {}
    assert!(take(&mut filter, e.0, &e.1, UNLIMITED).is_err(), "the counts are no longer those");
}

/// A writable replica added on its own, and grew: what the primary sends is taken all the same.
#[test]
fn a_replica_that_differs_lives() {
    let mut primary = Primary::default();
    primary.make(0);
    let mut replica = Replica::default();
    replica.apply(&primary.sent, usize::MAX);
    let Some(Filter::Whole(Whole::Native(chain))) = &mut replica.filter else { panic!() };
    (50_000..50_500).for_each(|i| {
        add(chain, &item(i));
    });
    primary.add(0..2000);
    for command in &primary.sent[replica.applied..] {
        let Some(filter) = &mut replica.filter else { panic!() };
        match command {
            Sent::Load(iterator, data) => {
                let record = record::read(&mut data.as_slice()).unwrap();
                assert!(filter.load(*iterator, record, Source::Trusted).is_ok());
            }
            Sent::Add(items) => {
                let Filter::Whole(Whole::Native(chain)) = filter else { panic!() };
                items.iter().for_each(|&i| assert!(chain.add(&item(i), Room::Exceeded).is_ok()));
            }
            Sent::Delete => panic!(),
        }
    }
    let chain = whole(replica.filter.as_ref().unwrap()).unwrap();
    // What the primary took for present was not sent, and need not be here, where the bits are others.
    let sent = primary.sent.iter().flat_map(|command| if let Sent::Add(items) = command { &items[..] } else { &[] });
    assert!((50_000..50_500).chain(sent.copied()).all(|i| chain.contains(&item(i))));
}

/// Bits that end at the next position are answered OK if they are what came, in whatever ranges; else refused.
#[test]
fn bits_that_come_again_must_be_equal() {
    let plan = Plan { capacity: 50, rate: 0.25, size: Size { lines: 200, bits: 1, spread: 1 } };
    let head = head(0.3, 9, 0);
    let raw = |kind, body| Raw::new(kind, head.id, 0, body).bytes();
    let bits = |from: u32, to: u32, chunks: &[(u32, &[u16])]| {
        let count = chunks.len() as u32;
        let mut body = cat(&[&[0; 4], &from.to_le_bytes(), &to.to_le_bytes(), &count.to_le_bytes()]);
        for (index, places) in chunks {
            body.extend(cat(&[&index.to_le_bytes(), &(places.len() as u16).to_le_bytes()]));
            body.extend(places.iter().flat_map(|place| place.to_le_bytes()));
        }
        raw(3, body)
    };
    let start = cat(&[&raw(1, filter_body(&head)), &raw(2, layer_body(0, [1, 1, 1], &plan))]);
    let mut target = Some(read(&cat(&[&start, &bits(0, 3, &[(0, &[7]), (2, &[1, 2])])])).unwrap());
    let saved = bytes(target.as_ref().unwrap());
    for (again, equal) in [
        (bits(0, 3, &[(0, &[7]), (2, &[1, 2])]), true),
        (bits(1, 3, &[(2, &[1, 2])]), true),
        (bits(2, 3, &[(2, &[1, 2])]), true),
        (bits(0, 3, &[]), false),
        (bits(0, 3, &[(2, &[1, 2])]), false),
        (bits(0, 3, &[(0, &[7])]), false),
        (bits(0, 3, &[(0, &[7]), (1, &[7]), (2, &[1, 2])]), false),
        (bits(1, 3, &[(1, &[1, 2])]), false),
        (bits(2, 3, &[(2, &[1])]), false),
        (bits(2, 3, &[(2, &[1, 2, 3])]), false),
        (bits(0, 2, &[(0, &[7])]), false),
        (bits(0, 4, &[(0, &[7]), (2, &[1, 2])]), false),
    ] {
        let to = u64::from(u32::from_le_bytes(again[40..44].try_into().unwrap()));
        let taken = load(&mut target, 2 + to, &again);
        assert_eq!(taken.clone().ok(), equal.then_some(Taken::Unchanged), "{taken:?}");
        assert!(bytes(target.as_ref().unwrap()) == saved);
    }
    assert_eq!(load(&mut target, 6, &bits(3, 4, &[])), Ok(Taken::Changed));
}

/// A filter that is large and nearly empty: its records are far below 1 MiB, and what each takes in memory is bounded.
#[test]
fn a_record_holds_at_most_8192_chunks() {
    let mut filter = Filter::from(empty(head(0.01, 100_000_000, 0)));
    let Filter::Whole(chain) = &mut filter else { panic!("it is whole") };
    for i in 0..30_000 {
        chain.add(&item(i), Room::Kept).unwrap();
    }
    let records: Vec<Vec<u8>> = filter.records().map(|record| record.unwrap().1).collect();
    // Bits records state the number of their chunks in the body's bytes 12 to 15.
    let chunks = |record: &&Vec<u8>| u32::from_le_bytes(record[44..48].try_into().unwrap());
    let chunks: Vec<u32> = records.iter().filter(|record| record[10] == 3).map(|record| chunks(&record)).collect();
    assert!(chunks.len() > 1 && chunks.iter().all(|&chunks| chunks <= 8192) && chunks[0] == 8192, "{chunks:?}");
    let copy = Filter::read(&records.concat(), Source::Client(&|_| Ok(()))).unwrap();
    assert_eq!(bytes(&copy), records.concat());
}
