//! Bytes to a filter, and back: as they are, and as the bodies of records whose frames hold.

use bloomgate::bloom::chain::Room;
use bloomgate::bloom::geometry::Kind;
use bloomgate::codec::filter::Filter;

use super::records;

fn try_it(bytes: &[u8]) {
    let Ok(filter) = records::read(bytes) else { return };
    records::check(&filter);
    if let Filter::Whole(mut chain) = filter {
        let was = chain.contains(b"item");
        assert_eq!(chain.add(b"item", Room::Exceeded).ok(), Some(!was));
        assert!(chain.contains(b"item"));
        if let Some(chain) = chain.native_mut()
            && chain.kind() == Kind::Counting
        {
            assert!(chain.times(b"item") > 0 && chain.remove(b"item"));
            chain.remove_group(&[b"item", b"other", b"item"]);
        }
        records::check(&Filter::Whole(chain));
    }
}

/// Tries one input.
pub fn run(input: &[u8]) {
    try_it(input);
    let mut rest = input;
    let mut bytes = Vec::new();
    while let (Some(kind), Some(body)) = (records::byte(&mut rest), records::take(&mut rest)) {
        bytes.extend(records::record(kind % 6, 1, 0, body));
        try_it(&bytes);
    }
}
