//! BF.LOADCHUNK: any records with any iterators, from clients and primaries, to a filter that is there or begins. A record
//! that is refused, or answered as changing nothing, changes nothing.

use bloomgate::codec::filter::{Filter, Source, Taken};
use bloomgate::codec::record;

use super::records;

/// Iterators that fit come from the filter itself mostly; no fuzzer finds 2⁴⁶ − 1.
fn iterator(choice: u8, filter: &Filter) -> u64 {
    let waits_for = filter.waits_for().unwrap_or(1);
    match choice {
        0 => bloomgate::codec::filter::END,
        1 => u64::MAX,
        n => waits_for.saturating_add(u64::from(n)).saturating_sub(3),
    }
}

/// Tries one input.
pub fn run(input: &[u8]) {
    let mut rest = input;
    let mut filter: Option<Filter> = None;
    while let (Some(kind), Some(choice), Some(changes), Some(body)) =
        (records::byte(&mut rest), records::byte(&mut rest), records::byte(&mut rest), records::take(&mut rest))
    {
        let bytes = records::record(kind % 6, u8::from(kind >= 240), changes, body);
        let Some(there) = &mut filter else {
            filter = records::read(&bytes).ok();
            continue;
        };
        let Ok(record) = record::read(&mut bytes.as_slice()) else { continue };
        let source = if kind & 64 == 0 { Source::Client(&|_| Ok(())) } else { Source::Trusted };
        let before = records::save(there);
        match there.load(iterator(choice, there), record, source) {
            Ok(Taken::Changed | Taken::Made) => records::check(there),
            Ok(Taken::Unchanged | Taken::KeptOwnLayer) | Err(_) => assert!(records::save(there) == before),
        }
    }
}
