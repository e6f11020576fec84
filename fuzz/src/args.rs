//! Options and numbers of commands: what is taken is within its range, and read the same when written out again.

use bloomgate::commands::args::{self, INSERT_WORDS, LEAST_ERROR_RATE, Options, RESERVE_WORDS};

/// Tries one input.
pub fn run(input: &[u8]) {
    if let Ok(rate) = args::error_rate(input) {
        assert!((LEAST_ERROR_RATE..1.0).contains(&rate));
        assert!(args::error_rate(format!("{rate:e}").as_bytes()) == Ok(rate));
        assert!(input.iter().all(|byte| b"0123456789.eE+-".contains(byte)));
    }
    if let Ok(capacity) = args::capacity(input) {
        assert!(capacity >= 1 && args::capacity(capacity.to_string().as_bytes()) == Ok(capacity));
        assert!(input.iter().all(u8::is_ascii_digit));
    }
    if let Ok(expansion) = args::expansion(input) {
        assert!(expansion <= 32_768);
    }
    let _ = args::iterator(input);
    let words = || input.split(|&byte| byte == b' ');
    for syntax in [RESERVE_WORDS, INSERT_WORDS] {
        if let Ok(options) = Options::parse(words(), syntax) {
            assert!(options.words <= words().count());
            // The same words in lower case mean the same.
            let lower = input.to_ascii_lowercase();
            assert!(Options::parse(lower.split(|&byte| byte == b' '), syntax) == Ok(options));
        }
    }
}
