//! One limit, as the fields show it.

use std::borrow::Cow;
use std::time::Duration;

use tallygate_rules::{CALLS, Role, Rule, format_duration};

use crate::decision::{RuleStatus, Wait};
use crate::policy::Policy;
use crate::web::decisions::LimitStatus;

/// One limit, as the fields show it.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The name of the policy and that of the rule, like `captcha.1m`.
    pub(super) name: String,
    /// The greatest cost that is ever admitted at once, and the window in which it is used up. A ban has none.
    pub(super) quota: Option<Allowance>,
    /// The greatest cost that would be admitted now.
    pub(super) remaining: u64,
    /// The time in which no more than `remaining` may be used.
    pub(super) window: Option<Duration>,
    /// Whether the call waits longer for another rule, so that the window of this one ends too early.
    waits_for_another: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Allowance {
    pub(super) limit: u64,
    /// The unit, in the words of the fields.
    pub(super) unit: Cow<'static, str>,
    /// `None` for windows of changing length, and for concurrent calls.
    pub(super) window_s: Option<u64>,
}

impl Item {
    /// Shows the state of a limit. If a call waits, windows that end later than its wait are left out.
    pub(super) fn new(standing: &LimitStatus, wait: Option<Wait>) -> Self {
        let LimitStatus { policy, rule, .. } = standing;
        let window = standing.window().filter(|window| wait.is_none_or(|wait| *window <= wait));
        Self {
            name: limit_name(policy, rule.as_ref().map(|status| (status.position(), status.rule()))),
            quota: rule.as_ref().map(Allowance::new),
            remaining: standing.remaining(),
            window: window.and_then(Wait::retry_after),
            waits_for_another: standing.waits_for_another(),
        }
    }

    /// The quota and the reset, for fields that always have both. If the reset is not known, it is the whole window.
    /// `None` without a quota, as for a ban, and if neither time is known.
    pub(super) fn quota_and_reset(&self) -> Option<(&Allowance, Duration)> {
        let quota = self.quota.as_ref().filter(|_| !self.waits_for_another)?;
        let whole = || quota.window_s.map_or(Duration::ZERO, Duration::from_secs);
        Some((quota, self.window.unwrap_or_else(whole)))
    }
}

impl Allowance {
    fn new(status: &RuleStatus) -> Self {
        let rule = status.rule();
        // In the time to fill, as many tokens flow in as are ever admitted at once.
        let fill_time = rule.bucket().map(|bucket| bucket.fill_time_for(rule.count()));
        let window = fill_time.or_else(|| rule.per());
        // A window is at least a second long.
        Self {
            limit: status.limit(),
            unit: match rule.lease() {
                Some(_) => "concurrent-requests".into(),
                None => unit_in_fields(rule.counted()),
            },
            window_s: window.map(|window| whole_seconds(window).max(1)),
        }
    }
}

/// The default unit of the draft, and what OpenAI's fields call calls.
pub(super) const REQUESTS: &str = "requests";

/// Returns a unit in the words of the draft. Some proxies drop a field with an underscore in its name.
pub(crate) fn unit_in_fields(counted: &str) -> Cow<'static, str> {
    if counted == CALLS { REQUESTS.into() } else { counted.replace('_', "-").into() }
}

/// Returns the name of the rule at that position, or of the ban: the name of the policy, and that of the rule or its window.
/// No two limits of a policy have the same name.
pub(crate) fn limit_name(policy: &Policy, rule: Option<(usize, &Rule)>) -> String {
    let Some((position, rule)) = rule else { return format!("{}.ban", policy.name()) };
    let own = short_name(rule);
    let is_other = |(other, rule): (usize, &Rule)| other != position && short_name(rule) == own;
    let is_shared = own == "ban" || policy.rules().iter().enumerate().any(is_other);
    let number = if is_shared { format!(".{position}") } else { String::new() };
    format!("{}.{own}{number}", policy.name())
}

fn short_name(rule: &Rule) -> String {
    let unit = rule.unit().map(|unit| format!("{unit}.")).unwrap_or_default();
    match (rule.name(), rule.role(), rule.per()) {
        (Some(name), ..) => name.to_owned(),
        (None, Role::Duplicate, _) => "duplicate".to_owned(),
        (None, Role::Concurrency, _) => "concurrency".to_owned(),
        (None, _, Some(per)) => format!("{unit}{}", format_duration(per)),
        (None, _, None) => format!("{unit}schedule"),
    }
}

/// Returns the whole seconds, rounded up: a client that comes back early is denied again.
pub(crate) fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0))
}
