//! Denials, counted by what denied.

use std::fmt;

use tallygate_rules::Rule;

use crate::decision::Denial;
use crate::policy::Policy;

/// Denials of one policy, counted by the rule that denied, or by its ban.
///
/// Of several rules that deny a call, it is the one that [`Denial::rule`] reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denials {
    policy: Policy,
    by_rule: Box<[u64]>,
    by_ban: u64,
}

impl Denials {
    pub(super) fn new(policy: &Policy) -> Self {
        Self { policy: policy.clone(), by_rule: vec![0; policy.rules().len()].into(), by_ban: 0 }
    }

    pub(super) fn add(&mut self, denial: &Denial) {
        let place = denial.rule().and_then(|rule| self.by_rule.get_mut(rule.position()));
        *place.unwrap_or(&mut self.by_ban) += 1;
    }

    /// Returns how many there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_rule.iter().sum::<u64>() + self.by_ban
    }

    /// Returns how many are by the rule at that position in the policy, counted from 0.
    #[must_use]
    pub fn by_rule(&self, position: usize) -> u64 {
        self.by_rule.get(position).copied().unwrap_or_default()
    }

    /// Returns how many are by the ban.
    #[must_use]
    pub fn by_ban(&self) -> u64 {
        self.by_ban
    }

    /// Returns every rule of the policy, in its order, with how many are by it.
    pub fn rules(&self) -> impl Iterator<Item = (&Rule, u64)> {
        self.policy.rules().iter().zip(self.by_rule.iter().copied())
    }

    /// Writes, in parentheses, what denied and how often; nothing if there are no denials.
    pub(super) fn write_reasons(&self, f: &mut fmt::Formatter<'_>, verb: &str) -> fmt::Result {
        let rules = self.rules().map(|(rule, denials)| (format!("`{rule}`"), denials));
        let reasons = rules.chain([("the ban".to_owned(), self.by_ban)]).filter(|(_, denials)| *denials > 0);
        let mut separator = " (";
        for (reason, denials) in reasons {
            write!(f, "{separator}{denials} {verb} {reason}")?;
            separator = ", ";
        }
        if self.total() > 0 { f.write_str(")") } else { Ok(()) }
    }
}
