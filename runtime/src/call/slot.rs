//! The slot of a key in a cluster, by its hash tag or by the whole key.

use arrayvec::ArrayString;

pub(crate) const SLOTS: u16 = 16_384;

/// The polynomial of CRC-16/XMODEM.
const POLYNOMIAL: u16 = 0x1021;

/// How each byte changes the checksum.
const TABLE: [u16; 256] = table();

/// No subject begins with this behind an opening brace. So it marks the tags that this library makes.
pub(crate) const TAG_MARK: &str = "!";

/// The bytes of a tag of a slot behind the mark.
pub(crate) const TAG_BYTES: usize = 3;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(crate) u16);

impl Slot {
    /// Returns the slot of a key, or of its hash tag if it has one.
    pub(crate) fn of(key: &str) -> Self {
        let hashed = hash_tag(key).unwrap_or(key);
        Self(hashed.bytes().fold(0, add) % SLOTS)
    }

    /// Returns a hash tag of this slot.
    pub(crate) fn tag(self) -> ArrayString<{ TAG_MARK.len() + TAG_BYTES }> {
        let letters = |number: usize| [12, 6, 0].map(|shift| LETTERS[number >> shift & 63]);
        let mark = TAG_MARK.bytes().fold(0, add);
        let is_of_slot = |number: &usize| letters(*number).into_iter().fold(mark, add) % SLOTS == self.0;
        // Every slot has a tag of three letters: a test finds all of them.
        let number = (0..1 << 18).find(is_of_slot).unwrap_or_default();
        let mut tag = ArrayString::new();
        tag.push_str(TAG_MARK);
        for letter in letters(number) {
            tag.push(char::from(letter));
        }
        tag
    }
}

/// Returns the text that chooses the slot of a key in its place: that between the first opening brace and the first
/// closing one behind it, as the specification of Redis Cluster says; `None` if there is none.
pub(super) fn hash_tag(key: &str) -> Option<&str> {
    let (tag, _) = key.split_once('{').and_then(|(_, behind)| behind.split_once('}'))?;
    Some(tag).filter(|tag| !tag.is_empty())
}

fn add(checksum: u16, byte: u8) -> u16 {
    let [high, low] = checksum.to_be_bytes();
    TABLE[usize::from(high ^ byte)] ^ (u16::from(low) << 8)
}

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    loop {
        let mut checksum = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            let carry = checksum & 0x8000 > 0;
            checksum <<= 1;
            if carry {
                checksum ^= POLYNOMIAL;
            }
            bit += 1;
        }
        table[byte as usize] = checksum;
        if byte == u8::MAX {
            return table;
        }
        byte += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_that_of_the_published_vectors() {
        // The check value of CRC-16/XMODEM is 0x31C3.
        let vectors = [("123456789", 0x31C3), ("", 0), ("foo", 12_182), ("bar", 5_061), ("hello", 866), ("a", 15_495)];
        for (key, slot) in vectors {
            assert_eq!(Slot::of(key), Slot(slot), "{key}");
        }
    }

    #[test]
    fn keys_of_one_hash_tag_have_one_slot() {
        let user = Slot::of("user1000");
        for key in ["{user1000}.following", "a{user1000}b", "{user1000}{x}", "}{user1000}"] {
            assert_eq!(Slot::of(key), user, "{key}");
        }
        // Only the first braces count, and only if there is text in them.
        assert_eq!(Slot::of("foo{{bar}}zap"), Slot::of("{bar"));
        for whole in ["foo{}{bar}", "foo{bar", "foo}bar{"] {
            assert_ne!(Slot::of(whole), Slot::of("bar"), "{whole}");
        }
    }

    #[test]
    fn each_slot_has_a_tag() {
        for slot in (0..SLOTS).step_by(61).chain([SLOTS - 1]) {
            assert_eq!(Slot::of(&format!("x:{{{}}}y", Slot(slot).tag())), Slot(slot));
        }
        let mark = TAG_MARK.bytes().fold(0, add);
        let mut tagged = vec![false; usize::from(SLOTS)];
        for (first, second, third) in LETTERS.iter().flat_map(|first| {
            LETTERS.iter().flat_map(move |second| LETTERS.iter().map(move |third| (first, second, third)))
        }) {
            tagged[usize::from([first, second, third].into_iter().copied().fold(mark, add) % SLOTS)] = true;
        }
        assert!(tagged.iter().all(|has_tag| *has_tag));
    }
}
