//! The content of an override.

use tallygate_rules::Replacement;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OverrideContent {
    /// `None` if the rules stay as they are.
    pub(super) replacement: Option<Replacement>,
    /// Whether the policy is in shadow; `None` if that stays as it is.
    pub(super) shadow: Option<bool>,
}
