//! Adds, questions, growth, dumps and copies of a filter, against a set.

#![no_main]

use bloomgate_fuzz as records;

use std::collections::HashSet;

use bloomgate::bloom::chain::{Chain, Head, Room, Stop};
use bloomgate::bloom::whole::Whole;
use bloomgate::bloom::layer::{GROUP, Plan};
use bloomgate::bloom::sizing::Size;
use bloomgate::codec::filter::Filter;
use libfuzzer_sys::fuzz_target;

/// Adds a group, growing where it must; how many were new.
fn add(chain: &mut Chain, group: &[&[u8]], next: Plan) -> u32 {
    let (mut rest, mut new, mut room) = (group, 0, Room::Kept);
    while !rest.is_empty() {
        let added = chain.add_group(rest, room);
        new += added.new.count_ones();
        rest = &rest[added.done..];
        match added.stop {
            None => break,
            Some(Stop::OutOfMemory) => panic!("out of memory"),
            // At 128 layers the newest takes all.
            Some(Stop::Full) if chain.grow(next).is_err() => room = Room::Exceeded,
            Some(Stop::Full) => {}
        }
    }
    new
}

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    let Some((&[lines, bits, spread, capacity, keyed], more)) = rest.split_first_chunk() else { return };
    rest = more;
    let bits = bits % 64 + 1;
    let size = Size { lines: u64::from(lines) + 1, bits, spread: (1 << (spread % 4)).min(1 << bits.ilog2()) };
    let plan = Plan { capacity: u64::from(capacity) + 1, rate: 0.5, size };
    let key = (keyed & 1 == 1).then_some([keyed; 16]);
    let head = Head { id: [1; 8], rate: 0.5, capacity: 1, expansion: 1, key };
    let mut chain = Chain::new(head, plan).expect("a size within its ranges");
    let mut set: HashSet<Vec<u8>> = HashSet::new();
    let mut answered = 0;
    while let (Some(what), Some(item)) = (records::byte(&mut rest), records::take(&mut rest)) {
        match what % 8 {
            0..=2 => {
                let was = chain.contains(item);
                let new = add(&mut chain, &[item], plan);
                assert_eq!(new, u32::from(!was));
                answered += u64::from(new);
                set.insert(item.to_vec());
            }
            3 | 4 => {
                // One after the other gives the same: pieces of one byte, so that many are equal.
                let group: Vec<&[u8]> = item.chunks(1).take(GROUP).collect();
                let mut twin = chain.try_clone(chain.head().id).expect("memory");
                let new: u32 = group.iter().map(|item| add(&mut twin, &[item], plan)).sum();
                let twin = (new, records::save(&Filter::from(twin)));
                let new = add(&mut chain, &group, plan);
                answered += u64::from(new);
                let whole = Filter::from(chain);
                assert!(twin == (new, records::save(&whole)));
                let Filter::Whole(Whole::Native(back)) = whole else { unreachable!() };
                chain = back;
                set.extend(group.iter().map(|item| item.to_vec()));
            }
            5 => {
                let _ = chain.grow(plan);
            }
            6 => {
                let filter = Filter::from(chain);
                records::check(&filter);
                let Ok(Filter::Whole(Whole::Native(read))) = records::read(&records::save(&filter)) else { panic!("not read") };
                chain = read;
            }
            _ => {
                let Ok(Filter::Whole(Whole::Native(copy))) = Filter::from(chain).try_clone(item) else { panic!("not copied") };
                chain = copy;
            }
        }
        assert!(set.iter().all(|item| chain.contains(item)));
        assert_eq!((chain.items(), chain.changes()), (answered, answered));
    }
});
