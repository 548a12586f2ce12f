//! Sentinels: the limiter goes wherever they say that the primary is.

use std::time::{Duration, Instant};

use tallygate::{Limiter, Subject};
use tallygate_harness::length::cases;
use tallygate_harness::outage::DEADLINE;
use tallygate_harness::pressure::{Pressure, assert_all_stored, assert_stored, counted};
use tallygate_harness::punctuality::Punctuality;
use tallygate_harness::sentinels::{NAME, Sentinels};
use tallygate_harness::server::{Server, connected, patient, refused};
use tallygate_harness::until::until;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::sleep;

/// Tests about time run one at a time.
async fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
    ONE_AT_A_TIME.lock().await
}

fn subjects(round: &str) -> Vec<Subject> {
    (0..16).map(|value| Subject::of(round).and(value)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_hands_over_while_it_answers_is_left_at_once() {
    let _alone = alone().await;
    for _ in 0..cases(1, 5) {
        let servers = Sentinels::start();
        let limiter = servers.limiter().await;
        let before = Pressure::start(&limiter, subjects("before"));
        before.admit(1_000).await;
        servers.fail_over();
        until("a sentinel names the new primary", || servers.any_names_replica()).await;
        let machine = Punctuality::watch();
        sleep(Duration::from_millis(500)).await;
        sleep(Duration::from_millis(500) + machine.lateness()).await;
        // The old primary may still take hits, and lose them when it follows the new one.
        let after = Pressure::start(&limiter, subjects("after"));
        after.admit(3_000).await;
        until("the old primary follows the new one", || servers.has_handed_over()).await;
        after.admit(1_000).await;
        assert_all_stored(&limiter, &after.end().await).await;
        assert!(before.end().await.iter().all(|called| called.failed.is_empty()));
    }
}

/// Loses the primary under load until a sentinel names the other one, which is used within a second.
async fn assert_replaced(lose: impl FnOnce(&mut Server), regain: impl FnOnce(&mut Server)) {
    let _alone = alone().await;
    let mut servers = Sentinels::start();
    let limiter = connected(&Limiter::builder().deadline(DEADLINE), &servers.url()).await;
    let pressure = Pressure::start(&limiter, subjects("before"));
    pressure.admit(1_000).await;
    servers.lose_primary(lose).await;
    assert!(pressure.failed() > 0);
    let machine = Punctuality::watch();
    let named = Instant::now();
    pressure.recover().await;
    let called = pressure.end().await;
    let late = machine.lateness();
    for called in called {
        let after = called.recovered.unwrap().saturating_duration_since(named);
        assert!(
            after <= Duration::from_secs(1) + late,
            "a call succeeded {after:?} after a sentinel said where; {late:?}"
        );
    }
    // One that is behind still sends its followers to the old primary, which takes hits again until it follows.
    until("all sentinels name the new primary", || servers.all_name_replica()).await;
    regain(servers.primary_mut());
    let after = Pressure::start(&limiter, subjects("after"));
    until("the old primary follows the new one", || servers.has_handed_over()).await;
    after.admit(1_000).await;
    assert_stored(&servers.limiter().await, &after.end().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_is_killed_is_replaced() {
    assert_replaced(Server::kill, Server::restart).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_hangs_is_replaced_and_not_used_again_when_it_goes_on() {
    assert_replaced(|primary| primary.pause(), |primary| primary.resume()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sentinel_that_answers_is_enough_to_find_the_primary() {
    let servers = Sentinels::start();
    let before = servers.limiter().await;
    servers.sentinels()[0].pause();
    servers.sentinels()[2].pause();
    for limiter in [&before, &servers.limiter().await] {
        let pressure = Pressure::start(limiter, subjects("s"));
        pressure.admit(500).await;
        assert!(pressure.end().await.iter().all(|called| called.failed.is_empty()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_stays_in_use_while_no_sentinel_answers() {
    let mut servers = Sentinels::start();
    let limiter = servers.limiter().await;
    let pressure = Pressure::start(&limiter, subjects("s"));
    pressure.admit(500).await;
    servers.sentinels_mut().iter_mut().for_each(Server::kill);
    pressure.admit(500).await;
    assert_all_stored(&limiter, &pressure.end().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_in_the_url_is_an_error_at_start_up() {
    let mut servers = Sentinels::start();
    let unknown = servers.url().replace(NAME, "talies");
    let error = refused(&patient(), &unknown).await.to_string();
    assert!(error.contains("`url`") && error.contains("watches no primary `talies`"), "{error}");
    servers.sentinels_mut().iter_mut().for_each(Server::kill);
    let error = refused(&patient(), &servers.url()).await.to_string();
    assert!(error.contains("`url`") && error.contains("refused"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_login_of_the_primary_is_for_sentinels_that_want_one_too() {
    const PASSWORD: &str = "s3cret-and-odd";
    let options = ["--requirepass", PASSWORD, "--masterauth", PASSWORD];
    let watching = format!("sentinel auth-pass {NAME} {PASSWORD}");
    for sentinel_options in [&[][..], &["--requirepass", PASSWORD]] {
        let servers = Sentinels::start_with(&options, sentinel_options, &[&watching]);
        let url = servers.url().replace("://", &format!("://:{PASSWORD}@"));
        let limiter = connected(&patient(), &url).await;
        assert_eq!(counted(&limiter, &Subject::of("s")).await, 0);
        let error = refused(&patient(), &url.replace(PASSWORD, "wrong")).await.to_string();
        assert!(error.contains("`url`") && error.contains("password") && !error.contains(PASSWORD), "{error}");
    }
}
