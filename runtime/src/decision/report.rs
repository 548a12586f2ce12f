//! Where all rules of a policy stand.

use std::sync::Arc;

use super::rule_status::RuleStatus;

/// Where all rules of a policy stand after a decision; nothing, as most calls ask for none.
// Behind one pointer, as it is moved with every decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report(Option<Arc<Vec<RuleStatus>>>);

impl Report {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn rules(&self) -> &[RuleStatus] {
        self.0.as_ref().map_or(&[], |rules| rules)
    }
}

impl FromIterator<RuleStatus> for Report {
    fn from_iter<I: IntoIterator<Item = RuleStatus>>(rules: I) -> Self {
        let rules: Vec<_> = rules.into_iter().collect();
        Self((!rules.is_empty()).then(|| Arc::new(rules)))
    }
}
