//! The bytes of keys.

/// Returns whether a byte of a value is unescaped in a key: `A–Z a–z 0–9 . _ @ + ~ -`. All others are percent-encoded.
#[inline]
#[must_use]
pub const fn is_plain(byte: u8) -> bool {
    PLAIN[byte as usize]
}

/// Returns whether all bytes of a value are unescaped in a key.
#[inline]
#[must_use]
pub fn are_plain(bytes: &[u8]) -> bool {
    match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        // The usual lengths: processors compare sixteen bytes at once.
        (Some(first), Some(last)) if bytes.len() <= 16 => {
            let mut ends = [0; 16];
            ends[..8].copy_from_slice(first);
            ends[8..].copy_from_slice(last);
            ends.iter().fold(true, |all, &byte| all & is_plain_by_comparison(byte))
        }
        _ => bytes.iter().all(|&byte| is_plain(byte)),
    }
}

/// The bytes that are unescaped beside letters and digits.
const MARKS: [u8; 6] = *b"._@+~-";

/// Returns the same as [`is_plain`], without a branch.
const fn is_plain_by_comparison(byte: u8) -> bool {
    let mut is_plain = byte.is_ascii_alphanumeric();
    let mut mark = 0;
    while mark < MARKS.len() {
        is_plain |= byte == MARKS[mark];
        mark += 1;
    }
    is_plain
}

/// This is a table, because every byte of a value of another length is looked up.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        plain[byte as usize] = is_plain_by_comparison(byte);
        byte += 1;
    }
    plain
};

/// Returns whether a byte of the text around the values is unescaped in a key: printable ASCII except `%`, which starts
/// an escape, and `!`, which starts a digest.
#[must_use]
pub const fn is_printed(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'%' | b'!')
}

/// Returns whether the text separates the values on its two sides: it contains a byte that no value contains.
///
/// Values consist of plain bytes and escapes, and text of printed bytes and escapes. Only text contains a space and
/// most of the ASCII punctuation.
#[must_use]
pub fn is_separator(text: &str) -> bool {
    text.bytes().any(|byte| is_printed(byte) && !is_plain(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_any_length_is_plain_if_each_of_its_bytes_is() {
        for length in 0..20 {
            let mut bytes = vec![b'x'; length];
            assert!(are_plain(&bytes));
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    bytes[at] = byte;
                    assert_eq!(are_plain(&bytes), is_plain(byte), "{byte} at {at} of {length}");
                }
                bytes[at] = b'x';
            }
        }
    }

    #[test]
    fn a_byte_that_is_plain_in_a_value_is_printed_in_the_text_around_it() {
        assert!((0..=u8::MAX).filter(|&byte| is_plain(byte)).all(is_printed));
        assert_eq!((0..=u8::MAX).filter(|&byte| is_plain(byte)).count(), 26 + 26 + 10 + 6);
    }

    #[test]
    fn only_a_byte_that_no_value_contains_separates() {
        for text in [":", "/", "-:", " ", "{", "a=b", "é:"] {
            assert!(is_separator(text), "{text}");
        }
        for text in ["", "a", "0", ".", "_", "@", "+", "~", "-", "%", "!", "é", "\n"] {
            assert!(!is_separator(text), "{text}");
        }
    }
}
