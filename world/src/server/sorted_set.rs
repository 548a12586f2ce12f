//! Sorted sets.

use std::cmp::Ordering;
use std::ops::Range;

use super::hash_ordered::HashOrdered;

/// Members by their scores. Members of one score are in the order of their bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedSet {
    scores: HashOrdered<f64>,
    ranked: Vec<(f64, Vec<u8>)>,
}

/// One end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScoreBound {
    pub(crate) score: f64,
    pub(crate) is_exclusive: bool,
}

impl SortedSet {
    pub(crate) fn len(&self) -> usize {
        self.ranked.len()
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    /// Adds a member, or gives it another score.
    pub(crate) fn set(&mut self, member: &[u8], score: f64) {
        if let Some(old) = self.scores.insert(member, score) {
            if old.to_bits() == score.to_bits() {
                return;
            }
            self.ranked.remove(self.rank(member, old));
        }
        self.ranked.insert(self.rank(member, score), (score, member.to_vec()));
    }

    /// Returns whether the member was there.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let Some(score) = self.scores.remove(member) else { return false };
        self.ranked.remove(self.rank(member, score));
        true
    }

    /// Removes the members of these ranks.
    pub(crate) fn remove_range(&mut self, ranks: Range<usize>) {
        for (_, member) in self.ranked.drain(ranks) {
            self.scores.remove(&member);
        }
    }

    /// The members of these ranks, by which they are sorted.
    pub(crate) fn range(&self, ranks: Range<usize>) -> &[(f64, Vec<u8>)] {
        self.ranked.get(ranks).unwrap_or_default()
    }

    /// The ranks of the scores from one bound to the other.
    pub(crate) fn between(&self, min: ScoreBound, max: ScoreBound) -> Range<usize> {
        let is_below = |score: f64| if min.is_exclusive { score <= min.score } else { score < min.score };
        let is_within = |score: f64| if max.is_exclusive { score < max.score } else { score <= max.score };
        let begin = self.ranked.partition_point(|(score, _)| is_below(*score));
        let end = self.ranked.partition_point(|(score, _)| is_within(*score));
        begin..end.max(begin)
    }

    /// Where a member is, or would be, with that score.
    fn rank(&self, member: &[u8], score: f64) -> usize {
        self.ranked.partition_point(|(other, name)| {
            other.partial_cmp(&score).unwrap_or(Ordering::Equal).then_with(|| name.as_slice().cmp(member)).is_lt()
        })
    }
}
