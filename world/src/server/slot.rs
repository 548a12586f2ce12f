//! The slots of a cluster.

/// How many slots there are.
pub(crate) const SLOTS: u16 = 16_384;

/// Returns the slot of a key: that of the text in its first braces, if there is any.
#[must_use]
pub fn slot(key: &[u8]) -> u16 {
    let tagged = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let tag = &key[open + 1..];
        let close = tag.iter().position(|byte| *byte == b'}').filter(|length| *length > 0)?;
        Some(&tag[..close])
    });
    checksum(tagged.unwrap_or(key)) % SLOTS
}

/// CRC-16 of XMODEM.
fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| (sum << 8) ^ TABLE[usize::from((sum >> 8) ^ u16::from(*byte))])
}

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut first = 0_u16;
    while first < 256 {
        let (mut sum, mut bit) = (first << 8, 0);
        while bit < 8 {
            sum = if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ 0x1021 };
            bit += 1;
        }
        table[first as usize] = sum;
        first += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::slot;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(slot(b"123456789"), 0x31C3);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_ne!(slot(b"foo{}{bar}"), slot(b"bar"));
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
    }
}
