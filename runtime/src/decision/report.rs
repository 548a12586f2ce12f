//! Where the rules of a policy stand, and the warning that a subject comes near a limit.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::{Role, Rule};

use crate::algorithm::{CostChange, Quota};
use crate::observe::opaque_debug;
use crate::policy::Policy;
use crate::subject::SubjectKey;

/// Where all rules of a policy stand after a decision; empty for most calls, as they ask for no report.
// Behind one pointer, as it is moved with every decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report(Option<Arc<Statuses>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Statuses {
    /// The rules that decide the call.
    rules: Vec<RuleStatus>,
    /// The rules in shadow.
    trials: Vec<RuleStatus>,
}

impl Report {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn rules(&self) -> &[RuleStatus] {
        self.0.as_ref().map_or(&[], |statuses| &statuses.rules)
    }

    pub(crate) fn trials(&self) -> &[RuleStatus] {
        self.0.as_ref().map_or(&[], |statuses| &statuses.trials)
    }

    pub(crate) fn with_trials(&self, trials: Vec<RuleStatus>) -> Self {
        Self::of(self.rules().to_vec(), trials)
    }

    fn of(rules: Vec<RuleStatus>, trials: Vec<RuleStatus>) -> Self {
        let is_empty = rules.is_empty() && trials.is_empty();
        Self((!is_empty).then(|| Arc::new(Statuses { rules, trials })))
    }
}

impl Report {
    /// Returns the report with `more` added to what remains of each rule.
    pub(crate) fn with_more(&self, more: impl Fn(&RuleStatus) -> u64) -> Self {
        let with_more = |status: &RuleStatus| {
            let remaining = status.remaining().saturating_add(more(status)).min(status.limit());
            RuleStatus { quota: Quota { remaining, ..status.quota }, ..status.clone() }
        };
        if self.rules().iter().all(|status| more(status) == 0) {
            return self.clone();
        }
        Self::from(self.rules().iter().map(with_more).collect::<Vec<_>>())
    }
}

/// Sorts the rules by their positions.
impl From<Vec<RuleStatus>> for Report {
    #[inline]
    fn from(mut rules: Vec<RuleStatus>) -> Self {
        rules.sort_by_key(RuleStatus::position);
        Self::of(rules, Vec::new())
    }
}

/// Where one rule stands: its limit, what is used of it and what remains, when it is reset, and when something remains again.
#[derive(Clone, PartialEq, Eq)]
pub struct RuleStatus {
    position: usize,
    rule: Rule,
    quota: Quota,
}

impl RuleStatus {
    pub(crate) fn new(position: usize, rule: Rule, quota: Quota) -> Self {
        Self { position, rule, quota }
    }

    /// The status of a rule that is known to admit nothing now.
    pub(crate) fn used_up(position: usize, rule: Rule) -> Self {
        Self::new(position, rule, Quota::new(0, 0))
    }

    /// Returns the status of a rule of which only this wait is known.
    #[cfg(feature = "web")]
    pub(crate) fn resetting_in(self, reset: Duration) -> Self {
        Self { quota: Quota { reset, ..self.quota }, ..self }
    }

    /// Returns the status after the cost of the call has changed.
    pub(crate) fn recounted(&self, costs: CostChange) -> Self {
        // A rule that counts calls ignores their cost.
        let costs = if self.rule.role() == Role::Limit { costs } else { costs.at_most(1) };
        let remaining = self.remaining().saturating_add(costs.given_back()).min(self.limit());
        let remaining = remaining.saturating_sub(costs.beyond());
        Self { quota: Quota { remaining, ..self.quota }, ..self.clone() }
    }

    /// Returns the rule's position in its policy, counted from 0.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the rule.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Returns the greatest cost that the rule ever admits at once: its count, or its bucket's capacity. For concurrency, that
    /// is the greatest number of concurrent calls.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.rule.capacity().unwrap_or(self.rule.count())
    }

    /// Returns the greatest cost that the rule would admit now; for concurrency, how many calls.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.quota.remaining
    }

    /// Returns how much of the limit is used, so that it is not admitted now; for concurrency, how many calls run.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.limit().saturating_sub(self.remaining())
    }

    /// Whether this share of the limit is used. A rule that one call uses up, such as a limit of 1 or a duplicate rule,
    /// is never near.
    pub(crate) fn is_near(&self, share: f64) -> bool {
        self.can_be_near() && self.used_share(self.remaining()) >= share
    }

    /// Whether a call of this cost has raised the used share of the limit to `share`.
    pub(crate) fn has_come_near(&self, share: f64, cost: u64) -> bool {
        let weight = if self.rule.role() == Role::Limit { cost } else { 1 };
        self.is_near(share) && self.used_share(self.remaining().saturating_add(weight)) < share
    }

    fn can_be_near(&self) -> bool {
        self.rule.role() != Role::Duplicate && self.limit() > 1
    }

    #[allow(clippy::cast_precision_loss, reason = "no limit is greater than 2^31")]
    fn used_share(&self, remaining: u64) -> f64 {
        self.limit().saturating_sub(remaining) as f64 / self.limit() as f64
    }

    /// Returns how long it takes, without further calls, until the rule is as if it had never counted. For concurrency,
    /// it is the longest time, if no lease is renewed.
    #[must_use]
    pub fn reset(&self) -> Duration {
        self.quota.reset
    }

    /// Returns how long it takes until a cost of 1 would be admitted, if nothing remains and no further call comes. `None`
    /// while something remains. `None`, too, if the time is not known, as after a settlement that has used up the limit, or
    /// if no such call is ever admitted. For concurrency, it is the longest time, if no lease is renewed.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// let policy = Policy::builder("captcha").rule(Rule::sliding_window(2, Duration::from_secs(60))).build()?;
    /// limiter.check(&policy, &Subject::of("alice")).await?;
    /// tokio::time::advance(Duration::from_secs(20)).await;
    ///
    /// let decision = limiter.check(&policy, &Subject::of("alice")).report().await?;
    /// let status = &decision.report()[0];
    /// assert_eq!(status.used_up_for(), Some(Duration::from_secs(40))); // until the first call is out of the window
    /// assert_eq!(status.reset(), Duration::from_secs(60)); // until both are
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn used_up_for(&self) -> Option<Duration> {
        self.quota.used_up_for.filter(|_| self.remaining() == 0)
    }
}

#[allow(clippy::missing_fields_in_debug, reason = "all parts of the quota are shown")]
impl fmt::Debug for RuleStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleStatus")
            .field("position", &self.position)
            .field("rule", &format_args!("{}", self.rule))
            .field("remaining", &self.remaining())
            .field("reset", &self.reset())
            .field("used_up_for", &self.used_up_for())
            .finish()
    }
}

/// A subject has come near the limit of a rule: see [`LimiterBuilder::on_warning`](crate::LimiterBuilder::on_warning).
#[derive(Clone, Copy)]
pub struct Warning<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) subject: &'a SubjectKey,
    pub(crate) status: &'a RuleStatus,
}

impl<'a> Warning<'a> {
    /// Returns the policy, with the rules that are in force.
    #[must_use]
    pub fn policy(&self) -> &'a Policy {
        self.policy
    }

    /// Returns the subject that the rule counts, as it stands in keys: values are escaped, and those with the filter
    /// `hash` are digests. Do not log it, as it may be personal data.
    #[must_use]
    pub fn subject(&self) -> &'a str {
        self.subject
    }

    /// Returns where the rule stands after the call.
    #[must_use]
    pub fn status(&self) -> &'a RuleStatus {
        self.status
    }
}

// Leaves out the subject, which may be personal.
opaque_debug!(Warning<'_>, warning => { policy: warning.policy.name(), status: warning.status });
