//! Limits from a file, on every backend.

mod names;
mod plans;
mod processes;
mod random;
mod rules;
mod watched;

use std::time::Duration;

use tallygate::config::{ConfigError, Policies};
use tallygate::{Applied, Limiter, Policy, Rule, Subject};

/// Makes a test of each behaviour in memory and in a Redis server of its own.
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
    };
}
use every_backend;

const HOUR: Duration = Duration::from_secs(3_600);

fn hourly(count: u64) -> Rule {
    Rule::sliding_window(count, HOUR)
}

fn apply(limiter: &Limiter, text: &str) -> Applied {
    try_apply(limiter, text).unwrap()
}

fn try_apply(limiter: &Limiter, text: &str) -> Result<Applied, ConfigError> {
    limiter.apply(&Policies::from_toml(text)?)
}

/// A file with these rules of one policy.
fn file(policy: &str, rules: &str) -> String {
    format!("[policy.\"{policy}\"]\nrules = [{rules}]")
}

fn subject() -> Subject {
    Subject::of("user").and("some:body")
}

/// Calls until one is denied, and returns how many were admitted.
async fn room(limiter: &Limiter, policy: &Policy) -> usize {
    let mut admitted = 0;
    while limiter.check(policy, &subject()).await.unwrap().is_allowed() {
        admitted += 1;
    }
    admitted
}
