//! What `INFO bf` shows.
//!
//! | field                   | what it is |
//! |-------------------------|---|
//! | `bf_filters`            | filters held, in all databases, those included that are being loaded or freed in the background |
//! | `bf_bytes`              | bytes that the module has allocated: its filters, and next to nothing besides |
//! | `bf_chunks`             | chunks of bits in these filters, of at most 4096 bytes each |
//! | `bf_items_added`        | adds that were answered 1 (to counting filters: all), those of a primary or an AOF included |
//! | `bf_items_deleted`      | deletes that were answered 1, likewise |
//! | `bf_checks`             | items that BF.EXISTS and BF.MEXISTS were asked about |
//! | `bf_hits`               | those among them that were answered 1 |
//! | `bf_growths`            | layers that adds have appended (a replica is sent them, and counts none) |
//! | `bf_refused_for_memory` | filters, layers and items for which there was no memory, or could never be |
//!
//! The first three are what there is now, the others count from the module's load on.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::bloom::chunks;
use crate::host::alloc;
use crate::host::info::Field;

/// A count of what commands have done. Commands run in one thread at a time, so a plain load and store do, and nothing
/// is locked for it.
pub struct Count(AtomicU64);

impl Count {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Counts `n` more.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Adds that changed something.
pub static ITEMS_ADDED: Count = Count::new();
/// Deletes that were answered 1.
pub static ITEMS_DELETED: Count = Count::new();
/// Items asked about.
pub static CHECKS: Count = Count::new();
/// Items asked about that were found.
pub static HITS: Count = Count::new();
/// Layers that adds appended.
pub static GROWTHS: Count = Count::new();
/// What was refused for lack of memory.
pub static REFUSED_FOR_MEMORY: Count = Count::new();

/// Filters that the server holds. It frees them in threads of its own, at any time.
static FILTERS: AtomicU64 = AtomicU64::new(0);

/// The server was given a filter.
pub fn filter_given() {
    FILTERS.fetch_add(1, Relaxed);
}

/// The server has given a filter back.
pub fn filter_freed() {
    FILTERS.fetch_sub(1, Relaxed);
}

/// The section, line by line.
pub static FIELDS: [Field; 9] = [
    Field { name: c"filters", value: || FILTERS.load(Relaxed) },
    Field { name: c"bytes", value: || alloc::allocated() as u64 },
    Field { name: c"chunks", value: || chunks::made_in_all() as u64 },
    Field { name: c"items_added", value: || ITEMS_ADDED.get() },
    Field { name: c"items_deleted", value: || ITEMS_DELETED.get() },
    Field { name: c"checks", value: || CHECKS.get() },
    Field { name: c"hits", value: || HITS.get() },
    Field { name: c"growths", value: || GROWTHS.get() },
    Field { name: c"refused_for_memory", value: || REFUSED_FOR_MEMORY.get() },
];
