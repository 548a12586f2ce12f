//! Values of structured fields (RFC 9651), as far as these fields have them.

use std::fmt::{self, Display};

/// The greatest integer of a structured field.
const GREATEST: u64 = 999_999_999_999_999;

/// A string: printable ASCII in quotes. What else a name contains is percent-encoded.
pub(super) struct QuotedString<'a>(pub(super) &'a str);

impl Display for QuotedString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for byte in self.0.bytes() {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(byte)),
                b' '..=b'~' => write!(f, "{}", char::from(byte)),
                _ => write!(f, "%{byte:02X}"),
            }?;
        }
        f.write_str("\"")
    }
}

/// An integer, which is not negative here.
pub(super) struct Integer(pub(super) u64);

impl Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.min(GREATEST).fmt(f)
    }
}

/// The text of a list.
pub(super) fn list<T: Display>(members: impl IntoIterator<Item = T>) -> String {
    members.into_iter().map(|member| member.to_string()).collect::<Vec<_>>().join(", ")
}
