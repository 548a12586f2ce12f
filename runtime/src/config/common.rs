//! What every policy of the file may have.

use super::rule_list::RuleList;
use super::table::At;
use crate::policy::PolicySettings;

/// What every policy of the file may have.
pub(super) struct Common<'t> {
    pub(super) name: At<&'t str>,
    pub(super) rules: Option<RuleList>,
    pub(super) key: Option<At<&'t str>>,
    pub(super) settings: PolicySettings,
}
