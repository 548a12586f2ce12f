//! Warnings that a subject is near a limit.

use tallygate::{Permit, Policy, Rule, Subject, TokenBucket};

use super::secs;
use crate::stage::Stage;

fn warns_at(share: f64, rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy::builder("warnings").rules(rules).warn_at(share).build().expect("the rules are sound")
}

async fn permit(stage: &Stage, policy: &Policy, cost: u64) -> Permit {
    let decision = stage.limiter().check(policy, &Subject::of("zoe")).cost(cost).await;
    decision.expect("the backend answers").into_result().expect("there is room")
}

/// The position of the rule that a permit warns of, and what remains of it.
fn warned(permit: &Permit) -> Option<(usize, u64)> {
    permit.warning().map(|status| (status.position(), status.remaining()))
}

/// With every algorithm, a permit warns once the share of the limit is used, and no more when the subject is away from it.
pub async fn a_permit_warns_from_the_share_of_the_limit_on(stage: &Stage) {
    let rules = [
        Rule::sliding_window(10, secs(60)),
        Rule::sliding_counter(10, secs(60)),
        Rule::fixed_window(10, secs(60)),
        Rule::from_bucket(1, TokenBucket::new(secs(60)).with_capacity(10)),
    ];
    for rule in rules {
        let policy = warns_at(0.7, [rule]);
        assert_eq!(warned(&permit(stage, &policy, 6).await), None, "{policy:?}");
        assert_eq!(warned(&permit(stage, &policy, 1).await), Some((0, 3)), "{policy:?}");
        assert_eq!(warned(&permit(stage, &policy, 3).await), Some((0, 0)), "{policy:?}");
        stage.pass(secs(3_600)).await;
        assert_eq!(warned(&permit(stage, &policy, 1).await), None, "{policy:?}");
        stage.pass(secs(3_600)).await;
    }
}

/// If a call comes near several limits, the permit names the tightest one. A rule that one call uses up does not warn, and
/// neither does a duplicate rule.
pub async fn a_permit_warns_of_the_tightest_rule(stage: &Stage) {
    let rules = [
        Rule::duplicate(secs(1)),
        Rule::sliding_window(1, secs(2)),
        Rule::sliding_window(5, secs(60)),
        Rule::sliding_window(10, secs(3_600)),
    ];
    let policy = warns_at(0.5, rules);
    let mut told = Vec::new();
    for _ in 0..7 {
        told.push(warned(&permit(stage, &policy, 1).await));
        stage.pass(secs(13)).await;
    }
    assert_eq!(told, [None, None, Some((2, 2)), Some((2, 1)), Some((2, 0)), Some((2, 0)), Some((2, 0))]);
    stage.pass(secs(60)).await;
    assert_eq!(warned(&permit(stage, &policy, 1).await), Some((3, 2)));
}
