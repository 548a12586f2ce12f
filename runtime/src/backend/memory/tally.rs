//! The stored state of one subject, and the semantics of the rules on it.

use std::collections::VecDeque;
use std::time::Duration;

use tallygate_rules::{Algorithm, Role, Rule};

use super::as_us;
use crate::backend::{Reply, Request};

/// The hits of one subject: the time of each admitted unit of weight, oldest first.
#[derive(Debug, Default)]
pub(super) struct Tally {
    hits_us: VecDeque<u64>,
    /// When the last hit counts no more.
    over_us: u64,
}

/// What speaks against a call.
#[derive(Clone, Copy)]
struct Objection {
    rule: usize,
    /// The microseconds until the rule would admit the call; `None` is never.
    wait_us: Option<u64>,
}

impl Objection {
    fn is_longer_than(self, other: Self) -> bool {
        match (self.wait_us, other.wait_us) {
            (None, other) => other.is_some(),
            (Some(_), None) => false,
            (Some(wait_us), Some(other_us)) => wait_us > other_us,
        }
    }
}

/// The longest wait is told; of the rules, a duplicate's is named first and then the one that denies longest.
fn sum_up(objections: impl Iterator<Item = Objection>, rules: &[Rule]) -> Option<Reply> {
    let (mut longest, mut duplicate) = (None::<Objection>, None);
    for objection in objections {
        if longest.is_none_or(|longest| objection.is_longer_than(longest)) {
            longest = Some(objection);
        }
        if rules.get(objection.rule).is_some_and(|rule| rule.role() == Role::Duplicate) {
            duplicate = duplicate.or(Some(objection.rule));
        }
    }
    longest.map(|longest| Reply::Denied {
        rule: duplicate.unwrap_or(longest.rule),
        retry_after: longest.wait_us.map(Duration::from_micros),
    })
}

impl Tally {
    /// Charges every rule of the request, or none.
    pub(super) fn decide(&mut self, request: Request<'_>, now_us: u64) -> Reply {
        self.forget_future(now_us);
        let objections = request.rules.iter().enumerate().filter_map(|(index, rule)| {
            let wait_us = self.wait_us(rule, request.cost, now_us)?;
            Some(Objection { rule: index, wait_us })
        });
        if let Some(denied) = sum_up(objections, request.rules) {
            return denied;
        }
        self.charge(request, now_us);
        Reply::Admitted
    }

    /// Whether nothing in this tally counts any more.
    pub(super) fn is_over(&self, now_us: u64) -> bool {
        self.over_us <= now_us
    }

    /// The clock was set back: what lies in the future is forgotten, lest it block longer than its window.
    fn forget_future(&mut self, now_us: u64) {
        while self.hits_us.back().is_some_and(|&hit| hit > now_us) {
            self.hits_us.pop_back();
        }
    }

    /// How long until the rule admits a call of that cost: `None` is now, `Some(None)` is never.
    #[allow(clippy::option_option, reason = "an answer within an objection, unwrapped one line above")]
    fn wait_us(&self, rule: &Rule, cost: u64, now_us: u64) -> Option<Option<u64>> {
        let Algorithm::SlidingWindow { per } = rule.algorithm() else { return Some(None) };
        let weight = if rule.role() == Role::Duplicate { 1 } else { cost };
        let Some(older) = rule.count().checked_sub(weight) else { return Some(None) };
        // The call fits once the newest hit that leaves too little room for it is out of the window.
        let newest = usize::try_from(older + 1).ok()?;
        let hit_us = self.hits_us.get(self.hits_us.len().checked_sub(newest)?)?;
        let free_us = hit_us + as_us(*per);
        (free_us > now_us).then(|| Some(free_us - now_us))
    }

    fn charge(&mut self, request: Request<'_>, now_us: u64) {
        let longest_us = request.rules.iter().map(|rule| as_us(rule.per())).max().unwrap_or_default();
        // Found by time, not by count: another version of the policy may allow more.
        while self.hits_us.front().is_some_and(|&hit| hit + longest_us <= now_us) {
            self.hits_us.pop_front();
        }
        self.hits_us.extend((0..request.cost).map(|_| now_us));
        self.over_us = self.over_us.max(now_us + longest_us);
    }
}
