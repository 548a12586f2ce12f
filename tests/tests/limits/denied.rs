//! Who is denied most often: in this process, and in all processes that share a Redis.

use std::future::ready;
use std::time::Duration;

use tallygate::{Ban, DeniedSubject, Limiter, LimiterBuilder, OnOutage, Policy, Rule, Subject};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::log::Log;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until_found;
use tokio::time::advance;

const HOUR: Duration = Duration::from_secs(3_600);

fn builder() -> LimiterBuilder {
    patient().denied_subjects(100)
}

fn policy(name: &'static str) -> Policy {
    Policy::builder(name).rule(Rule::sliding_window(1, HOUR)).build().unwrap()
}

/// Calls that often, and returns how many were denied.
async fn call(limiter: &Limiter, policy: &Policy, subject: &str, times: u64) -> u64 {
    let mut denied = 0;
    for _ in 0..times {
        denied += u64::from(!limiter.check(policy, &Subject::of(subject)).await.unwrap().is_allowed());
    }
    denied
}

/// Policy, subject and denials of each.
fn shown(denied: &[DeniedSubject]) -> Vec<(String, String, u64)> {
    let shown = denied.iter().map(|one| (one.policy().to_owned(), one.subject().to_string(), one.denials()));
    shown.collect()
}

fn of(policy: &str, subject: &str, denials: u64) -> (String, String, u64) {
    (policy.to_owned(), subject.to_owned(), denials)
}

async fn those_denied_most_come_first_by_policy(limiter: Limiter) {
    let (mail, sms) = (policy("mail"), policy("sms:send"));
    for (policy, subject, calls) in [(&mail, "a", 4), (&mail, "b", 8), (&sms, "a:é", 6), (&mail, "c", 1)] {
        assert_eq!(call(&limiter, policy, subject, calls).await, calls - 1);
    }
    let all = [of("mail", "b", 7), of("sms:send", "a%3A%C3%A9", 5), of("mail", "a", 3)];
    let denied = limiter.denied_subjects();
    assert_eq!(shown(&denied), all);
    assert!(denied.iter().all(|one| one.max_denials() == Some(one.denials()) && one.label().is_none()));
    assert_eq!(denied[1].subject(), &Subject::of("a:é"));

    limiter.publish_denied_subjects().await.unwrap();
    assert_eq!(shown(&limiter.top_denied("mail", 10).await.unwrap()), [of("mail", "b", 7), of("mail", "a", 3)]);
    assert_eq!(shown(&limiter.top_denied("mail", 1).await.unwrap()), [of("mail", "b", 7)]);
    assert_eq!(limiter.top_denied("unknown", 10).await.unwrap().len(), 0);
}

#[tokio::test]
async fn those_denied_most_come_first_by_policy_in_memory() {
    those_denied_most_come_first_by_policy(builder().build_in_memory().unwrap()).await;
}

#[tokio::test]
async fn those_denied_most_come_first_by_policy_in_redis() {
    let server = Server::start();
    those_denied_most_come_first_by_policy(connected(&builder(), &server.url()).await).await;
}

#[tokio::test]
async fn those_denied_most_come_first_by_policy_in_a_cluster() {
    let cluster = Cluster::shared();
    let limiter = connected(&builder().prefix("denied"), &cluster.url()).await;
    those_denied_most_come_first_by_policy(limiter).await;
}

#[tokio::test]
async fn a_denial_is_that_of_the_subject_whose_rule_denies_and_a_ban_that_of_the_main_one() {
    let limiter = builder().build_in_memory().unwrap();
    let policy = Policy::builder("p").rule(Rule::sliding_window(3, HOUR)).rule_on("net", Rule::sliding_window(1, HOUR));
    let policy = policy.ban(Ban::new(3, HOUR, HOUR)).build().unwrap();
    let (user, network) = (Subject::of("user"), Subject::of("network"));
    let mut kinds = Vec::new();
    for _ in 0..5 {
        let decided = limiter.check(&policy, &user).subject("net", &network).await.unwrap().into_result();
        kinds.push(decided.err().map(|denial| denial.kind().as_str()));
    }
    let denied = limiter.denied_subjects();
    let by_label: Vec<_> = denied.iter().map(|one| (one.label(), one.subject().to_string(), one.denials())).collect();
    let banned = kinds.iter().filter(|kind| **kind == Some("banned")).count() as u64;
    assert!(banned > 0);
    let mut expected = vec![(Some("net"), "network".to_owned(), 4 - banned), (None, "user".to_owned(), banned)];
    expected.sort_by_key(|(.., denials)| std::cmp::Reverse(*denials));
    assert_eq!(by_label, expected);
}

#[tokio::test]
async fn peeks_and_limiters_that_keep_none_count_nothing() {
    let (keeps, keeps_none) = (builder().build_in_memory().unwrap(), patient().build_in_memory().unwrap());
    assert_eq!(call(&keeps, &policy("p"), "s", 1).await, 0);
    assert!(!keeps.peek(&policy("p"), &Subject::of("s")).await.unwrap().is_allowed());
    assert_eq!(call(&keeps_none, &policy("p"), "s", 3).await, 2);
    for limiter in [keeps, keeps_none] {
        assert_eq!(limiter.denied_subjects().len(), 0);
    }
    let server = Server::start();
    let limiter = server.limiter().await;
    assert_eq!(call(&limiter, &policy("p"), "s", 3).await, 2);
    limiter.publish_denied_subjects().await.unwrap();
    assert_eq!(server.ask::<Vec<String>>("KEYS *!denied*"), [""; 0]);
}

#[tokio::test]
async fn denials_from_the_cache_and_of_the_standby_count() {
    let mut server = Server::start();
    let builder = builder().denial_cache(Duration::from_secs(10)).on_outage(OnOutage::Local);
    let limiter = connected(&builder, &server.url()).await;
    let before = server.calls("evalsha");
    assert_eq!(call(&limiter, &policy("p"), "s", 5).await, 4);
    assert!(server.calls("evalsha") - before < 5, "some are cached");
    server.kill();
    // The standby admits one.
    assert_eq!(call(&limiter, &policy("p"), "t", 5).await, 4);
    assert_eq!(shown(&limiter.denied_subjects()), [of("p", "s", 4), of("p", "t", 4)]);

    assert!(limiter.publish_denied_subjects().await.is_err());
    server.restart();
    until_found("they are published", async || limiter.publish_denied_subjects().await.is_ok()).await;
    assert_eq!(shown(&limiter.top_denied("p", 10).await.unwrap()), [of("p", "s", 4), of("p", "t", 4)]);
}

#[tokio::test]
async fn all_processes_add_up_and_each_denial_is_published_once() {
    let server = Server::start();
    let [one, other] = [connected(&builder(), &server.url()).await, connected(&builder(), &server.url()).await];
    let reader = server.limiter().await;
    let policy = policy("p");
    for round in 1..=3 {
        call(&one, &policy, "s", 10).await;
        call(&other, &policy, "s", 10).await;
        call(&other, &policy, "t", 5).await;
        for limiter in [&one, &other, &one] {
            limiter.publish_denied_subjects().await.unwrap();
        }
        let expected = [of("p", "s", 20 * round - 1), of("p", "t", 5 * round - 1)];
        let denied = reader.top_denied("p", 10).await.unwrap();
        assert_eq!(shown(&denied), expected);
        assert!(denied.iter().all(|one| one.max_denials().is_none()));
    }
    assert_eq!(reader.denied_subjects().len(), 0);
}

#[tokio::test]
async fn denials_whose_answer_is_lost_are_not_published_again() {
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter = connected(&builder(), &proxy.url()).await;
    assert_eq!(call(&limiter, &policy("p"), "s", 4).await, 3);
    proxy.cut_replies();
    assert!(limiter.publish_denied_subjects().await.is_err());

    until_found("the limiter is connected again", async || limiter.ping().await.is_ok()).await;
    assert_eq!(call(&limiter, &policy("p"), "s", 2).await, 2);
    limiter.publish_denied_subjects().await.unwrap();
    assert_eq!(shown(&limiter.top_denied("p", 10).await.unwrap()), [of("p", "s", 5)]);
}

#[tokio::test]
async fn denials_that_were_not_sent_are_published_later_if_a_publication_is_dropped() {
    let server = Server::start();
    let limiter = connected(&builder(), &server.url()).await;
    let policies = ["mail", "sms", "login"];
    for name in policies {
        assert_eq!(call(&limiter, &policy(name), "s", 4).await, 3);
    }
    tokio::select! {
        biased;
        _ = limiter.publish_denied_subjects() => panic!("it waits for an answer"),
        () = ready(()) => {}
    }
    limiter.publish_denied_subjects().await.unwrap();
    let mut published = Vec::new();
    for name in policies {
        published.extend(limiter.top_denied(name, 10).await.unwrap().iter().map(DeniedSubject::denials));
    }
    // Of the first one, it is not known.
    assert!(published.len() >= 2 && published.iter().all(|denials| *denials == 3), "{published:?}");
}

#[tokio::test]
async fn in_memory_policies_that_are_too_many_to_count_are_a_warning_once() {
    let (log, _listening) = Log::listen();
    let limiter = builder().build_in_memory().unwrap();
    for number in 0..1_003 {
        let policy = Policy::builder(format!("p{number}")).rule(Rule::sliding_window(1, HOUR)).build().unwrap();
        assert_eq!(call(&limiter, &policy, "s", 2).await, 1);
    }
    assert_eq!(limiter.denied_subjects().len(), 1_000);
    let warnings =
        log.lines().into_iter().filter(|line| line.contains("too many policies to count the denied subjects"));
    let warnings: Vec<_> = warnings.collect();
    assert!(warnings.len() == 1 && warnings[0].contains("WARN") && warnings[0].contains("most=1000"), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_published_by_itself() {
    let server = Server::start();
    let limiter = connected(&builder(), &server.url()).await;
    for times in [5, 3] {
        let before = limiter.denied_subjects().first().map_or(0, DeniedSubject::denials);
        let denied = before + call(&limiter, &policy("p"), "s", times).await;
        advance(Duration::from_secs(11)).await;
        let published = async || shown(&limiter.top_denied("p", 1).await.unwrap()) == [of("p", "s", denied)];
        until_found("the denials are published", published).await;
    }
}

#[tokio::test]
async fn what_is_published_has_a_time_to_live_and_a_bound_and_hides_no_one() {
    let server = Server::start();
    let limiter = connected(&patient().denied_subjects(10_000), &server.url()).await;
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    for number in 0..1_200 {
        call(&limiter, &policy, &format!("user{number}"), 2).await;
    }
    call(&limiter, &policy, "flood", 50).await;
    limiter.publish_denied_subjects().await.unwrap();
    let keys = server.ask::<Vec<String>>("KEYS *!denied*");
    for key in &keys {
        assert!(server.ask::<u64>(&format!("ZCARD {key}")) <= 1_000);
        let ttl_ms = server.ask::<i64>(&format!("PTTL {key}"));
        assert!(0 < ttl_ms && ttl_ms <= 2 * 3_600_000, "{ttl_ms}");
    }
    // Two, if an hour has just begun.
    assert!((1..=2).contains(&keys.len()), "{keys:?}");
    assert_eq!(shown(&limiter.top_denied("p", 1).await.unwrap()), [of("p", "flood", 49)]);
}

#[tokio::test]
async fn a_foreign_key_is_an_error_and_foreign_members_are_left_out() {
    let server = Server::start();
    let limiter = connected(&builder(), &server.url()).await;
    call(&limiter, &policy("p"), "s", 3).await;
    limiter.publish_denied_subjects().await.unwrap();
    let key = server.ask::<Vec<String>>("KEYS *!denied*").remove(0);
    server.ask::<()>(&format!("ZADD {key} 9 nobody -5 :negative 1.5 :half"));
    let denied = shown(&limiter.top_denied("p", 10).await.unwrap());
    assert_eq!(denied, [of("p", "s", 2), of("p", "half", 1), of("p", "negative", 0)]);
    server.ask::<()>(&format!("SET {key} text"));
    let error = limiter.top_denied("p", 10).await.unwrap_err().to_string();
    assert!(error.contains("WRONGTYPE") || error.contains("type"), "{error}");
}

#[test]
fn too_many_subjects_to_keep_are_a_mistake() {
    let error = Limiter::builder().denied_subjects(10_001).build_in_memory().unwrap_err();
    assert_eq!(error.to_string(), "`denied_subjects` is at most 10000, like `denied_subjects(1_000)`");
}

#[tokio::test]
async fn in_memory_a_denial_by_a_rule_that_an_override_adds_is_one_of_its_subject() {
    let limiter = builder().build_in_memory().unwrap();
    let policy = policy("mail").with_counts([100]);
    let rules = [Rule::sliding_window(100, HOUR), Rule::concurrency(1, Duration::from_secs(30))];
    limiter.override_policy("mail").rules(rules).set().await.unwrap();
    let _running = limiter.check(&policy, &Subject::of("a")).await.unwrap().into_result().unwrap();
    assert_eq!(call(&limiter, &policy, "a", 3).await, 3);
    assert_eq!(shown(&limiter.denied_subjects()), [of("mail", "a", 3)]);
}
