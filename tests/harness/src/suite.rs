//! What every backend does, played on a [`Stage`](crate::stage::Stage): one function, one behaviour.

mod algorithms;
mod bans;
mod concurrency;
mod draining;
mod meters;
mod pauses;
mod prefetch;
mod probes;
mod refunds;
mod remainders;
mod settlements;
mod subjects;
mod units;
mod waiting;
mod warnings;
mod weights;
mod windows;

use std::time::Duration;

use tallygate::{Decision, Denial, Policy, Rule, Subject};

pub use self::algorithms::*;
pub use self::bans::*;
pub use self::concurrency::*;
pub use self::draining::*;
pub use self::meters::*;
pub use self::pauses::*;
pub use self::prefetch::*;
pub use self::probes::*;
pub use self::refunds::*;
pub use self::remainders::*;
pub use self::settlements::*;
pub use self::subjects::*;
pub use self::units::*;
pub use self::waiting::*;
pub use self::warnings::*;
pub use self::weights::*;
pub use self::windows::*;

const MICROSECOND: Duration = Duration::from_micros(1);

/// Makes a test of each behaviour on each backend, as in `every_backend!(admits_exactly_count, slides)`: in memory, in
/// Redis, and in the memory that takes the place of Redis while that is away.
#[macro_export]
macro_rules! every_backend {
    ($($behaviour:ident),* $(,)?) => {
        tallygate_harness::every_store!($($behaviour),*);
        mod in_standby {
            use tallygate_harness::{stage::Stage, suite};
            $(
                #[tokio::test]
                async fn $behaviour() {
                    suite::$behaviour(&Stage::in_standby()).await;
                }
            )*
        }
    };
}

/// Makes a test of each behaviour in memory and in Redis.
#[macro_export]
macro_rules! every_store {
    ($($behaviour:ident),* $(,)?) => {
        tallygate_harness::in_memory!($($behaviour),*);
        tallygate_harness::in_redis!($($behaviour),*);
    };
}

/// Makes a test of each behaviour in Redis.
#[macro_export]
macro_rules! in_redis {
    ($($behaviour:ident),* $(,)?) => {
        mod in_redis {
            use tallygate_harness::{stage::Stage, suite};
            $(
                #[tokio::test]
                async fn $behaviour() {
                    suite::$behaviour(&Stage::in_redis().await).await;
                }
            )*
        }
        mod in_sentinels {
            use tallygate_harness::{stage::Stage, suite};
            $(
                #[tokio::test]
                async fn $behaviour() {
                    suite::$behaviour(&Stage::in_sentinels().await).await;
                }
            )*
        }
        mod in_cluster {
            use tallygate_harness::{stage::Stage, suite};
            $(
                #[tokio::test]
                async fn $behaviour() {
                    suite::$behaviour(&Stage::in_cluster().await).await;
                }
            )*
        }
        mod in_shards {
            use tallygate_harness::{stage::Stage, suite};
            $(
                #[tokio::test]
                async fn $behaviour() {
                    suite::$behaviour(&Stage::in_shards().await).await;
                }
            )*
        }
    };
}

/// Makes a test of each behaviour in memory.
#[macro_export]
macro_rules! in_memory {
    ($($behaviour:ident),* $(,)?) => {
        mod in_memory {
            use tallygate_harness::{stage::Stage, suite};
            $(
                #[tokio::test(start_paused = true)]
                async fn $behaviour() {
                    suite::$behaviour(&Stage::in_memory()).await;
                }
            )*
        }
    };
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn policy(name: &'static str, rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy::builder(name).rules(rules).build().expect("the rules are sound")
}

fn limits<const N: usize>(rules: [(u64, u64); N]) -> Policy {
    policy("limits", rules.map(|(count, per)| Rule::sliding_window(count, secs(per))))
}

fn somebody() -> Subject {
    Subject::of("somebody")
}

/// The rule that is named, and how long to wait.
fn named(denial: &Denial) -> (Option<usize>, Option<Duration>) {
    (denial.rule().map(|limiting| limiting.position()), denial.retry_after())
}

/// The position of each rule, and what remains of it.
fn report_of(decision: &Decision) -> Vec<(usize, u64)> {
    decision.report().iter().map(|rule| (rule.position(), rule.remaining())).collect()
}
