//! The rules of a policy by the subject that they count.

use super::{Policy, RuleGroup};

impl Policy {
    /// The rules by the subject that they count: one tally each.
    #[inline]
    pub(crate) fn groups(&self) -> &[RuleGroup] {
        &self.inner.groups
    }

    /// Whether concurrent calls are counted.
    #[inline]
    pub(crate) fn has_leases(&self) -> bool {
        // Their groups come last.
        self.groups().last().is_some_and(|group| group.lease_us.is_some())
    }

    /// How many groups count something else than concurrent calls. They come first.
    pub(crate) fn counting_groups(&self) -> usize {
        self.groups().iter().take_while(|group| group.lease_us.is_none()).count()
    }

    /// The index of the group that has the rule at that position.
    pub(crate) fn group_of(&self, position: usize) -> Option<usize> {
        self.groups().iter().position(|group| group.positions.contains(&position))
    }

    /// The position of the rule at that place of the groups' rules, one group after the other.
    pub(crate) fn position(&self, place: usize) -> usize {
        if let [group] = self.groups() {
            return group.positions.get(place).copied().unwrap_or(place);
        }
        let positions = self.groups().iter().flat_map(|group| group.positions.iter());
        positions.copied().nth(place).unwrap_or(place)
    }

    /// The label of the subject that the rule at that position counts, unless that is the main one.
    pub(super) fn label(&self, position: usize) -> Option<&str> {
        let tried = || self.trials().iter().find(|trial| trial.is_of(position))?.label.as_deref();
        match self.group_of(position) {
            Some(group) => self.groups().get(group)?.label.as_deref(),
            None => tried(),
        }
    }
}
