//! Adds, questions, growth, dumps and copies of a filter, and deletes of a counting one, against a multiset.

use std::collections::HashMap;

use bloomgate::bloom::chain::{Chain, Head, Room, Stop};
use bloomgate::bloom::geometry::Kind;
use bloomgate::bloom::layer::{GROUP, Plan};
use bloomgate::bloom::sizing::Size;
use bloomgate::bloom::whole::Whole;
use bloomgate::codec::filter::Filter;

use super::records;

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

/// Tries one input.
pub fn run(input: &[u8]) {
    let mut rest = input;
    let Some((&[lines, bits, spread, capacity, keyed], more)) = rest.split_first_chunk() else { return };
    rest = more;
    let bits = bits % 64 + 1;
    let size = Size { lines: u64::from(lines) + 1, bits, spread: (1 << (spread % 4)).min(1 << bits.ilog2()) };
    let plan = Plan { capacity: u64::from(capacity) + 1, rate: 0.5, size };
    let key = (keyed & 1 == 1).then_some([keyed; 16]);
    let kind = if keyed & 2 == 2 { Kind::Counting } else { Kind::Plain };
    let head = Head { id: [1; 8], rate: 0.5, capacity: 1, expansion: 1, key, kind };
    let mut chain = Chain::new(head, plan).expect("a size within its ranges");
    // How often each item is in; a plain filter knows no more than once or more.
    let mut set: HashMap<Vec<u8>, u64> = HashMap::new();
    // Adds that took effect, and deletes.
    let (mut added, mut deleted) = (0, 0);
    let took_effect = |new: u32, of: usize| if kind == Kind::Counting { of as u64 } else { u64::from(new) };
    while let (Some(what), Some(item)) = (records::byte(&mut rest), records::take(&mut rest)) {
        match what % 10 {
            0..=2 => {
                let was = chain.contains(item);
                let new = add(&mut chain, &[item], plan);
                assert_eq!(new, u32::from(!was));
                added += took_effect(new, 1);
                *set.entry(item.to_vec()).or_default() += 1;
            }
            3 | 4 => {
                // One after the other gives the same: pieces of one byte, so that many are equal.
                let group: Vec<&[u8]> = item.chunks(1).take(GROUP).collect();
                let mut twin = chain.try_clone(chain.head().id).expect("memory");
                let new: u32 = group.iter().map(|item| add(&mut twin, &[item], plan)).sum();
                let twin = (new, records::save(&Filter::from(twin)));
                let new = add(&mut chain, &group, plan);
                added += took_effect(new, group.len());
                let whole = Filter::from(chain);
                assert!(twin == (new, records::save(&whole)));
                let Filter::Whole(Whole::Native(back)) = whole else { unreachable!() };
                chain = back;
                group.iter().for_each(|item| *set.entry(item.to_vec()).or_default() += 1);
            }
            5 => {
                let _ = chain.grow(plan);
            }
            6 => {
                let filter = Filter::from(chain);
                records::check(&filter);
                let Ok(Filter::Whole(Whole::Native(read))) = records::read(&records::save(&filter)) else {
                    panic!("not read")
                };
                chain = read;
            }
            7 => {
                let Ok(Filter::Whole(Whole::Native(copy))) = Filter::from(chain).try_clone(item) else {
                    panic!("not copied")
                };
                chain = copy;
            }
            _ if kind == Kind::Plain => {}
            // Items that are in, as often as they are.
            _ => {
                let pieces = if what % 10 == 8 { item.len().max(1) } else { 1 };
                let mut group: Vec<&[u8]> = item.chunks(pieces).take(GROUP).collect();
                group.retain(|item| {
                    let times = set.get_mut(*item).filter(|times| **times > 0);
                    times.map(|times| *times -= 1).is_some()
                });
                let was = match group[..] {
                    [one] => u32::from(chain.remove(one)),
                    _ => chain.remove_group(&group).count_ones(),
                };
                assert_eq!(was as usize, group.len());
                deleted += group.len() as u64;
            }
        }
        for (item, &times) in set.iter().filter(|(_, times)| **times > 0) {
            assert!(chain.contains(item));
            assert!(kind == Kind::Plain || u64::from(chain.times(item)) >= times.min(15));
        }
        assert_eq!((chain.items(), chain.changes()), (added - deleted, added + deleted));
    }
}
