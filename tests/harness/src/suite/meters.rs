//! Meters: what a call uses while it runs.

use tallygate::{Policy, Rule, Subject};

use super::secs;
use super::units::{chats, permit, used};
use crate::stage::Stage;
use crate::until::until_found;

/// All that the meters of a call have counted is settled together at the end of the last one; its lease ends with the call.
pub async fn meters_settle_their_units_together_and_hold_no_lease(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let policy = Policy::builder("chat")
        .rule(Rule::sliding_window(60, secs(60)))
        .rule(Rule::sliding_window(100, secs(60)).counting("tokens"))
        .rule(Rule::fixed_window(1_000, secs(60)).counting("bytes"))
        .rule(Rule::concurrency(1, secs(30)))
        .build()
        .unwrap();
    let mut call = permit(limiter, &policy, &alice, 80).await;
    let (tokens, bytes) = (call.meter("tokens").unwrap(), call.meter("bytes").unwrap());
    let more_tokens = call.meter("tokens").unwrap();
    assert_eq!(used(limiter, &policy, &alice).await, [1, 80, 0, 1]);
    drop(call);
    let until_used = async |expected: [u64; 4]| {
        until_found("it counts", async || used(limiter, &policy, &alice).await == expected).await;
    };
    until_used([1, 80, 0, 0]).await;
    tokens.add(20);
    more_tokens.add(10);
    bytes.add(700);
    assert_eq!([tokens.used(), more_tokens.used(), bytes.used()], [30, 30, 700]);
    drop((tokens, bytes));
    assert_eq!(used(limiter, &policy, &alice).await, [1, 80, 0, 0]);
    drop(more_tokens);
    until_used([1, 30, 700, 0]).await;

    let mut call = permit(limiter, &policy, &alice, 5).await;
    let (tokens, bytes) = (call.meter("tokens").unwrap(), call.meter("bytes").unwrap());
    assert!(!call.settle_units(&[("bytes", 100)]).await.unwrap(), "the last meter settles it");
    tokens.add(300);
    // What was said of a unit holds, whatever its meter counts later.
    bytes.add(50);
    drop((tokens, bytes));
    until_used([2, 100, 800, 0]).await;
}

/// A refund removes a metered call at once, and what is added to its meters afterwards does not count.
pub async fn a_refunded_call_is_settled_for_nothing_more(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    for policy in chats() {
        let mut call = permit(limiter, &policy, &alice, 60).await;
        let tokens = call.meter("tokens").unwrap();
        tokens.add(40);
        assert!(call.refund().await.unwrap());
        tokens.add(7);
        assert_eq!(tokens.used(), 47);
        drop(tokens);
        let left = limiter.drain(secs(60)).await;
        assert!(left.is_nothing(), "{left}");
        assert_eq!(used(limiter, &policy, &alice).await, [0, 0], "{policy:?}");
    }
}

/// A refund on a subject that the policy does not have refunds nothing, and the meters settle the call as before.
pub async fn a_refund_on_an_unknown_subject_leaves_the_meters(stage: &Stage) {
    let (limiter, alice, policy) = (stage.limiter(), Subject::of("alice"), &chats()[0]);
    let mut call = permit(limiter, policy, &alice, 60).await;
    let tokens = call.meter("tokens").unwrap();
    tokens.add(40);
    let error = call.refund_on("ogr").await.unwrap_err();
    assert!(error.to_string().contains("has no rule on `ogr`"), "{error}");
    drop(tokens);
    let left = limiter.drain(secs(60)).await;
    assert!(left.is_nothing(), "{left}");
    assert_eq!(used(limiter, policy, &alice).await, [1, 40]);
}

/// A meter belongs to a unit of the policy, and to a call that counts.
pub async fn only_a_unit_that_a_call_has_is_metered(stage: &Stage) {
    let (limiter, alice) = (stage.limiter(), Subject::of("alice"));
    let policy = &chats()[0];
    let error = permit(limiter, policy, &alice, 1).await.meter("token").unwrap_err();
    assert!(error.to_string().contains("no rule of policy `chat0` counts the unit `token`"), "{error}");
    let peek = limiter.check(policy, &alice).peek().refundable().await.unwrap();
    let error = peek.into_result().unwrap().meter("tokens").unwrap_err();
    assert!(error.to_string().contains("do not peek"), "{error}");
    let mut quiet = permit(limiter, policy, &alice, 50).await;
    let tokens = quiet.meter("calls").unwrap();
    tokens.add(1);
    drop((quiet, tokens));
    assert_eq!(used(limiter, policy, &alice).await, [2, 51], "units without a meter keep their cost");
}
