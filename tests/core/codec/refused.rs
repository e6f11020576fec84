//! What the format has room for and this release does not read is refused, and the error names it.

use super::*;

/// The error of a filter whose first two records have these bodies.
fn refusal(bodies: &[(u8, Vec<u8>)]) -> String {
    let bytes: Vec<u8> =
        bodies.iter().flat_map(|(kind, body)| Raw::new(*kind, *b"tests\0\0\0", 0, body.clone()).bytes()).collect();
    match read(&bytes) {
        Ok(_) => panic!("accepted"),
        Err(refused @ Refused::Unknown(_)) => refused.to_string(),
        Err(other) => panic!("refused as bad instead of unknown: {other}"),
    }
}

#[test]
fn flags() {
    let with = |flags: u32, more: &[u8]| {
        let mut body = filter_body(&head(0.1, 10, 2));
        body[..4].copy_from_slice(&flags.to_le_bytes());
        body.extend(more);
        refusal(&[(1, body)])
    };
    // Neither a part of RedisBloom's dump without such a filter, nor such a filter with a key.
    assert!(with(16, &[0; 8]).contains("0x10"));
    assert!(with(8 | 4, &KEY).contains("0xc"));
    assert!(with(32, &[]).contains("0x20"));
    assert!(with(1 << 31, &[]).contains("0x80000000"));
}

#[test]
fn layers() {
    let with = |kind, more: &[u8]| {
        let mut body = layer_body(0, kind, &head(0.1, 10, 2).plan().unwrap());
        body.extend(more);
        refusal(&[(1, filter_body(&head(0.1, 10, 2))), (2, body)])
    };
    assert!(with([128, 1, 1], &[0; 32]).contains("layout 128 with hash family 1"));
    assert!(with([3, 1, 1], &[]).contains("layout 3"));
    assert!(with([0, 1, 1], &[]).contains("layout 0"));
    for family in [128, 129] {
        assert!(with([1, family, 1], &[]).contains(&format!("hash family {family}")));
    }
    for family in [0, 3, 255] {
        assert!(with([1, family, 1], &[]).contains(&format!("hash family {family}")));
    }
    for width in [0, 2, 8] {
        assert!(with([1, 1, width], &[]).contains(&format!("width {width}")));
    }
}

#[test]
fn kinds_and_versions() {
    for kind in [0, 5, 128, 255] {
        assert!(refusal(&[(kind, vec![])]).contains(&format!("kind {kind}")));
    }
    for version in [0, 2, 256, u16::MAX] {
        let record = Raw { version, ..Raw::new(1, [1; 8], 0, filter_body(&head(0.1, 10, 2))) };
        let refused = read(&record.bytes()).err().unwrap();
        assert!(
            matches!(&refused, Refused::Unknown(what) if what.contains(&format!("version {version} "))),
            "{refused}"
        );
    }
}

/// Flags, family and expansion that do not fit together are bad, not unknown.
#[test]
fn what_does_not_fit_together() {
    let (plain, keyed) = (head(0.1, 10, 2), Head { key: Some(KEY), ..head(0.1, 10, 2) });
    let plan = plain.plan().unwrap();
    let kinds = [1, 2].into_iter().flat_map(|layout| [1, 2].map(|family| (layout, family)));
    for (layout, family, width) in kinds.flat_map(|(layout, family)| [1, 4].map(|width| (layout, family, width))) {
        for head in [plain, keyed, counting(plain), counting(keyed)] {
            let raw = |kind, body| Raw::new(kind, head.id, 0, body).bytes();
            let kind = [layout, family, width];
            let bytes = cat(&[&raw(1, filter_body(&head)), &raw(2, layer_body(0, kind, &plan))]);
            match read(&bytes) {
                Ok(_) => assert_eq!(kind, layer_kind(&head)),
                Err(refused) => {
                    assert!(matches!(refused, Refused::Bad(_)), "{refused}");
                    assert_ne!(kind, layer_kind(&head));
                }
            }
        }
    }
    let flags = |flags: u32, expansion: u32, more: &[u8]| {
        let mut body = filter_body(&plain);
        body[..4].copy_from_slice(&flags.to_le_bytes());
        body[4..8].copy_from_slice(&expansion.to_le_bytes());
        body.extend(more);
        read(&Raw::new(1, plain.id, 0, body).bytes())
    };
    assert!(flags(0, 2, &[]).is_ok() && flags(1, 0, &[]).is_ok() && flags(4, 2, &KEY).is_ok());
    assert!(flags(2, 2, &[]).is_ok() && flags(2 | 1, 0, &[]).is_ok() && flags(2 | 4, 2, &KEY).is_ok());
    for (bits, expansion, more) in
        [(1, 2, &[][..]), (0, 0, &[]), (4, 2, &[]), (4, 2, &KEY[1..]), (0, 2, &KEY), (0, 2, &[0])]
    {
        assert!(matches!(flags(bits, expansion, more), Err(Refused::Bad(_))), "{bits} {expansion} {}", more.len());
    }
}

/// Every reserved byte, and every length that is not that of the body.
#[test]
fn reserved_bytes_and_lengths() {
    let filter = filled(head(0.1, 10, 0), 0..5);
    let records: Vec<Vec<u8>> = records(&filter).into_iter().map(|(_, bytes)| bytes).collect();
    let refused = |i: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let mut records = records.clone();
        change(&mut records[i]);
        mend(&mut records[i]);
        read(&records.concat()).is_err()
    };
    for (i, at) in [(0, 11), (1, 11), (2, 11), (3, 11), (2, 34), (2, 35), (3, 34), (3, 39)] {
        assert!(refused(i, &|record| record[at] = 1), "record {i}, byte {at}");
    }
    for i in 0..records.len() {
        for more in [-9i64, -8, -1, 1, 8, 64] {
            let changed = |record: &mut Vec<u8>, body: bool| {
                let length = record.len() as i64 + more;
                if body {
                    let sum = record.split_off(record.len() - 8);
                    record.resize((length - 8) as usize, 0);
                    record.extend(sum);
                }
                record[12..16].copy_from_slice(&(length as u32).to_le_bytes());
            };
            assert!(refused(i, &|record| changed(record, true)), "record {i} and its body are {more} longer");
            assert!(refused(i, &|record| changed(record, false)), "record {i} says it is {more} longer");
        }
    }
    for length in [0u32, 1, 8, 16, 32, 39, (1 << 20) + 1, u32::MAX] {
        assert!(refused(0, &|record| record[12..16].copy_from_slice(&length.to_le_bytes())));
    }
    // A record of 1 MiB is read, one byte more is not, though the bytes are there.
    let long = |length: usize| {
        let mut body = vec![0; length - 40];
        body[8..12].copy_from_slice(&1u32.to_le_bytes());
        Raw::new(3, [0; 8], 0, body).bytes()
    };
    assert!(record::read(&mut long(1 << 20).as_slice()).is_ok());
    assert!(record::read(&mut long((1 << 20) + 1).as_slice()).is_err());
}

/// Chunks of a bits record, each wrong in one way.
#[test]
fn bits() {
    // Two chunks, the second of one line.
    let head = head(0.3, 9, 0);
    let plan = Plan { capacity: 50, rate: 0.25, size: Size { lines: 65, bits: 1, spread: 1 } };
    let load = |from: u32, to: u32, present: u32, chunks: &[u8]| {
        let raw = |kind, body| Raw::new(kind, head.id, 0, body).bytes();
        let mut body = cat(&[&[0; 4], &from.to_le_bytes(), &to.to_le_bytes(), &present.to_le_bytes()]);
        body.extend(chunks);
        accept(&cat(&[&raw(1, filter_body(&head)), &raw(2, layer_body(0, [1, 1, 1], &plan)), &raw(3, body)])).is_ok()
    };
    let chunk = |index: u32, places: &[u16]| {
        let mut bytes = cat(&[&index.to_le_bytes(), &(places.len() as u16).to_le_bytes()]);
        bytes.extend(places.iter().flat_map(|place| place.to_le_bytes()));
        bytes
    };
    let whole = |index: u32, bytes: &[u8]| cat(&[&index.to_le_bytes(), &[0xff, 0xff], bytes]);
    let (a, b) = (chunk(0, &[0, 32767]), chunk(1, &[0, 511]));

    assert!(load(0, 2, 0, &[]));
    assert!(load(0, 1, 0, &[]));
    assert!(load(0, 2, 2, &cat(&[&a, &b])));
    assert!(load(0, 2, 1, &b));
    assert!(load(0, 2, 2, &cat(&[&whole(0, &[1; 4096]), &whole(1, &[1; 64])])));
    let all: Vec<u16> = (0..32768).collect();
    assert!(load(0, 2, 1, &chunk(0, &all)), "as positions, though longer");

    for (why, refused) in [
        ("empty range", load(0, 0, 0, &[])),
        ("backwards", load(1, 0, 0, &[])),
        ("a gap before", load(1, 2, 0, &[])),
        ("beyond the layer", load(0, 3, 0, &[])),
        ("far beyond", load(0, u32::MAX, 0, &[])),
        ("fewer than announced", load(0, 2, 3, &cat(&[&a, &b]))),
        ("four billion announced", load(0, 2, u32::MAX, &cat(&[&a, &b]))),
        ("more than announced", load(0, 2, 1, &cat(&[&a, &b]))),
        ("descending", load(0, 2, 2, &cat(&[&b, &a]))),
        ("twice", load(0, 2, 2, &cat(&[&a, &a]))),
        ("outside the range", load(0, 1, 1, &b)),
        ("index beyond", load(0, 2, 1, &chunk(2, &[0]))),
        ("index far beyond", load(0, 2, 1, &chunk(u32::MAX, &[0]))),
        ("no position", load(0, 2, 1, &chunk(0, &[]))),
        ("position twice", load(0, 2, 1, &chunk(0, &[3, 3]))),
        ("positions descend", load(0, 2, 1, &chunk(0, &[4, 3]))),
        ("position outside", load(0, 2, 1, &chunk(0, &[32768]))),
        ("position outside the short chunk", load(0, 2, 1, &chunk(1, &[512]))),
        ("all zero", load(0, 2, 1, &whole(0, &[0; 4096]))),
        ("raw too short", load(0, 2, 1, &whole(0, &[1; 4095]))),
        ("raw too long", load(0, 2, 1, &whole(1, &[1; 4096]))),
    ] {
        assert!(!refused, "{why}");
    }
}

/// Chunks of counters, each wrong in one way.
#[test]
fn counters() {
    let head = counting(head(0.3, 9, 0));
    let plan = Plan { capacity: 50, rate: 0.25, size: Size { lines: 65, bits: 1, spread: 1 } };
    let load = |index: u32, places: &[u16], values: &[u8]| {
        let raw = |kind, body| Raw::new(kind, head.id, 0, body).bytes();
        let mut body = cat(&[&[0; 8], &2u32.to_le_bytes(), &1u32.to_le_bytes(), &index.to_le_bytes()]);
        body.extend((places.len() as u16).to_le_bytes());
        body.extend(places.iter().flat_map(|place| place.to_le_bytes()));
        body.extend(values);
        accept(&cat(&[&raw(1, filter_body(&head)), &raw(2, layer_body(0, [2, 1, 4], &plan)), &raw(3, body)])).is_ok()
    };
    assert!(load(0, &[0, 8191], &[0x1f]));
    assert!(load(0, &[0, 1, 8191], &[0x1f, 0x0f]));
    assert!(load(1, &[127], &[0x01]));
    let all: Vec<u16> = (0..8192).collect();
    assert!(load(0, &all, &[0xff; 4096]), "as positions, though longer");
    for (why, refused) in [
        ("none", load(0, &[], &[])),
        ("position outside", load(0, &[0, 8192], &[0x11])),
        ("position outside the short chunk", load(1, &[128], &[0x01])),
        ("positions descend", load(0, &[4, 3], &[0x11])),
        ("low value 0", load(0, &[0, 8191], &[0x10])),
        ("high value 0", load(0, &[0, 8191], &[0x01])),
        ("last value 0", load(0, &[0, 1, 2], &[0x11, 0x00])),
        ("a value too many", load(0, &[0, 1, 2], &[0x11, 0x11])),
        ("values missing", load(0, &[0, 8191], &[])),
        ("a byte too many", load(0, &[0, 8191], &[0x11, 0x11])),
        ("a byte too few", load(0, &[0, 1, 2], &[0x11])),
    ] {
        assert!(!refused, "{why}");
    }
}
