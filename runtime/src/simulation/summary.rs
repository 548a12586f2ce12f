//! The decisions of a policy on a trace.

use std::fmt;
use std::time::Duration;

use tallygate_rules::Rule;

use crate::decision::{Decision, Denial, RejectionKind, RoundedUp};
use crate::policy::Policy;

/// The decisions of a policy on a trace so far.
///
/// It displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    admitted: u64,
    denials: Denials,
    trials: Denials,
    never: u64,
    longest_wait: Option<Duration>,
}

impl Summary {
    pub(super) fn new(policy: &Policy) -> Self {
        Self { admitted: 0, denials: Denials::new(policy), trials: Denials::new(policy), never: 0, longest_wait: None }
    }

    pub(super) fn add(&mut self, decision: &Decision) {
        let Decision::Denied(denial) = decision else {
            self.admitted += 1;
            return;
        };
        self.denials.add(denial);
        match denial.retry_after() {
            Some(wait) => self.longest_wait = self.longest_wait.max(Some(wait)),
            None => self.never += 1,
        }
    }

    /// Adds the denial of a rule in shadow.
    pub(super) fn add_trial(&mut self, denial: &Denial) {
        self.trials.add(denial);
    }

    /// Returns how many calls were decided.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.admitted + self.denied()
    }

    /// Returns how many calls were admitted.
    #[must_use]
    pub fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Returns how many calls were denied.
    #[must_use]
    pub fn denied(&self) -> u64 {
        self.denials.total()
    }

    /// Returns the denials, counted by rule.
    #[must_use]
    pub fn denials(&self) -> &Denials {
        &self.denials
    }

    /// Returns the admitted calls that a rule in [shadow](Rule::shadow) would have denied, counted by rule. A call that several
    /// of them would have denied is counted for each.
    #[must_use]
    pub fn denied_in_shadow(&self) -> &Denials {
        &self.trials
    }

    /// Returns the longest wait of a denied call: how long until it would have been admitted if no calls came in
    /// between. `None` if no call was denied, or if none of them would ever have been admitted.
    #[must_use]
    pub fn longest_wait(&self) -> Option<Duration> {
        self.longest_wait
    }

    /// Returns how many of the denied calls would never have been admitted, because their cost is above what a rule
    /// admits at once.
    #[must_use]
    pub fn never(&self) -> u64 {
        self.never
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls: {} admitted, {} denied", self.calls(), self.admitted, self.denied())?;
        self.denials.write_reasons(f, "by")?;
        if let Some(wait) = self.longest_wait {
            write!(f, "; longest wait {}", RoundedUp(wait))?;
        }
        if self.never > 0 {
            write!(f, "; {} never admitted", self.never)?;
        }
        if self.trials.total() > 0 { f.write_str("; denied in shadow") } else { Ok(()) }?;
        self.trials.write_reasons(f, "by")
    }
}

/// Denials of one policy, counted by the rule that denied, by its ban, or by a pause.
///
/// If several rules deny a call, the rule that [`Denial::rule`] reports is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denials {
    policy: Policy,
    by_rule: Box<[u64]>,
    by_ban: u64,
    by_pause: u64,
}

impl Denials {
    pub(super) fn new(policy: &Policy) -> Self {
        Self { policy: policy.clone(), by_rule: vec![0; policy.rules().len()].into(), by_ban: 0, by_pause: 0 }
    }

    pub(super) fn add(&mut self, denial: &Denial) {
        let place = denial.rule().and_then(|rule| self.by_rule.get_mut(rule.position()));
        let other = if denial.kind() == RejectionKind::Paused { &mut self.by_pause } else { &mut self.by_ban };
        *place.unwrap_or(other) += 1;
    }

    /// Returns the number of denials.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_rule.iter().sum::<u64>() + self.by_ban + self.by_pause
    }

    /// Returns the number of denials by the rule at that position in the policy, counted from 0.
    #[must_use]
    pub fn by_rule(&self, position: usize) -> u64 {
        self.by_rule.get(position).copied().unwrap_or_default()
    }

    /// Returns the number of denials by the ban.
    #[must_use]
    pub fn by_ban(&self) -> u64 {
        self.by_ban
    }

    /// Returns the number of denials by a pause that the other side has asked for.
    #[must_use]
    pub fn by_pause(&self) -> u64 {
        self.by_pause
    }

    /// Returns every rule of the policy, in its order, with the number of its denials.
    pub fn rules(&self) -> impl Iterator<Item = (&Rule, u64)> {
        self.policy.rules().iter().zip(self.by_rule.iter().copied())
    }

    /// Writes the reasons of denials and their numbers, in parentheses. Writes nothing if there are no denials.
    pub(super) fn write_reasons(&self, f: &mut fmt::Formatter<'_>, verb: &str) -> fmt::Result {
        let rules = self.rules().map(|(rule, denials)| (format!("`{rule}`"), denials));
        let reasons = rules.chain([("the ban".to_owned(), self.by_ban), ("a pause".to_owned(), self.by_pause)]);
        let reasons = reasons.filter(|(_, denials)| *denials > 0);
        let mut separator = " (";
        for (reason, denials) in reasons {
            write!(f, "{separator}{denials} {verb} {reason}")?;
            separator = ", ";
        }
        if self.total() > 0 { f.write_str(")") } else { Ok(()) }
    }
}
