//! From an item to the 128 bits that decide where its bits go.
//!
//! A family is a function from bytes to `(h1, h2)`. `h1` chooses the lines, `h2` the places in them, so the two halves
//! must be independent and each uniform over 64 bits; both families here give that.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};

/// The seed of the unkeyed family (`bloo`). Not 0: with seed 0 the empty item hashes to zero, and zero times anything
/// puts all of its bits into one place.
const SEED: u32 = 0x626c_6f6f;

/// The two halves of an item's hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash {
    /// Digest bytes 0 to 7, little endian: chooses the lines.
    pub h1: u64,
    /// Digest bytes 8 to 15, little endian: chooses the places in the lines.
    pub h2: u64,
}

/// A hash family: what the batch code is generic over, so that the choice is made once a group of items.
pub trait Family: Copy {
    /// The hash of one item, which may be empty.
    fn hash(self, item: &[u8]) -> Hash;
}

/// Which family a filter is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// [`Murmur3`].
    Murmur3,
    /// [`SipHash`], with a key of the filter's own.
    SipHash,
}

impl Choice {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Murmur3, Self::SipHash];

    /// Its name in commands, replies and configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Murmur3 => "murmur3",
            Self::SipHash => "siphash",
        }
    }
}

/// MurmurHash3 x64_128 (Appleby 2011): fast, and predictable to whoever knows the item.
#[derive(Clone, Copy, Debug)]
pub struct Murmur3;

impl Family for Murmur3 {
    #[inline]
    fn hash(self, item: &[u8]) -> Hash {
        let (h1, h2) = mur3::murmurhash3_x64_128(item, SEED);
        Hash { h1, h2 }
    }
}

/// The key of a keyed filter: 16 random bytes.
pub type Key = [u8; 16];

/// SipHash-1-3 with 128 bits of output (Aumasson, Bernstein 2012) over the item's bytes alone: nobody without the key
/// can make items that collide.
#[derive(Clone, Copy, Debug)]
pub struct SipHash<'a>(pub &'a Key);

impl Family for SipHash<'_> {
    #[inline]
    fn hash(self, item: &[u8]) -> Hash {
        let mut hasher = SipHasher13::new_with_key(self.0);
        hasher.write(item);
        let digest = hasher.finish128();
        Hash { h1: digest.h1, h2: digest.h2 }
    }
}

/// MurmurHash64A (Appleby) of the item under one seed, and under the first result: RedisBloom's hash.
#[derive(Clone, Copy, Debug)]
pub struct Murmur64A;

impl Murmur64A {
    /// Its multiplier, which RedisBloom also takes as the seed.
    const M: u64 = 0xc6a4_a793_5bd1_e995;

    #[inline]
    fn seeded(item: &[u8], seed: u64) -> u64 {
        const M: u64 = Murmur64A::M;
        let mut hash = seed ^ (item.len() as u64).wrapping_mul(M);
        let (words, rest) = item.as_chunks::<8>();
        for word in words {
            let mut k = u64::from_le_bytes(*word).wrapping_mul(M);
            k = (k ^ k >> 47).wrapping_mul(M);
            hash = (hash ^ k).wrapping_mul(M);
        }
        if !rest.is_empty() {
            hash ^= rest.iter().rev().fold(0, |k, &byte| k << 8 | u64::from(byte));
            hash = hash.wrapping_mul(M);
        }
        hash = (hash ^ hash >> 47).wrapping_mul(M);
        hash ^ hash >> 47
    }
}

impl Family for Murmur64A {
    #[inline]
    fn hash(self, item: &[u8]) -> Hash {
        let h1 = Self::seeded(item, Self::M);
        Hash { h1, h2: Self::seeded(item, h1) }
    }
}

/// MurmurHash2 (Appleby), likewise: that of RedisBloom's first releases. Both halves are of 32 bits.
#[derive(Clone, Copy, Debug)]
pub struct Murmur2;

impl Murmur2 {
    #[inline]
    fn seeded(item: &[u8], seed: u32) -> u32 {
        const M: u32 = 0x5bd1_e995;
        // The length enters in 32 bits.
        let mut hash = seed ^ item.len() as u32;
        let (words, rest) = item.as_chunks::<4>();
        for word in words {
            let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
            k = (k ^ k >> 24).wrapping_mul(M);
            hash = hash.wrapping_mul(M) ^ k;
        }
        if !rest.is_empty() {
            hash ^= rest.iter().rev().fold(0, |k, &byte| k << 8 | u32::from(byte));
            hash = hash.wrapping_mul(M);
        }
        hash = (hash ^ hash >> 13).wrapping_mul(M);
        hash ^ hash >> 15
    }
}

impl Family for Murmur2 {
    #[inline]
    fn hash(self, item: &[u8]) -> Hash {
        let first = Self::seeded(item, 0x9747_b28c);
        Hash { h1: first.into(), h2: Self::seeded(item, first).into() }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn vectors() {
        let hash = |item: &str| Murmur3.hash(item.as_bytes());
        assert_eq!(hash("hello"), Hash { h1: 0xa85a_7087_dbfd_2c88, h2: 0x8624_3635_e5bf_d51b });
        assert_eq!(hash(""), Hash { h1: 0xd5c5_b453_52b2_ee9f, h2: 0xfa1e_a8e7_b7dc_c9d8 });
        assert_eq!(hash("item44"), Hash { h1: 0xffe6_97ac_9711_fd2d, h2: 0xa30d_59e9_bb92_70ce });
        let key: Key = std::array::from_fn(|i| i as u8);
        assert_eq!(SipHash(&key).hash(b"hello"), Hash { h1: 0x6fe0_7c40_cdee_27ab, h2: 0x4e4e_599a_1572_4424 });
    }

    proptest! {
        /// Another implementation is the judge, at every length around the 16-byte blocks.
        #[test]
        fn agrees_with_the_murmur3_crate(item in proptest::collection::vec(any::<u8>(), 0..70)) {
            let digest = murmur3::murmur3_x64_128(&mut Cursor::new(&item), SEED).unwrap();
            prop_assert_eq!(Murmur3.hash(&item), Hash { h1: digest as u64, h2: (digest >> 64) as u64 });
        }
    }
}
