//! Which rules count which unit on which subject.

use std::rc::Rc;
use std::time::Duration;

use tallygate::{Algorithm, Ban, Role, Rule};

use super::call::{Costs, Used};
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

/// The rules that count one unit on one of the subjects.
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
    unit: Option<String>,
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

    /// Returns whether a call may cost more than 1 in calls, and be settled in calls. It may not if rules count only other units.
    #[must_use]
    pub fn is_paid_in_calls(&self) -> bool {
        let counts_calls = |rule: &Rule| rule.role() == Role::Limit && rule.unit().is_none();
        self.rules().iter().all(|(_, rule)| rule.unit().is_none())
            || self.rules().iter().any(|(_, rule)| counts_calls(rule))
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

    /// Replaces the rules on the main subject that count a unit of the new rules, one by one. Further rules come last.
    pub(super) fn overridden(&self, rules: &[Rule]) -> Self {
        let mut further = rules.to_vec();
        let mut all = Vec::new();
        for own in &self.0.rules {
            let is_of_unit = |rule: &Rule| rule.unit() == own.1.unit();
            if own.0 > 0 || !rules.iter().any(is_of_unit) {
                all.push(own.clone());
            } else if let Some(next) = further.iter().position(is_of_unit) {
                all.push((0, further.remove(next)));
            }
        }
        all.extend(further.into_iter().map(|rule| (0, rule)));
        Self::new(all, self.0.ban)
    }

    /// Returns the position of a rule that closes the limit for a call of these costs: the first, share by share, that
    /// admits nothing. One that counts a unit closes it for calls that may use any of it.
    pub(super) fn closed(&self, costs: &Costs) -> Option<usize> {
        let pays = |rule: &Rule| rule.unit().is_none() || costs.given(rule) != Some(0);
        let all = self.shares().iter().flat_map(|share| share.rules.iter().zip(&share.positions));
        { all }.find(|(rule, _)| rule.count() == 0 && pays(rule)).map(|(_, &position)| position)
    }
}

impl Share {
    /// Groups the rules that satisfy the condition by subject: the main subject comes first, and the others in the
    /// order of their first rule. Of each subject calls come first, and then the units in the order of their first rule.
    fn all(rules: &[(usize, Rule)], ban: Option<Ban>, is_meant: fn(&Rule) -> bool) -> Vec<Self> {
        let meant = || rules.iter().filter(|(_, rule)| is_meant(rule)).map(|(subject, rule)| (*subject, rule.unit()));
        let first = ban.is_some().then_some((0, None));
        let mut counted: Vec<(usize, Option<&str>)> = Vec::new();
        for one in first.into_iter().chain(meant()) {
            if !counted.contains(&one) {
                counted.push(one);
            }
        }
        let subjects: Vec<_> = counted.iter().map(|(subject, _)| *subject).collect();
        let place = |of: usize| subjects.iter().position(|subject| *subject == of);
        counted.sort_by_key(|&(subject, unit)| (subject > 0, place(subject), unit.is_some()));
        counted.into_iter().map(|of| Self::of(of, rules, ban, is_meant)).collect()
    }

    fn of(
        counted: (usize, Option<&str>),
        all: &[(usize, Rule)],
        ban: Option<Ban>,
        is_meant: fn(&Rule) -> bool,
    ) -> Self {
        let is_own = |(subject, rule): &(usize, Rule)| (*subject, rule.unit()) == counted && is_meant(rule);
        let own = all.iter().enumerate().filter(|(_, rule)| is_own(rule));
        let (positions, rules): (_, Vec<Rule>) = own.map(|(position, (_, rule))| (position, rule.clone())).unzip();
        let (subject, unit) = counted;
        let ban = ban.filter(|_| counted == (0, None));
        let structure = Structure {
            unit: unit.map(str::to_owned),
            reach: rules.iter().filter(|rule| is_sliding(rule)).map(per).max().unwrap_or_default(),
            others: rules.iter().filter(|rule| !is_sliding(rule)).map(uncounted).collect(),
            ban: ban.map(|ban| (ban.denials(), ban.within().as_micros())),
        };
        Self { subject, rules, positions, ban, structure }
    }

    /// Returns what a call of these costs counts as. Without rules, it is a share of calls that can only be banned.
    pub(super) fn cost(&self, costs: &Costs) -> u64 {
        self.rules.first().map_or(costs.calls, |rule| costs.of(rule))
    }

    /// Returns what a call has used of what the share counts, where that is known. Running calls use nothing.
    pub(super) fn used(&self, used: &Used) -> Option<u64> {
        self.rules.first().filter(|rule| rule.lease().is_none()).and_then(|rule| used.of(rule))
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
