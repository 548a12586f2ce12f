//! The setting for calls while Redis is away.

use std::fmt;
use std::str::FromStr;

use crate::suggestion::{meant, remedy};

/// The setting for calls while Redis is away: it cannot be reached, or cannot decide for the moment.
///
/// A mistake, such as a wrong password or a missing permission, admits no call under any setting.
///
/// # Examples
///
/// ```
/// use tallygate_rules::OnOutage;
///
/// assert_eq!("local".parse(), Ok(OnOutage::Local));
/// let error = "lokal".parse::<OnOutage>().unwrap_err();
/// assert_eq!(error.to_string(), "unknown `on_outage`: `lokal`; did you mean `local`?");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnOutage {
    /// Calls are rejected. No call is admitted without a decision.
    #[default]
    Deny,
    /// This process decides calls, by the same rules and by the calls that it has admitted itself in outages. It also
    /// decides calls that fail with an unknown error.
    Local,
    /// Calls are admitted and not counted. Calls that fail with an unknown error are rejected.
    Allow,
}

impl OnOutage {
    /// All settings.
    pub const ALL: [Self; 3] = [Self::Deny, Self::Local, Self::Allow];

    /// Returns the name of the setting in the attribute.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Local => "local",
            Self::Allow => "allow",
        }
    }

    /// Returns what becomes of calls, in words for developers: `calls are rejected`.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Deny => "calls are rejected",
            Self::Local => "each process decides by what it has admitted itself",
            Self::Allow => "calls are admitted and not counted",
        }
    }
}

impl fmt::Display for OnOutage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OnOutage {
    type Err = OnOutageError;

    fn from_str(text: &str) -> Result<Self, OnOutageError> {
        Self::ALL
            .into_iter()
            .find(|known| known.as_str() == text)
            .ok_or_else(|| OnOutageError { text: text.to_owned() })
    }
}

/// A text that is no [`OnOutage`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OnOutageError {
    text: String,
}

impl fmt::Display for OnOutageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = OnOutage::ALL.map(OnOutage::as_str);
        write!(f, "unknown `on_outage`: `{}`; {}", self.text, remedy(meant(&self.text, &names), "write", &names))
    }
}

impl std::error::Error for OnOutageError {}

crate::__debug_by_display!(OnOutageError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_read_back_and_no_other_text() {
        for known in OnOutage::ALL {
            assert_eq!(known.to_string().parse(), Ok(known));
        }
        assert!("Deny".parse::<OnOutage>().is_err() && "".parse::<OnOutage>().is_err());
    }

    #[test]
    fn an_unknown_word_is_answered_with_what_was_probably_meant() {
        let remedy = |text: &str| text.parse::<OnOutage>().unwrap_err().to_string();
        for (text, meant) in [
            ("fail_open", "allow"),
            ("closed", "deny"),
            ("locale", "local"),
            ("DENY", "deny"),
            ("allow_all", "allow"),
            ("fail-closed", "deny"),
            ("FailOpen", "allow"),
            ("fallback", "local"),
        ] {
            assert!(remedy(text).ends_with(&format!("; did you mean `{meant}`?")), "{text}");
        }
        assert_eq!(remedy("sometimes"), "unknown `on_outage`: `sometimes`; write `deny`, `local`, `allow`");
    }
}
