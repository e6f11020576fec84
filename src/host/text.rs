//! Bounded text on the stack, for error replies and log lines.

use std::ffi::c_char;
use std::fmt;

/// Up to `N` − 1 bytes of UTF-8 and a NUL, without control characters.
///
/// Texts quote what clients sent. A line break in an error reply would let them write replies of their own into
/// somebody's connection, one in the log would forge a log line, and a NUL would cut both: each control character
/// becomes a space. What does not fit is left out. Nothing is allocated, so it works when memory is short.
pub struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    /// Formats `message`.
    pub fn new(message: fmt::Arguments<'_>) -> Self {
        let mut text = Self { bytes: [0; N], len: 0 };
        // An error is the message's own, or says that the text is full: what is there by then is what we want.
        let _ = fmt::write(&mut text, message);
        text
    }

    /// A pointer to the text, ended by NUL, valid as long as `self`.
    pub fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }

    /// The text.
    #[cfg(test)]
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap()
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        for c in piece.chars() {
            let c = if c.is_control() { ' ' } else { c };
            // One byte stays free for the NUL.
            match self.bytes.get_mut(self.len..N - 1) {
                Some(rest) if rest.len() >= c.len_utf8() => self.len += c.encode_utf8(rest).len(),
                _ => return Err(fmt::Error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_spaces() {
        let text = Text::<64>::new(format_args!("unknown option '{}'", "A\r\n+OK\r\n\0\u{85}"));
        assert_eq!(text.as_str(), "unknown option 'A  +OK    '");
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        assert_eq!(Text::<4>::new(format_args!("abcdef")).as_str(), "abc");
        // ä takes two bytes, of which only one would fit before the NUL.
        let text = Text::<4>::new(format_args!("abä"));
        assert_eq!(text.as_str(), "ab");
        assert_eq!(text.bytes[text.len], 0);
    }
}
