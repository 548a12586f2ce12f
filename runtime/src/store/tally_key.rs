//! The key of a tally: `{prefix}:{policy}{layout}:{subject}`, of at most [`KEY_BYTES`].

use std::fmt;

use arrayvec::ArrayString;

use crate::policy::{LABEL_BYTES, LAYOUT_BYTES};
use crate::subject::{NAME_BYTES, SUBJECT_BYTES, SubjectKey};

/// The most bytes of a limiter's prefix.
pub(crate) const PREFIX_BYTES: usize = 25;

/// The most bytes of a key, its two colons included.
const KEY_BYTES: usize = PREFIX_BYTES + 1 + NAME_BYTES + LABEL_BYTES + LAYOUT_BYTES + 1 + SUBJECT_BYTES;

/// The key of a tally.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TallyKey(ArrayString<KEY_BYTES>);

impl TallyKey {
    /// Joins a limiter's prefix, the segment of a [rule group](crate::policy::RuleGroup) and a subject.
    pub(crate) fn new(prefix: &str, segment: &str, subject: &SubjectKey) -> Self {
        let mut key = ArrayString::new();
        // Each part has its bounded share of the key, so all of them fit.
        for part in [prefix, ":", segment, ":", subject] {
            key.push_str(part);
        }
        Self(key)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Leaves out the values, which may be personal.
impl fmt::Debug for TallyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TallyKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::{Subject, escape_name};

    fn key(prefix: &str, policy: &str, subject: &Subject) -> String {
        TallyKey::new(prefix, &escape_name(policy), &subject.key()).as_str().to_owned()
    }

    #[test]
    fn a_key_has_these_exact_bytes() {
        assert_eq!(key("tallygate", "sms.send", &Subject::of("sms").and(138)), "tallygate:sms.send:sms:138");
        assert_eq!(key("app", "a::b", &Subject::everyone()), "app:a%3A%3Ab:");
        assert_eq!(key("app", "p", &Subject::of("{a}:/%!é ")), "app:p:%7Ba%7D%3A%2F%25%21%C3%A9%20");
        assert_eq!(key("app", "p", &Subject::of("A-Za_z0.9@+~")), "app:p:A-Za_z0.9@+~");
    }

    #[test]
    fn no_key_is_longer_than_200_bytes() {
        let prefix = "p".repeat(PREFIX_BYTES);
        let policy = format!("{}=01234567/01234567", &*escape_name(&"::".repeat(500)));
        let key = TallyKey::new(&prefix, &policy, &Subject::of("é".repeat(10_000)).key());
        assert_eq!((key.as_str().len(), KEY_BYTES), (200, 200));
    }
}
