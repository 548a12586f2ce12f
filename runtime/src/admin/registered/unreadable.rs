//! An entry of the list that is not read.

/// An entry of the list of policies that this version cannot read, such as one of a later version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub(super) name: String,
    pub(super) reason: String,
}

impl Unreadable {
    /// Returns the name of the policy, as it stands in keys.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns why it cannot be read.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
