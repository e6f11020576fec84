//! The Bloom filter itself: pure Rust that knows no Redis.
//!
//! A Bloom filter (Bloom 1970) is a set that may err in one direction: an item that was put in is always found, one that
//! was not is found with a small chance, the false-positive rate p. An item sets k bits, chosen by its hash; it is found if
//! all k are set. A filter with ln(1/p) / ln²2 bits an item (9.6 at 1 %, 1.44 · log₂(1/p) in general) has the rate p when
//! half of its bits are set. This one is a chain of such filters, each of them cut into pages:
//!
//! ```text
//! Chain   ┌ layer 0 ┐ ┌── layer 1 ──┐ ┌────── layer 2 ──────┐    an item is in it if one layer has all of its bits;
//!         └─────────┘ └─────────────┘ └─────────────────────┘    only the newest takes new items
//!
//! Layer   ┌ chunk 0 ┐ ┌ chunk 1 ┐ ┌ chunk 2 ┐ ┌ 3 ┐              4096 bytes each, made when a bit in it is first set;
//!         └─────────┘ └ ─ ─ ─ ─ ┘ └─────────┘ └───┘              the last one may be shorter
//!
//! Chunk   ░░░░█░░░░░░░░░█░░░░░░░░█░░░░░░░░█░░░░░░░               64 lines of 64 bytes; an item has s of them, in one chunk
//!
//! Line    0 1 0 0 1 1 0 1 0 …                                   512 places (bits): one cache line of the processor
//! ```
//!
//! # Where an item's bits go
//!
//! The item's hash is 128 bits, h1 and h2: MurmurHash3 x64_128 ([`hash`]), or SipHash-1-3 with a key for those who must
//! expect items that were made to collide. h1 chooses the lines and h2 the places; both go on by multiplication with a
//! constant C from Steele and Vigna's tables of good multipliers, and always the *high* bits of a product are used, which
//! depend on all bits below. The rule in full is [`geometry`]. The item `hello`, without a key, in a layer of L = 131 lines
//! with k = 6 bits in s = 4 lines:
//!
//! ```text
//! h1 = a85a7087dbfd2c88        h1 · 131 = 56 26479585928dc998 (hexadecimal)
//!      high 64 bits: line 86 of the layer = chunk 1, line 22; a full chunk, c = 64
//!      low 64 bits: times C, C², C³ they draw one line more from each of the strata 16…31, 32…47 and 48…63,
//!      counted from line 22:  16 + 12, 32 + 2, 48 + 11      lines 22, 50, 56, 17 (mod 64)
//! h2 = 86243635e5bfd51b        h2 · C = 55c8922572513db7, h2 · C² = 77af20306ad4c483, …
//!      top nine bits of each:                                places 171, 239, 33, 174, 9, 481
//! bits                                                       171 and 9 of line 22, 239 and 481 of line 50,
//!                                                            33 of line 56, 174 of line 17
//! ```
//!
//! *Why lines.* Memory is fetched by cache lines. A classic filter spreads k bits over its whole memory: k misses for an
//! item that is found. Putze, Sanders and Singler (2007) put all bits of an item into one line (s = 1): one miss.
//!
//! *Why s of them.* Lines fill unevenly, by Poisson's law, and it is the fullest ones that answer wrongly; the stricter the
//! rate, the more so. Two million items in the bits that a classic filter takes for 1 % and 0.1 % were measured at 1.16 and
//! 1.60 times these rates with s = 1, at 1.03 and 1.12 times with s = 2, and at 1.00 and 1.03 times with s = 4. So a layer
//! has the smallest s that costs no more than some per cent of memory ([`sizing`]): 1 at 1 %, 2 at 0.1 %, 4 at 1e-5.
//!
//! *Why in one chunk.* An item then costs one page: one pointer, one entry of the processor's address translation. Chunks
//! are allocated one by one, so an empty filter for a billion items takes next to nothing, a growing one moves nothing, and a
//! saving child process shares with its parent every page that was not written to since.
//!
//! *Why groups.* One item's lines are one wait for memory; 32 items' lines, asked for together, are hardly more. So whatever
//! gets several items works in groups of 32 ([`layer`]): all hashes, then all chunk pointers, then all lines, then all tests.
//!
//! # What is promised
//!
//! *No false negative.* Bits are set and never cleared, and an item's places depend on nothing but the item, the key and the
//! layer's stored structure. An add is answered 0 only if all bits of the item are set by then.
//!
//! *The rate.* After `capacity` adds that were answered 1, the chance that an item which was never added is found is at most
//! p. The items that were taken for known while it filled count too: [`sizing`] explains the sum, and its model of the rate.
//!
//! # Growing
//!
//! A full filter gets a further layer (Almeida, Baquero, Preguiça and Hutchison 2007), and an item that was never added is
//! found if any layer errs: with a chance of at most p₀ + p₁ + p₂ + …. Layer i is made for
//!
//! ```text
//! capacity_i = capacity · expansion^i                 i < 16; then capacity_(i−1) · max(2, expansion)
//! p_i        = p · 6 / (π² · (i + 1)²)                 0.608 p, 0.152 p, 0.068 p, …
//! ```
//!
//! Since 1 + 1/4 + 1/9 + … = π²/6, the rates never sum to more than p. The paper's geometric series (p_i = p₀ · rⁱ) does the
//! same, but its deep layers are stricter than they need be: at 1 % and r = 1/2 layer 13 takes 29.8 bits an item, here 21.6.
//! The doubling from the 17th layer on bounds the number of layers, and so the time of an answer, even for a filter that was
//! made for one item and never to expand. A filter that does not scale is one layer with p₀ = p.
//!
//! # The rooms
//!
//! [`hash`] item → h1, h2; [`geometry`] h1, h2 → chunk, lines, places; [`chunks`] the memory, [`moving`] its defragmentation;
//! [`sizing`] capacity, rate → L, k, s; [`layer`] one filter of fixed size; [`chain`] layers, growth, groups; [`counting`] filters
//! that can forget; [`check`] what well-formed means; [`stats`] what a filter has become; [`flat`] a filter of RedisBloom's, in its
//! layout; [`whole`] either of the two.
//!
//! # References
//!
//! - A. Appleby, MurmurHash3 (2011), x64_128 variant, seed 0x626c6f6f.
//! - J.-P. Aumasson, D. J. Bernstein, SipHash: a fast short-input PRF, INDOCRYPT 2012.
//! - B. H. Bloom, Space/time trade-offs in hash coding with allowable errors, CACM 13 (1970).
//! - P. S. Almeida, C. Baquero, N. Preguiça, D. Hutchison, Scalable Bloom filters, Information Processing Letters 101 (2007).
//! - F. Putze, P. Sanders, J. Singler, Cache-, hash- and space-efficient Bloom filters, WEA 2007.
//! - G. Steele, S. Vigna, Computationally easy, spectrally good multipliers for congruential pseudorandom number
//!   generators, Software: Practice and Experience 52 (2022).
//! - S. J. Swamidass, P. Baldi, Mathematical correction for fingerprint similarity measures to improve chemical retrieval,
//!   Journal of Chemical Information and Modeling 47 (2007).

pub mod chain;
pub mod check;
pub mod chunks;
pub mod counting;
pub mod error;
pub mod flat;
pub mod geometry;
pub mod hash;
pub mod layer;
pub mod moving;
pub mod sizing;
pub mod stats;
pub mod whole;
