//! Overrides of single rules, and of rules on other subjects.

use tallygate::{Decision, Limiter, Policy, RejectionKind, Rule, RuleStatus, Subject};

use super::{HOUR, every_backend, hourly};

every_backend!(
    a_single_rule_is_overridden_by_its_name_or_its_position,
    the_rules_on_another_subject_are_overridden,
    one_value_of_another_subject_has_rules_of_its_own,
    a_single_rule_on_any_subject_is_overridden_for_all,
    the_most_specific_override_is_in_force_on_each_subject,
    overrides_on_several_subjects_add_up,
    a_closed_rule_on_another_subject_closes_the_limit,
    a_policy_with_other_counts_keeps_them_in_its_other_rules,
    a_rule_that_a_policy_does_not_have_leaves_its_own_rules_in_force,
);

const DAY_HOURS: u32 = 24;

/// Rules 0 and 2 count the main subject, 1 and 3 the network.
fn policy(name: &'static str) -> Policy {
    let daily = |count| Rule::sliding_window(count, DAY_HOURS * HOUR);
    let builder = Policy::builder(name).rule(hourly(2).named("hourly")).rule_on("network", hourly(5));
    builder.rule(daily(3).named("daily")).rule_on("network", daily(9).named("network.daily")).build().unwrap()
}

fn network() -> Subject {
    Subject::of("10.0.0.0/24")
}

/// The limits of all rules that are in force for a call.
async fn limits(limiter: &Limiter, policy: &Policy, user: &str, network: &Subject) -> Vec<u64> {
    let user = Subject::of(user);
    let peeked = limiter.peek(policy, &user).subject("network", network).await.unwrap();
    peeked.report().iter().map(RuleStatus::limit).collect()
}

async fn set(limiter: &Limiter, policy: &Policy, text: &str) {
    limiter.override_policy(policy.name()).text(text).set().await.unwrap();
}

async fn a_single_rule_is_overridden_by_its_name_or_its_position(limiter: Limiter) {
    let policy = policy("over.single");
    limiter.override_policy("over.single").rule(0, Rule::fixed_window(7, HOUR)).set().await.unwrap();
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [7, 5, 3, 9]);
    let daily = Rule::sliding_window(1, DAY_HOURS * HOUR);
    limiter.override_policy("over.single").rule("daily", daily).set().await.unwrap();
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [2, 5, 1, 9]);
    let user = Subject::of("a");
    let check = || limiter.check(&policy, &user).subject("network", &network());
    assert!(check().await.unwrap().is_allowed());
    let Decision::Denied(denial) = check().await.unwrap() else { panic!("one a day") };
    let limiting = denial.rule().unwrap();
    assert_eq!((limiting.position(), limiting.name(), limiting.count()), (2, Some("daily"), 1));
}

async fn the_rules_on_another_subject_are_overridden(limiter: Limiter) {
    let policy = policy("over.single");
    limiter.override_policy("over.single").label("network").text("4 per 1h").set().await.unwrap();
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [2, 4, 3]);
    limiter.override_policy("over.single").label("network").text("network.daily = 8 per 1d").set().await.unwrap();
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [2, 5, 3, 8]);
    assert!(limiter.override_policy("over.single").label("network").clear().await.unwrap());
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [2, 5, 3, 9]);
}

async fn one_value_of_another_subject_has_rules_of_its_own(limiter: Limiter) {
    let policy = policy("over.single");
    let office = limiter.override_policy("over.single").label("network").subject(&network());
    office.clone().text("1 = 50 per 1h, 3 = 90 per 1d").set().await.unwrap();
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [2, 50, 3, 90]);
    assert_eq!(limits(&limiter, &policy, "a", &Subject::of("10.0.1.0/24")).await, [2, 5, 3, 9]);
    assert!(office.clear().await.unwrap());
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [2, 5, 3, 9]);
}

async fn a_single_rule_on_any_subject_is_overridden_for_all(limiter: Limiter) {
    let policy = policy("over.single");
    set(&limiter, &policy, "hourly = 1 per 1h, network.daily = 7 per 1d").await;
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [1, 5, 3, 7]);
}

async fn the_most_specific_override_is_in_force_on_each_subject(limiter: Limiter) {
    let policy = policy("over.single");
    set(&limiter, &policy, "hourly = 1 per 1h, network.daily = 7 per 1d").await;
    limiter.override_policy("over.single").label("network").text("1 = 4 per 1h").set().await.unwrap();
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [1, 4, 3, 9]);
    let vip = limiter.override_policy("over.single").subject(&Subject::of("vip"));
    vip.text("daily = 30 per 1d").set().await.unwrap();
    assert_eq!(limits(&limiter, &policy, "vip", &network()).await, [2, 4, 30, 9]);
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [1, 4, 3, 9]);
}

async fn overrides_on_several_subjects_add_up(limiter: Limiter) {
    let policy = policy("over.single");
    set(&limiter, &policy, "20 per 1h, 21 per 2h, 19 per fixed 1h").await;
    limiter.override_policy("over.single").label("network").text("3 = 90 per 1d").set().await.unwrap();
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [20, 5, 21, 90, 19]);
    limiter.override_policy("over.single").label("network").text("90 per 1d").set().await.unwrap();
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [20, 90, 21, 19]);
}

async fn a_closed_rule_on_another_subject_closes_the_limit(limiter: Limiter) {
    let policy = policy("over.single");
    let closed = limiter.override_policy("over.single").label("network").subject(&network());
    closed.text("network.daily = 0 per 1d").set().await.unwrap();
    let user = Subject::of("a");
    let network = network();
    let Decision::Denied(denial) = limiter.check(&policy, &user).subject("network", &network).await.unwrap() else {
        panic!("the network is closed")
    };
    assert_eq!((denial.kind(), denial.retry_after()), (RejectionKind::Limited, None));
    assert_eq!(denial.rule().map(|rule| rule.position()), Some(3));
    let other = Subject::of("10.0.1.0/24");
    assert!(limiter.check(&policy, &user).subject("network", &other).await.unwrap().is_allowed());
}

async fn a_policy_with_other_counts_keeps_them_in_its_other_rules(limiter: Limiter) {
    let policy = policy("over.single");
    set(&limiter, &policy, "daily = 40 per 1d").await;
    let paid = policy.with_counts([20, 50, 30, 90]);
    assert_eq!(limits(&limiter, &paid, "a", &network()).await, [20, 50, 40, 90]);
}

async fn a_rule_that_a_policy_does_not_have_leaves_its_own_rules_in_force(limiter: Limiter) {
    let policy = policy("over.single");
    let text = "weekly = 0 per 7d, hourly = 1 per 1h";
    limiter.override_policy("over.single").text(text).allow_unknown().set().await.unwrap();
    assert_eq!(limits(&limiter, &policy, "a", &network()).await, [1, 5, 3, 9]);
}
