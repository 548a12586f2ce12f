//! Rules that are overridden while running: for all subjects or for one, in one process or in all.

mod everywhere;
mod expiring;
mod listing;
mod names;
mod shadow;
mod shared;
mod single;
mod too_many;
mod trials;

use std::time::Duration;

use tallygate::{Decision, Denial, Error, Limiter, Policy, Rule, Subject};
use tokio::time::{sleep, timeout};

const HOUR: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(30);

/// Makes a test of each behaviour in memory, in a Redis server of its own, and in a cluster.
macro_rules! every_backend {
    ($($behaviour:ident),* $(,)?) => {
        mod in_memory {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    super::$behaviour(tallygate::Limiter::in_memory()).await;
                }
            )*
        }
        mod in_redis {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    let server = tallygate_harness::server::Server::start();
                    super::$behaviour(server.limiter().await).await;
                }
            )*
        }
        mod in_cluster {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    let cluster = tallygate_harness::cluster::Cluster::shared();
                    super::$behaviour(cluster.own_limiter().await).await;
                }
            )*
        }
    };
}
use every_backend;

fn hourly(count: u64) -> Rule {
    Rule::sliding_window(count, HOUR)
}

fn policy(count: u64) -> Policy {
    Policy::builder("over.ride").rule(hourly(count)).build().unwrap()
}

fn subject() -> Subject {
    Subject::of("user").and("some:body")
}

/// Overrides all rules. The policy may be built later.
async fn override_rules(limiter: &Limiter, rules: impl IntoIterator<Item = Rule>) {
    limiter.override_policy("over.ride").rules(rules).allow_unknown().set().await.unwrap();
}

/// Overrides all rules for one subject, if there is room for that.
async fn override_for(limiter: &Limiter, subject: &Subject, count: u64) -> Result<(), Error> {
    limiter.override_policy("over.ride").subject(subject).rules([hourly(count)]).allow_unknown().set().await
}

async fn clear(limiter: &Limiter) {
    assert!(limiter.override_policy("over.ride").clear().await.unwrap());
}

async fn allowed(limiter: &Limiter, policy: &Policy) -> bool {
    limiter.check(policy, &subject()).await.unwrap().is_allowed()
}

async fn denied(limiter: &Limiter, policy: &Policy) -> Denial {
    match limiter.check(policy, &subject()).await.unwrap() {
        Decision::Denied(denial) => denial,
        allowed @ Decision::Allowed(_) => panic!("{allowed:?}"),
    }
}

/// Calls until one is denied, and returns how many were admitted.
async fn room(limiter: &Limiter, policy: &Policy, subject: &Subject) -> usize {
    let mut admitted = 0;
    while limiter.check(policy, subject).await.unwrap().is_allowed() {
        admitted += 1;
    }
    admitted
}

/// Calls until the condition holds, which may take a refresh or two.
async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it comes true");
}
