//! The saved format, written a second time from its description, so that tests can forge and mend what they like.
//! Integers are little endian. What each field means is described in `docs/`.

use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"BLOOMGT\xf6";
const HEADER: usize = 32;
const SUM: usize = 8;

pub const FILTER: u8 = 1;
pub const LAYER: u8 = 2;
pub const BITS: u8 = 3;
pub const END: u8 = 4;

/// One record, with its checksum.
#[derive(Clone, Debug)]
pub struct Record {
    pub version: u16,
    pub kind: u8,
    pub id: [u8; 8],
    pub changes: u64,
    pub body: Vec<u8>,
}

impl Record {
    pub fn new(kind: u8, body: Vec<u8>) -> Self {
        Self { version: 1, kind, id: *b"test-id!", changes: 0, body }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut record = MAGIC.to_vec();
        record.extend(self.version.to_le_bytes());
        record.extend([self.kind, 0]);
        record.extend(u32::try_from(HEADER + self.body.len() + SUM).expect("a short record").to_le_bytes());
        record.extend(self.id);
        record.extend(self.changes.to_le_bytes());
        record.extend(&self.body);
        record.extend(xxh3_64(&record).to_le_bytes());
        record
    }
}

/// The body of a filter record.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    pub flags: u32,
    pub expansion: u32,
    pub rate: f64,
    pub capacity: u64,
}

impl Filter {
    /// That of a filter of default size.
    pub const DEFAULT: Self = Self { flags: 0, expansion: 2, rate: 0.01, capacity: 100 };

    pub fn record(self) -> Record {
        let mut body = self.flags.to_le_bytes().to_vec();
        body.extend(self.expansion.to_le_bytes());
        body.extend(self.rate.to_le_bytes());
        body.extend(self.capacity.to_le_bytes());
        Record::new(FILTER, body)
    }
}

/// The body of a layer record.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    pub number: u16,
    pub layout: u8,
    pub family: u8,
    pub width: u8,
    pub s: u8,
    pub k: u16,
    pub lines: u64,
    pub capacity: u64,
    pub rate: f64,
}

impl Layer {
    /// The first layer of a filter of default size.
    pub const DEFAULT: Self =
        Self { number: 0, layout: 1, family: 1, width: 1, s: 1, k: 3, lines: 3, capacity: 100, rate: 0.00607927101 };

    pub fn record(self) -> Record {
        let mut body = self.number.to_le_bytes().to_vec();
        body.extend([self.layout, self.family, self.width, self.s]);
        body.extend(self.k.to_le_bytes());
        body.extend(self.lines.to_le_bytes());
        body.extend(self.capacity.to_le_bytes());
        body.extend(self.rate.to_le_bytes());
        Record::new(LAYER, body)
    }
}

/// A bits record for chunks `from .. to` of a layer, with chunks as (index, ascending positions of set bits).
pub fn bits(layer: u16, from: u32, to: u32, chunks: &[(u32, &[u16])]) -> Record {
    let mut body = layer.to_le_bytes().to_vec();
    body.extend([0; 2]);
    body.extend(from.to_le_bytes());
    body.extend(to.to_le_bytes());
    body.extend(u32::try_from(chunks.len()).expect("few chunks").to_le_bytes());
    for (index, positions) in chunks {
        body.extend(index.to_le_bytes());
        body.extend(u16::try_from(positions.len()).expect("few positions").to_le_bytes());
        body.extend(positions.iter().flat_map(|position| position.to_le_bytes()));
    }
    Record::new(BITS, body)
}

/// An end record with the items of each layer.
pub fn end(items: &[u64]) -> Record {
    let mut body = u16::try_from(items.len()).expect("few layers").to_le_bytes().to_vec();
    body.extend([0; 6]);
    body.extend(items.iter().flat_map(|count| count.to_le_bytes()));
    Record::new(END, body)
}

/// Records one after the other, as a payload for BF.LOADCHUNK.
pub fn joined(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(Record::bytes).collect()
}

/// A whole filter with these fields and no item in it.
pub fn empty_filter(filter: Filter, layer: Layer) -> Vec<u8> {
    let chunks = u32::try_from(layer.lines.div_ceil(64)).expect("few chunks");
    joined(&[filter.record(), layer.record(), bits(0, 0, chunks, &[]), end(&[0])])
}

/// Where the records in some bytes (a payload, or a DUMP without compression) begin and end.
pub fn find(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = bytes[at..].windows(MAGIC.len()).position(|window| window == MAGIC).map(|p| at + p) {
        let length = u32::from_le_bytes(bytes[start + 12..start + 16].try_into().expect("four bytes"));
        at = start + usize::try_from(length).expect("a short record");
        found.push(start..at);
    }
    found
}

/// Writes the right checksum into a record whose bytes a test has changed.
pub fn mend(record: &mut [u8]) {
    let (content, sum) = record.split_at_mut(record.len() - SUM);
    sum.copy_from_slice(&xxh3_64(content).to_le_bytes());
}

/// Writes the right checksum into a DUMP whose bytes a test has changed: CRC-64/Redis (reflected, polynomial
/// 0xad93d23594c935a9, from 0, without a last exclusive or).
pub fn mend_dump(dump: &mut [u8]) {
    let (content, sum) = dump.split_at_mut(dump.len() - SUM);
    let crc = content.iter().fold(0_u64, |crc, &byte| {
        (0..8).fold(crc ^ u64::from(byte), |crc, _| (crc >> 1) ^ (0x95ac_9329_ac4b_c9b5 * (crc & 1)))
    });
    sum.copy_from_slice(&crc.to_le_bytes());
}

/// `<filter layer>` for a payload that is a filter record and a layer record; nothing for other bytes.
pub fn kinds(payload: &[u8]) -> Option<String> {
    if !payload.starts_with(MAGIC) {
        return None;
    }
    let name = |kind| match kind {
        FILTER => "filter",
        LAYER => "layer",
        BITS => "bits",
        END => "end",
        _ => "unknown",
    };
    let names: Vec<&str> = find(payload).into_iter().map(|range| name(payload[range.start + 10])).collect();
    Some(format!("<{}>", names.join(" ")))
}
