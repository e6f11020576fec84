//! See `src/load.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| bloomgate_fuzz::load::run(input));
