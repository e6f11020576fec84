//! What is read off a filter against what is known of it.

use bloomgate::bloom::chain::{Chain, Head, Room};
use bloomgate::bloom::geometry::Kind;
use bloomgate::bloom::stats::{SAMPLE, Stats};

/// A filter with the items `0 .. count`, each offered once; it grows as it must.
fn filled(rate: f64, capacity: u64, expansion: u32, count: u64) -> Chain {
    let head = Head { id: [1; 8], rate, capacity, expansion, key: None, kind: Kind::Plain };
    let mut chain = Chain::new(head, head.plan().unwrap()).unwrap();
    for i in 0..count {
        let item = i.to_le_bytes();
        if chain.add(&item, if expansion == 0 { Room::Exceeded } else { Room::Kept }).is_err() {
            let plan = chain.plan_next().unwrap();
            chain.grow(plan).unwrap();
            chain.add(&item, Room::Kept).unwrap();
        }
    }
    chain
}

/// How many of a million items that were never added are found.
fn wrong(chain: &Chain) -> f64 {
    (1_u64 << 40..).take(1_000_000).filter(|i| chain.contains(&i.to_le_bytes())).count() as f64
}

#[test]
fn an_empty_filter_holds_nothing_and_never_errs() {
    for capacity in [1, 100, 1_000_000_000] {
        let filter = filled(0.01, capacity, 2, 0);
        let stats = Stats::of(&filter);
        assert_eq!((stats.rate, stats.distinct), (0.0, 0.0));
        assert!(stats.rate.is_sign_positive(), "it would be shown as -0");
        let layer = stats.layers[0];
        assert_eq!((layer.fill, layer.rate, layer.distinct, layer.made, layer.items), (0.0, 0.0, 0.0, 0, 0));
        assert_eq!(layer.bits, 512 * filter.lines());
    }
}

/// One line and several lines an item, a filter of one short chunk, one filled beyond its capacity, a chain.
#[test]
fn rate_and_items_are_what_they_are() {
    for (rate, capacity, expansion, count) in [
        (0.5, 50_000, 0, 70_000),
        (0.1, 1000, 0, 1000),
        (0.01, 200_000, 0, 200_000),
        (0.01, 200_000, 0, 400_000),
        (0.01, 200_000, 0, 20_000),
        (0.001, 200_000, 0, 200_000),
        (0.001, 3000, 0, 3000),
        (1e-4, 50_000, 0, 80_000),
        (0.01, 100, 2, 150_000),
        (0.2, 1000, 4, 100_000),
    ] {
        let chain = filled(rate, capacity, expansion, count);
        let stats = Stats::of(&chain);
        let what = format!("{rate} {capacity} {expansion} {count}");
        // Five standard deviations of the probes, and five per cent for what small samples and the model leave open.
        let (seen, said) = (wrong(&chain), stats.rate * 1e6);
        assert!((seen - said).abs() <= 5.0 * said.sqrt() + 0.05 * said, "{what}: {seen} wrong, {said} said");
        // The spread of a filter's fill, as measured: about one in the square root of the items.
        let (n, said) = (count as f64, stats.distinct);
        assert!((n - said).abs() <= 5.0 * n.sqrt() + 0.01 * n, "{what}: {said} items said");
        assert_eq!(stats.layers.iter().map(|layer| layer.items).sum::<u64>(), chain.items());
    }
}

#[test]
fn many_chunks_are_sampled_and_few_are_not() {
    let chain = filled(0.01, 500_000, 0, 500_000);
    let layer = Stats::of(&chain).layers[0];
    assert!(layer.made as usize > 2 * SAMPLE && layer.made == layer.chunks, "{layer:?}");
    let all = chain.layers().next().unwrap();
    let set: u32 = all.made_from(0).flat_map(|c| all.chunk(c).unwrap().iter().flatten()).map(|w| w.count_ones()).sum();
    let exact = f64::from(set) / layer.bits as f64;
    assert!((layer.fill / exact - 1.0).abs() < 0.005, "{} against {exact}", layer.fill);
    // From an empty first chunk to an all but full last one: the sample is of all of them.
    let mut layers: Vec<_> = chain.layers().map(|layer| layer.try_clone().unwrap()).collect();
    let chunks = layers[0].geometry().chunks() as usize;
    for chunk in 0..chunks {
        let lines = layers[0].make_chunk(chunk as u32).unwrap();
        let full = lines.len() * chunk / chunks;
        lines[..full].as_flattened_mut().fill(u64::MAX);
        lines[full..].as_flattened_mut().fill(0);
    }
    let stairs = Chain::from_layers(chain.head(), layers, 0).unwrap();
    let fill = Stats::of(&stairs).layers[0].fill;
    assert!((fill - 0.5).abs() < 0.02, "{fill}");
    // A handful of items in a filter for millions: every chunk made is found and read.
    let sparse = Stats::of(&filled(0.01, 10_000_000, 0, 20)).layers[0];
    let exact = 20.0 * f64::from(sparse.hashes) / sparse.bits as f64;
    assert!((15..=20).contains(&sparse.made) && (sparse.fill / exact - 1.0).abs() < 0.1, "{sparse:?}");
}

/// All places set, as only a forged dump has them: any number of items, but a number.
#[test]
fn a_filter_of_ones_has_finite_figures() {
    let mut chain = filled(0.01, 10, 0, 0);
    let mut layers: Vec<_> = chain.layers().map(|layer| layer.try_clone().unwrap()).collect();
    layers[0].make_chunk(0).unwrap().as_flattened_mut().fill(u64::MAX);
    chain = Chain::from_layers(chain.head(), layers, 0).unwrap();
    let stats = Stats::of(&chain);
    assert_eq!((stats.rate, stats.layers[0].fill), (1.0, 1.0));
    assert!(stats.distinct.is_finite() && stats.distinct > 10.0);
}
