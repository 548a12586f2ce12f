//! How the list is kept: renewed, bounded, and without policies that nobody uses any more.

use std::time::{Duration, UNIX_EPOCH};

use tallygate::Limiter;
use tallygate_harness::clocked::{START_US, new_clock};
use tallygate_harness::log::Log;
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::slow_log::{Run, note_all, runs_of};
use tallygate_harness::until::until_found;

use super::{KEY, call, hourly, listing_limiter, read, store, stored, until_listed};

const DAY: Duration = Duration::from_secs(86_400);
const WEEK_MS: i64 = 7 * 86_400_000;

/// Which word of `EVAL` says where a step continues to look for policies that no process uses any more. It is empty if the
/// step looks for none.
const PLACE_TO_LOOK_AT: usize = 6;

/// Calls until the log says that.
async fn until_said(limiter: &Limiter, log: &Log, words: &str) {
    let policy = hourly("meanwhile", 1_000_000);
    until_found(words, async || {
        call(limiter, &policy).await;
        log.lines().iter().any(|line| line.contains(words))
    })
    .await;
}

#[tokio::test]
async fn about_a_day_later_a_policy_that_is_still_used_is_listed_again() {
    let server = Server::start();
    let clock = new_clock();
    let limiter = connected(&patient().registry(true).clock(&clock), &server.url()).await;
    let (used, unused) = (hourly("used", 1_000_000), hourly("unused", 1_000_000));
    assert!(call(&limiter, &used).await && call(&limiter, &unused).await);
    let start = UNIX_EPOCH + Duration::from_secs(START_US / 1_000_000);
    for name in ["used", "unused"] {
        assert_eq!(until_listed(&limiter, name, |_| true).await.seen(), start);
    }
    server.ask::<()>(&format!("PEXPIRE {KEY} 100000"));

    clock.advance(DAY);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(27 * 3_600)).await;
    tokio::time::resume();
    until_found("the policy is listed again", async || {
        call(&limiter, &used).await;
        read(&limiter).await.find("used").unwrap().seen() > start
    })
    .await;
    assert_eq!(read(&limiter).await.find("unused").unwrap().seen(), start);
    let ttl = server.ask::<i64>(&format!("PTTL {KEY}"));
    assert!(ttl > WEEK_MS - 3_600_000 && ttl <= WEEK_MS, "{ttl}");
}

#[tokio::test]
async fn a_policy_that_no_process_lists_for_a_week_is_removed_by_the_next_writer() {
    let server = Server::start();
    let clock = new_clock();
    let limiter = async || connected(&patient().registry(true).clock(&clock), &server.url()).await;
    let first = limiter().await;
    call(&first, &hourly("old", 5)).await;
    until_listed(&first, "old", |_| true).await;

    clock.advance(Duration::from_secs(7 * 86_400 - 2));
    let second = limiter().await;
    call(&second, &hourly("younger", 5)).await;
    until_listed(&second, "younger", |_| true).await;
    assert_eq!(stored(&server).len(), 2, "a week is not over");

    clock.advance(Duration::from_secs(2));
    let third = limiter().await;
    call(&third, &hourly("youngest", 5)).await;
    until_listed(&third, "youngest", |_| true).await;
    let names: Vec<_> = read(&third).await.policies().iter().map(|policy| policy.name().to_owned()).collect();
    assert_eq!(names, ["younger", "youngest"]);
}

/// Fills the list, as so many policies of other processes would.
fn fill(server: &Server, seconds: u64) {
    let mut fill = redis::cmd("HSET");
    fill.arg(KEY);
    for number in 0..1_000 {
        fill.arg(format!("other{number}")).arg(format!("{seconds} 1\nname other{number}\nrule 0 1 per 1h"));
    }
    let () = fill.query(&mut server.connection()).unwrap();
}

#[tokio::test]
async fn beyond_a_thousand_policies_new_ones_are_not_listed_and_the_log_says_so_once() {
    let (log, _listening) = Log::listen();
    let server = Server::start();
    // In the year 2286.
    fill(&server, 9_999_999_999);
    let limiter = listing_limiter(&server).await;
    until_said(&limiter, &log, "too many policies to list").await;
    for policy in [hourly("one.more", 5), hourly("another", 5)] {
        call(&limiter, &policy).await;
    }
    assert_eq!(read(&limiter).await.policies().len(), 1_000);

    // One that is listed already is renewed.
    call(&limiter, &hourly("other7", 5)).await;
    until_listed(&limiter, "other7", |listed| listed.rules_text() == "5 per 1h").await;
    let said = log.lines().into_iter().filter(|line| line.contains("too many policies to list")).count();
    assert_eq!((stored(&server).len(), said), (1_000, 1));
}

#[tokio::test]
async fn policies_that_no_process_lists_any_more_make_room_however_many_they_are() {
    let server = Server::start();
    fill(&server, 0);
    let limiter = listing_limiter(&server).await;
    call(&limiter, &hourly("new", 5)).await;
    until_listed(&limiter, "new", |_| true).await;
    until_found("the others are gone", async || stored(&server).len() == 1).await;
}

#[tokio::test]
async fn each_step_of_the_upkeep_looks_at_a_few_policies_so_that_the_server_is_never_busy_for_long() {
    let server = Server::start();
    fill(&server, 0);
    note_all(&server);
    let limiter = listing_limiter(&server).await;
    let names = (0..100).map(|number| format!("policy {number}")).collect::<Vec<_>>();
    for name in &names {
        let rule = tallygate::Rule::sliding_window(5, super::HOUR);
        call(&limiter, &tallygate::Policy::builder(name.clone()).rule(rule).build().unwrap()).await;
    }
    until_found("all are listed", async || stored(&server).len() == names.len()).await;
    let looks = |step: &Run| step.word(PLACE_TO_LOOK_AT).is_some_and(|place| !place.is_empty());
    let looked = runs_of(&server, "EVAL").into_iter().filter(looks).count();
    // A step asks for 64, and the server may return somewhat more.
    assert!(looked >= 1_000 / 128, "all were looked at in {looked} steps");
}

#[tokio::test]
async fn what_another_version_or_another_program_wrote_is_reported_by_name_and_stays() {
    let server = Server::start();
    let entries = [
        ("later", "9999999999 2\n{\"rules\": []}", "it has the form \"2\""),
        ("foreign", "whatever", "it does not begin with a time"),
        ("mistaken", "9999999999 1\nname mistaken\nrule 0 1 per fortnight", "fortnight"),
    ];
    for (field, text, _) in entries {
        store(&server, field, text);
    }
    let limiter = listing_limiter(&server).await;
    call(&limiter, &hourly("ours", 5)).await;
    until_listed(&limiter, "ours", |_| true).await;
    let registered = read(&limiter).await;
    assert_eq!(registered.policies().len(), 1);
    for (field, text, reason) in entries {
        let unreadable = registered.unreadable().iter().find(|unreadable| unreadable.name() == field).unwrap();
        assert!(unreadable.reason().contains(reason), "{unreadable:?}");
        assert_eq!(stored(&server)[field], text);
    }
}

#[tokio::test]
async fn a_description_that_is_too_long_is_not_stored_and_the_log_says_which() {
    let (log, _listening) = Log::listen();
    let server = Server::start();
    let limiter = listing_limiter(&server).await;
    let builder = super::hourly_builder("long", 1_000_000).key("x".repeat(5_000));
    let policy = builder.build().unwrap();
    for _ in 0..20 {
        call(&limiter, &policy).await;
    }
    call(&limiter, &hourly("short", 5)).await;
    until_listed(&limiter, "short", |_| true).await;
    let said: Vec<_> = log.lines().into_iter().filter(|line| line.contains("are too long")).collect();
    assert!(said.len() == 1 && said[0].contains("long"), "{said:?}");
    assert_eq!(stored(&server).len(), 1);
}
