//! The text of a subject in the table.

/// How many bytes are stored in the table itself. A subject then takes three words.
const SHORT: usize = 22;

/// The escaped text of a subject, in as little room as possible.
pub(super) enum StoredSubject {
    Short { length: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

impl StoredSubject {
    pub(super) fn new(text: &str) -> Self {
        let text = text.as_bytes();
        let mut bytes = [0; SHORT];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(start), Ok(length)) => {
                start.copy_from_slice(text);
                Self::Short { length, bytes }
            }
            _ => Self::Long(text.into()),
        }
    }

    #[inline]
    pub(super) fn matches(&self, text: &str) -> bool {
        are_equal(self.bytes(), text.as_bytes())
    }

    pub(super) fn text(&self) -> String {
        // Nothing is lost, because all of it is ASCII.
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }
}

/// Whether both are equal. The usual lengths are compared as two numbers each, without calling a function.
#[inline]
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match (one.len(), ends(one), ends(other)) {
        (8..=16, Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// The first and the last eight bytes.
#[inline]
fn ends(bytes: &[u8]) -> Option<[u64; 2]> {
    Some([*bytes.first_chunk()?, *bytes.last_chunk()?].map(u64::from_ne_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_of_any_length_is_itself_and_no_other() {
        for length in 0..101 {
            let text = "x".repeat(length);
            let stored = StoredSubject::new(&text);
            assert!(stored.matches(&text) && !stored.matches(&format!("{text}x")));
            assert!(length == 0 || !stored.matches(&text[1..]) && !stored.matches(&format!("y{}", &text[1..])));
            assert_eq!(matches!(stored, StoredSubject::Short { .. }), length <= SHORT);
        }
    }

    #[test]
    fn a_short_subject_takes_three_words() {
        assert_eq!(size_of::<StoredSubject>(), 24);
    }
}
