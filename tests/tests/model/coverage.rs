//! What sequences have met, so that no part of the semantics goes untried unnoticed.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use tallygate::{Algorithm, Role, Rule};
use tallygate_tests::model::Answer;

/// What sequences have met.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    pub(crate) decisions: u64,
    pub(crate) times_set_back: u64,
    admitted: u64,
    admitted_for_nothing: u64,
    denied_for_ever: u64,
    reported: u64,
    /// How often a rule of each algorithm was named.
    named: BTreeMap<&'static str, u64>,
}

impl Coverage {
    pub(crate) fn note(&mut self, rules: &[Rule], cost: u64, answer: &Answer) {
        self.decisions += 1;
        self.reported += u64::from(!answer.standings.is_empty());
        match answer.denied {
            None => {
                self.admitted += 1;
                self.admitted_for_nothing += u64::from(cost == 0);
            }
            Some((rule, wait)) => {
                self.denied_for_ever += u64::from(wait.is_none());
                *self.named.entry(name(&rules[rule])).or_default() += 1;
            }
        }
    }

    /// Checks that each part of the semantics was tried often.
    pub(crate) fn assert_wide(&self) {
        let parts = [self.admitted_for_nothing, self.denied_for_ever, self.reported, self.times_set_back];
        let often = |&part: &u64| part > self.decisions / 200;
        assert!(parts.iter().all(often) && self.named.len() == 6 && self.named.values().all(often), "{self:?}");
        assert!((self.decisions / 4..self.decisions * 3 / 4).contains(&self.admitted), "{self:?}");
    }
}

impl AddAssign for Coverage {
    fn add_assign(&mut self, other: Self) {
        self.decisions += other.decisions;
        self.times_set_back += other.times_set_back;
        self.admitted += other.admitted;
        self.admitted_for_nothing += other.admitted_for_nothing;
        self.denied_for_ever += other.denied_for_ever;
        self.reported += other.reported;
        for (name, times) in other.named {
            *self.named.entry(name).or_default() += times;
        }
    }
}

fn name(rule: &Rule) -> &'static str {
    match (rule.role(), rule.algorithm()) {
        (Role::Duplicate, _) => "duplicate",
        (_, Algorithm::SlidingWindow { .. }) => "sliding window",
        (_, Algorithm::SlidingCounter { .. }) => "sliding counter",
        (_, Algorithm::FixedWindow { .. }) => "fixed window",
        (_, Algorithm::Cron { .. }) => "cron",
        _ => "token bucket",
    }
}
