//! A call, and the answer to it.

use tallygate::Rule;

use super::Plan;

/// The units that rules of the model count beside calls.
pub const UNITS: [&str; 2] = ["tokens", "bytes"];

/// What a call costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// In calls.
    pub calls: u64,
    /// In each of [`UNITS`]; `None` where the call does not say it, and so nothing before it is settled.
    pub units: [Option<u64>; 2],
}

impl Costs {
    /// Returns the costs of a call that pays only in calls.
    #[must_use]
    pub fn of_calls(calls: u64) -> Self {
        Self { calls, units: [None; 2] }
    }

    /// Returns the costs of a call that pays that much in everything.
    #[must_use]
    pub fn all(cost: u64) -> Self {
        Self { calls: cost, units: [Some(cost); 2] }
    }

    /// Returns what the call costs in what the rule counts.
    #[must_use]
    pub fn of(&self, rule: &Rule) -> u64 {
        self.given(rule).unwrap_or(0)
    }

    /// Returns how much of what the rule counts has to be left for the call. One that does not say its cost asks whether
    /// there is anything.
    pub(super) fn needed(&self, rule: &Rule) -> u64 {
        self.given(rule).unwrap_or(1)
    }

    /// Returns what the call says that it costs in what the rule counts.
    #[must_use]
    pub fn given(&self, rule: &Rule) -> Option<u64> {
        rule.unit().map_or(Some(self.calls), |unit| self.units[place(unit)])
    }
}

/// What a call has used, where that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// In calls.
    pub calls: Option<u64>,
    /// In each of [`UNITS`].
    pub units: [Option<u64>; 2],
}

impl Used {
    /// What a refunded call has used.
    pub(super) const NOTHING: Self = Self { calls: Some(0), units: [Some(0); 2] };

    pub(super) fn of(&self, rule: &Rule) -> Option<u64> {
        rule.unit().map_or(self.calls, |unit| self.units[place(unit)])
    }
}

fn place(unit: &str) -> usize {
    UNITS.iter().position(|known| *known == unit).expect("rules of the model count known units")
}

/// A call to decide.
#[derive(Clone, Debug)]
pub struct Call {
    /// The rules that decide it.
    pub plan: Plan,
    /// Its subjects, the main one first: each rule counts one of them.
    pub subjects: [usize; 3],
    /// Its costs.
    pub costs: Costs,
    /// Whether to report the state of every rule.
    pub report: bool,
    /// Whether to count nothing.
    pub peek: bool,
}

/// The answer to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it is admitted.
    pub verdict: Verdict,
    /// The state of every rule after the call.
    pub standings: Vec<Standing>,
}

/// The state of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The greatest cost that fits.
    pub remaining: u128,
    /// The microseconds until the rule is as if it had never counted.
    pub reset: u128,
    /// If nothing fits, the microseconds until a cost of 1 does; `None` for ever.
    pub used_up_for: Option<u128>,
}

/// Whether a call is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call is admitted.
    Admitted,
    /// The position of the reported rule, and the microseconds to wait; `None` means for ever.
    Denied(usize, Option<u128>),
    /// The main subject is banned: the microseconds to wait, as above.
    Banned(Option<u128>),
}
