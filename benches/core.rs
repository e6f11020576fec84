//! The filter alone, without a server, beside the crates `fastbloom` (the fastest known in Rust) and `bloomfilter`.
//!
//! `cargo bench --bench core`; all filters are made for the same number of items at 1 % and filled. Sizes are 10⁴ and 10⁶
//! items, and with `FULL=1` in the environment 10⁸. fastbloom runs with `ahash`, as its documentation shows, rather than
//! with SipHash, its default and slower. Before each size the rates and sizes that the filters really have are printed.

use std::hint::black_box;
use std::slice::ChunksExact;
use std::time::Duration;

use bloomgate::bloom::chain::{Chain, Head, Room, Stop};
use bloomgate::bloom::geometry::Kind;
use bloomgate::bloom::hash::{Family, Murmur3, SipHash};
use bloomgate::bloom::layer::GROUP;
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// The rate of every filter.
const RATE: f64 = 0.01;
/// Items to ask for: so many that their lines are not all in the second-level cache when their turn comes again.
const SAMPLE: u64 = 1 << 20;
/// Items in one iteration, a multiple of every group size.
const PASS: usize = 1 << 10;

/// An item: text of 24 bytes.
type Item = [u8; 24];

/// The item of a number; neighbours have nothing in common.
fn item(number: u64) -> Item {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut item = *b"item00000000000000000000";
    let text = format!("{mixed:020}");
    item[4..].copy_from_slice(text.as_bytes());
    item
}

/// What the filters have in common.
trait Filter {
    const NAME: &str;
    fn sized(items: u64) -> Self;
    fn add(&mut self, item: &[u8]) -> bool;
    fn contains(&self, item: &[u8]) -> bool;
    fn bytes(&self) -> u64;
}

impl Filter for Chain {
    const NAME: &str = "bloomgate";

    fn sized(items: u64) -> Self {
        chain(items, 0)
    }

    fn add(&mut self, item: &[u8]) -> bool {
        Chain::add(self, item, Room::Exceeded).expect("there is memory")
    }

    fn contains(&self, item: &[u8]) -> bool {
        Chain::contains(self, item)
    }

    fn bytes(&self) -> u64 {
        Chain::bytes(self) as u64
    }
}

type Fast = fastbloom::BloomFilter<ahash::RandomState>;

impl Filter for Fast {
    const NAME: &str = "fastbloom";

    fn sized(items: u64) -> Self {
        let builder = fastbloom::BloomFilter::with_false_pos(RATE).hasher(ahash::RandomState::with_seeds(1, 2, 3, 4));
        builder.expected_items(items as usize)
    }

    fn add(&mut self, item: &[u8]) -> bool {
        !self.insert(item)
    }

    fn contains(&self, item: &[u8]) -> bool {
        Fast::contains(self, item)
    }

    fn bytes(&self) -> u64 {
        self.num_bits() as u64 / 8
    }
}

type Plain = bloomfilter::Bloom<[u8]>;

impl Filter for Plain {
    const NAME: &str = "bloomfilter";

    fn sized(items: u64) -> Self {
        Plain::new_for_fp_rate_with_seed(items as usize, RATE, &std::array::from_fn(|i| i as u8))
            .expect("such a filter is possible")
    }

    fn add(&mut self, item: &[u8]) -> bool {
        !self.check_and_set(item)
    }

    fn contains(&self, item: &[u8]) -> bool {
        self.check(item)
    }

    fn bytes(&self) -> u64 {
        self.len() / 8
    }
}

/// An empty filter of ours; expansion 0 keeps it to one layer.
fn chain(capacity: u64, expansion: u32) -> Chain {
    let head = Head { id: [0; 8], rate: RATE, capacity, expansion, key: None, kind: Kind::Plain };
    head.plan().and_then(|plan| Chain::new(head, plan)).expect("such a filter is possible")
}

/// A filter full of the items numbered from 0 on.
fn full<F: Filter>(items: u64) -> F {
    let mut filter = F::sized(items);
    for number in 0..items {
        filter.add(&item(number));
    }
    filter
}

/// A filter of ours that grew from the default capacity.
fn grown(items: u64) -> Chain {
    let mut chain = chain(100, 2);
    for number in 0..items {
        while chain.add(&item(number), Room::Kept) == Err(Stop::Full) {
            let plan = chain.plan_next().expect("it may grow");
            chain.grow(plan).expect("there is memory");
        }
    }
    chain
}

/// Some items that a filter of `items` holds, and some that none holds.
struct Sample {
    present: Vec<Item>,
    absent: Vec<Item>,
}

impl Sample {
    fn of(items: u64) -> Self {
        // A step that is no divisor visits them in no order of their adding.
        let present = (0..SAMPLE).map(|i| item(i.wrapping_mul(2_654_435_761) % items)).collect();
        let absent = (0..SAMPLE).map(|i| item((1 << 40) + i)).collect();
        Self { present, absent }
    }

    fn both(&self) -> [(&'static str, Vec<&[u8]>); 2] {
        [("absent", slices(&self.absent)), ("present", slices(&self.present))]
    }
}

/// Items as the batches take them.
fn slices(items: &[Item]) -> Vec<&[u8]> {
    items.iter().map(Item::as_slice).collect()
}

/// Hands out the sample in passes, again and again.
struct Passes<'a, 'b> {
    all: &'b [&'a [u8]],
    rest: ChunksExact<'b, &'a [u8]>,
}

impl<'a, 'b> Passes<'a, 'b> {
    fn over(all: &'b [&'a [u8]]) -> Self {
        Self { all, rest: all.chunks_exact(PASS) }
    }

    fn next(&mut self) -> &'b [&'a [u8]] {
        self.rest.next().unwrap_or_else(|| {
            *self = Self::over(self.all);
            &self.all[..PASS]
        })
    }
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn group<'a>(criterion: &'a mut Criterion, name: String, items: u64) -> Group<'a> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(items)).sample_size(10).warm_up_time(Duration::from_millis(500));
    group.measurement_time(Duration::from_secs(2));
    group
}

fn hash(criterion: &mut Criterion) {
    let key = std::array::from_fn(|i| i as u8);
    let mut group = group(criterion, "hash".to_owned(), 1);
    for length in [8, 24, 100] {
        let item = vec![b'x'; length];
        group.bench_function(BenchmarkId::new("murmur3", length), |b| b.iter(|| Murmur3.hash(black_box(&item))));
        group.bench_function(BenchmarkId::new("siphash", length), |b| b.iter(|| SipHash(&key).hash(black_box(&item))));
    }
}

/// One item at a time: contains, and an add that changes nothing.
fn one_at_a_time<F: Filter>(group: &mut Group, filter: &mut F, sample: &Sample) {
    for (which, items) in sample.both() {
        let mut passes = Passes::over(&items);
        group.bench_function(BenchmarkId::new(format!("contains, {which}"), F::NAME), |b| {
            b.iter(|| passes.next().iter().filter(|item| filter.contains(item)).count())
        });
    }
    let items = slices(&sample.present);
    let mut passes = Passes::over(&items);
    group.bench_function(BenchmarkId::new("add, present", F::NAME), |b| {
        b.iter(|| passes.next().iter().filter(|item| filter.add(item)).count())
    });
}

/// Groups of `size` items: contains, and an add that changes nothing.
fn in_groups(group: &mut Group, chain: &mut Chain, sample: &Sample, size: usize) {
    let name = format!("bloomgate, groups of {size}");
    for (which, items) in sample.both() {
        let mut passes = Passes::over(&items);
        group.bench_function(BenchmarkId::new(format!("contains, {which}"), &name), |b| {
            b.iter(|| passes.next().chunks(size).map(|items| chain.contains_group(items).count_ones()).sum::<u32>())
        });
    }
    let items = slices(&sample.present);
    let mut passes = Passes::over(&items);
    group.bench_function(BenchmarkId::new("add, present", &name), |b| {
        b.iter(|| {
            let new = |items| chain.add_group(items, Room::Exceeded).new.count_ones();
            passes.next().chunks(size).map(new).sum::<u32>()
        })
    });
}

/// Says what rate and size a full filter really has, since speeds compare only at equal rates.
fn describe<F: Filter>(filter: &F, sample: &Sample) {
    let wrong = sample.absent.iter().filter(|item| filter.contains(item.as_slice())).count();
    let rate = 100.0 * wrong as f64 / SAMPLE as f64;
    println!("{}: {rate:.3} % false positives, {} bytes", F::NAME, filter.bytes());
}

/// Every filter at each size. One exists at a time: at 10⁸ items each takes 120 MB.
fn sizes(criterion: &mut Criterion) {
    let full_run = std::env::var("FULL").is_ok_and(|value| !value.is_empty() && value != "0");
    let powers: &[u32] = if full_run { &[4, 6, 8] } else { &[4, 6] };
    for &power in powers {
        let items = 10_u64.pow(power);
        let sample = Sample::of(items);
        let mut group = group(criterion, format!("1e{power} items"), PASS as u64);
        {
            let mut chain: Chain = full(items);
            describe(&chain, &sample);
            one_at_a_time(&mut group, &mut chain, &sample);
            for size in [8, 16, GROUP] {
                in_groups(&mut group, &mut chain, &sample, size);
            }
        }
        {
            let mut fast: Fast = full(items);
            describe(&fast, &sample);
            one_at_a_time(&mut group, &mut fast, &sample);
        }
        let mut plain: Plain = full(items);
        describe(&plain, &sample);
        one_at_a_time(&mut group, &mut plain, &sample);
    }
}

/// A million items in the fourteen layers that the default capacity grows to.
fn layers(criterion: &mut Criterion) {
    let items = 1_000_000;
    let sample = Sample::of(items);
    let mut chain = grown(items);
    let mut group = group(criterion, format!("1e6 items in {} layers", chain.layer_count()), PASS as u64);
    describe(&chain, &sample);
    one_at_a_time(&mut group, &mut chain, &sample);
    for size in [8, 16, GROUP] {
        in_groups(&mut group, &mut chain, &sample, size);
    }
}

/// From an empty filter to a full one: every item is new, and its memory has to come from somewhere.
fn filling(criterion: &mut Criterion) {
    for power in [4, 6] {
        let items: Vec<Item> = (0..10_u64.pow(power)).map(item).collect();
        let items = slices(&items);
        let mut group = group(criterion, format!("filling with 1e{power}"), items.len() as u64);
        fill_one_at_a_time::<Chain>(&mut group, &items);
        fill_one_at_a_time::<Fast>(&mut group, &items);
        fill_one_at_a_time::<Plain>(&mut group, &items);
        group.bench_function(BenchmarkId::from_parameter(format!("bloomgate, groups of {GROUP}")), |b| {
            let fill = |mut chain: Chain| {
                for items in items.chunks(GROUP) {
                    chain.add_group(items, Room::Exceeded);
                }
                chain
            };
            b.iter_batched(|| Chain::sized(items.len() as u64), fill, BatchSize::PerIteration)
        });
    }
}

fn fill_one_at_a_time<F: Filter>(group: &mut Group, items: &[&[u8]]) {
    group.bench_function(BenchmarkId::from_parameter(F::NAME), |b| {
        let fill = |mut filter: F| {
            for item in items {
                filter.add(item);
            }
            filter
        };
        b.iter_batched(|| F::sized(items.len() as u64), fill, BatchSize::PerIteration)
    });
}

criterion_group!(benches, hash, sizes, layers, filling);
criterion_main!(benches);
