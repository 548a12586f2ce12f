//! Listed policies that operators can check, also if each call gives the count of a rule, as by a customer's plan.
//!
//! That count is not known here, unless the operator gives it. So these rules decide with counts that deny nobody, and reports
//! leave them out.

use std::time::Duration;

use tallygate_rules::{CALLS, Rule, TokenBucket};

use super::{AskedCounts, remedy};
use crate::admin::RegisteredPolicy;
use crate::decision::RuleStatus;
use crate::error::Error;
use crate::policy::{NO_REGISTRY, Policy};

/// A listed policy, and a policy that decides as it does.
#[derive(Debug)]
pub struct OpenPolicy<'a> {
    /// The policy as it is listed.
    pub described: &'a RegisteredPolicy,
    /// The policy as this process decides by it. Rules whose count each call gives deny nobody, if it is not given here.
    pub policy: Policy,
    /// The rules whose count each call gives.
    pub varying: VaryingRules,
}

/// Where a rule stands. What depends on a count that each call gives is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleState {
    /// The position of the rule in its policy.
    pub position: usize,
    /// The rule, as it is listed.
    pub rule: Rule,
    /// The count of the rule.
    pub limit: Option<u64>,
    /// How much of the count is left.
    pub remaining: Option<u64>,
    /// How much of the count is used.
    pub used: Option<u64>,
    /// The time until the rule is as if it had never counted.
    pub reset: Option<Duration>,
}

/// The rules of a policy whose count each call gives.
#[derive(Debug)]
pub struct VaryingRules {
    /// Each rule as it decides here, and as it is listed.
    rules: Vec<(Rule, Rule)>,
}

impl<'a> OpenPolicy<'a> {
    /// Opens a listed policy. Its rules whose count each call gives, and nobody asks about, deny nobody.
    ///
    /// # Errors
    ///
    /// As for [`RegisteredPolicy::policy`] and [`AskedCounts::by_position`].
    pub fn new(described: &'a RegisteredPolicy, asked: &AskedCounts) -> Result<Self, Error> {
        let plans = described.plans().map(|(plan, counts)| (plan, counts.clone())).collect();
        let asked = asked.by_position(described.name(), described.rules(), &plans)?;
        if !described.rules().iter().any(Rule::is_varying) {
            let varying = VaryingRules { rules: Vec::new() };
            return Ok(Self { described, policy: described.policy()?, varying });
        }
        let is_open = |position: usize, rule: &Rule| rule.is_varying() && !asked.contains_key(&position);
        let counts = described.rules().iter().enumerate().map(|(position, rule)| match asked.get(&position) {
            Some(count) => *count,
            None if rule.is_varying() => u64::MAX,
            None => rule.count(),
        });
        let bottomless = |position, rule: &Rule| if is_open(position, rule) { bottomless(rule) } else { rule.clone() };
        let policy = described.policy_with(bottomless)?.with_counts(counts);
        policy.registration().set_done(NO_REGISTRY);
        let rules = policy.rules().iter().zip(described.rules()).enumerate();
        let rules = rules.filter(|(position, (_, listed))| is_open(*position, listed));
        let rules = rules.map(|(_, (open, listed))| (open.clone(), listed.clone())).collect();
        Ok(Self { described, policy, varying: VaryingRules { rules } })
    }
}

impl OpenPolicy<'_> {
    /// Checks what a call is said to cost, by units.
    ///
    /// # Errors
    ///
    /// A unit that no rule counts, or that is given twice.
    pub fn check_costs(&self, costs: &[(String, u64)]) -> Result<(), Error> {
        let calls = (!self.policy.counts_only_units()).then_some(CALLS);
        let known: Vec<_> = calls.into_iter().chain(self.policy.units()).collect();
        for (place, (unit, _)) in costs.iter().enumerate() {
            if !known.contains(&&**unit) {
                let (policy, meant) = (self.described.name(), remedy("unit", unit, known));
                return Err(Error::new(format!("no rule of {policy} counts the unit `{unit}`{meant}")));
            }
            if costs.iter().take(place).any(|(other, _)| other == unit) {
                return Err(Error::new(format!("the cost in `{unit}` is given twice; give it once")));
            }
        }
        Ok(())
    }
}

impl VaryingRules {
    /// Returns the listed rule if each call gives its count. A rule that overrides it has its own count, and is `None`.
    #[must_use]
    pub fn listed(&self, rule: &Rule) -> Option<&Rule> {
        self.rules.iter().find(|(open, _)| open == rule).map(|(_, listed)| listed)
    }

    /// Returns where a rule stands, as far as its count is known.
    #[must_use]
    pub fn state(&self, status: &RuleStatus) -> RuleState {
        let listed = self.listed(status.rule());
        // The refill of a bucket depends on its count.
        let used = (listed.is_none() || status.rule().bucket().is_none()).then(|| status.used());
        RuleState {
            position: status.position(),
            rule: listed.unwrap_or(status.rule()).clone(),
            limit: listed.is_none().then(|| status.limit()),
            remaining: listed.is_none().then(|| status.remaining()),
            used,
            reset: used.map(|_| status.reset()),
        }
    }
}

/// Makes a bucket whose count each call gives full again at once: even the greatest count would refill it slowly over
/// days. Other rules stay as they are.
fn bottomless(rule: &Rule) -> Rule {
    let Some(bucket) = rule.bucket() else { return rule.clone() };
    let full = TokenBucket::new(bucket.per()).with_reset_after(Duration::from_micros(1));
    let full = bucket.capacity().into_iter().fold(full, TokenBucket::with_capacity);
    let open = Rule::from_bucket(1, full).varying();
    let open = if rule.is_shadow() { open.shadow() } else { open };
    let open = rule.unit().map(str::to_owned).into_iter().fold(open, Rule::counting);
    rule.name().map(str::to_owned).into_iter().fold(open, Rule::named)
}
