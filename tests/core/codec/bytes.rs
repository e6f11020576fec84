//! The bytes: the module's encoder and the tests' own agree, and the page in `docs/` shows what they write.

use super::*;

/// Adds the same to both; the naive filter is told each plan, since sizes are stored and never computed again.
fn both(head: Head, first: Plan, items: impl Iterator<Item = u64>) -> (Naive, Filter) {
    let (mut naive, mut chain) = (Naive::new(head, first), Chain::new(head, first).unwrap());
    for i in items {
        let item = item(i);
        let layers = chain.layer_count();
        let new = add(&mut chain, &item);
        if chain.layer_count() > layers {
            naive.layers.push(NaiveLayer::new(chain.layers().last().unwrap().plan()));
        }
        let full = chain.is_non_scaling() && !naive.contains(&item) && !new;
        assert!(full || naive.add(&item) == new, "{i}");
    }
    (naive, Filter::from(chain))
}

fn assert_same(naive: &Naive, filter: &Filter) {
    let (ours, theirs) = (records(filter), naive.records());
    assert_eq!(ours.len(), theirs.len());
    for (i, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "record {i}");
    }
}

#[test]
fn an_encoder_written_from_the_page_writes_the_same_bytes() {
    for (head, items) in [
        (head(0.01, 100, 2), 0),
        (head(0.01, 100, 2), 3),
        (head(0.01, 100, 2), 1500),
        (head(0.001, 5, 1), 200),
        (head(0.5, 10, 0), 40),
        (head(1e-6, 7000, 0), 900),
        (Head { key: Some(KEY), ..head(0.001, 50, 4) }, 1200),
        (Head { key: Some(KEY), ..head(0.001, 50, 0) }, 60),
        (counting(head(0.01, 100, 2)), 0),
        (counting(head(0.01, 100, 2)), 1500),
        (counting(head(0.3, 100, 0)), 100),
        (counting(Head { key: Some(KEY), ..head(0.001, 50, 4) }), 1200),
    ] {
        let (naive, filter) = both(head, head.plan().unwrap(), 0..items);
        assert_same(&naive, &filter);
    }
}

/// Also sizes that the rules never give: chunks short and full, every spread, few bits and 64.
#[test]
fn awkward_sizes_too() {
    for lines in [1, 2, 3, 63, 64, 65, 66, 127, 128, 131, 200] {
        for (bits, spread) in [(1, 1), (2, 2), (7, 4), (8, 8), (64, 8), (64, 1)] {
            let plan = Plan { capacity: 1 << 40, rate: 0.25, size: Size { lines, bits, spread } };
            for items in [1, 30, 700] {
                for head in [head(0.3, 9, 0), counting(head(0.3, 9, 0))] {
                    // Each twice: counters are of more values than 1.
                    let (naive, filter) = both(head, plan, (0..items).chain(0..items));
                    assert_same(&naive, &filter);
                }
            }
        }
    }
}

/// A chunk is written as positions as long as that is strictly shorter than its bytes.
#[test]
fn positions_until_they_are_as_long_as_the_chunk() {
    let plan = Plan { capacity: 1 << 40, rate: 0.25, size: Size { lines: 1, bits: 1, spread: 1 } };
    for (head, both_sides) in [(head(0.3, 9, 0), 30..35), (counting(head(0.3, 9, 0)), 24..28)] {
        let mut seen = BTreeSet::new();
        for items in 0..80 {
            let (naive, filter) = both(head, plan, 0..items);
            assert_same(&naive, &filter);
            let set = naive.layers[0].chunks.get(&0).map_or(0, BTreeMap::len);
            seen.insert(set);
            let length = records(&filter)[2].1.len() - 40 - 16;
            let sparse = if head.kind == Kind::Counting { set * 2 + set.div_ceil(2) } else { set * 2 };
            let wanted = if set == 0 { 0 } else { 6 + sparse.min(64) };
            assert_eq!(length, wanted, "{set} places");
        }
        assert!(both_sides.into_iter().all(|set| seen.contains(&set)));
    }
}

/// A reader takes either form, and writes its own.
#[test]
fn the_longer_form_is_read_too() {
    let head = head(0.3, 9, 0);
    let plan = Plan { capacity: 50, rate: 0.25, size: Size { lines: 2, bits: 1, spread: 1 } };
    let raw = |kind, body| Raw::new(kind, head.id, 7, body).bytes();
    let filter = |chunk: Vec<u8>| {
        let bits = cat(&[&[0; 8], &1u32.to_le_bytes(), &1u32.to_le_bytes(), &[0; 4], &chunk]);
        let end = cat(&[&[1, 0, 0, 0, 0, 0, 0, 0], &3u64.to_le_bytes()]);
        cat(&[&raw(1, filter_body(&head)), &raw(2, layer_body(0, [1, 1, 1], &plan)), &raw(3, bits), &raw(4, end)])
    };
    let positions = |places: &[u16]| {
        let mut chunk = (places.len() as u16).to_le_bytes().to_vec();
        chunk.extend(places.iter().flat_map(|place| place.to_le_bytes()));
        chunk
    };
    let whole = |places: &[u16]| {
        let mut chunk = [0xff; 2].to_vec();
        chunk.resize(130, 0);
        places.iter().for_each(|place| chunk[2 + usize::from(place / 8)] |= 1 << (place % 8));
        chunk
    };
    let few = [0, 1, 511, 512, 1023];
    let many: Vec<u16> = (0..1024).step_by(3).collect();
    assert_eq!(bytes(&read(&filter(whole(&few))).unwrap()), filter(positions(&few)));
    assert_eq!(bytes(&read(&filter(positions(&many))).unwrap()), filter(whole(&many)));
}

/// A layer of more than a record's worth of bits: each record at most 1 MiB and filled, ranges without a gap.
#[test]
fn long_layers_are_cut_at_one_mebibyte() {
    let size = Size { lines: 64 * 700 + 5, bits: 8, spread: 1 };
    let plan = Plan { capacity: 1 << 40, rate: 0.25, size };
    let mut chain = Chain::new(head(0.3, 9, 0), plan).unwrap();
    (0..700_000).for_each(|i| {
        add(&mut chain, &item(i));
    });
    let filter = Filter::from(chain);
    let records = records(&filter);
    let bits = &records[2..records.len() - 1];
    assert!(bits.len() == 3, "{}", bits.len());
    let mut at = 2;
    for (i, (next, bytes)) in bits.iter().enumerate() {
        assert!(bytes.len() <= 1 << 20);
        assert!(i + 1 == bits.len() || bytes.len() + 4096 + 6 > 1 << 20);
        assert_eq!(u64::from(u32::from_le_bytes(bytes[36..40].try_into().unwrap())) + 2, at);
        at = *next;
    }
    assert_eq!(at, 2 + 701);
    // Any chunk's position can be asked for, whatever the cuts were.
    let (next, record) = filter.record_at(2 + 300).unwrap().unwrap();
    assert_eq!(u32::from_le_bytes(record[36..40].try_into().unwrap()), 300);
    assert!(next > 2 + 300);
    assert!(accept(&bytes(&filter)).is_ok());
}

#[test]
fn positions_and_iterators() {
    let filter = filled(head(0.01, 3000, 2), 0..8000);
    let chunks: Vec<u64> = filter.layers().map(|layer| u64::from(layer.geometry().chunks())).collect();
    assert!(chunks.len() == 2 && chunks[0] > 0);
    let (a, b) = (chunks[0], chunks[1]);
    let iterators: Vec<u64> = records(&filter).into_iter().map(|(next, _)| next).collect();
    assert_eq!(iterators, [1, 2, 2 + a, 3 + a, 3 + a + b, (1 << 46) - 1]);
    assert!(filter.record_at((1 << 46) - 1).unwrap().is_none());
    for wrong in [4 + a + b, 5 + a + b, u64::from(u32::MAX), 1 << 33, (1 << 46) - 2, 1 << 46, u64::MAX] {
        assert!(filter.record_at(wrong).is_err(), "{wrong}");
    }
}

/// The worked example of the page is what the code writes.
#[test]
fn the_page_shows_what_is_written() {
    let page = include_str!("../../../docs/format.md");
    let example = page.split("```hexdump\n").nth(1).expect("the page has a hex dump").split("```").next().unwrap();
    let shown: Vec<u8> = example
        .lines()
        .flat_map(|line| line.get(6..).unwrap_or("").split_whitespace())
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    assert_eq!(shown, worked_example());
}

/// `BF.RESERVE k 0.01 20 NONSCALING`, `BF.MADD k hello world`, with the id `example1`.
fn worked_example() -> Vec<u8> {
    let mut chain = empty(Head { id: *b"example1", ..head(0.01, 20, 0) });
    assert!(add(&mut chain, b"hello") && add(&mut chain, b"world"));
    bytes(&Filter::from(chain))
}

/// Prints the example as the page has it.
#[test]
#[ignore = "prints what docs/format.md shows: cargo test --test core print_the_example -- --ignored --nocapture"]
fn print_the_example() {
    for (i, row) in worked_example().chunks(16).enumerate() {
        let hex: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{:04x}  {:<48}", i * 16, hex.join(" "));
    }
}
