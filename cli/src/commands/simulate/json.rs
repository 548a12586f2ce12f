//! The decisions as JSON, for scripts.

use serde_json::{Value, json};
use tallygate::simulation::{Comparison, Denials, Summary};

use crate::duration;

pub(super) fn of_one(policy: &str, summary: &Summary, skipped: u64) -> Value {
    json!({ "policy": policy, "decided": decided(summary), "skipped_rows": skipped })
}

pub(super) fn of_two(policy: &str, comparison: &Comparison, skipped: u64) -> Value {
    json!({
        "policy": policy,
        "before": decided(comparison.before()),
        "after": decided(comparison.after()),
        "newly_denied": denied(comparison.newly_denied()),
        "newly_admitted": denied(comparison.newly_admitted()),
        "skipped_rows": skipped,
    })
}

fn decided(summary: &Summary) -> Value {
    json!({
        "calls": summary.calls(),
        "admitted": summary.admitted(),
        "denied": denied(summary.denials()),
        "denied_in_shadow": denied(summary.denied_in_shadow()),
        "never_admitted": summary.never(),
        "longest_wait_ms": summary.longest_wait().map(duration::ms),
    })
}

fn denied(denials: &Denials) -> Value {
    let rules = denials.rules().enumerate().map(|(position, (rule, number))| {
        json!({ "position": position, "name": rule.name(), "rule": rule.to_string(), "denied": number })
    });
    json!({ "total": denials.total(), "rules": rules.collect::<Vec<_>>(), "ban": denials.by_ban() })
}
