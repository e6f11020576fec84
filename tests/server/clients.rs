//! The clients that people use, each with all of its methods for Bloom filters. The scripts are in `tests/clients`.

use redis::bloom::{BloomFilterDumpIterator, BloomFilterInfoType, BloomFilterInsertOptions, BloomFilterScalingOptions};
use redis::{Connection, RedisResult, TypedCommands};

use crate::harness::{Client, Language, Server, items, version};
use crate::needs;

#[test]
fn redis_py() {
    needs!(Language::Python.is_there(), Language::Python.needs());
    for protocol in [&[][..], &["2"], &["3"]] {
        let server = Server::new();
        let port = server.port().to_string();
        let arguments = [&[port.as_str()], protocol].concat();
        Language::Python.run("redis_py.py", include_str!("../clients/redis_py.py"), &arguments);
    }
}

#[test]
fn node_redis() {
    needs!(Language::Node.is_there(), Language::Node.needs());
    for protocol in ["2", "3"] {
        let server = Server::new();
        let types = if version().has(7, 0) { "1" } else { "0" };
        let arguments = [&server.port().to_string(), protocol, types];
        Language::Node.run("node_redis.cjs", include_str!("../clients/node_redis.cjs"), &arguments);
    }
}

#[test]
fn redis_cli() {
    needs!(Language::Shell.is_there(), Language::Shell.needs());
    let server = Server::new();
    Language::Shell.run("redis_cli.sh", include_str!("../clients/redis_cli.sh"), &[&server.port().to_string()]);
}

#[test]
fn the_crate_redis() {
    let server = Server::new();
    every_method(&mut server.client()).expect("RESP2");
    let server = Server::new();
    every_method(&mut server.client3()).expect("RESP3");
}

fn every_method(client: &mut Client) -> RedisResult<()> {
    let c: &mut Connection = client.connection();
    c.bf_reserve("plain", 0.001, 1000)?;
    c.bf_reserve_options("four", 1e-5, 1000, BloomFilterScalingOptions::ExpansionRate(4))?;
    c.bf_reserve_options("fixed", 0.001, 1, BloomFilterScalingOptions::NonScaling)?;
    let error = c.bf_reserve("plain", 0.001, 1000).expect_err("it exists");
    assert!(error.to_string().contains("item exists"), "{error}");

    assert!(c.bf_add("plain", "a")?);
    assert!(!c.bf_add("plain", "a")?);
    assert_eq!(c.bf_madd("plain", &["a", "b"])?, [false, true]);
    assert!(c.bf_exists("plain", "b")?);
    assert!(!c.bf_exists("plain", "z")?);
    assert_eq!(c.bf_mexists("plain", &["a", "z"])?, [true, false]);
    assert!(c.bf_add("fixed", "a")?);
    let error = c.bf_add("fixed", "b").expect_err("it is full");
    assert!(error.to_string().contains("non scaling filter is full"), "{error}");

    let options = BloomFilterInsertOptions::default().capacity(500).error_rate(0.0001);
    let options = options.expansion(BloomFilterScalingOptions::ExpansionRate(3));
    assert_eq!(c.bf_insert_options("made", &["a", "b", "a"], options)?, [true, true, false]);
    assert_eq!(c.bf_insert("made", &["b", "c"])?, [false, true]);
    let error = c.bf_insert_options("missing", &["a"], BloomFilterInsertOptions::default().nocreate());
    assert!(error.expect_err("it is missing").to_string().contains("not found"));

    let info = c.bf_info("made")?;
    assert_eq!(info.len(), 5);
    assert_eq!((*info["Capacity"], *info["Number of items inserted"], *info["Expansion rate"]), (500.0, 3.0, 3.0));
    for (field, value) in [
        (BloomFilterInfoType::Capacity, 500.0),
        (BloomFilterInfoType::Size, *info["Size"]),
        (BloomFilterInfoType::Filters, 1.0),
        (BloomFilterInfoType::Items, 3.0),
        (BloomFilterInfoType::Expansion, 3.0),
    ] {
        assert_eq!(c.bf_info_type("made", field)?, value);
    }
    assert_eq!(c.bf_card("made")?, 3);

    let items = items(0..20_000);
    for batch in items.chunks(500) {
        c.bf_madd("large", batch)?;
    }
    let chunks = BloomFilterDumpIterator::new(c, "large").collect::<RedisResult<Vec<_>>>()?;
    assert!(chunks.len() > 3);
    for chunk in chunks {
        c.bf_loadchunk("copy", chunk)?;
    }
    assert_eq!(c.bf_card("copy")?, c.bf_card("large")?);
    assert!(c.bf_mexists("copy", &items)?.into_iter().all(|found| found));
    Ok(())
}
