//! The decisions of one file of limits over time: numbers of calls in equal parts of it.

use std::collections::BTreeMap;
use std::time::Duration;

use tallygate::{Decision, Policy, RejectionKind, Rule};

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

/// The most parts, an even number.
pub(super) const MOST: u64 = 240;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) admitted: u64,
    pub(super) denied: u64,
}

/// Numbers of calls in equal parts of the time. The parts get longer when there are too many.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    width_s: u64,
    counts: Vec<Count>,
}

impl Default for Bins {
    fn default() -> Self {
        Self { width_s: 1, counts: Vec::new() }
    }
}

impl Bins {
    pub(super) fn add(&mut self, since: Duration, is_admitted: bool) {
        while since.as_secs() / self.width_s >= MOST {
            self.halve();
        }
        let place = usize::try_from(since.as_secs() / self.width_s).unwrap_or_default();
        if self.counts.len() <= place {
            self.counts.resize(place + 1, Count::default());
        }
        if let Some(count) = self.counts.get_mut(place) {
            *(if is_admitted { &mut count.admitted } else { &mut count.denied }) += 1;
        }
    }

    /// Merges every two parts into one.
    fn halve(&mut self) {
        let sum = |pair: &[Count]| Count {
            admitted: pair.iter().map(|count| count.admitted).sum(),
            denied: pair.iter().map(|count| count.denied).sum(),
        };
        self.counts = self.counts.chunks(2).map(sum).collect();
        self.width_s *= 2;
    }

    /// Makes the parts at least as long as `width`, which is a power of 2 in seconds.
    pub(super) fn with_width(mut self, width: Duration) -> Self {
        while self.width() < width {
            self.halve();
        }
        self
    }

    pub(super) fn width(&self) -> Duration {
        Duration::from_secs(self.width_s)
    }

    /// Returns the parts, up to the last call.
    pub(super) fn counts(&self) -> &[Count] {
        &self.counts
    }

    /// Returns the number of calls in the fullest part.
    pub(super) fn most(&self) -> u64 {
        self.counts.iter().map(|count| count.admitted + count.denied).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_with_the_time_and_keep_their_calls() {
        let mut bins = Bins::default();
        for second in [0, 1, 2, 239] {
            bins.add(Duration::from_secs(second), true);
        }
        assert_eq!((bins.width(), bins.counts().len()), (Duration::from_secs(1), 240));
        bins.add(Duration::from_secs(960), false);
        assert_eq!(bins.width(), Duration::from_secs(8));
        assert_eq!(bins.counts()[0], Count { admitted: 3, denied: 0 });
        assert_eq!((bins.counts()[29].admitted, bins.counts()[120].denied), (1, 1));
        assert_eq!(bins.most(), 3);
        let few = Bins::default().with_width(Duration::from_secs(4));
        assert_eq!((few.width(), few.counts().len()), (Duration::from_secs(4), 0));
    }
}
