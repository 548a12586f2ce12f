//! What an override says.

use tallygate_rules::Replacement;

/// What an override says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OverrideContent {
    /// `None` if the rules stay as they are.
    pub(super) replacement: Option<Replacement>,
    /// Whether the policy is in shadow; `None` if that stays as it is.
    pub(super) shadow: Option<bool>,
}
