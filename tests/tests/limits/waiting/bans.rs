//! Callers that wait under a policy with a ban: only a denial that they see counts towards it.

use std::time::Duration;

use tallygate::{Ban, Limiter, Policy, RejectionKind, Rule, Subject};
use tallygate_harness::server::Server;
use tokio::task::JoinSet;

const SECOND: Duration = Duration::from_secs(1);

fn subject() -> Subject {
    Subject::of("somebody")
}

/// Calls ten times, under a policy that bans after two denials. Each call but the first is denied, waits and is admitted.
async fn wait_for_each_call(limiter: &Limiter, per: Duration) -> Policy {
    let ban = Ban::new(2, 3_600 * SECOND, 3_600 * SECOND);
    let policy = Policy::builder("patient").rule(Rule::sliding_window(1, per)).ban(ban).build().unwrap();
    for _ in 0..10 {
        let decision = limiter.check(&policy, &subject()).wait(30 * SECOND).await.unwrap();
        assert!(decision.is_allowed(), "{decision:?}");
    }
    policy
}

#[tokio::test(start_paused = true)]
async fn a_denial_that_is_retried_while_waiting_does_not_count_towards_a_ban_and_the_last_one_does() {
    let limiter = Limiter::in_memory();
    let policy = wait_for_each_call(&limiter, SECOND).await;
    for kind in [RejectionKind::Limited, RejectionKind::Limited, RejectionKind::Banned] {
        let denied = limiter.check(&policy, &subject()).wait(SECOND / 2).await.unwrap().into_result().unwrap_err();
        assert_eq!(denied.kind(), kind);
    }
}

#[tokio::test]
async fn a_denial_by_redis_that_is_retried_while_waiting_does_not_count_towards_a_ban() {
    let server = Server::start();
    wait_for_each_call(&server.limiter().await, SECOND / 20).await;
}

/// Eight processes wait for the same subject. Who is slower is denied and tries again; that never leads to a ban.
#[tokio::test]
async fn waiters_of_several_processes_do_not_ban_each_other() {
    let server = Server::start();
    let ban = Ban::new(2, 3_600 * SECOND, 3_600 * SECOND);
    let policy = Policy::builder("raced").rule(Rule::sliding_window(1, SECOND / 50)).ban(ban).build().unwrap();
    let mut callers = JoinSet::new();
    for _process in 0..8 {
        let (limiter, policy) = (server.limiter().await, policy.clone());
        callers.spawn(async move {
            for _ in 0..10 {
                let decision = limiter.check(&policy, &subject()).wait(60 * SECOND).await.unwrap();
                assert!(decision.is_allowed(), "{decision:?}");
            }
        });
    }
    callers.join_all().await;
}
