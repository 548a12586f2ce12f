//! Several subjects of one call.

use tallygate::{Decision, Policy, Rule, Subject};

use super::{report_of, secs};
use crate::stage::Stage;

/// Rules of several subjects admit a call together or not at all, and the denial has the position of its rule.
pub async fn subjects_are_charged_together_or_not_at_all(stage: &Stage) {
    let policy = Policy::builder("several")
        .rule(Rule::sliding_window(2, secs(60)))
        .rule_on("network", Rule::sliding_window(3, secs(600)))
        .rule(Rule::sliding_counter(9, secs(61)))
        .build()
        .expect("the rules are sound");
    let network = Subject::of("10.0.0.0/24");
    let call = async |phone: &str| {
        let phone = Subject::of(phone);
        let check = stage.limiter().check(&policy, &phone).subject("network", &network);
        check.report().await.expect("the backend answers")
    };
    for phone in ["a", "a", "b"] {
        assert!(call(phone).await.is_allowed());
    }
    // The phone denies, and the network is left as it was; then the network denies, and the phone is left as it was.
    let Decision::Denied(denial) = call("a").await else { panic!("`a` has made its two calls") };
    assert_eq!(denial.rule().map(|rule| rule.position()), Some(1), "the network waits longest");
    stage.pass(secs(60)).await;
    let Decision::Denied(denial) = call("c").await else { panic!("the network has made its three calls") };
    assert_eq!(denial.rule().map(|rule| rule.position()), Some(1));
    let report: Vec<_> = report_of(&call("c").await);
    assert_eq!(report, [(0, 2), (1, 0), (2, 9)]);
}

/// A call that omits a subject, or has one that no rule counts, is an error.
pub async fn a_call_names_every_subject_and_no_other(stage: &Stage) {
    let policy = Policy::builder("several").rule_on("network", Rule::sliding_window(1, secs(60))).build();
    let (policy, subject) = (policy.expect("the rule is sound"), Subject::of("s"));
    let left_out = stage.limiter().check(&policy, &subject).await.expect_err("it names no network");
    assert!(left_out.to_string().contains("`network`"), "{left_out}");
    let stranger = stage.limiter().check(&policy, &subject).subject("user", &subject).await;
    assert!(stranger.expect_err("no rule is on a user").to_string().contains("`user`"));
    let named = stage.limiter().check(&policy, &subject).subject("network", &subject).await;
    assert!(named.expect("the backend answers").is_allowed());
}

/// A reset by hand removes the tally of the main subject. The others of the call, which may be shared, stay.
pub async fn a_reset_leaves_the_other_subjects_of_the_call_alone(stage: &Stage) {
    let builder = Policy::builder("several").rule(Rule::sliding_window(2, secs(60)));
    let policy = builder.rule_on("network", Rule::sliding_window(5, secs(600))).build().expect("the rules are sound");
    let phone = Subject::of("a");
    let network = Subject::of("10.0.0.0/24");
    let check = || stage.limiter().check(&policy, &phone).subject("network", &network);
    let remaining = async || report_of(&check().peek().report().await.expect("the backend answers"));
    for _ in 0..2 {
        assert!(check().await.expect("the backend answers").is_allowed());
    }
    check().reset().await.expect("the backend answers");
    assert_eq!(remaining().await, [(0, 2), (1, 3)]);
    assert!(check().await.expect("the backend answers").is_allowed());
    // The other subjects need not be given.
    stage.limiter().check(&policy, &phone).reset().await.expect("the backend answers");
    assert_eq!(remaining().await, [(0, 2), (1, 2)]);
    assert!(check().await.expect("the backend answers").is_allowed());
    check().reset_all().await.expect("the backend answers");
    assert_eq!(remaining().await, [(0, 2), (1, 5)]);
    let left_out = stage.limiter().check(&policy, &phone).reset_all().await.expect_err("it names no network");
    assert!(left_out.to_string().contains("`network`"), "{left_out}");
}

/// Without a rule on the main subject there is nothing that a reset of it could remove.
pub async fn a_reset_of_a_subject_that_no_rule_counts_is_an_error(stage: &Stage) {
    let policy = Policy::builder("several").rule_on("network", Rule::sliding_window(1, secs(60))).build();
    let policy = policy.expect("the rule is sound");
    let phone = Subject::of("a");
    let network = Subject::of("10.0.0.0/24");
    let check = || stage.limiter().check(&policy, &phone).subject("network", &network);
    assert!(check().await.expect("the backend answers").is_allowed());
    let refused = check().reset().await.expect_err("no rule counts the phone");
    assert!(refused.to_string().contains("`reset_all`"), "{refused}");
    check().reset_all().await.expect("the backend answers");
    assert!(check().await.expect("the backend answers").is_allowed());
}
