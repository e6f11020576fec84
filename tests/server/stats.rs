//! BF.STATS, whose names dashboards read, and BF.DEBUG.

use redis::Value;

use crate::harness::records::{self, Filter, Layer};
use crate::harness::{Client, Server, add, array, bytes, error, int, ints, items, ok, version};
use crate::run;

const NAMES: [&str; 13] = [
    "error-rate",
    "estimated-error-rate",
    "expansion",
    "hash",
    "layout",
    "bits-per-place",
    "bits-per-item",
    "hash-functions",
    "lines-per-item",
    "items",
    "estimated-items",
    "bytes",
    "layers",
];
const LAYER_NAMES: [&str; 12] = [
    "capacity",
    "items",
    "error-rate",
    "estimated-error-rate",
    "bits",
    "fill",
    "bits-per-item",
    "hash-functions",
    "lines-per-item",
    "chunks",
    "chunks-possible",
    "bytes",
];

/// Names and values, of whichever shape.
struct Map(Vec<(String, Value)>);

impl Map {
    fn read(reply: Value) -> Self {
        let pairs = match reply {
            Value::Map(pairs) => pairs,
            other => array(other).chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect(),
        };
        Self(pairs.into_iter().map(|(name, value)| (String::from_utf8(bytes(name)).expect("text"), value)).collect())
    }

    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|pair| pair.0.as_str()).collect()
    }

    #[track_caller]
    fn value(&self, name: &str) -> Value {
        self.0.iter().find(|pair| pair.0 == name).unwrap_or_else(|| panic!("no {name}")).1.clone()
    }

    #[track_caller]
    fn int(&self, name: &str) -> i64 {
        int(self.value(name))
    }

    /// A double: a type of its own in RESP3, text in RESP2.
    #[track_caller]
    fn double(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Double(number) => number,
            other => String::from_utf8(bytes(other)).expect("text").parse().expect("a number"),
        }
    }

    fn layers(&self) -> Vec<Self> {
        array(self.value("layers")).into_iter().map(Self::read).collect()
    }
}

fn stats(c: &mut Client, key: &str) -> Map {
    Map::read(run!(c, "BF.STATS", key))
}

#[track_caller]
fn near(value: f64, expected: f64, share: f64) {
    assert!((value - expected).abs() <= share * expected, "{value} is not within {share} of {expected}");
}

#[test]
fn names_and_order_never_change() {
    let server = Server::new();
    let (mut two, mut three) = (server.client(), server.client3());
    add(&mut two, "k", &items(0..1000));
    for c in [&mut two, &mut three] {
        let map = stats(c, "k");
        assert_eq!(map.names(), NAMES);
        assert_eq!(map.layers().len(), 4);
        for layer in map.layers() {
            assert_eq!(layer.names(), LAYER_NAMES);
        }
    }
    let (flat, reply) = (run!(two, "BF.STATS", "k"), run!(three, "BF.STATS", "k"));
    assert!(matches!(flat, Value::Array(_)), "{flat:?}");
    assert_eq!(matches!(reply, Value::Map(_)), version().has(7, 0), "{reply:?}");
    if version().has(7, 0) {
        assert_eq!(stats(&mut three, "k").value("error-rate"), Value::Double(0.01));
    }
}

#[test]
fn an_empty_filter() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.01", 100_000, "NONSCALING"));
    let map = stats(&mut c, "k");
    assert_eq!((map.double("error-rate"), map.double("estimated-error-rate")), (0.01, 0.0));
    assert_eq!((map.int("items"), map.double("estimated-items")), (0, 0.0));
    assert_eq!((map.value("expansion"), map.int("layout"), map.int("bits-per-place")), (Value::Nil, 1, 1));
    assert_eq!(bytes(map.value("hash")), b"murmur3");
    let [layer] = map.layers().try_into().map_err(|_| "one layer").expect("one layer");
    assert_eq!((layer.int("capacity"), layer.int("items"), layer.double("fill")), (100_000, 0, 0.0));
    assert_eq!((layer.int("chunks"), layer.int("bytes")), (0, 0));
    // 1,947 lines by the table of sizes, one more or less; 6 bits in 1 line.
    assert_eq!(layer.int("chunks-possible"), 31);
    near(layer.int("bits") as f64, 1947.0 * 512.0, 0.01);
    near(map.double("bits-per-item"), 1947.0 * 512.0 / 100_000.0, 0.01);
    assert_eq!((map.int("hash-functions"), map.int("lines-per-item")), (6, 1));
    assert_eq!((layer.int("hash-functions"), layer.int("lines-per-item")), (6, 1));
}

/// Its rate and its items go down with deletes.
#[test]
fn a_counting_filter() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.01", 50_000, "NONSCALING", "COUNTING"));
    let map = stats(&mut c, "k");
    assert_eq!((map.int("layout"), map.int("bits-per-place")), (2, 4));
    add(&mut c, "k", &items(0..50_000));
    let map = stats(&mut c, "k");
    assert_eq!(map.int("items"), 50_000);
    near(map.double("estimated-items"), 50_000.0, 0.02);
    near(map.double("estimated-error-rate"), 0.01, 0.1);
    // Four bits a place, and a layer of two lines an item: 2.7 % over a classic filter of so many places.
    near(map.double("bits-per-item"), 4.0 * 1.027 * 9.585, 0.01);
    assert_eq!(map.double("bits-per-item"), map.layers()[0].int("bits") as f64 / 50_000.0);
    for some in items(0..40_000).chunks(500) {
        assert_eq!(ints(run!(c, "BF.MDEL", "k", some)), vec![1; some.len()]);
    }
    let map = stats(&mut c, "k");
    assert_eq!((map.int("items"), map.layers()[0].int("items")), (10_000, 10_000));
    near(map.double("estimated-items"), 10_000.0, 0.02);
    assert!(map.double("estimated-error-rate") < 1e-4);
}

#[test]
fn a_full_filter_says_its_rate_and_its_items() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.01", 50_000, "NONSCALING"));
    let mut offered = 0;
    let mut new = 0;
    while new < 50_000 {
        let some = items(offered..offered + (50_000 - new));
        offered += some.len();
        new += add(&mut c, "k", &some);
    }
    let map = stats(&mut c, "k");
    assert_eq!(map.int("items"), 50_000);
    near(map.double("estimated-error-rate"), 0.01, 0.05);
    // Nearer to the items offered, some of which were false positives, than to those counted.
    near(map.double("estimated-items"), offered as f64, 0.01);
    let layer = map.layers().remove(0);
    assert!((0.3..0.6).contains(&layer.double("fill")), "{}", layer.double("fill"));
    assert_eq!(layer.int("chunks"), layer.int("chunks-possible"));
    assert_eq!(run!(c, "BF.INFO", "k", "SIZE"), Value::Array(vec![Value::Int(map.int("bytes"))]));
    assert!(layer.int("bytes") < map.int("bytes") && map.int("bytes") < layer.int("bytes") + 200);
}

#[test]
fn a_chain_errs_where_one_of_its_layers_does() {
    let server = Server::new();
    let mut c = server.client();
    let counted = add(&mut c, "k", &items(0..20_000));
    let map = stats(&mut c, "k");
    let layers = map.layers();
    assert_eq!(layers.len(), 8, "100, 200, … 12,800");
    let capacities: Vec<i64> = layers.iter().map(|layer| layer.int("capacity")).collect();
    assert_eq!(capacities, [100, 200, 400, 800, 1600, 3200, 6400, 12_800]);
    assert_eq!(map.int("items"), counted as i64);
    assert_eq!(layers.iter().map(|layer| layer.int("items")).sum::<i64>(), counted as i64);
    let none: f64 = layers.iter().map(|layer| 1.0 - layer.double("estimated-error-rate")).product();
    near(map.double("estimated-error-rate"), 1.0 - none, 1e-6);
    assert!(map.double("estimated-error-rate") <= 0.01);
    near(map.double("estimated-items"), 20_000.0, 0.02);
    assert_eq!(map.int("expansion"), 2);
    // Those of the newest layer.
    for name in ["bits-per-item", "hash-functions", "lines-per-item"] {
        assert_eq!(map.value(name), layers[7].value(name), "{name}");
    }
    // As the growth rule says.
    near(layers[0].double("error-rate"), 0.01 * 0.607_927_1, 1e-6);
    near(layers[7].double("error-rate"), 0.01 * 0.607_927_1 / 64.0, 1e-6);
}

#[test]
fn debug_has_a_line_for_each_layer() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "BF.RESERVE", "k", "0.01", 100));
    run!(c, "BF.ADD", "k", "a");
    let lines = crate::harness::strings(run!(c, "BF.DEBUG", "k"));
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], "size:1");
    let ratio = lines[1].strip_prefix("bytes:192 bits:1536 hashes:3 hashwidth:64 capacity:100 size:1 ratio:");
    let ratio = ratio.and_then(|rest| rest.strip_suffix(" hash:murmur3"));
    let ratio: f64 = ratio.unwrap_or_else(|| panic!("{lines:?}")).parse().expect("a number");
    near(ratio, 0.006_079_271, 1e-6);
    let counted = 1 + add(&mut c, "k", &items(0..1000));
    let lines = crate::harness::strings(run!(c, "BF.DEBUG", "k"));
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0], format!("size:{counted}"));
    assert!(lines[4].contains(" capacity:800 "), "{lines:?}");
}

#[test]
fn what_is_no_whole_filter() {
    let server = Server::new();
    let mut c = server.client();
    ok(run!(c, "SET", "s", "x"));
    ok(run!(c, "BF.LOADCHUNK", "half", 1, records::joined(&[Filter::DEFAULT.record(), Layer::DEFAULT.record()])));
    for command in ["BF.STATS", "BF.DEBUG"] {
        assert_eq!(error(run!(c, command, "missing")), "ERR not found");
        assert!(error(run!(c, command, "s")).starts_with("WRONGTYPE "));
        assert!(error(run!(c, command, "half")).contains("being loaded"));
        for call in [&[command][..], &[command, "k", "x"]] {
            assert!(error(run!(c, call)).contains("wrong number of arguments"), "{call:?}");
        }
    }
    assert_eq!(int(run!(c, "EXISTS", "missing")), 0);
}
