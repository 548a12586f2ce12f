//! Subjects that are so busy that their calls are taken ahead, where that is possible: no call is counted twice, lost or
//! admitted beyond a limit.

use std::time::Duration;

use tallygate::{Ban, Decision, Policy, PolicyBuilder, Rule, RuleStatus, Subject};

use super::secs;
use crate::stage::Stage;
use crate::until::until_found;

const AHEAD: Duration = Duration::from_millis(100);

/// The count of a busy subject, in a minute.
const COUNT: u64 = 600;

/// Longer than any window, and than what is taken ahead of it.
const PAST: Duration = secs(61);

fn busy(rule: Rule) -> PolicyBuilder {
    Policy::builder("busy").rule(rule).prefetch(AHEAD)
}

/// A window that is longer than the test: keys expire by the clock of the server, on which nothing passes here.
fn window() -> Rule {
    Rule::sliding_window(COUNT, secs(60))
}

fn build(builder: PolicyBuilder) -> Policy {
    builder.build().expect("the rules are sound")
}

fn tenant() -> Subject {
    Subject::of("tenant")
}

/// Calls so many times, which have to be admitted.
async fn calls(stage: &Stage, policy: &Policy, subject: &Subject, number: u64) {
    for _ in 0..number {
        stage.admitted(policy, subject).await;
    }
}

/// Calls at one instant until so many calls are admitted.
async fn admitted(stage: &Stage, policy: &Policy, subject: &Subject, number: u64) {
    let mut admitted = 0;
    until_found("calls are admitted", async || {
        while admitted < number && stage.call(policy, subject).await.is_allowed() {
            admitted += 1;
        }
        admitted == number
    })
    .await;
}

async fn remaining(stage: &Stage, policy: &Policy, subject: &Subject) -> Vec<u64> {
    let peeked = stage.limiter().peek(policy, subject).await.expect("the backend answers");
    peeked.report().iter().map(RuleStatus::remaining).collect()
}

/// Lets the time pass for which calls are taken ahead, and waits until so much remains of each rule, and all else is given back.
async fn remains(stage: &Stage, policy: &Policy, subject: &Subject, expected: &[u64]) {
    stage.pass(AHEAD).await;
    until_found("what is not used is given back", async || remaining(stage, policy, subject).await == expected).await;
}

/// Under every algorithm, all calls of an instant use the limit to its end, and no call goes beyond it.
pub async fn a_busy_subject_uses_its_limit_to_the_end_and_no_further(stage: &Stage) {
    let rules = [window(), Rule::sliding_counter(COUNT, secs(60)), Rule::fixed_window(COUNT, secs(60))];
    for (number, rule) in rules.into_iter().enumerate() {
        let (policy, subject) = (build(busy(rule)), Subject::of(number));
        admitted(stage, &policy, &subject, COUNT).await;
        for _ in 0..20 {
            stage.denied(&policy, &subject).await;
        }
        assert_eq!(remaining(stage, &policy, &subject).await, [0], "{policy:?}");
    }
    let (policy, subject) = (build(busy(window())), tenant());
    for _ in 0..3 {
        admitted(stage, &policy, &subject, COUNT).await;
        stage.denied(&policy, &subject).await;
        stage.pass(PAST).await;
    }
}

/// What was taken and not used is given back when its time is over.
pub async fn what_a_busy_subject_does_not_use_is_given_back(stage: &Stage) {
    let (policy, subject) = (build(busy(window())), tenant());
    let mut used = 0;
    for number in [40, 3, 90, 1] {
        calls(stage, &policy, &subject, number).await;
        used += number;
        remains(stage, &policy, &subject, &[COUNT - used]).await;
    }
}

/// A busy subject is charged what its calls cost, and a call that costs more than all that was taken asks by itself.
pub async fn a_call_of_a_busy_subject_is_charged_its_cost(stage: &Stage) {
    let (policy, subject) = (build(busy(window())), tenant());
    calls(stage, &policy, &subject, 40).await;
    for cost in [0, 3, 7, 250] {
        assert!(stage.limiter().check(&policy, &subject).cost(cost).await.expect("the backend answers").is_allowed());
    }
    remains(stage, &policy, &subject, &[COUNT - 300]).await;
    assert!(!stage.limiter().check(&policy, &subject).cost(301).await.expect("the backend answers").is_allowed());
    remains(stage, &policy, &subject, &[COUNT - 300]).await;
}

/// A call of a busy subject is refunded, or settled for what it has used, also when its part has ended.
pub async fn a_call_of_a_busy_subject_is_refunded_and_settled(stage: &Stage) {
    let (policy, subject) = (build(busy(window())), tenant());
    let mut permits = Vec::new();
    for _ in 0..60 {
        let decision = stage.limiter().check(&policy, &subject).cost(2).refundable().await;
        permits.push(decision.expect("the backend answers").into_result().expect("there is room"));
    }
    let (early, late) = (permits.split_off(30), permits);
    let mut used = 120;
    for permits in [early, late] {
        for (number, permit) in permits.into_iter().enumerate() {
            match number % 3 {
                0 => assert!(permit.refund().await.expect("the backend answers")),
                1 => assert!(permit.settle(1).await.expect("the backend answers")),
                _ => assert!(permit.settle(4).await.expect("the backend answers")),
            }
        }
        used -= 10 * 2 + 10 - 10 * 2;
        remains(stage, &policy, &subject, &[COUNT - used]).await;
    }
}

/// A report and a peek tell what this process can still use.
pub async fn a_report_of_a_busy_subject_counts_its_calls_alone(stage: &Stage) {
    let (policy, subject) = (build(busy(window())), tenant());
    for called in 0..60 {
        // What is just being taken may be counted already.
        let expected = [COUNT - called];
        until_found("it is known what was taken", async || remaining(stage, &policy, &subject).await == expected).await;
        stage.admitted(&policy, &subject).await;
    }
    let reported = stage.limiter().check(&policy, &subject).report().await.expect("the backend answers");
    assert_eq!(reported.report()[0].remaining(), COUNT - 61);
}

/// A unit that is used up denies calls that pay in it afterwards, and a peek says so.
pub async fn a_peek_of_a_busy_subject_says_that_a_unit_is_used_up(stage: &Stage) {
    let policy = build(busy(window()).rule(Rule::sliding_window(6_000, secs(60)).counting("tokens")));
    let (limiter, subject) = (stage.limiter(), tenant());
    let all = limiter.check(&policy, &subject).cost_of("tokens", 6_000).await.expect("the backend answers");
    assert!(all.is_allowed());
    let peeked = limiter.peek(&policy, &subject).await.expect("the backend answers");
    assert!(!peeked.is_allowed(), "{peeked:?}");
    assert_eq!(stage.denied(&policy, &subject).await.rule().map(|denying| denying.position()), Some(1));
}

/// A reset of a busy subject forgets its calls, and those that were taken ahead: nothing of these is given back, so that no
/// later call is lost for it.
pub async fn a_reset_of_a_busy_subject_begins_anew(stage: &Stage) {
    let rules = [window(), Rule::sliding_counter(COUNT, secs(60)), Rule::fixed_window(COUNT, secs(60))];
    for (number, rule) in rules.into_iter().enumerate() {
        let (policy, subject) = (build(busy(rule)), Subject::of(number));
        for _ in 0..3 {
            calls(stage, &policy, &subject, 60).await;
            stage.limiter().check(&policy, &subject).reset().await.expect("the backend answers");
            calls(stage, &policy, &subject, 5).await;
            remains(stage, &policy, &subject, &[COUNT - 5]).await;
            stage.limiter().check(&policy, &subject).reset().await.expect("the backend answers");
        }
    }
}

/// A ban ends what was taken ahead.
pub async fn a_banned_subject_that_was_busy_is_denied_at_once(stage: &Stage) {
    let policy = build(busy(window()).ban(Ban::new(900, secs(60), secs(60))));
    let subject = tenant();
    calls(stage, &policy, &subject, 60).await;
    stage.limiter().check(&policy, &subject).ban(secs(60)).await.expect("the backend answers");
    for _ in 0..20 {
        assert!(stage.denied(&policy, &subject).await.rule().is_none());
    }
    stage.limiter().check(&policy, &subject).unban().await.expect("the backend answers");
    stage.pass(PAST).await;
    calls(stage, &policy, &subject, 60).await;
}

/// A limit on a tenant, whose calls are taken ahead, and one on each of its users, whose count is too small for that.
fn tenancy(count: u64) -> PolicyBuilder {
    let users = Rule::sliding_window(10, secs(60));
    Policy::builder("tenancy").rule(users).rule_on("tenant", Rule::sliding_window(count, secs(60))).prefetch(AHEAD)
}

async fn user_call(stage: &Stage, policy: &Policy, user: u64) -> Decision {
    let (user, tenant) = (Subject::of(user), tenant());
    stage.limiter().check(policy, &user).subject("tenant", &tenant).await.expect("the backend answers")
}

async fn tenant_remains(stage: &Stage, policy: &Policy, user: u64, expected: [u64; 2]) {
    stage.pass(AHEAD).await;
    let (user, tenant) = (Subject::of(user), tenant());
    until_found("what is not used is given back", async || {
        let peeked = stage.limiter().peek(policy, &user).subject("tenant", &tenant).await.expect("the backend answers");
        peeked.report().iter().map(RuleStatus::remaining).eq(expected)
    })
    .await;
}

/// A call that is denied because of its user takes nothing from a busy tenant.
pub async fn a_busy_tenant_counts_the_admitted_calls_of_its_users_alone(stage: &Stage) {
    let policy = build(tenancy(COUNT));
    for user in 0..8 {
        for call in 0..15 {
            assert_eq!(user_call(stage, &policy, user).await.is_allowed(), call < 10);
        }
    }
    for user in 0..8 {
        tenant_remains(stage, &policy, user, [0, COUNT - 80]).await;
    }
}

/// A tenant at its limit leaves the tallies of its users as they are.
pub async fn a_busy_tenant_at_its_limit_leaves_its_users_uncharged(stage: &Stage) {
    let policy = build(tenancy(100));
    let mut admitted = 0;
    until_found("the limit is used", async || {
        for user in 0..20 {
            admitted += u64::from(user_call(stage, &policy, user % 10 + 100 * (admitted / 90)).await.is_allowed());
        }
        admitted >= 100
    })
    .await;
    assert_eq!(admitted, 100);
    for user in 1_000..1_020 {
        assert!(!user_call(stage, &policy, user).await.is_allowed());
        tenant_remains(stage, &policy, user, [10, 0]).await;
    }
}

/// A call of a busy tenant and of its user is refunded on both, or on the one that is named.
pub async fn a_call_of_a_busy_tenant_is_refunded_on_all_its_subjects(stage: &Stage) {
    let policy = build(tenancy(COUNT));
    let tenant = tenant();
    for user in 0..6 {
        for _ in 0..10 {
            let subject = Subject::of(user);
            let decision = stage.limiter().check(&policy, &subject).subject("tenant", &tenant).refundable().await;
            let permit = decision.expect("the backend answers").into_result().expect("there is room");
            assert!(permit.refund().await.expect("the backend answers"));
        }
        tenant_remains(stage, &policy, user, [10, COUNT]).await;
    }
}

/// Concurrent calls of a user are counted beside the calls that are taken ahead of its tenant.
pub async fn the_users_of_a_busy_tenant_have_concurrent_calls_of_their_own(stage: &Stage) {
    let policy = build(tenancy(COUNT).rule(Rule::concurrency(2, secs(30))));
    let tenant = tenant();
    for user in 0..12 {
        let subject = Subject::of(user);
        let mut running = Vec::new();
        for call in 0..4 {
            let decision = stage.limiter().check(&policy, &subject).subject("tenant", &tenant).await;
            let decision = decision.expect("the backend answers");
            assert_eq!(decision.is_allowed(), call < 2);
            running.push(decision);
        }
        drop(running);
        until_found("the calls are over", async || user_call(stage, &policy, user).await.is_allowed()).await;
    }
    let count = COUNT - 36;
    until_found("what is not used is given back", async || {
        stage.pass(AHEAD).await;
        let (user, tenant) = (Subject::of(99), &tenant);
        let peeked = stage.limiter().peek(&policy, &user).subject("tenant", tenant).await.expect("the backend answers");
        peeked.report()[1].remaining() == count
    })
    .await;
}

/// Denials of a user count towards its ban, although its tenant has calls.
pub async fn denials_of_a_busy_subject_count_towards_its_ban(stage: &Stage) {
    let policy = Policy::builder("banning").rule(window());
    let policy = policy.rule_on("network", Rule::sliding_window(50, secs(60))).ban(Ban::new(5, secs(60), secs(600)));
    let (policy, subject, network) = (build(policy.prefetch(AHEAD)), tenant(), Subject::of("network"));
    let mut denials = 0;
    for call in 0..60 {
        let decision = stage.limiter().check(&policy, &subject).subject("network", &network).await;
        let decision = decision.expect("the backend answers");
        assert_eq!(decision.is_allowed(), call < 50);
        if let Decision::Denied(denial) = decision {
            denials += u32::from(denial.rule().is_some());
        }
    }
    assert_eq!(denials, 5, "the subject is banned after that many denials");
}
