//! Where the rules of a policy are among its groups.

use super::Policy;

impl Policy {
    /// The index of the group that has the rule at that position.
    pub(crate) fn group_of(&self, position: usize) -> Option<usize> {
        self.groups().iter().position(|group| group.positions.contains(&position))
    }

    /// The position of the rule at that place of the groups' rules, one group after the other.
    pub(crate) fn position(&self, place: usize) -> usize {
        if self.groups().len() == 1 {
            return place;
        }
        let positions = self.groups().iter().flat_map(|group| group.positions.iter());
        positions.copied().nth(place).unwrap_or(place)
    }
}
