//! Overrides that end by themselves.

use std::time::Duration;

use tallygate::{Limiter, Subject};
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::stage::Stage;

use super::{HOUR, hourly, policy, room, subject, until};

const MICROSECOND: Duration = Duration::from_micros(1);
const HOUR_US: i64 = 3_600_000_000;

/// Makes a test of each behaviour on each backend, with a clock that the test sets.
macro_rules! every_stage {
    ($($behaviour:ident),* $(,)?) => {
        mod in_memory {
            $(
                #[tokio::test(start_paused = true)]
                async fn $behaviour() {
                    super::$behaviour(tallygate_harness::stage::Stage::in_memory()).await;
                }
            )*
        }
        mod in_redis {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    super::$behaviour(tallygate_harness::stage::Stage::in_redis().await).await;
                }
            )*
        }
    };
}

every_stage!(
    an_override_ends_exactly_when_its_time_is_over,
    an_override_for_one_subject_that_ends_gives_way_to_the_one_for_all,
    an_override_that_is_set_again_has_a_new_end_or_none,
    an_override_that_has_ended_is_neither_listed_nor_cleared,
    a_closed_limit_opens_when_the_override_ends,
);

async fn set(limiter: &Limiter, text: &str) {
    limiter.override_policy("over.ride").text(text).allow_unknown().set().await.unwrap();
}

async fn an_override_ends_exactly_when_its_time_is_over(stage: Stage) {
    let policy = policy(3);
    set(stage.limiter(), "5 per 1h for 30m").await;
    assert_eq!(stage.room(&policy, &subject()).await, 5);
    stage.pass((HOUR / 2).saturating_sub(MICROSECOND)).await;
    assert_eq!(stage.room(&policy, &Subject::of("other")).await, 5);
    stage.pass(MICROSECOND).await;
    assert_eq!(stage.room(&policy, &Subject::of("another")).await, 3);
    assert_eq!(stage.room(&policy, &subject()).await, 0, "what was counted stays counted");
}

async fn an_override_for_one_subject_that_ends_gives_way_to_the_one_for_all(stage: Stage) {
    let policy = policy(3);
    let limiter = stage.limiter();
    set(limiter, "4 per 1h").await;
    let vip = limiter.override_policy("over.ride").subject(&subject()).rules([hourly(9)]).allow_unknown();
    vip.expires_in(HOUR / 2).set().await.unwrap();
    assert_eq!(stage.room(&policy, &subject()).await, 9);
    stage.pass(2 * HOUR).await;
    assert_eq!(stage.room(&policy, &subject()).await, 4);
}

async fn an_override_that_is_set_again_has_a_new_end_or_none(stage: Stage) {
    let policy = policy(3);
    set(stage.limiter(), "5 per 1h for 30m").await;
    stage.pass(HOUR / 4).await;
    set(stage.limiter(), "5 per 1h for 30m").await;
    stage.pass(HOUR / 4).await;
    assert_eq!(stage.room(&policy, &subject()).await, 5);
    set(stage.limiter(), "5 per 1h").await;
    stage.pass(1_000 * HOUR).await;
    assert_eq!(stage.room(&policy, &subject()).await, 5);
}

async fn an_override_that_has_ended_is_neither_listed_nor_cleared(stage: Stage) {
    let limiter = stage.limiter();
    set(limiter, "5 per 1h for 90s").await;
    let builder = || limiter.override_policy("over.ride");
    stage.pass(Duration::from_millis(30_500)).await;
    let found = builder().get().await.unwrap().unwrap();
    assert_eq!(
        (found.expires_in(), found.to_string()),
        (Some(Duration::from_millis(59_500)), "5 per 1h for 1m".into())
    );
    stage.pass(Duration::from_millis(59_500)).await;
    assert!(builder().get().await.unwrap().is_none());
    assert!(limiter.overrides().await.unwrap().is_empty());
    assert!(!builder().clear().await.unwrap());
}

async fn a_closed_limit_opens_when_the_override_ends(stage: Stage) {
    let policy = policy(3);
    set(stage.limiter(), "0 per 1h for 1s").await;
    assert_eq!(stage.denied(&policy, &subject()).await.retry_after(), None);
    stage.pass(Duration::from_secs(1)).await;
    stage.admitted(&policy, &subject()).await;
}

#[tokio::test]
async fn an_override_of_no_time_or_of_too_much_is_refused() {
    let limiter = Limiter::in_memory();
    for (time, mistake) in [(Duration::ZERO, "longer than zero"), (Duration::MAX, "3660 days at most")] {
        let builder = limiter.override_policy("over.ride").rules([hourly(1)]).expires_in(time);
        let refused = builder.allow_unknown().set().await.unwrap_err().to_string();
        assert!(refused.contains(mistake), "{refused}");
    }
}

#[tokio::test]
async fn every_process_uses_the_clock_of_the_server() {
    let server = Server::start();
    let policy = policy(3);
    let admin = server.limiter().await;
    set(&admin, "5 per 1h for 1h").await;
    let vip = admin.override_policy("over.ride").subject(&subject()).rules([hourly(9)]).allow_unknown();
    vip.expires_in(MICROSECOND).set().await.unwrap();
    for (ahead_us, other) in [(2 * HOUR_US, "a"), (-2 * HOUR_US, "b")] {
        let limiter = connected(&patient().clock_ahead_by(ahead_us), &server.url()).await;
        assert_eq!(room(&limiter, &policy, &Subject::of(other)).await, 5, "it still holds");
        assert!(limiter.override_policy("over.ride").subject(&subject()).get().await.unwrap().is_none(), "it is over");
    }
}

#[tokio::test]
async fn an_override_ends_in_a_process_that_closes_its_limit_without_asking_the_server() {
    let server = Server::start();
    let policy = policy(1_000_000);
    let worker = server.limiter().await;
    set(&server.limiter().await, "0 per 1h for 1s").await;
    until(async || worker.check(&policy, &subject()).await.unwrap().is_allowed()).await;
}

#[tokio::test]
async fn the_next_change_removes_what_has_expired_from_the_server() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let mut hset = redis::cmd("HSET");
    hset.arg("tallygate:!overrides").arg("over.past").arg("5 per 1h until 1").arg("over.other").arg("5 per 1h");
    hset.arg("!version").arg("x").exec(&mut server.connection()).unwrap();
    set(&limiter, "5 per 1h").await;
    let mut fields: Vec<String> = server.ask("HKEYS tallygate:!overrides");
    fields.sort();
    assert_eq!(fields, ["!version", "over.other", "over.ride"]);
}

#[tokio::test]
async fn an_override_that_was_set_again_meanwhile_is_not_removed_as_expired() {
    let server = Server::start();
    server.ask::<()>("HSET tallygate:!overrides a new b old !version x");
    let mut change = redis::cmd("EVAL");
    change.arg(tallygate_lua::OVERRIDE).arg(1).arg("tallygate:!overrides").arg("y").arg(10_000).arg("c").arg("text");
    let was_there: bool = change.arg(["a", "old", "b", "old"].as_slice()).query(&mut server.connection()).unwrap();
    assert!(!was_there);
    let mut all: Vec<String> = server.ask("HGETALL tallygate:!overrides");
    all.sort();
    assert_eq!(all, ["!version", "a", "c", "new", "text", "y"]);
}
