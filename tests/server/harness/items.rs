//! Many items at once.

use std::ops::Range;

use super::{Client, ints};

/// Items a command.
const BATCH: usize = 500;

/// `item0`, `item1`, …
pub fn items(range: Range<usize>) -> Vec<String> {
    range.map(|i| format!("item{i}")).collect()
}

/// Adds them with BF.MADD; how many were answered 1.
#[track_caller]
pub fn add(c: &mut Client, key: &str, items: &[String]) -> usize {
    ones(c, "BF.MADD", key, items)
}

/// How many of them BF.MEXISTS answers with 1.
#[track_caller]
pub fn found(c: &mut Client, key: &str, items: &[String]) -> usize {
    ones(c, "BF.MEXISTS", key, items)
}

#[track_caller]
fn ones(c: &mut Client, command: &str, key: &str, items: &[String]) -> usize {
    let replies = items.chunks(BATCH).flat_map(|batch| {
        let replies = ints(crate::run!(c, command, key, batch));
        assert_eq!(replies.len(), batch.len(), "one reply an item");
        replies
    });
    replies.filter(|&reply| reply == 1).count()
}
