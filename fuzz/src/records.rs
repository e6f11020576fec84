//! Frames around bodies, since no fuzzer finds a checksum.

use bloomgate::codec::filter::{Filter, Source};
use bloomgate::codec::record::{MAGIC, Refused};
use xxhash_rust::xxh3::xxh3_64;

/// A record of this kind, id, changes and body, with the length and checksum that it needs.
pub fn record(kind: u8, id: u8, changes: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0, kind, 0]);
    bytes.extend((body.len() as u32 + 40).to_le_bytes());
    bytes.extend([id; 8]);
    bytes.extend(u64::from(changes).to_le_bytes());
    bytes.extend(body);
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    bytes
}

/// Takes a length and so many bytes off the input.
pub fn take<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (&[low, high], rest) = input.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
    let (taken, rest) = rest.split_at(length);
    *input = rest;
    Some(taken)
}

/// Takes a byte off the input.
pub fn byte(input: &mut &[u8]) -> Option<u8> {
    input.split_off_first().copied()
}

/// All records, one after the other.
pub fn save(filter: &Filter) -> Vec<u8> {
    filter.records().flat_map(|record| record.expect("memory").1).collect()
}

/// A filter from its records, as a client without a limit sends them.
pub fn read(bytes: &[u8]) -> Result<Filter, Refused> {
    Filter::read(bytes, Source::Client(&|_| Ok(())))
}

/// What is there is saved as something that is read and saved the same.
pub fn check(filter: &Filter) {
    let saved = save(filter);
    let again = read(&saved).expect("what was saved is read");
    assert!(save(&again) == saved);
    assert_eq!(again.waits_for(), filter.waits_for());
}
