//! What the log shows of pauses: those that nobody keeps, those that are cut, and those that end.

use std::sync::LazyLock;
use std::time::Duration;

use tallygate::{Limiter, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_harness::clocked::{Clocked, new_clock};
use tallygate_harness::log::Log;
use tallygate_harness::server::away;
use tallygate_harness::until::until;

const MINUTE: Duration = Duration::from_secs(60);

fn lines(log: &Log, level: &str, text: &str) -> usize {
    log.lines().iter().filter(|line| line.contains(level) && line.contains(text)).count()
}

fn pausable(name: &'static str) -> Policy {
    Policy::builder(name).rule(Rule::sliding_window(9, 60 * MINUTE)).pausable().build().unwrap()
}

/// The other side always says to come back later.
fn later<T>(_: &T) -> Duration {
    MINUTE
}

static NOT_PAUSABLE: LazyLock<Policy> =
    LazyLock::new(|| Policy::builder("not-pausable").rule(Rule::sliding_window(9, MINUTE)).build().unwrap());

#[rate_limit(policy = NOT_PAUSABLE, key = "{user}", pause = later, limiter = limiter)]
async fn call_partner(limiter: &Limiter, user: &str) -> Result<(), Rejection> {
    let _ = (limiter, user);
    Ok(())
}

#[tokio::test]
async fn a_function_whose_policy_keeps_no_pause_is_reported_once_with_the_name_of_the_policy() {
    let (log, _listening) = Log::listen();
    let limiter = Limiter::in_memory();
    for _ in 0..3 {
        call_partner(&limiter, "alice").await.unwrap();
    }
    assert_eq!(lines(&log, "ERROR", "the `pause` of a function does nothing"), 1);
    assert_eq!(lines(&log, "ERROR", "policy=\"not-pausable\""), 1);
    assert_eq!(lines(&log, "ERROR", "calls are rejected"), 0);
}

static AWAY: LazyLock<Policy> = LazyLock::new(|| pausable("away"));

#[rate_limit(policy = AWAY, key = "{user}", pause = later, limiter = limiter)]
async fn call_while_away(limiter: &Limiter, user: &str) -> Result<(), Rejection> {
    let _ = (limiter, user);
    Ok(())
}

#[tokio::test]
async fn a_pause_that_cannot_be_stored_is_a_warning() {
    let (log, _listening) = Log::listen();
    call_while_away(&away(|builder| builder), "alice").await.unwrap();
    until("it is reported", || lines(&log, "WARN", "other processes do not hear of a pause yet") == 1).await;
}

#[tokio::test]
async fn a_pause_that_is_cut_to_the_longest_is_reported_once_with_the_setting() {
    let (log, _listening) = Log::listen();
    let (limiter, policy) = (Limiter::in_memory(), pausable("cut"));
    for length in [60 * MINUTE, 61 * MINUTE, 62 * MINUTE] {
        limiter.check(&policy, &Subject::of("partner")).pause(length).await.unwrap();
    }
    assert_eq!(lines(&log, "WARN", "to allow it, set `PolicyBuilder::longest_pause`"), 1);
}

#[tokio::test]
async fn a_call_that_has_lost_its_place_to_another_one_opens_nothing() {
    let clocked = Clocked::start();
    let clock = new_clock();
    let in_memory = Limiter::builder().clock(&clock).build_in_memory().unwrap();
    for (number, (limiter, clock)) in
        [(in_memory, &clock), (clocked.limiter().await, clocked.clock())].into_iter().enumerate()
    {
        let (log, _listening) = Log::listen();
        let (policy, subject) = (pausable("lost"), Subject::of(number));
        let admitted = async || limiter.check(&policy, &subject).await.unwrap().into_result().unwrap();
        admitted().await.pause(5 * MINUTE).await.unwrap();
        clock.advance(5 * MINUTE);
        let slow = admitted().await;
        clock.advance(MINUTE);
        let tried = admitted().await;
        slow.succeeded().await.unwrap();
        assert_eq!(lines(&log, "INFO", "a subject is open again after a pause"), 0);
        tried.succeeded().await.unwrap();
        assert_eq!(lines(&log, "INFO", "a subject is open again after a pause"), 1);
    }
}
