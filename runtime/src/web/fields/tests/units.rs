//! Fields of rules that count units.

use super::*;
use crate::algorithm::Quota;
use crate::call::{Call, CallOptions};
use crate::decision::{DecidedBy, Decision, Denial, DenialCause, Permit, Report, RuleStatus, Wait};

/// Calls and tokens of a minute, and tokens of an hour.
fn chat() -> Policy {
    let tokens = |count, per| Rule::sliding_window(count, secs(per)).counting("tokens");
    policy("chat", [Rule::sliding_window(60, secs(60)), tokens(20_000, 60), tokens(50_000, 3_600)])
}

/// The report of a call: what is left of each rule, and in how many milliseconds nothing is counted.
fn report(policy: &Policy, left: [(u64, u64); 3]) -> Report {
    let status = |((position, rule), (remaining, millis)): ((usize, &Rule), (u64, u64))| {
        RuleStatus::new(position, rule.clone(), Quota::new(remaining, millis * 1_000))
    };
    Report::from(policy.rules().iter().enumerate().zip(left).map(status).collect::<Vec<_>>())
}

fn admitted(left: [(u64, u64); 3]) -> Decided {
    let (decided, policy) = (Decided::new(), chat());
    let permit = Permit::new(DecidedBy::Backend, report(&policy, left), None, None, None);
    decided.decisions.add(&policy, &Decision::Allowed(permit));
    decided
}

/// A denial by the rule at this position.
fn denied(policy: &Policy, rule: u32, wait: Duration) -> Denial {
    Denial::new(Call::new(policy, &[], CallOptions::PLAIN), DenialCause::rule(rule), Wait::of(wait), DecidedBy::Backend)
}

fn texts(fields: &[ResponseField]) -> Vec<String> {
    fields.iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

#[test]
fn each_unit_has_fields_of_its_tightest_rule() {
    let decided = admitted([(59, 1_000), (19_000, 20), (9_000, 360_000)]);
    assert_eq!(
        texts(&decided.fields(Legacy::XRateLimitByUnit)),
        [
            "x-ratelimit-limit-requests: 60",
            "x-ratelimit-remaining-requests: 59",
            "x-ratelimit-reset-requests: 1s",
            "x-ratelimit-limit-tokens: 50000",
            "x-ratelimit-remaining-tokens: 9000",
            "x-ratelimit-reset-tokens: 6m0s",
        ]
    );
}

#[test]
fn a_denied_unit_is_reset_after_the_wait_and_the_others_when_nothing_of_them_is_counted() {
    let (decided, policy) = (Decided::new(), chat());
    let denial = denied(&policy, 1, Duration::from_micros(19_001));
    let left = report(&policy, [(9, 3_600_500), (10, 60_000), (9_000, 360_000)]);
    decided.decisions.add(&policy, &Decision::Denied(denial.with_report(left)));
    let fields = texts(&decided.fields(Legacy::XRateLimitByUnit));
    assert_eq!(fields[1..3], ["x-ratelimit-remaining-requests: 9", "x-ratelimit-reset-requests: 1h0m1s"]);
    assert_eq!(fields[4..], ["x-ratelimit-remaining-tokens: 10", "x-ratelimit-reset-tokens: 20ms"]);
}

#[test]
fn the_draft_names_each_unit_but_requests() {
    let decided = admitted([(59, 1_000), (19_000, 20), (9_000, 360_000)]);
    assert_eq!(
        decided.values(),
        [
            r#""chat.1m";q=60;w=60, "chat.tokens.1m";q=20000;qu="tokens";w=60, "chat.tokens.1h";q=50000;qu="tokens";w=3600"#,
            r#""chat.1m";r=59;t=1, "chat.tokens.1m";r=19000;t=1, "chat.tokens.1h";r=9000;t=360"#
        ]
    );
    let decided = Decided::new();
    let policy = policy("upload", [Rule::fixed_window(1_000, secs(60)).counting("content_bytes").named("size")]);
    decided.decisions.add(&policy, &Decision::Denied(denied(&policy, 0, secs(9))));
    assert_eq!(decided.values()[0], r#""upload.size";q=1000;qu="content-bytes";w=60"#);
    assert_eq!(decided.fields(Legacy::XRateLimitByUnit)[0].0, "x-ratelimit-limit-content-bytes");
}

#[test]
fn fields_without_units_are_of_requests_unless_another_unit_denies() {
    let decided = admitted([(59, 1_000), (3, 20), (9_000, 360_000)]);
    assert_eq!(
        texts(&decided.fields(Draft::V7)),
        ["ratelimit-policy: 60;w=60", "ratelimit: limit=60, remaining=59, reset=1"]
    );
    assert_eq!(decided.fields(Legacy::XRateLimit)[0].1, "60");
    let policy = chat();
    decided.decisions.add(&policy, &Decision::Denied(denied(&policy, 1, secs(9))));
    assert_eq!(decided.fields(Legacy::XRateLimit)[0].1, "20000");
}
