//! The decisions of one file of limits over time.

use std::collections::BTreeMap;
use std::time::Duration;

use tallygate::{Decision, Policy, RejectionKind, Rule};

use super::bins::Bins;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands::simulate) enum Verdict {
    Admitted,
    DeniedBy(Denier),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::commands::simulate) enum Denier {
    /// The rule at this position.
    Rule(usize),
    Ban,
    Pause,
}

#[derive(Debug)]
pub(super) struct Lane {
    file: String,
    rules: Vec<Rule>,
    all: Bins,
    /// The denied calls, by what denied them.
    denied: BTreeMap<Denier, Bins>,
}

impl Verdict {
    pub(in crate::commands::simulate) fn of(decision: &Decision) -> Self {
        match decision {
            Decision::Allowed(_) => Self::Admitted,
            Decision::Denied(denial) => {
                let other = if denial.kind() == RejectionKind::Paused { Denier::Pause } else { Denier::Ban };
                Self::DeniedBy(denial.rule().map_or(other, |rule| Denier::Rule(rule.position())))
            }
        }
    }
}

impl Lane {
    pub(super) fn new(file: String, policy: &Policy) -> Self {
        Self { file, rules: policy.rules().to_vec(), all: Bins::default(), denied: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, since: Duration, verdict: Verdict) {
        self.all.add(since, verdict == Verdict::Admitted);
        if let Verdict::DeniedBy(denier) = verdict {
            self.denied.entry(denier).or_default().add(since, false);
        }
    }

    pub(super) fn all(&self) -> &Bins {
        &self.all
    }

    /// Returns the bars of the lane with a heading; with `by_rule`, also those of each rule, ban and pause that denied a call.
    pub(super) fn parts(&self, by_rule: bool) -> Vec<(String, Bins)> {
        let width = self.all.width();
        let part = |(denier, bins): (&Denier, &Bins)| (self.heading(*denier), bins.clone().with_width(width));
        let denied = self.denied.iter().filter(|_| by_rule).map(part);
        std::iter::once((self.file.clone(), self.all.clone())).chain(denied).collect()
    }

    fn heading(&self, denier: Denier) -> String {
        let file = &self.file;
        match denier {
            Denier::Ban => format!("{file}: ban"),
            Denier::Pause => format!("{file}: pause"),
            Denier::Rule(position) => {
                let rule = self.rules.get(position).map(|rule| format!(", {rule}")).unwrap_or_default();
                format!("{file}: rule {position}{rule}")
            }
        }
    }
}
