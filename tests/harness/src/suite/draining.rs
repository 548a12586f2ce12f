//! A limiter that is drained: it leaves nothing taken that is not in use, and goes on deciding.

use tallygate::{Permit, Policy, Rule, RuleStatus, Subject};

use super::secs;
use crate::stage::Stage;

fn slots() -> Policy {
    Policy::builder("slots").rule(Rule::concurrency(1, secs(600))).build().expect("the rule is sound")
}

fn busy() -> Policy {
    let window = Rule::sliding_window(600, secs(60));
    Policy::builder("busy").rule(window).prefetch(secs(1)).build().expect("the rule is sound")
}

fn everyone() -> Subject {
    Subject::everyone()
}

async fn permit(stage: &Stage, policy: &Policy, cost: u64) -> Permit {
    let decision = stage.limiter().check(policy, &everyone()).cost(cost).refundable().await;
    decision.expect("the backend answers").into_result().expect("there is room")
}

async fn remaining(stage: &Stage, policy: &Policy) -> Vec<u64> {
    let peeked = stage.limiter().peek(policy, &everyone()).await.expect("the backend answers");
    peeked.report().iter().map(RuleStatus::remaining).collect()
}

/// What ended just before is given back and settled, and units that were taken ahead are given back before their time.
pub async fn a_drained_limiter_leaves_nothing_taken(stage: &Stage) {
    let (slots, busy, limits) = (slots(), busy(), super::limits([(100, 60)]));
    let slot = permit(stage, &slots, 1).await;
    let meter = permit(stage, &limits, 50).await.meter("calls").expect("it is refundable");
    meter.add(7);
    for _ in 0..40 {
        stage.admitted(&busy, &everyone()).await;
    }
    drop((slot, meter));
    let left = stage.limiter().drain(secs(60)).await;
    assert!(left.is_nothing(), "{left}");
    assert_eq!(remaining(stage, &slots).await, [1]);
    assert_eq!(remaining(stage, &limits).await, [93]);
    assert_eq!(remaining(stage, &busy).await, [560]);
}

/// A call that is metered is under way until its last meter is dropped, also in memory.
pub async fn a_metered_call_is_still_under_way(stage: &Stage) {
    let limits = super::limits([(100, 60)]);
    let meter = permit(stage, &limits, 50).await.meter("calls").expect("it is refundable");
    let left = stage.limiter().drain(secs(0)).await;
    assert_eq!((left.meters(), left.corrections(), left.leases()), (1, 0, 0), "{left}");
    assert!(left.to_string().starts_with("1 metered call"), "{left}");
    let end = async move {
        meter.add(7);
        drop(meter);
    };
    let (left, ()) = tokio::join!(stage.limiter().drain(secs(60)), end);
    assert!(left.is_nothing(), "{left}");
    assert_eq!(remaining(stage, &limits).await, [93]);
}

/// Calls that come after it are decided, and take nothing ahead; a clone can drain once more.
pub async fn a_drained_limiter_goes_on_deciding(stage: &Stage) {
    let (slots, busy) = (slots(), busy());
    for round in 1..=3 {
        let left = stage.limiter().clone().drain(secs(60)).await;
        assert!(left.is_nothing(), "{left}");
        drop(permit(stage, &slots, 1).await);
        for _ in 0..40 {
            stage.admitted(&busy, &everyone()).await;
        }
        assert_eq!(remaining(stage, &busy).await, [600 - 40 * round]);
    }
    let running = permit(stage, &slots, 1).await;
    stage.denied(&slots, &everyone()).await;
    drop(running);
    stage.admitted(&slots, &everyone()).await;
}

/// A call that runs is under way in Redis until its permit is dropped, and is waited for in vain until then.
pub async fn a_call_that_runs_is_still_under_way(stage: &Stage) {
    let slots = slots();
    let running = permit(stage, &slots, 1).await;
    let left = stage.limiter().drain(secs(0)).await;
    assert_eq!((left.leases(), left.corrections()), (1, 0), "{left}");
    assert!(left.to_string().starts_with("1 lease"), "{left}");
    stage.denied(&slots, &everyone()).await;
    let (left, ()) = tokio::join!(stage.limiter().drain(secs(60)), async { drop(running) });
    assert!(left.is_nothing() && left.to_string() == "nothing", "{left}");
    assert_eq!(remaining(stage, &slots).await, [1]);
}
