//! Which parts of the semantics sequences meet, and whether each is met often enough.
//!
//! Some parts take a sequence of a rare kind, so how often a few hundred sequences meet them is a matter of luck.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use tallygate::{Algorithm, Role, Rule};
use tallygate_harness::model::{Answer, Call, Verdict};

/// How often sequences met each part.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    pub(crate) decisions: u64,
    met: BTreeMap<&'static str, u64>,
}

/// Each part of the semantics. Of so many decisions in thousands of sequences, at least one has to meet it.
const PARTS: [(&str, u64); 41] = [
    ("admitted", 4),
    ("admitted for nothing", 200),
    ("denied for ever", 200),
    ("reported", 10),
    ("peeked", 20),
    ("several units", 10),
    ("a unit for nothing", 100),
    ("a unit without a cost", 100),
    ("denied by a unit", 50),
    ("denied by a unit without a cost", 500),
    ("paid afterwards", 2_000),
    ("paid afterwards beyond the limit", 5_000),
    ("a unit settled", 2_000),
    ("refunded on one subject", 4_000),
    ("several subjects", 10),
    ("of several subjects, one beside the main one denied", 50),
    ("banned", 50),
    ("banned by denials", 200),
    ("banned and reported", 200),
    ("banned for ever", 500),
    ("overridden", 20),
    ("overridden for one subject", 50),
    ("rule closed", 150),
    ("rule closed and reported", 400),
    ("clock set back", 50),
    ("refunded", 150),
    ("refunded too late", 750),
    ("settled for less", 2_000),
    ("settled for more", 2_000),
    ("reset", 500),
    ("all subjects reset", 500),
    ("banned by hand", 500),
    ("ban ended by hand", 500),
    ("override changed", 100),
    ("duplicate", 100),
    ("sliding window", 100),
    ("sliding counter", 200),
    ("fixed window", 200),
    ("cron", 200),
    ("token bucket", 100),
    ("concurrency", 600),
];

impl Coverage {
    pub(crate) fn met(&mut self, part: &'static str) {
        self.met_if(part, true);
    }

    pub(crate) fn met_if(&mut self, part: &'static str, is_met: bool) {
        *self.met.entry(part).or_default() += u64::from(is_met);
    }

    /// Notes a decision by these rules, each with the place of its subject.
    pub(crate) fn note(&mut self, call: &Call, rules: &[(usize, Rule)], answer: &Answer) {
        self.decisions += 1;
        let several = rules.iter().any(|(subject, _)| *subject != rules[0].0);
        self.met_if("several subjects", several);
        let units = rules.iter().any(|(_, rule)| rule.unit() != rules[0].1.unit());
        self.met_if("several units", units);
        self.met_if("reported", call.report);
        self.met_if("peeked", call.peek);
        match answer.verdict {
            Verdict::Admitted => {
                self.met("admitted");
                self.met_if("admitted for nothing", rules.iter().all(|(_, rule)| call.costs.of(rule) == 0));
                let given =
                    |cost| rules.iter().any(|(_, rule)| call.costs.given(rule) == cost && rule.unit().is_some());
                self.met_if("a unit for nothing", given(Some(0)));
                self.met_if("a unit without a cost", given(None));
            }
            Verdict::Denied(rule, wait) => {
                let (subject, rule) = &rules[rule];
                self.met(name(rule));
                self.met_if("denied by a unit", rule.unit().is_some());
                self.met_if("denied by a unit without a cost", call.costs.given(rule).is_none());
                self.met_if("denied for ever", wait.is_none());
                self.met_if("of several subjects, one beside the main one denied", several && *subject > 0);
            }
            Verdict::Banned(wait) => {
                self.met("banned");
                self.met_if("banned and reported", call.report);
                self.met_if("banned for ever", wait.is_none());
            }
        }
    }

    /// Checks that thousands of sequences met each part of the semantics often.
    pub(crate) fn assert_wide(&self) {
        let rare: Vec<_> = PARTS.into_iter().filter(|(part, of)| self.times(part) * of <= self.decisions).collect();
        assert!(rare.is_empty(), "{rare:?} were met too rarely in {self:#?}");
        let parts = PARTS.map(|(part, _)| part);
        assert!(self.met.keys().all(|part| parts.contains(part)), "{self:#?}");
        assert!(self.times("admitted") < self.decisions * 3 / 4, "{self:#?}");
    }

    /// Checks that hundreds of sequences met each part of the semantics.
    pub(crate) fn assert_whole(&self) {
        let missing: Vec<_> = PARTS.into_iter().filter(|(part, _)| self.times(part) == 0).collect();
        assert!(missing.is_empty(), "{missing:?} were not met in {self:#?}");
    }

    fn times(&self, part: &str) -> u64 {
        self.met.get(part).copied().unwrap_or(0)
    }
}

impl AddAssign for Coverage {
    fn add_assign(&mut self, other: Self) {
        self.decisions += other.decisions;
        for (part, times) in other.met {
            *self.met.entry(part).or_default() += times;
        }
    }
}

fn name(rule: &Rule) -> &'static str {
    if rule.role() == Role::Duplicate {
        return "duplicate";
    }
    match rule.algorithm() {
        Algorithm::SlidingWindow { .. } => "sliding window",
        Algorithm::SlidingCounter { .. } => "sliding counter",
        Algorithm::FixedWindow { .. } => "fixed window",
        Algorithm::Cron { .. } => "cron",
        Algorithm::TokenBucket(_) => "token bucket",
        Algorithm::Concurrency { .. } => "concurrency",
        _ => unreachable!("{rule:?}"),
    }
}

#[test]
fn in_memory_every_algorithm_is_met() {
    for rule in Rule::of_each_algorithm() {
        assert!(PARTS.iter().any(|(part, _)| *part == name(&rule)), "{rule}");
    }
}
