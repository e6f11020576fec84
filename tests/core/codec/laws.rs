//! Laws of the round trip, over random filters.

use bloomgate::bloom::geometry::Kind;
use proptest::prelude::*;

use super::*;
use bloomgate::bloom::whole::Whole;

/// What makes a random filter.
#[derive(Clone, Debug)]
pub struct Case {
    head: Head,
    /// Instead of the size that the rules give: lines, bits, spread.
    size: Option<(u64, u8, u32)>,
    from: u64,
    items: u64,
}

impl Case {
    /// The filter, and the items that were new.
    pub fn make(&self) -> (Filter, Vec<u64>) {
        let mut plan = self.head.plan().unwrap();
        if let Some((lines, bits, spread)) = self.size {
            plan.size = Size { lines, bits, spread: (1 << spread).min(1 << bits.ilog2()) };
        }
        let mut chain = Chain::new(self.head, plan).unwrap();
        let items = (self.from..self.from + self.items).filter(|&i| add(&mut chain, &item(i))).collect();
        (Filter::from(chain), items)
    }
}

/// Half of the filters have the size that the rules give, half a random one (short last chunks, gaps, few bits or many).
pub fn cases() -> impl Strategy<Value = Case> {
    let rate = prop_oneof![Just(0.01), Just(0.5), Just(0.999), Just(1e-6), 1e-7..0.99];
    let capacity = prop_oneof![1..20u64, 20..400u64, 400..20_000u64, Just(20_000_000)];
    let expansion = prop_oneof![Just(0u32), Just(1), Just(2), 2..40u32];
    let size = (prop_oneof![1..70u64, 60..140u64, 100..3000u64, Just(1 << 20)], 1..65u8, 0..4u32);
    let items = prop_oneof![0..5u64, 5..60u64, 60..1500u64];
    let kind = prop_oneof![Just(Kind::Plain), Just(Kind::Counting)];
    let head = (any::<[u8; 8]>(), rate, capacity, expansion, any::<bool>(), kind).prop_map(
        |(id, rate, capacity, expansion, keyed, kind)| {
            let key = keyed.then_some(KEY);
            Head { id, rate, capacity, expansion, key, kind }
        },
    );
    (head, proptest::option::of(size), items, 0..1u64 << 40).prop_map(|(head, size, items, from)| Case {
        head,
        size,
        from,
        items,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Through one payload: the same records, the same answers.
    #[test]
    fn read_what_was_written(case in cases()) {
        let (filter, items) = case.make();
        let saved = bytes(&filter);
        let loaded = accept(&saved).unwrap();
        prop_assert!(bytes(&loaded) == saved);
        let (was, is) = (whole(&filter).unwrap(), whole(&loaded).unwrap());
        prop_assert_eq!(was.head(), is.head());
        prop_assert_eq!((was.changes(), was.items()), (is.changes(), is.items()));
        prop_assert!(items.iter().all(|&i| is.contains(&item(i))));
        for i in 0..500u64 {
            let probe = i.to_le_bytes();
            prop_assert_eq!(was.contains(&probe), is.contains(&probe));
        }
        prop_assert_eq!(was.plan_next(), is.plan_next());
    }

    /// Record by record, with each record sent twice, and saved and read on the way: the same.
    #[test]
    fn load_record_by_record(case in cases(), save_after in 0..8usize) {
        let (filter, _) = case.make();
        let mut loaded = None;
        let mut sent: Vec<u8> = Vec::new();
        let mut position = 0;
        for (i, (iterator, record)) in records(&filter).into_iter().enumerate() {
            prop_assert_eq!(filter.record_at(position).unwrap(), Some((iterator, record.clone())));
            load(&mut loaded, iterator, &record).unwrap();
            prop_assert_eq!(load(&mut loaded, iterator, &record), Ok(Taken::Unchanged));
            sent.extend(&record);
            if let Some(Filter::Partial(_)) = &loaded {
                prop_assert_eq!(loaded.as_ref().unwrap().waits_for(), Some(iterator));
                prop_assert!(bytes(loaded.as_ref().unwrap()) == sent);
            }
            if i == save_after {
                loaded = Some(accept(&bytes(loaded.as_ref().unwrap())).unwrap());
            }
            position = iterator;
        }
        prop_assert!(whole(loaded.as_ref().unwrap()).is_some());
        prop_assert!(bytes(&loaded.unwrap()) == bytes(&filter));
    }

    /// A copy has the same bits under an id that the old one and the key's name decide.
    #[test]
    fn copies(case in cases(), name in any::<[u8; 5]>()) {
        let (filter, items) = case.make();
        let copy = filter.try_clone(&name).unwrap();
        let id = xxh3_64(&cat(&[&filter.head().id, &name])).to_le_bytes();
        prop_assert_eq!(copy.head(), Head { id, ..filter.head() });
        let with_old_id: Vec<u8> = records(&copy).into_iter().flat_map(|(_, mut record)| {
            record[16..24].copy_from_slice(&filter.head().id);
            mend(&mut record);
            record
        }).collect();
        prop_assert!(with_old_id == bytes(&filter));
        let Filter::Whole(Whole::Native(mut copy)) = copy else { panic!() };
        let before = bytes(&filter);
        add(&mut copy, b"into the copy alone");
        prop_assert!(bytes(&filter) == before);
        prop_assert!(items.iter().all(|&i| copy.contains(&item(i))));
    }

    /// Any bytes, and any record with any body.
    #[test]
    fn arbitrary_bytes(kind in 0..6u8, body in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read(&body).is_err());
        let record = Raw::new(kind, [7; 8], 0, body).bytes();
        let _ = accept(&record);
        let small = bytes(&filled(head(0.1, 10, 2), 0..5));
        prop_assert!(accept(&cat(&[&small, &record])).is_err());
    }
}

/// The half-loaded copy keeps the id, so that the rest of the dump goes into it.
#[test]
fn a_half_loaded_copy_is_completed() {
    let filter = filled(head(0.1, 10, 2), 0..50);
    let records = records(&filter);
    for cut in 1..records.len() {
        let start: Vec<u8> = records[..cut].iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let mut copy = Some(read(&start).unwrap().try_clone(b"other").unwrap());
        assert!(bytes(copy.as_ref().unwrap()) == start);
        for (iterator, record) in &records[cut..] {
            assert_eq!(load(&mut copy, *iterator, record), Ok(Taken::Changed));
        }
        assert!(bytes(&copy.unwrap()) == bytes(&filter));
    }
}

/// Chunks that were made and hold no bit are not written: what is saved depends on bits alone.
#[test]
fn empty_chunks_are_not_written() {
    let plan = Plan { capacity: 50, rate: 0.25, size: Size { lines: 640, bits: 4, spread: 1 } };
    let mut layer = bloomgate::bloom::layer::Layer::new(plan, Kind::Plain).unwrap();
    layer.make_chunk(3).unwrap();
    let made = Filter::from(Chain::from_layers(head(0.3, 9, 0), vec![layer], 0).unwrap());
    let never = Filter::from(Chain::new(head(0.3, 9, 0), plan).unwrap());
    assert!(bytes(&made) == bytes(&never));
}
