//! Memory that is moved under a filter, as active defragmentation does it, changes nothing else.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashSet;
use std::ptr::NonNull;

use bloomgate::bloom::moving::{Mover, STRIDE};
use bloomgate::bloom::whole::Whole;
use proptest::prelude::*;

use super::laws::cases;
use super::*;

/// Moves every block, and leaves garbage where it was.
struct Everything {
    /// Where blocks are now.
    moved: HashSet<NonNull<u8>>,
    bytes: usize,
    /// It is asked whether to stop this many times before it says yes.
    patience: u32,
}

impl Everything {
    fn with(patience: u32) -> Self {
        Self { moved: HashSet::new(), bytes: 0, patience }
    }
}

// SAFETY: as `Mover` asks: the bytes are copied to a block of the same layout, and the old one is freed.
unsafe impl Mover for Everything {
    unsafe fn move_block(&mut self, block: NonNull<u8>, layout: Layout) -> NonNull<u8> {
        assert!(!self.moved.contains(&block), "moved twice");
        // SAFETY: no layout here is of no size; the old block is of this layout and nobody uses it any more.
        let moved = unsafe {
            let moved = NonNull::new(alloc(layout)).expect("memory");
            moved.copy_from_nonoverlapping(block, layout.size());
            block.write_bytes(0xa5, layout.size());
            dealloc(block.as_ptr(), layout);
            moved
        };
        self.moved.insert(moved);
        self.bytes += layout.size();
        moved
    }

    fn should_stop(&mut self) -> bool {
        let stop = self.patience == 0;
        self.patience = self.patience.saturating_sub(1);
        stop
    }
}

/// Moves all that the filter points to, in steps; how many there were.
fn move_all(filter: &mut Filter, patience: u32) -> usize {
    let (mut steps, mut from, mut bytes) = (1, 0, 0);
    loop {
        let mut mover = Everything::with(patience);
        let next = filter.move_memory(from, &mut mover);
        bytes += mover.bytes;
        match next {
            // The box that the filter itself lies in is its owner's to move.
            None => {
                assert_eq!(bytes + size_of::<Filter>(), filter.bytes(), "everything was moved, once");
                return steps;
            }
            Some(place) => assert!(place > from, "a step goes forward"),
        }
        from = next.unwrap_or(0);
        steps += 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// In one go and in many steps: each block once, and the filter is what it was.
    #[test]
    fn everything_moves_and_nothing_changes(case in cases(), patience in 0..40u32) {
        let (mut filter, items) = case.make();
        let saved = bytes(&filter);
        prop_assert_eq!(move_all(&mut filter, u32::MAX), 1);
        move_all(&mut filter, patience);
        prop_assert!(bytes(&filter) == saved);
        let chain = whole(&filter).unwrap();
        prop_assert!(items.iter().all(|&i| chain.contains(&item(i))));
    }

    /// A filter that is being loaded, at every stage.
    #[test]
    fn half_loaded_filters_move(case in cases(), patience in 0..5u32) {
        let (filter, _) = case.make();
        let mut loading = None;
        for (iterator, record) in records(&filter).into_iter().take(200) {
            load(&mut loading, iterator, &record).unwrap();
            move_all(loading.as_mut().unwrap(), patience);
        }
        if loading.as_ref().is_some_and(|loaded| loaded.waits_for().is_none()) {
            prop_assert!(bytes(&loading.unwrap()) == bytes(&filter));
        }
    }

    /// Between two steps a filter grows, or another one takes its place, and the place to go on from is what it was.
    #[test]
    fn filters_change_between_steps(
        first in cases(),
        second in cases(),
        steps in proptest::collection::vec((0..30u32, 0..200u64, prop::bool::weighted(0.1)), 1..30),
    ) {
        let (mut filter, mut items) = first.make();
        let mut from = 0;
        let mut next = 1 << 50;
        for (patience, adds, replace) in steps {
            from = filter.move_memory(from, &mut Everything::with(patience)).unwrap_or(0);
            if replace {
                (filter, items) = second.make();
            }
            if let Filter::Whole(Whole::Native(chain)) = &mut filter {
                for i in next..next + adds {
                    if add(chain, &item(i)) {
                        items.push(i);
                    }
                }
                next += adds;
            }
            let chain = whole(&filter).unwrap();
            prop_assert!(items.iter().all(|&i| chain.contains(&item(i))));
        }
        prop_assert!(accept(&bytes(&filter)).is_ok());
    }
}

/// A step is bounded also where there is much to pass over: a root of 2¹⁹ entries with hardly a node.
#[test]
fn a_step_is_short() {
    let size = Size { lines: 1 << 34, bits: 4, spread: 1 };
    let head = head(0.01, 1 << 30, 0);
    let mut chain = Chain::new(head, Plan { capacity: 1 << 30, rate: 0.01, size }).unwrap();
    for i in 0..10 {
        add(&mut chain, &item(i));
    }
    let mut filter = Filter::from(chain);
    // The turns of a step: 2¹⁹ nodes, ten of which are there, with 512 chunks each.
    let turns = (1 << 19) + 10 * 512;
    let steps = move_all(&mut filter, 0);
    assert!((turns / STRIDE as usize..turns / STRIDE as usize + 3).contains(&steps), "{steps}");
}
