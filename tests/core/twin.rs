//! The naive twin: layout 1 and the chain once more, written from their description for reading instead of for speed.
//!
//! It is the oracle of `against_twin.rs`. It shares no code with the filter: whole numbers are `u128`, bits are a
//! `Vec<bool>`, hashes come from another crate or from here. Only sizes (lines, bits, spread) are given to it.

use std::io::Cursor;

use bloomgate::bloom::chain::Chain;
use bloomgate::bloom::layer::Plan;

/// What an add is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    New,
    Known,
    Full,
}

#[derive(Clone)]
pub struct Twin {
    pub key: Option<[u8; 16]>,
    pub layers: Vec<TwinLayer>,
    pub changes: u64,
}

#[derive(Clone)]
pub struct TwinLayer {
    lines: u128,
    k: u128,
    s: u128,
    pub capacity: u64,
    pub items: u64,
    /// Place p of line l is `bits[512 · l + p]`.
    bits: Vec<bool>,
}

impl Twin {
    pub fn new(key: Option<[u8; 16]>, plan: Plan) -> Twin {
        Twin { key, layers: vec![TwinLayer::new(plan)], changes: 0 }
    }

    pub fn grow(&mut self, plan: Plan) {
        self.layers.push(TwinLayer::new(plan));
    }

    pub fn contains(&self, item: &[u8]) -> bool {
        self.layers.iter().any(|layer| layer.positions(self.hash(item)).iter().all(|&at| layer.bits[at]))
    }

    pub fn add(&mut self, item: &[u8], beyond_capacity: bool) -> Answer {
        if self.contains(item) {
            return Answer::Known;
        }
        let hash = self.hash(item);
        let newest = self.layers.last_mut().unwrap();
        if newest.items >= newest.capacity && !beyond_capacity {
            return Answer::Full;
        }
        for at in newest.positions(hash) {
            newest.bits[at] = true;
        }
        newest.items += 1;
        self.changes += 1;
        Answer::New
    }

    fn hash(&self, item: &[u8]) -> (u64, u64) {
        match self.key {
            None => {
                let digest = murmur3::murmur3_x64_128(&mut Cursor::new(item), 0x626c_6f6f).unwrap().to_le_bytes();
                (half(&digest, 0), half(&digest, 8))
            }
            Some(key) => siphash_1_3_128(key, item),
        }
    }

    /// Panics unless the filter has the same layers, counts, and bits in every chunk.
    pub fn assert_same(&self, chain: &Chain) {
        assert_eq!(chain.layer_count(), self.layers.len());
        assert_eq!(chain.changes(), self.changes);
        assert_eq!(chain.items(), self.layers.iter().map(|layer| layer.items).sum::<u64>());
        for (layer, twin) in chain.layers().zip(&self.layers) {
            assert_eq!((layer.items(), layer.plan().capacity), (twin.items, twin.capacity));
            let chunks = u32::try_from(twin.lines.div_ceil(64)).unwrap();
            assert_eq!(layer.geometry().chunks(), chunks);
            for (number, twin_chunk) in (0..chunks).zip(twin.bits.chunks(64 * 512)) {
                match layer.chunk(number) {
                    None => assert!(!twin_chunk.contains(&true), "chunk {number} was never made"),
                    Some(lines) => {
                        let bytes: Vec<u8> = lines.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
                        assert_eq!(bytes.len() * 8, twin_chunk.len());
                        let places = |at: usize| bytes[at / 8] >> (at % 8) & 1 == 1;
                        assert!(twin_chunk.contains(&true), "chunk {number} was made for nothing");
                        assert!(twin_chunk.iter().enumerate().all(|(at, &bit)| bit == places(at)), "chunk {number}");
                    }
                }
            }
        }
    }
}

impl TwinLayer {
    fn new(plan: Plan) -> TwinLayer {
        let size = plan.size;
        TwinLayer {
            lines: size.lines.into(),
            k: size.bits.into(),
            s: size.spread.into(),
            capacity: plan.capacity,
            items: 0,
            bits: vec![false; usize::try_from(size.lines).unwrap() * 512],
        }
    }

    /// Where the item's bits go.
    fn positions(&self, (h1, h2): (u64, u64)) -> Vec<usize> {
        const C: u128 = 0xd134_2543_de82_ef95;
        const TWO_64: u128 = 1 << 64;
        let x = u128::from(h1) * self.lines;
        let (line, mut rest) = (x / TWO_64, x % TWO_64);
        let (chunk, first) = (line / 64, line % 64);
        let c = (self.lines - chunk * 64).min(64);
        let s = [8, 4, 2, 1].into_iter().find(|&s| s <= self.s && s <= c).unwrap();
        let mut used = vec![first];
        for j in 1..s {
            rest = rest * C % TWO_64;
            let (a, b) = (j * c / s, (j + 1) * c / s);
            used.push((first + a + rest * (b - a) / TWO_64) % c);
        }
        let mut x = u128::from(h2);
        (0..self.k)
            .map(|i| {
                x = x * C % TWO_64;
                let place = x / (TWO_64 / 512);
                usize::try_from((chunk * 64 + used[usize::try_from(i % s).unwrap()]) * 512 + place).unwrap()
            })
            .collect()
    }
}

/// SipHash-1-3 with 128 bits of output, from Aumasson and Bernstein's paper and the reference's longer output.
fn siphash_1_3_128(key: [u8; 16], item: &[u8]) -> (u64, u64) {
    let (k0, k1) = (half(&key, 0), half(&key, 8));
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let mut padded = item.to_vec();
    padded.resize(item.len() / 8 * 8 + 7, 0);
    padded.push((item.len() % 256) as u8);
    for block in padded.chunks(8) {
        let m = half(block, 0);
        v[3] ^= m;
        v = sip_round(v);
        v[0] ^= m;
    }
    v[2] ^= 0xee;
    let v = sip_round(sip_round(sip_round(v)));
    let mut w = v;
    w[1] ^= 0xdd;
    let w = sip_round(sip_round(sip_round(w)));
    (v[0] ^ v[1] ^ v[2] ^ v[3], w[0] ^ w[1] ^ w[2] ^ w[3])
}

fn sip_round([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    a = a.wrapping_add(b);
    c = c.wrapping_add(d);
    b = b.rotate_left(13) ^ a;
    d = d.rotate_left(16) ^ c;
    a = a.rotate_left(32);
    c = c.wrapping_add(b);
    a = a.wrapping_add(d);
    b = b.rotate_left(17) ^ c;
    d = d.rotate_left(21) ^ a;
    [a, b, c.rotate_left(32), d]
}

/// Eight bytes from `at` on, little endian.
fn half(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn the_twin_knows_the_vectors() {
    let places = |item: &str, lines, bits, spread| {
        let size = bloomgate::bloom::sizing::Size { lines, bits, spread };
        let twin = Twin::new(None, Plan { capacity: 1, rate: 0.5, size });
        let at = twin.layers[0].positions(twin.hash(item.as_bytes()));
        at.into_iter().map(|at| (at / 512, at % 512)).collect::<Vec<_>>()
    };
    assert_eq!(places("hello", 3, 3, 1), [(1, 171), (1, 239), (1, 33)]);
    assert_eq!(
        places("hello", 131, 6, 4),
        [(64 + 22, 171), (64 + 50, 239), (64 + 56, 33), (64 + 17, 174), (64 + 22, 9), (64 + 50, 481)]
    );
    assert_eq!(places("item44", 131, 6, 4), [(130, 33), (128, 100), (130, 219), (128, 47), (130, 231), (128, 181)]);
    let key = std::array::from_fn(|i| i as u8);
    assert_eq!(siphash_1_3_128(key, b"hello"), (0x6fe0_7c40_cdee_27ab, 0x4e4e_599a_1572_4424));
}
