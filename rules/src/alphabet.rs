//! The bytes that keys are made of.

/// Whether a byte of a value stands for itself within a key: `A–Z a–z 0–9 . _ @ + ~ -`. Every other is percent-encoded.
#[inline]
#[must_use]
pub const fn is_plain(byte: u8) -> bool {
    PLAIN[byte as usize]
}

/// Looked up, as it is asked of every byte of every value.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        plain[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'@' | b'+' | b'~' | b'-');
        byte += 1;
    }
    plain
};

/// Whether a byte of the text around the values stands for itself within a key: printable ASCII, but for `%`, which begins
/// an escape, and `!`, which begins a digest.
#[must_use]
pub const fn is_printed(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'%' | b'!')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_itself_in_a_value_does_so_around_it() {
        assert!((0..=u8::MAX).filter(|&byte| is_plain(byte)).all(is_printed));
        assert_eq!((0..=u8::MAX).filter(|&byte| is_plain(byte)).count(), 26 + 26 + 10 + 6);
    }
}
