//! Rules whose count each call gives, as from the plan of a customer.
//!
//! That count is not known here. What is asked of such a policy is decided with counts that deny nobody, and such rules are
//! left out of what is said of it.

use std::time::Duration;

use tallygate::admin::RegisteredPolicy;
use tallygate::{Algorithm, Error, Policy, PolicyBuilder, Rule, RuleStatus, TokenBucket};

/// The rules of a policy whose count each call gives.
#[derive(Debug)]
pub(crate) struct Varying {
    /// Each as it decides here, and as it is listed.
    rules: Vec<(Rule, Rule)>,
}

/// Returns a policy as it decides here, and those of its rules whose count each call gives.
pub(crate) fn open(described: &RegisteredPolicy) -> Result<(Policy, Varying), Error> {
    if !described.rules().iter().any(Rule::is_varying) {
        return Ok((described.policy()?, Varying { rules: Vec::new() }));
    }
    let counts = described.rules().iter().map(|rule| if rule.is_varying() { u64::MAX } else { rule.count() });
    let policy = build(described)?.with_counts(counts);
    let rules = policy.rules().iter().zip(described.rules()).filter(|(_, listed)| listed.is_varying());
    let rules = rules.map(|(open, listed)| (open.clone(), listed.clone())).collect();
    Ok((policy, Varying { rules }))
}

impl Varying {
    /// Returns the rule as it is listed, if each call gives its count. One that overrides it has a count of its own.
    pub(crate) fn listed(&self, rule: &Rule) -> Option<&Rule> {
        self.rules.iter().find(|(open, _)| open == rule).map(|(_, listed)| listed)
    }

    /// Returns how much of a rule is used. How much of a bucket that is depends on the count: so much has flowed in since.
    pub(crate) fn used(&self, status: &RuleStatus) -> Option<u64> {
        let is_known = self.listed(status.rule()).is_none() || !is_bucket(status.rule());
        is_known.then(|| status.limit().saturating_sub(status.remaining()))
    }

    /// Returns how long it takes until a rule is as if it had never counted, which also depends on the count of a bucket.
    pub(crate) fn reset(&self, status: &RuleStatus) -> Option<Duration> {
        self.used(status).map(|_| status.reset())
    }
}

/// Builds the policy with the tallies of the listed one, and with buckets that are never empty.
fn build(described: &RegisteredPolicy) -> Result<Policy, Error> {
    let rules = described.rules().iter().map(|rule| if rule.is_varying() { bottomless(rule) } else { rule.clone() });
    let builder = Policy::builder(described.name().to_owned());
    let builder = rules.enumerate().fold(builder, |builder, (position, rule)| match described.label_of(position) {
        Some(label) => builder.rule_on(label, rule),
        None => builder.rule(rule),
    });
    described.ban().into_iter().fold(builder, PolicyBuilder::ban).build()
}

/// Returns a bucket that is full again at once, as even the greatest count fills one slowly over days. Others stay as they are.
fn bottomless(rule: &Rule) -> Rule {
    let Algorithm::TokenBucket(bucket) = rule.algorithm() else { return rule.clone() };
    let full = TokenBucket::new(bucket.per()).with_reset_after(Duration::from_micros(1));
    let full = bucket.capacity().into_iter().fold(full, TokenBucket::with_capacity);
    let open = Rule::from_bucket(1, full).varying();
    rule.name().map(str::to_owned).into_iter().fold(open, Rule::named)
}

fn is_bucket(rule: &Rule) -> bool {
    matches!(rule.algorithm(), Algorithm::TokenBucket(_))
}
