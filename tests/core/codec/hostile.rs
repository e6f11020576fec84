//! Corrupt on purpose: an error or a valid filter, never a panic, and never memory out of proportion.

use super::*;
use bloomgate::bloom::whole::Whole;

/// Small filters of every kind, so that each byte can be tried.
fn samples() -> Vec<Filter> {
    let mut samples = vec![
        filled(head(0.01, 100, 2), 0..0),
        filled(head(0.01, 100, 2), 0..12),
        filled(head(0.1, 10, 1), 0..60),
        filled(head(0.1, 10, 0), 0..20),
        filled(Head { key: Some(KEY), ..head(0.1, 5, 3) }, 0..20),
        filled(head(1e-5, 400_000, 0), 0..4),
    ];
    samples.extend([
        filled(counting(head(0.1, 10, 1)), (0..30).chain(0..10)),
        filled(counting(Head { key: Some(KEY), ..head(0.1, 40, 0) }), 0..40),
        filled(counting(head(1e-5, 100_000, 0)), 0..3),
    ]);
    for stop in [1, 2, 3, 4] {
        let bytes: Vec<u8> = records(&samples[2]).into_iter().take(stop).flat_map(|(_, bytes)| bytes).collect();
        samples.push(read(&bytes).unwrap());
    }
    samples
}

/// What may be done with a filter that was accepted, whatever its numbers are: nothing may panic or take long.
fn use_it(filter: Filter) {
    assert!(filter.bytes() > 0);
    assert!(filter.record_at(u64::MAX).is_err());
    let copy = filter.try_clone(b"copy").unwrap();
    assert_eq!(records(&copy).len(), records(&filter).len());
    if let Filter::Whole(mut chain) = filter {
        let _ = chain.add(b"new", Room::Exceeded);
        assert!(chain.contains(b"new"));
        if let Some(chain) = chain.native_mut()
            && chain.kind() == Kind::Counting
        {
            assert!(chain.times(b"new") > 0 && chain.remove(b"new"));
            chain.remove_group(&[b"one", b"other", b"one"]);
        }
        assert!(accept(&bytes(&Filter::Whole(chain))).is_ok());
    }
}

fn try_bytes(bytes: &[u8]) -> bool {
    accept(bytes).map(use_it).is_ok()
}

#[test]
fn cut_at_each_byte() {
    for filter in samples() {
        let mut ends = BTreeSet::new();
        let bytes: Vec<u8> = records(&filter)
            .into_iter()
            .scan(0, |at, (_, bytes)| {
                *at += bytes.len();
                ends.insert(*at);
                Some(bytes)
            })
            .flatten()
            .collect();
        for end in 0..bytes.len() {
            let accepted = accept(&bytes[..end]);
            assert_eq!(accepted.is_ok(), ends.contains(&end), "{end}");
            assert!(accepted.is_err() || accepted.is_ok_and(|filter| filter.waits_for().is_some()));
            let mut longer = bytes[..end].to_vec();
            longer.push(0);
            assert!(accept(&longer).is_err());
        }
    }
}

#[test]
fn a_flipped_bit_is_noticed() {
    for filter in samples() {
        let mut bytes = bytes(&filter);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Someone who knows the format flips a bit and mends the checksum.
#[test]
fn a_flipped_bit_with_the_checksum_mended() {
    let (mut accepted, mut refused) = (0, 0);
    for filter in samples() {
        forge(&filter, |record, forged| {
            for bit in 0..(record.len() - 8) * 8 {
                let mut record = record.to_vec();
                record[bit / 8] ^= 1 << (bit % 8);
                forged(record);
            }
        })
        .into_iter()
        .for_each(|ok| if ok { accepted += 1 } else { refused += 1 });
    }
    assert!(accepted > 100 && refused > 1000, "{accepted} {refused}");
}

/// Each integer of each width at each byte, replaced by those that hurt.
#[test]
fn forged_integers() {
    let mut tried = 0;
    let mut samples = samples();
    for filter in [samples.remove(11), samples.remove(7), samples.remove(5), samples.remove(4)] {
        tried += forge(&filter, |record, forged| {
            for width in [1, 2, 4, 8] {
                for at in 8..(record.len() - 8).min(80) {
                    if (at - 8) % width != 0 || at + width > record.len() - 8 {
                        continue;
                    }
                    let values: BTreeSet<[u8; 8]> = nasty()
                        .map(|n| if width == 8 { n } else { n % (1 << (width * 8)) })
                        .map(u64::to_le_bytes)
                        .collect();
                    for value in values {
                        let mut record = record.to_vec();
                        record[at..at + width].copy_from_slice(&value[..width]);
                        forged(record);
                    }
                }
            }
        })
        .len();
    }
    assert!(tried > 10_000);
}

/// Numbers at the borders of integers and of the format's ranges, and floats that are none.
fn nasty() -> impl Iterator<Item = u64> {
    let borders = [0, 7, 8, 15, 16, 31, 32, 33, 34, 46, 53, 61, 62, 63].map(|bit| 1u64 << bit);
    let around = borders.into_iter().flat_map(|n| [n - 1, n, n + 1]);
    let floats = [0.0, -0.0, -0.5, 1.0, 1.0 - f64::EPSILON / 2.0, 2.0, 5e-324, 1e-320, f64::NAN, f64::INFINITY, -1e300];
    around.chain([u64::MAX, u64::MAX - 1]).chain(floats.map(f64::to_bits))
}

/// Reads the filter's bytes once for each change that `change` makes to one of its records; which were accepted.
///
/// The other records stay as they are; a changed length is not mended.
fn forge(filter: &Filter, change: impl Fn(&[u8], &mut dyn FnMut(Vec<u8>))) -> Vec<bool> {
    let records = records(filter);
    let join = |records: &[(u64, Vec<u8>)]| records.iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<u8>>();
    let mut accepted = Vec::new();
    for (i, (iterator, record)) in records.iter().enumerate() {
        let (before, after) = (join(&records[..i]), join(&records[i + 1..]));
        let waiting = read(&before).ok();
        change(record, &mut |mut forged| {
            mend(&mut forged);
            accepted.push(try_bytes(&cat(&[&before, &forged, &after])));
            // Alone, to filters that are there: the whole one, and one that waits for it.
            if let Ok(record) = record::read(&mut forged.as_slice()) {
                for base in [Some(filter), waiting.as_ref()].into_iter().flatten() {
                    let mut base = base.try_clone(b"").unwrap();
                    let mut changed = false;
                    for (iterator, source) in [(*iterator, UNLIMITED), (1, UNLIMITED), (u64::MAX, Source::Trusted)] {
                        let taken = base.load(iterator, record, source);
                        changed |= taken == Ok(Taken::Changed);
                    }
                    assert!(!changed || accept(&bytes(&base)).is_ok());
                }
            }
        });
    }
    accepted
}

/// Filters of any numbers that are accepted may be asked to grow: a plan or an error.
#[test]
fn growth_of_hostile_filters() {
    let rates = [5e-324, 1e-320, 1e-300, 1e-17, 1e-12, 0.5, 0.999, 1.0 - 1e-15, 1.0 - f64::EPSILON / 2.0];
    for rate in rates {
        for capacity in [1, 100, 20_000_000, 1 << 33, 1 << 34, 1 << 40, 1 << 62, (1 << 63) - 1] {
            for expansion in [0, 1, 32_768] {
                let small = Plan { capacity, rate, size: Size { lines: 1, bits: 1, spread: 1 } };
                let mut chain = Chain::new(head(rate, capacity, expansion), small).unwrap();
                for _ in 0..3 {
                    match chain.plan_next() {
                        Ok(plan) => assert!(chain.grow(plan).is_ok() || plan.rate <= 0.0),
                        Err(error) => assert!(!error.to_string().is_empty()),
                    }
                }
            }
        }
    }
}

/// Every number that a filter or layer record has room for, at its borders: in or out.
#[test]
fn ranges() {
    let good = head(0.1, 10, 2);
    let plan = good.plan().unwrap();
    let filter = |head: Head| read(&Raw::new(1, good.id, 0, filter_body(&head)).bytes()).is_ok();
    let layer = |plan: Plan| {
        let first = Raw::new(1, good.id, 0, filter_body(&good)).bytes();
        let layer = Raw::new(2, good.id, 0, layer_body(0, [1, 1, 1], &plan)).bytes();
        let read = read(&cat(&[&first, &layer]));
        assert!(read.as_ref().map_or(true, |filter| filter.bytes() < 1000), "a layer takes no memory before its bits");
        read.is_ok()
    };
    for (rate, ok) in [
        (0.0, false),
        (-0.0, false),
        (5e-324, true),
        (0.5, true),
        (1.0 - f64::EPSILON / 2.0, true),
        (1.0, false),
        (-0.5, false),
        (f64::NAN, false),
        (f64::INFINITY, false),
    ] {
        assert_eq!(filter(Head { rate, ..good }), ok, "{rate}");
        assert_eq!(layer(Plan { rate, ..plan }), ok, "{rate}");
    }
    for (capacity, ok) in [(0, false), (1, true), ((1 << 63) - 1, true), (1 << 63, false), (u64::MAX, false)] {
        assert_eq!(filter(Head { capacity, ..good }), ok, "{capacity}");
        assert_eq!(layer(Plan { capacity, ..plan }), ok, "{capacity}");
    }
    for (expansion, ok) in [(0, true), (1, true), (32_768, true), (32_769, false), (u32::MAX, false)] {
        assert_eq!(filter(Head { expansion, ..good }), ok, "{expansion}");
    }
    let size = |lines, bits, spread| Plan { size: Size { lines, bits, spread }, ..plan };
    for (plan, ok) in [
        (size(0, 1, 1), false),
        (size(1, 1, 1), true),
        (size(1 << 34, 64, 8), true),
        (size((1 << 34) + 1, 1, 1), false),
        (size(1 << 63, 1, 1), false),
        (size(u64::MAX, 1, 1), false),
        (size(u64::MAX / 64 + 1, 1, 1), false),
        (size(1, 0, 1), false),
        (size(1, 65, 1), false),
        (size(1, 255, 1), false),
        (size(1, 3, 4), false),
        (size(1, 64, 0), false),
        (size(1, 64, 3), false),
        (size(1, 64, 16), false),
    ] {
        assert_eq!(layer(plan), ok, "{plan:?}");
    }
}

/// A layer record with numbers out of range is refused by a whole filter before anything is reckoned with them.
#[test]
fn a_whole_filter_refuses_a_hostile_layer() {
    let mut filter = filled(head(0.1, 10, 2), 0..5);
    let before = bytes(&filter);
    let chunks = filter.layers().map(|layer| u64::from(layer.geometry().chunks())).sum::<u64>();
    for lines in [0, (1 << 34) + 1, u64::MAX / 64, u64::MAX / 64 + 1, u64::MAX] {
        let plan = Plan { size: Size { lines, bits: 1, spread: 1 }, ..head(0.1, 10, 2).plan().unwrap() };
        let record = Raw::new(2, *b"tests\0\0\0", 5, layer_body(1, [1, 1, 1], &plan)).bytes();
        for source in [UNLIMITED, Source::Trusted] {
            let taken = record::read(&mut record.as_slice()).and_then(|record| filter.load(3 + chunks, record, source));
            assert!(taken.is_err());
            assert!(bytes(&filter) == before);
        }
    }
}

/// 2³⁴ lines are the most that all layers may have together, and 128 the most layers.
#[test]
fn all_layers_together() {
    let head = head(0.1, 10, 2);
    let with = |lines: &[u64]| {
        let raw = |kind, body| Raw::new(kind, head.id, 0, body).bytes();
        let mut bytes = raw(1, filter_body(&head));
        for (number, &lines) in (0u16..).zip(lines) {
            let plan = Plan { capacity: 1, rate: 0.5, size: Size { lines, bits: 1, spread: 1 } };
            bytes.extend(raw(2, layer_body(number, [1, 1, 1], &plan)));
            let to = (lines.div_ceil(64) as u32).to_le_bytes();
            bytes.extend(raw(3, cat(&[&number.to_le_bytes(), &[0; 6], &to, &[0; 4]])));
        }
        let mut end = cat(&[&(lines.len() as u16).to_le_bytes(), &[0; 6]]);
        end.extend(lines.iter().flat_map(|_| u64::MAX.to_le_bytes()));
        bytes.extend(raw(4, end));
        accept(&bytes)
    };
    assert!(with(&[]).is_err());
    assert!(with(&[1; 128]).is_ok_and(|filter| whole(&filter).is_some()));
    assert!(with(&[1; 129]).is_err());
    assert!(with(&[1 << 33, 1 << 33]).is_ok());
    assert!(with(&[1 << 33, (1 << 33) + 1]).is_err());
    assert!(with(&[1, 1 << 34]).is_err());
    let Ok(Filter::Whole(Whole::Native(mut full))) = with(&[1 << 34]) else { panic!() };
    assert!(full.plan_next().is_err());
    assert_eq!((full.items(), full.bytes() < 1000), (u64::MAX, true));
    assert_eq!(full.add(b"x", Room::Exceeded), Ok(true));
    assert!(full.bytes() < 5 << 20, "a root, a node and a chunk: {}", full.bytes());
}

/// The limit is asked of clients, at the filter's full size, before the layer is there.
#[test]
fn the_limit_is_for_clients() {
    let small = filled(head(0.01, 100, 2), 0..0);
    let large = bytes(&filled(head(0.01, 1_000_000, 0), 0..0));
    let asked = std::cell::Cell::new(0);
    let limit = |needs: u64| {
        asked.set(needs);
        if needs > 1000 { Err(Refused::Limit("too large".into())) } else { Ok(()) }
    };
    assert!(Filter::read(&bytes(&small), Source::Client(&limit)).is_ok());
    assert_eq!(asked.get(), 64 * small.layers().map(|layer| layer.geometry().lines()).sum::<u64>());
    assert_eq!(Filter::read(&large, Source::Client(&limit)).err(), Some(Refused::Limit("too large".into())));
    assert!(asked.get() > 1_000_000);
    assert!(Filter::read(&large, Source::Trusted).is_ok());
}
