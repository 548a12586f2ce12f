//! Escaping of values, to text that is safe in keys and of bounded length.
//!
//! Distinct values never share a key. Every byte of a value that [`is_plain`] refuses is percent-encoded, so a
//! separator between two values, like `:`, never comes from a value.

use std::fmt;
use std::ops::Deref;

use arrayvec::ArrayString;
use blake2::digest::consts::{U4, U16};
use blake2::{Blake2s, Digest};
use tallygate_rules::{are_plain, is_plain};

use crate::observe::opaque_debug;

/// The mark before a digest. No value and no literal contains it, so a digest is never mistaken for a value.
const DIGEST_MARK: char = '!';

/// The digest has 128 bits in hexadecimal.
const DIGEST_BYTES: usize = 32;

/// The most bytes of a policy's name within a key. A longer name ends in a digest of the whole.
pub(crate) const NAME_BYTES: usize = 55;

/// The number of escaped bytes that are passed on at once.
const CHUNK_BYTES: usize = 192;

const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";
const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";

/// Escaped text of at most `N` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EscapedText<const N: usize>(ArrayString<N>);

impl<const N: usize> Deref for EscapedText<N> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

opaque_debug!([const N: usize] EscapedText<N>);

/// Text of at most `N` bytes. A longer text keeps its start and ends in a digest of the whole, which is computed while
/// the text is written. The whole text is never stored.
#[derive(Clone)]
pub(super) struct Bounded<const N: usize> {
    start: EscapedText<N>,
    /// The digest of the whole text, once it is longer than `N`.
    digest: Option<Box<Blake2s<U16>>>,
}

impl<const N: usize> Bounded<N> {
    #[inline]
    pub(super) fn new() -> Self {
        // Not a constant, of which every byte would be copied.
        Self { start: EscapedText(ArrayString::new()), digest: None }
    }

    /// Adds ASCII text without escaping.
    #[inline]
    pub(super) fn push(&mut self, text: &str) {
        if self.digest.is_some() || self.start.0.try_push_str(text).is_err() {
            self.digest(text);
        }
    }

    #[cold]
    fn digest(&mut self, text: &str) {
        match &mut self.digest {
            Some(digest) => digest.update(text),
            None => self.overflow(text),
        }
    }

    fn overflow(&mut self, text: &str) {
        let mut digest = Blake2s::<U16>::new();
        digest.update(&*self.start);
        digest.update(text);
        // The start may end in the middle of this text.
        let rest = self.start.0.remaining_capacity();
        self.start.0.push_str(text.get(..rest).unwrap_or_default());
        self.digest = Some(Box::new(digest));
    }

    /// Returns the text, if it is not longer than `N`.
    #[inline]
    pub(super) fn whole(&self) -> Option<&EscapedText<N>> {
        self.digest.is_none().then_some(&self.start)
    }

    /// Returns the text, shortened if it is longer than `N`.
    pub(super) fn shortened(&self) -> EscapedText<N> {
        let Some(digest) = &self.digest else { return self.start };
        let mut text = self.start.0;
        // With this length, the mark and the digest fit.
        text.truncate(N.saturating_sub(DIGEST_BYTES + DIGEST_MARK.len_utf8()));
        text.push(DIGEST_MARK);
        for byte in Digest::finalize((**digest).clone()) {
            text.push(hex(HEX_LOWER, byte >> 4));
            text.push(hex(HEX_LOWER, byte));
        }
        EscapedText(text)
    }

    pub(super) fn escaped(&mut self) -> Escaped<'_, N> {
        Escaped(self)
    }
}

/// Percent-encodes the text that is written to it.
pub(super) struct Escaped<'a, const N: usize>(&'a mut Bounded<N>);

impl<const N: usize> fmt::Write for Escaped<'_, N> {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "it has several callers, so that the compiler would not do it for text")]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Most values are plain, and this check is quick.
        if are_plain(text.as_bytes()) {
            self.0.push(text);
        } else {
            self.escape(text);
        }
        Ok(())
    }
}

impl<const N: usize> Escaped<'_, N> {
    #[cold]
    fn escape(&mut self, text: &str) {
        let mut chunk = ArrayString::<CHUNK_BYTES>::new();
        for byte in text.bytes() {
            if chunk.remaining_capacity() < 3 {
                self.0.push(&chunk);
                chunk.clear();
            }
            if is_plain(byte) {
                chunk.push(char::from(byte));
            } else {
                chunk.push('%');
                chunk.push(hex(HEX_UPPER, byte >> 4));
                chunk.push(hex(HEX_UPPER, byte));
            }
        }
        self.0.push(&chunk);
    }
}

fn hex(digits: &[u8; 16], bits: u8) -> char {
    char::from(digits[usize::from(bits & 0xF)])
}

/// Escapes the name of a policy as it stands in its keys.
pub(crate) fn escape_name(name: &str) -> EscapedText<NAME_BYTES> {
    let mut text = Bounded::new();
    // Writing to it cannot fail.
    let _ = fmt::Write::write_str(&mut text.escaped(), name);
    text.shortened()
}

/// Returns 32 bits of a text's digest.
pub(crate) fn digest32(text: &str) -> u32 {
    Blake2s::<U4>::digest(text.as_bytes()).iter().fold(0, |bits, &byte| bits << 8 | u32::from(byte))
}

/// Percent-encodes a text of any length, except its plain bytes.
pub(crate) fn percent_encode(text: &str) -> String {
    let encode = |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// Returns the decoded text, or `None` if the text is not encoded.
pub(crate) fn percent_decode(encoded: &str) -> Option<String> {
    let mut bytes = encoded.bytes();
    let mut text = Vec::with_capacity(encoded.len());
    while let Some(byte) = bytes.next() {
        text.push(match byte {
            b'%' => hex_value(bytes.next()?)? << 4 | hex_value(bytes.next()?)?,
            plain if is_plain(plain) => plain,
            _ => return None,
        });
    }
    String::from_utf8(text).ok()
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const N: usize = 100;

    /// The escaped text at any length, byte by byte.
    fn percent_encoded(text: &str) -> String {
        let escape = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        text.bytes().map(escape).collect()
    }

    fn shortened(whole: &str) -> String {
        if whole.len() <= N {
            return whole.to_owned();
        }
        let mut text = format!("{}!", &whole[..N - DIGEST_BYTES - 1]);
        for byte in Blake2s::<U16>::digest(whole.as_bytes()) {
            write!(text, "{byte:02x}").unwrap();
        }
        text
    }

    proptest! {
        #[test]
        fn text_that_is_written_in_parts_is_the_start_and_the_digest_of_the_whole(
            // Plain bytes take one byte each and all others three or more, so this ends on both sides of `N`.
            parts in vec(prop_oneof!["[a-z0-9]{0,40}", "[:/ é😀]{0,20}", ".{0,10}"], 0..12),
        ) {
            let mut text = Bounded::<N>::new();
            for part in &parts {
                text.escaped().write_str(part).unwrap();
            }
            let whole = percent_encoded(&parts.concat());
            prop_assert_eq!(&*text.shortened(), shortened(&whole));
            prop_assert_eq!(text.whole().is_some(), whole.len() <= N);
        }

        #[test]
        fn text_around_the_greatest_length_is_shortened_only_beyond_it(
            length in N - 3..N + 4,
            cut in 0..N,
        ) {
            let whole = "x".repeat(length);
            let (start, rest) = whole.split_at(cut.min(length));
            let mut text = Bounded::<N>::new();
            text.push(start);
            text.push(rest);
            prop_assert_eq!(&*text.shortened(), shortened(&whole));
        }
    }

    #[test]
    fn every_text_is_taken_back() {
        for text in ["", "sms.send", "a::b", "50 %", "é\n=:!"] {
            let encoded = percent_encode(text);
            assert!(encoded.bytes().all(|byte| is_plain(byte) || byte == b'%'), "{encoded}");
            assert_eq!(percent_decode(&encoded).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_was_not_encoded_is_refused() {
        for text in ["a:b", "a b", "%", "%4", "%4g", "%4a", "%FF", "a!b"] {
            assert_eq!(percent_decode(text), None, "{text}");
        }
    }
}
