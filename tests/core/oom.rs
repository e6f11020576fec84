//! No memory: a filter that cannot get a chunk says so and is what it was before.

use std::process::Command;

use bloomgate::bloom::chain::{Chain, Head, Room, Stop};
use bloomgate::bloom::error::Error;
use bloomgate::bloom::geometry::Kind;

/// Address space that the child may have, in KiB: some tens of thousands of chunks.
const LIMIT: &str = "200000";

/// This test, run again under a limit that nobody else should have.
#[test]
fn without_memory_nothing_is_lost() {
    let child = Command::new("sh")
        .args(["-c", r#"ulimit -v "$0" && exec "$1" --exact oom::in_the_child --ignored --test-threads 1"#, LIMIT])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && output.contains("1 passed"),
        "{output}{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

#[test]
#[ignore = "runs until memory ends; started by the test above under a limit"]
fn in_the_child() {
    let head = Head { id: [1; 8], rate: 0.01, capacity: 1 << 32, expansion: 2, key: None, kind: Kind::Plain };
    let mut chain = Chain::new(head, head.plan().unwrap()).unwrap();
    // Nearly every item needs a chunk of its own.
    let item = |number: u64| number.to_le_bytes();
    let refused = (0..60_000).find(|&number| match chain.add(&item(number), Room::Kept) {
        Ok(new) => !new,
        Err(stop) => {
            assert_eq!(stop, Stop::OutOfMemory);
            true
        }
    });
    let refused = refused.expect("the limit is reached first");
    let (items, bytes) = (chain.items(), chain.bytes());
    assert_eq!(items, refused);
    assert!(bytes > 50 << 20, "{bytes}");
    assert!(!chain.contains(&item(refused)), "the refused item left nothing behind");
    assert!((0..refused).all(|number| chain.contains(&item(number))));
    assert_eq!(chain.try_clone([2; 8]).err(), Some(Error::OutOfMemory));

    let (known, new) = (item(0), item(refused));
    let added = chain.add_group(&[&known, &new, &known], Room::Kept);
    assert_eq!((added.done, added.new, added.stop), (1, 0, Some(Stop::OutOfMemory)));
    assert_eq!((chain.items(), chain.bytes()), (items, bytes));
}
