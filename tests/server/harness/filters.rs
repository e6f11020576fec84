//! Filters of every shape, to be found unchanged after whatever a test does to their server.

use super::{Client, add, found, int, items, ok};

/// What was in the filters that [`Filters::make`] made.
pub struct Filters(Vec<Filter>);

struct Filter {
    key: &'static str,
    items: Vec<String>,
    digest: String,
    ttl: bool,
}

/// key, arguments of BF.RESERVE (none: a default filter), items
const SHAPES: [(&str, &[&str], usize); 14] = [
    ("default", &[], 1),
    ("grown", &[], 3000),
    ("empty", &["0.01", "1000"], 0),
    ("tiny", &["0.5", "1", "NONSCALING"], 1),
    ("full", &["0.001", "2000", "NONSCALING"], 2000),
    ("precise", &["1e-12", "500"], 400),
    ("slow", &["0.0001", "1", "EXPANSION", "1"], 2000),
    ("fast", &["0.01", "3", "EXPANSION", "100"], 1000),
    // Almost all of its chunks were never written.
    ("sparse", &["0.001", "20000000"], 3),
    ("large", &["0.01", "100000"], 50_000),
    ("counting", &["0.01", "100", "COUNTING"], 3000),
    ("counting full", &["0.001", "2000", "NONSCALING", "COUNTING"], 2000),
    ("keyed", &["0.01", "500", "HASH", "siphash"], 2000),
    ("counting keyed", &["0.01", "500", "HASH", "siphash", "COUNTING"], 2000),
];

impl Filters {
    /// Makes one of each shape; one of them will expire, much later.
    pub fn make(c: &mut Client) -> Self {
        let filters = SHAPES.map(|(key, reserve, count)| {
            if !reserve.is_empty() {
                ok(crate::run!(c, "BF.RESERVE", key, reserve));
            }
            let items = items(0..count);
            add(c, key, &items);
            let ttl = key == "grown";
            if ttl {
                assert_eq!(int(crate::run!(c, "EXPIRE", key, 100_000)), 1);
            }
            Filter { key, items, digest: c.digest(key), ttl }
        });
        Self(filters.into())
    }

    /// Asserts that each is what it was.
    pub fn check(&self, c: &mut Client) {
        self.check_under(c, "");
    }

    /// The same, for copies whose keys have a prefix.
    pub fn check_under(&self, c: &mut Client, prefix: &str) {
        for Filter { key, items, digest, ttl } in &self.0 {
            let key = &format!("{prefix}{key}");
            assert_eq!(found(c, key, items), items.len(), "{key}: a false negative");
            assert_eq!(c.digest(key), *digest, "{key}");
            assert_eq!(int(crate::run!(c, "TTL", key)) > 0, *ttl, "{key}");
        }
    }

    /// Their keys.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|filter| filter.key)
    }
}
