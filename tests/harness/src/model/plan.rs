//! Which rules count which subject.

use std::rc::Rc;
use std::time::Duration;

use tallygate::{Algorithm, Ban, Rule};

use super::history::{is_sliding, per};

/// Rules with the subjects that they count, and the ban of the main subject.
#[derive(Clone, Debug)]
pub struct Plan(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: Vec<(usize, Rule)>,
    ban: Option<Ban>,
    shares: Vec<Share>,
}

/// The rules that count one of the subjects.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) subject: usize,
    pub(super) rules: Vec<Rule>,
    /// The position of each of them in the plan.
    pub(super) positions: Vec<usize>,
    pub(super) ban: Option<Ban>,
    pub(super) structure: Structure,
}

/// The parts of a plan that may not change, or a subject starts again: the longest sliding window, every other rule,
/// and the denials that lead to a ban. Counts may change.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Structure {
    reach: u128,
    others: Vec<Rule>,
    ban: Option<(u64, u128)>,
}

impl Plan {
    /// Returns a plan of rules, each with the position of its subject in a call. 0 is the main subject.
    #[must_use]
    pub fn new(rules: Vec<(usize, Rule)>, ban: Option<Ban>) -> Self {
        // Concurrency limits have tallies of their own, which come last.
        let mut shares = Share::all(&rules, ban, |rule| rule.lease().is_none());
        shares.extend(Share::all(&rules, None, |rule| rule.lease().is_some()));
        Self(Rc::new(Inner { rules, ban, shares }))
    }

    pub(super) fn rules(&self) -> &[(usize, Rule)] {
        &self.0.rules
    }

    pub(super) fn shares(&self) -> &[Share] {
        &self.0.shares
    }

    /// Returns whether there is a rule on the main subject, or a ban.
    #[must_use]
    pub fn counts_the_main_subject(&self) -> bool {
        self.shares().iter().any(|share| share.subject == 0)
    }

    /// Replaces the rules on the main subject, one by one. Further rules come last.
    pub(super) fn overridden(&self, rules: &[Rule]) -> Self {
        let mut rules = rules.iter().map(|rule| (0, rule.clone()));
        let mut all: Vec<_> =
            self.0.rules.iter().filter_map(|own| if own.0 == 0 { rules.next() } else { Some(own.clone()) }).collect();
        all.extend(rules);
        Self::new(all, self.0.ban)
    }

    /// Returns the position of a rule that closes the limit: the first, subject by subject, that admits nothing.
    pub(super) fn closed(&self) -> Option<usize> {
        let all = self.shares().iter().flat_map(|share| share.rules.iter().zip(&share.positions));
        all.filter(|(rule, _)| rule.count() == 0).map(|(_, &position)| position).next()
    }
}

impl Share {
    /// Groups the rules that satisfy the condition by subject: the main subject comes first, and the others in the
    /// order of their first rule.
    fn all(rules: &[(usize, Rule)], ban: Option<Ban>, is_meant: fn(&Rule) -> bool) -> Vec<Self> {
        let meant = || rules.iter().filter(|(_, rule)| is_meant(rule)).map(|(subject, _)| *subject);
        let counts_main = ban.is_some() || meant().any(|subject| subject == 0);
        let mut subjects: Vec<_> = counts_main.then_some(0).into_iter().collect();
        for subject in meant() {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        subjects.into_iter().map(|subject| Self::of(subject, rules, ban, is_meant)).collect()
    }

    fn of(subject: usize, all: &[(usize, Rule)], ban: Option<Ban>, is_meant: fn(&Rule) -> bool) -> Self {
        let own = all.iter().enumerate().filter(|(_, (of, rule))| *of == subject && is_meant(rule));
        let (positions, rules): (_, Vec<Rule>) = own.map(|(position, (_, rule))| (position, rule.clone())).unzip();
        let ban = ban.filter(|_| subject == 0);
        let structure = Structure {
            reach: rules.iter().filter(|rule| is_sliding(rule)).map(per).max().unwrap_or_default(),
            others: rules.iter().filter(|rule| !is_sliding(rule)).map(uncounted).collect(),
            ban: ban.map(|ban| (ban.denials(), ban.within().as_micros())),
        };
        Self { subject, rules, positions, ban, structure }
    }
}

/// Returns a rule without the parts that may change.
fn uncounted(rule: &Rule) -> Rule {
    match rule.algorithm() {
        Algorithm::TokenBucket(bucket) => Rule::token_bucket(1, bucket.per()),
        Algorithm::Concurrency { .. } => Rule::concurrency(1, Duration::ZERO),
        _ => rule.clone().with_count(1),
    }
}
