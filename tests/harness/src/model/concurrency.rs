//! The concurrent calls of a limit.

use tallygate::Rule;

/// The concurrent calls of a subject. Each has a number, and a lease that ends by itself.
#[derive(Debug, Default)]
pub(super) struct Concurrency(Vec<(u64, u128)>);

impl Concurrency {
    pub(super) fn begin(&mut self, call: u64, rule: &Rule, now: u128) {
        let lease = rule.lease().expect("the rule is about concurrent calls");
        self.0.push((call, now + lease.as_micros()));
    }

    pub(super) fn end(&mut self, call: u64) {
        self.0.retain(|(other, _)| *other != call);
    }

    pub(super) fn fits(&self, rule: &Rule, at: u128) -> bool {
        self.number(at) < rule.count()
    }

    pub(super) fn standing(&self, rule: &Rule, now: u128) -> (u128, u128) {
        (rule.count().saturating_sub(self.number(now)).into(), self.over().saturating_sub(now))
    }

    /// Returns when the last lease ends.
    pub(super) fn over(&self) -> u128 {
        self.0.iter().map(|(_, ends)| *ends).max().unwrap_or_default()
    }

    fn number(&self, at: u128) -> u64 {
        self.0.iter().filter(|(_, ends)| *ends > at).count() as u64
    }
}
