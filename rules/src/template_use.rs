//! What a template is for, and what of a rejection it can show.

use crate::suggestion::nearest;

/// The use of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateUse {
    /// The key of a subject.
    Key,
    /// The message of a rejection by a rule.
    Message,
    /// The message of a rejection by a ban.
    BanMessage,
    /// The name of a policy or of a rule, which shows no values.
    Name,
}

/// A value that only a rejection has: `{@retry_after}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionField {
    /// The time to wait.
    RetryAfter,
    /// The count of the rule that denies the call.
    Count,
    /// Its window.
    Per,
    /// Its name.
    Rule,
    /// What it counts.
    Unit,
}

const REJECTION_FIELDS: [(&str, RejectionField); 5] = [
    ("retry_after", RejectionField::RetryAfter),
    ("count", RejectionField::Count),
    ("per", RejectionField::Per),
    ("rule", RejectionField::Rule),
    ("unit", RejectionField::Unit),
];

impl TemplateUse {
    /// Returns the values of a rejection that such a template can show, by their names without the `@`.
    pub fn rejection_fields(self) -> impl Iterator<Item = (&'static str, RejectionField)> {
        let is_shown = move |field| match self {
            Self::Key | Self::Name => false,
            Self::Message => true,
            Self::BanMessage => field == RejectionField::RetryAfter,
        };
        REJECTION_FIELDS.into_iter().filter(move |&(_, field)| is_shown(field))
    }

    /// Returns the value of a rejection that a placeholder shows, given the text behind its `@`, or `None` for a value of the
    /// context.
    ///
    /// # Errors
    ///
    /// Returns the mistake and the remedy: a filter, a misspelt name, or a value that such a template cannot show.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate_rules::{RejectionField, TemplateUse};
    ///
    /// assert_eq!(TemplateUse::Message.rejection_field("unit"), Ok(Some(RejectionField::Unit)));
    /// assert_eq!(TemplateUse::Message.rejection_field("user:lower"), Ok(None));
    /// let mistake = TemplateUse::Message.rejection_field("retry_afer").unwrap_err();
    /// assert_eq!(mistake, "unknown `{@retry_afer}`; did you mean `{@retry_after}`?");
    /// ```
    pub fn rejection_field(self, text: &str) -> Result<Option<RejectionField>, String> {
        let name = text.split(':').next().unwrap_or_default().trim();
        if let Some((_, field)) = self.rejection_fields().find(|(known, _)| *known == name) {
            let is_alone = name == text.trim();
            return is_alone
                .then_some(Some(field))
                .ok_or_else(|| format!("`{{@{name}}}` takes no filter; write just `{{@{name}}}`"));
        }
        if REJECTION_FIELDS.iter().any(|(known, _)| *known == name) {
            return Err(self.unsuitable(name));
        }
        match self.misspelt(name) {
            Some(meant) => Err(format!("unknown `{{@{name}}}`; did you mean `{{@{meant}}}`?")),
            None => Ok(None),
        }
    }

    fn unsuitable(self, name: &str) -> String {
        if self == Self::BanMessage {
            return format!(
                "`{{@{name}}}` describes a rule, and a ban has none; its `message` can show `{{@retry_after}}`"
            );
        }
        format!("`{{@{name}}}` is a value of a rejection; a `message` can show it, but a `key` cannot contain it")
    }

    /// Returns the field that was probably meant. A short name is more likely a value of the context: `role` does not mean
    /// `rule`.
    fn misspelt(self, name: &str) -> Option<&'static str> {
        const SHORT: usize = 4;
        nearest(name, self.rejection_fields().map(|(known, _)| known)).filter(|_| name.len() > SHORT)
    }
}

/// Returns the message about alternatives outside of a key.
#[must_use]
pub fn alternatives_in_message(placeholder: &str) -> String {
    format!("`{{{placeholder}}}`: alternatives are for a `key`; a message shows one value, like `{{@user}}`")
}
