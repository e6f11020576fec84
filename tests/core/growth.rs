//! Growing: what each layer is, and where it ends.

use std::f64::consts::PI;

use bloomgate::bloom::chain::{Chain, Head, MAX_LAYERS, Room, Stop};
use bloomgate::bloom::error::Error;
use bloomgate::bloom::geometry::Kind;
use bloomgate::bloom::layer::Plan;
use bloomgate::bloom::sizing::{MAX_LINES, Size, choose};

fn chain(rate: f64, capacity: u64, expansion: u32) -> Chain {
    let head = Head { id: [1; 8], rate, capacity, expansion, key: None, kind: Kind::Plain };
    Chain::new(head, head.plan().unwrap()).unwrap()
}

/// The rule: capacity · expansion^i for i < 16, then the one before · max(2, expansion); the rates sum to at most p.
#[test]
fn layers_follow_the_rule_until_no_further_one_fits() {
    for rate in [0.5, 1e-6] {
        for expansion in [1, 2, 3, 32_768] {
            for capacity in [1, 100, 1_000_000] {
                let mut chain = chain(rate, capacity, expansion);
                let end = loop {
                    match chain.plan_next() {
                        Ok(plan) => chain.grow(plan).unwrap(),
                        Err(end) => break end,
                    }
                };
                assert_eq!(end, Error::TooLarge, "{rate} {capacity} {expansion}");
                let (mut wanted, mut sum) = (u128::from(capacity), 0.0);
                for (i, layer) in chain.layers().enumerate() {
                    let plan = layer.plan();
                    assert_eq!(u128::from(plan.capacity), wanted, "layer {i} of {rate} {capacity} {expansion}");
                    let expected = rate * 6.0 / (PI * PI * ((i + 1) * (i + 1)) as f64);
                    assert!((plan.rate / expected - 1.0).abs() < 1e-12);
                    assert_eq!(Some(plan.size), choose(plan.capacity, plan.rate, Kind::Plain));
                    sum += plan.rate;
                    wanted *= u128::from(if i + 1 < 16 { expansion } else { expansion.max(2) });
                }
                assert!(sum <= rate);
                assert!(chain.lines() <= MAX_LINES && chain.layer_count() < MAX_LAYERS);
                // Only planned: a filter of a tebibyte that holds nothing takes next to nothing.
                assert!(chain.bytes() < 10_000, "{}", chain.bytes());
            }
        }
    }
}

#[test]
fn a_filter_that_does_not_scale_has_exactly_the_rate_asked() {
    assert_eq!(chain(0.01, 100, 0).layers().next().unwrap().plan().rate, 0.01);
}

/// Capacities that no machine holds are refused, without overflow on the way.
#[test]
fn enormous_capacities_are_too_large() {
    for capacity in [1 << 45, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
        for rate in [0.999_999, 0.5, 0.01, 1e-12] {
            for expansion in [0, 1, 2, 32_768] {
                let head = Head { id: [1; 8], rate, capacity, expansion, key: None, kind: Kind::Plain };
                assert_eq!(head.plan().err(), Some(Error::TooLarge), "{capacity} {rate}");
            }
        }
    }
    // A later layer of a filter whose first one a loaded value announced.
    let head =
        Head { id: [1; 8], rate: 0.01, capacity: i64::MAX as u64, expansion: 32_768, key: None, kind: Kind::Plain };
    let small = Plan { capacity: i64::MAX as u64, rate: 0.01, size: Size { lines: 1, bits: 1, spread: 1 } };
    let mut chain = Chain::new(head, small).unwrap();
    for _ in 0..40 {
        assert_eq!(chain.plan_next(), Err(Error::TooLarge));
        chain.grow(small).unwrap();
    }
}

/// Hostile layers: the sum of lines and the number of layers are held, and a refused growth changes nothing.
#[test]
fn lines_and_layers_have_an_end() {
    let plan = |lines| Plan { capacity: 1, rate: 0.01, size: Size { lines, bits: 1, spread: 1 } };
    let head = Head { id: [1; 8], rate: 0.01, capacity: 1, expansion: 1, key: None, kind: Kind::Plain };
    let mut chain = Chain::new(head, plan(MAX_LINES - 10)).unwrap();
    assert_eq!(chain.grow(plan(11)), Err(Error::TooLarge));
    assert_eq!((chain.layer_count(), chain.lines()), (1, MAX_LINES - 10));
    chain.grow(plan(10)).unwrap();
    assert_eq!(chain.grow(plan(1)), Err(Error::TooLarge));

    let mut chain = Chain::new(head, plan(1)).unwrap();
    for _ in 1..MAX_LAYERS {
        chain.grow(plan(1)).unwrap();
    }
    assert_eq!(chain.grow(plan(1)), Err(Error::TooManyLayers));
    assert_eq!(chain.plan_next(), Err(Error::TooManyLayers));
    assert_eq!(chain.layer_count(), MAX_LAYERS);
    chain.add(b"x", Room::Kept).unwrap();
    assert!(chain.contains(b"x"));
}

/// Adds `numbers` one by one, growing where needed; how many were answered 1.
fn add(chain: &mut Chain, numbers: std::ops::Range<u64>) -> u64 {
    let mut new = 0;
    for number in numbers {
        let item = number.to_le_bytes();
        loop {
            match chain.add(&item, Room::Kept) {
                Ok(added) => new += u64::from(added),
                Err(stop) => {
                    assert_eq!(stop, Stop::Full);
                    let plan = chain.plan_next().unwrap();
                    chain.grow(plan).unwrap();
                    continue;
                }
            }
            break;
        }
    }
    new
}

/// Filters that elsewhere grew by a layer an item until rates underflowed, asserts failed, or adds were refused.
#[test]
fn tiny_filters_without_expansion_grow_for_ever() {
    for (rate, items) in [(1e-4, 5_000), (1e-6, 3_000), (0.01, 300), (0.5, 2_000), (1e-12, 2_000)] {
        let mut chain = chain(rate, 1, 1);
        let new = add(&mut chain, 0..items);
        assert_eq!(new, chain.items());
        // 16 layers of one item, then doubling: 16 + 2 + 4 + … ≥ 5,000 with 12 more.
        assert!(chain.layer_count() <= 16 + 12, "{}", chain.layer_count());
        assert!((0..items).all(|n| chain.contains(&n.to_le_bytes())));
        let probes = 100_000;
        let false_positives = (0..probes).filter(|n| chain.contains(&(n + (1u64 << 40)).to_le_bytes())).count();
        // Five standard deviations.
        let bound = rate * probes as f64;
        assert!(false_positives as f64 <= bound + 5.0 * bound.sqrt(), "{false_positives} of {probes} at {rate}");
        assert!(items - new <= 1 + (rate * items as f64 * 1.2) as u64);
    }
}
