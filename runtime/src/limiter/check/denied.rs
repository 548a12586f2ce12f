//! Which subject a call is denied of.

use super::Check;
use crate::decision::Denial;

impl Check<'_> {
    /// Counts a denial of the subject whose rule it reports, if denied subjects are kept.
    pub(super) fn count_denied(&self, denial: &Denial) {
        let core = &self.limiter().core;
        let Some(denied) = &core.denied_subjects else { return };
        if self.options.peek || self.options.shadow {
            return;
        }
        let groups = denial.policy().groups();
        // A ban is the main subject's.
        let index = denial.rule().and_then(|rule| denial.policy().group_of(rule.position())).unwrap_or_default();
        let Ok(subjects) = self.inputs.subjects() else { return };
        let Some(label) = groups.get(index).map(|group| group.label.as_deref()) else { return };
        // The groups in force may be others than those of the policy itself, to which the subjects belong.
        let own = self.policy().groups().iter().position(|group| group.label.as_deref() == label);
        if let Some(subject) = own.and_then(|own| subjects.get(own)) {
            denied.count(self.policy().name(), label, subject);
            core.publish_denied_soon();
        }
    }
}
