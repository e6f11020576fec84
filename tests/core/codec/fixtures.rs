//! What earlier releases saved is read for ever: `tests/fixtures/v1` was written by release 0.1.0.
//!
//! The files are never written again. A release that changes the format adds a directory beside it; this one must
//! still be read, with the same answers. As long as version 1 is what is written, it is also written the same.

use std::path::PathBuf;

use super::*;

/// How a fixture was made, and what must be true of it.
struct Fixture {
    file: &'static str,
    head: Head,
    /// The size of the first layer, where the rules did not choose it.
    size: Option<Size>,
    /// `item0` … were added. To a counting filter `item0` twenty times, and a quarter more of them, which were deleted again.
    items: u64,
    /// How many records of it were kept.
    records: usize,
    /// Those of `absent0` … `absent999` that it answers 1 for, wrongly: a number that depends on every bit.
    wrong: usize,
}

const ID: [u8; 8] = *b"fixture1";

fn fixtures() -> Vec<Fixture> {
    let head = |rate, capacity, expansion| Head { id: ID, ..head(rate, capacity, expansion) };
    let fixture = |file, head, items| Fixture { file, head, size: None, items, records: usize::MAX, wrong: 0 };
    vec![
        Fixture { wrong: 2, ..fixture("default.bin", head(0.01, 100, 2), 80) },
        Fixture { wrong: 16, ..fixture("grown.bin", head(0.05, 20, 2), 500) },
        Fixture { wrong: 165, ..fixture("non-scaling.bin", head(0.2, 1000, 0), 1000) },
        Fixture { wrong: 29, ..fixture("keyed.bin", Head { key: Some(KEY), ..head(0.05, 100, 2) }, 300) },
        Fixture { records: 5, ..fixture("half-loaded.bin", head(0.05, 20, 2), 500) },
        Fixture { wrong: 0, ..fixture("gaps.bin", head(0.001, 50_000_000, 2), 30) },
        Fixture {
            size: Some(Size { lines: 131, bits: 20, spread: 8 }),
            wrong: 0,
            ..fixture("short-last-chunk.bin", head(0.05, 700, 0), 700)
        },
        Fixture { wrong: 3, ..fixture("counting.bin", counting(head(0.01, 100, 2)), 80) },
        Fixture { wrong: 36, ..fixture("counting-grown.bin", counting(head(0.05, 20, 2)), 500) },
        Fixture { wrong: 92, ..fixture("counting-non-scaling.bin", counting(head(0.2, 1000, 0)), 600) },
        Fixture {
            wrong: 32,
            ..fixture("counting-keyed.bin", counting(Head { key: Some(KEY), ..head(0.05, 100, 2) }), 300)
        },
        Fixture { records: 5, ..fixture("counting-half-loaded.bin", counting(head(0.05, 20, 2)), 500) },
    ]
}

impl Fixture {
    fn path(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1").join(self.file)
    }

    fn make(&self) -> Vec<u8> {
        let plan = self.head.plan().unwrap();
        let mut chain = Chain::new(self.head, Plan { size: self.size.unwrap_or(plan.size), ..plan }).unwrap();
        (0..self.items).for_each(|i| {
            add(&mut chain, &item(i));
        });
        if self.head.kind == Kind::Counting {
            let more = || self.items..self.items * 5 / 4;
            (0..19).map(|_| 0).chain(more()).for_each(|i| {
                add(&mut chain, &item(i));
            });
            more().for_each(|i| assert!(chain.remove(&item(i))));
        }
        records(&Filter::from(chain)).into_iter().take(self.records).flat_map(|(_, bytes)| bytes).collect()
    }
}

fn wrong(chain: &Chain) -> usize {
    (0..1000).filter(|i| chain.contains(format!("absent{i}").as_bytes())).count()
}

#[test]
fn version_1_is_read_for_ever() {
    for fixture in fixtures() {
        let saved = std::fs::read(fixture.path()).unwrap();
        let filter = accept(&saved).unwrap();
        assert!(bytes(&filter) == saved, "{} is written the same", fixture.file);
        assert_eq!(filter.head(), fixture.head, "{}", fixture.file);
        let Some(chain) = whole(&filter) else {
            assert_eq!(fixture.records, 5);
            continue;
        };
        assert_eq!(fixture.records, usize::MAX);
        assert!((0..fixture.items).all(|i| chain.contains(&item(i))), "{}", fixture.file);
        assert_eq!(wrong(chain), fixture.wrong, "{}", fixture.file);
        if chain.kind() == Kind::Counting {
            assert_eq!((chain.items(), chain.times(&item(0))), (fixture.items + 19, 15), "{}", fixture.file);
            continue;
        }
        assert!(chain.items() <= fixture.items && chain.items() * 10 >= fixture.items * 8, "{}", fixture.file);
    }
}

/// Writes files that are not there yet.
#[test]
#[ignore = "writes new fixtures: cargo test --test core write_fixtures -- --ignored --nocapture"]
fn write_fixtures() {
    for fixture in fixtures() {
        let bytes = fixture.make();
        if !fixture.path().exists() {
            std::fs::write(fixture.path(), &bytes).unwrap();
        }
        let filter = read(&bytes).unwrap();
        println!("{}: {} bytes, {} layers", fixture.file, bytes.len(), filter.layers().count());
        if let Some(chain) = whole(&filter) {
            println!("    wrong: {}", wrong(chain));
        }
    }
}
