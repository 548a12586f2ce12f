//! The JSON that operators see. A time in `_ms` is rounded up, and a value that is missing is `null`.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tallygate_rules::{Ban, Rule, RuleId};

use crate::admin::{BannedSubject, Registered, RegisteredPolicy, Unreadable};
use crate::decision::{Denial, PauseStatus};
use crate::limiter::{Override, OverrideBuilder};
use crate::policy::PlanCounts;

use super::RuleState;

/// Returns a duration in milliseconds, rounded up: a script that comes back early is denied again.
#[must_use]
pub fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// Returns the list of policies, each with its own overrides.
#[must_use]
pub fn policies(registered: &Registered, overrides: &[Override]) -> Value {
    let mut of_policies: HashMap<&str, Vec<&Override>> = HashMap::new();
    for one in overrides {
        of_policies.entry(one.policy()).or_default().push(one);
    }
    let policies = registered.policies().iter().map(|described| {
        let own = of_policies.get(described.name()).map(Vec::as_slice).unwrap_or_default();
        policy_with(described, own.iter().copied())
    });
    let unreadable = |other: &Unreadable| json!({ "name": other.name(), "reason": other.reason() });
    json!({
        "policies": policies.collect::<Vec<_>>(),
        "unreadable": registered.unreadable().iter().map(unreadable).collect::<Vec<_>>(),
    })
}

/// Returns a policy, with its own overrides out of all these.
#[must_use]
pub fn policy(policy: &RegisteredPolicy, overrides: &[Override]) -> Value {
    policy_with(policy, overrides.iter().filter(|one| one.policy() == policy.name()))
}

fn policy_with<'o>(policy: &RegisteredPolicy, own: impl Iterator<Item = &'o Override>) -> Value {
    let rule = |(position, rule): (usize, &Rule)| {
        let document = json!({
            "position": position,
            "name": rule.name(),
            "rule": rule.to_string(),
            "label": policy.label_of(position),
        });
        with_unit(document, rule)
    };
    let subjects = policy.subjects().map(|subject| json!({ "label": subject.label(), "key": subject.key() }));
    let seen = policy.seen().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    json!({
        "name": policy.name(),
        "key": policy.key(),
        "subjects": subjects.collect::<Vec<_>>(),
        "rules": policy.rules().iter().enumerate().map(rule).collect::<Vec<_>>(),
        "ban": policy.ban().map(ban),
        "longest_pause_ms": policy.longest_pause().map(ms),
        "prefetch_ms": policy.prefetch().map(ms),
        "plans": policy.plans().map(|(plan, counts)| (plan, plan_counts(counts))).collect::<HashMap<_, _>>(),
        "shadow": policy.shadow(),
        "version": policy.version(),
        "seen": seen.as_secs(),
        "overrides": own.map(override_in_force).collect::<Vec<_>>(),
    })
}

fn plan_counts(counts: &PlanCounts) -> Value {
    match counts {
        PlanCounts::One(count) => json!(count),
        PlanCounts::ByUnit(counts) => json!(counts),
    }
}

fn ban(ban: Ban) -> Value {
    json!({
        "denials": ban.denials(),
        "within_ms": ms(ban.within()),
        "duration_ms": ms(ban.duration()),
    })
}

/// Returns an override.
#[must_use]
pub fn override_in_force(one: &Override) -> Value {
    let rule = |(replaces, rule): (Option<&RuleId>, &Rule)| {
        let replaces = replaces.map(|id| match id {
            RuleId::Name(name) => json!(name),
            RuleId::Position(position) => json!(position),
        });
        json!({ "replaces": replaces, "rule": rule.to_string() })
    };
    let mut document = json!({
        "policy": one.policy(),
        "label": one.label(),
        "subject": one.subject().map(ToString::to_string),
        "rules": one.rules().map(rule).collect::<Vec<_>>(),
        "expires_in_ms": one.expires_in().map(ms),
    });
    // Most overrides do not set it.
    if let Some(is_shadow) = one.shadow() {
        document["shadow"] = json!(is_shadow);
    }
    document
}

/// Returns an override that this builder has changed, and whose rules could not be read.
#[must_use]
pub fn unread_override(changed: &OverrideBuilder<'_>) -> Value {
    json!({
        "policy": changed.policy,
        "label": changed.label,
        "subject": changed.subject.as_ref().map(ToString::to_string),
        "rules": null,
        "expires_in_ms": changed.expires_in.map(ms),
    })
}

/// Returns a subject that is banned.
#[must_use]
pub fn banned(banned: &BannedSubject) -> Value {
    json!({
        "policy": banned.policy(),
        "subject": banned.subject().to_string(),
        "retry_after_ms": banned.retry_after().map(ms),
    })
}

pub(super) fn denial(denial: &Denial, pause: Option<&PauseStatus>) -> Value {
    let mut document = json!({
        "kind": denial.kind().as_str(),
        "rule": denial.rule().map(|rule| rule.position()),
        "retry_after_ms": denial.retry_after().map(ms),
    });
    if let Some(operator) = pause.and_then(PauseStatus::operator) {
        document["operator"] = json!(operator);
    }
    if let Some(field) = pause.and_then(PauseStatus::field) {
        document["field"] = json!(field);
    }
    match denial.rule() {
        Some(rule) => with_unit(document, rule.rule()),
        None => document,
    }
}

/// Returns the state of a rule.
pub(super) fn state(state: &RuleState) -> Value {
    let document = json!({
        "position": state.position,
        "name": state.rule.name(),
        "rule": state.rule.to_string(),
        "limit": state.limit,
        "used": state.used,
        "remaining": state.remaining,
        "concurrent": state.used.filter(|_| state.rule.lease().is_some()),
        "reset_ms": state.reset.map(ms),
        "shadow": state.rule.is_shadow(),
    });
    with_unit(document, &state.rule)
}

/// Returns what is written about a rule, with its unit. Most rules count calls, and have none.
#[must_use]
pub fn with_unit(mut document: Value, rule: &Rule) -> Value {
    if let Some(unit) = rule.unit() {
        document["unit"] = json!(unit);
    }
    document
}
