//! The subjects that have a tally, found without keeping the server busy.

use std::collections::BTreeSet;

use tallygate::{Limiter, Policy, Rule, RuleStatus, Subject};
use tallygate_harness::server::{Server, connected};
use tallygate_harness::slow_log::{note_all, runs_of};
use tallygate_harness::until::until_found;

use super::{HOUR, call, each_store, hourly, hourly_builder};

async fn found(limiter: &Limiter, policy: &Policy, label: Option<&str>) -> Vec<String> {
    let mut tallies = limiter.tallies(policy, label).unwrap();
    let mut found = Vec::new();
    while let Some(page) = tallies.next_page().await.unwrap() {
        found.extend(page.subjects().iter().map(ToString::to_string));
    }
    found.sort();
    found
}

#[tokio::test]
async fn the_subjects_of_one_policy_and_one_label_are_found_and_no_others() {
    let (limiters, _server) = each_store().await;
    for limiter in limiters {
        let policy = hourly_builder("a*c", 5).rule_on("network", Rule::fixed_window(20, HOUR)).build().unwrap();
        for value in ["1", "*", "é"] {
            let (user, network) = (Subject::of("user").and(value), Subject::of("n"));
            assert!(limiter.check(&policy, &user).subject("network", &network).await.unwrap().is_allowed());
        }
        for name in ["abc", "a*", "a*cd"] {
            call(&limiter, &hourly(name, 5)).await;
        }
        assert_eq!(found(&limiter, &policy, None).await, ["user:%2A", "user:%C3%A9", "user:1"]);
        assert_eq!(found(&limiter, &policy, Some("network")).await, ["n"]);
        assert!(found(&limiter, &hourly("none", 5), None).await.is_empty());
        let refused = limiter.tallies(&policy, Some("netwrk")).unwrap_err().to_string();
        assert_eq!(refused, "policy `a*c` has no rule on a subject `netwrk`");
    }
}

#[tokio::test]
async fn who_is_counted_in_any_unit_is_found_once() {
    let (limiters, _server) = each_store().await;
    for limiter in limiters {
        let tokens = || Rule::sliding_window(9, HOUR).counting("tokens");
        let bytes = || Rule::sliding_window(9, HOUR).counting("bytes").shadow();
        let all = hourly_builder("chat", 5).rules([tokens(), bytes()]).build().unwrap();
        let both = Subject::of("both");
        let check = limiter.check(&all, &both).cost_of("tokens", 1).cost_of("bytes", 1);
        assert!(check.await.unwrap().is_allowed());
        // The calls of these subjects count no more, or were never counted.
        for (unit, rule) in [("tokens", tokens()), ("bytes", Rule::sliding_window(9, HOUR).counting("bytes"))] {
            let only = Policy::builder("chat").rule(rule).build().unwrap();
            assert!(limiter.check(&only, &Subject::of(unit)).cost_of(unit, 1).await.unwrap().is_allowed());
        }
        assert_eq!(found(&limiter, &all, None).await, ["both", "bytes", "tokens"]);
    }
}

#[tokio::test]
async fn who_is_counted_by_an_override_of_another_window_is_found_too() {
    let (limiters, _server) = each_store().await;
    for limiter in limiters {
        let policy = hourly_builder("p", 5).rule_on("network", Rule::fixed_window(20, HOUR)).build().unwrap();
        let network = Subject::of("n");
        let check = |user| limiter.check(&policy, user).subject("network", &network);
        let [before, after] = ["before", "after"].map(Subject::of);
        assert!(check(&before).await.unwrap().is_allowed());
        let rules = [Rule::sliding_window(3, 2 * HOUR), Rule::sliding_window(9, 3 * HOUR)];
        limiter.override_policy("p").rules(rules).set().await.unwrap();
        for user in [&before, &after] {
            assert!(check(user).await.unwrap().is_allowed());
        }
        assert_eq!(found(&limiter, &policy, None).await, ["after", "before"]);
        assert_eq!(found(&limiter, &policy, Some("network")).await, ["n"]);
        // The rule that is one more comes last.
        assert_eq!(check(&after).labels().unwrap(), [None, Some("network".to_owned()), None]);
        let report = check(&after).peek().report().await.unwrap();
        assert_eq!(report.report().iter().map(RuleStatus::limit).collect::<Vec<_>>(), [3, 20, 9]);
    }
}

#[tokio::test]
async fn subjects_with_concurrent_calls_are_found() {
    let (limiters, _server) = each_store().await;
    for limiter in limiters {
        let only =
            Policy::builder("export").rule(Rule::concurrency(1, HOUR)).rule_on("host", Rule::concurrency(2, HOUR));
        let only = only.build().unwrap();
        let (user, host) = (Subject::of("user").and(1), Subject::of("h"));
        let permit = limiter.check(&only, &user).subject("host", &host).await.unwrap().into_result().unwrap();
        assert_eq!(found(&limiter, &only, None).await, ["user:1"]);
        assert_eq!(found(&limiter, &only, Some("host")).await, ["h"]);
        drop(permit);
        // Beside other rules, the tally of these names the subject.
        let beside = hourly_builder("beside", 5).rule(Rule::concurrency(1, HOUR)).build().unwrap();
        let permit = limiter.check(&beside, &user).await.unwrap().into_result().unwrap();
        assert_eq!(found(&limiter, &beside, None).await, ["user:1"]);
        drop(permit);
    }
}

#[tokio::test]
async fn a_hundred_thousand_subjects_are_found_in_steps_that_are_short_for_the_server() {
    const SUBJECTS: usize = 100_000;
    let server = Server::start();
    let limiter = server.limiter().await;
    let policy = hourly("many", 5);
    call(&limiter, &policy).await;
    let fill = "local log = redis.call('GET', KEYS[1])
        for number = 1, ARGV[1] do redis.call('SET', 'tallygate:many/w1h:user:' .. number, log, 'PX', 3600000) end
        redis.call('UNLINK', KEYS[1])";
    let mut connection = server.connection();
    let () =
        redis::cmd("EVAL").arg(fill).arg(1).arg("tallygate:many/w1h:s").arg(SUBJECTS).query(&mut connection).unwrap();
    server.ask::<()>("CONFIG RESETSTAT");
    note_all(&server);

    let mut tallies = limiter.tallies(&policy, None).unwrap();
    let (mut subjects, mut steps, mut progress) = (BTreeSet::new(), 0, 0.0);
    while let Some(page) = tallies.next_page().await.unwrap() {
        steps += 1;
        assert!(page.subjects().len() <= 1_000, "{} in a step", page.subjects().len());
        assert!(page.progress() >= progress);
        progress = page.progress();
        subjects.extend(page.subjects().iter().map(ToString::to_string));
        // Others are served in between.
        assert!(limiter.peek(&policy, &Subject::of("s")).await.unwrap().is_allowed());
    }
    assert_eq!((subjects.len(), server.calls("scan")), (SUBJECTS, steps));
    assert!(steps >= 100 && progress >= 1.0, "{steps} steps, {progress}");
    // How long a step takes follows from that: a server looks at some thousand places in a millisecond.
    let places: Vec<_> = runs_of(&server, "SCAN").iter().map(|scan| scan.number(5)).collect();
    assert_eq!(places.len(), steps);
    assert!(places.iter().all(|&places| places <= 250), "{places:?}");
}

#[tokio::test]
async fn a_server_that_goes_away_in_the_middle_is_an_error_and_the_walk_goes_on_when_it_is_back() {
    let server = Server::start();
    let builder = tallygate::Limiter::builder().deadline(std::time::Duration::from_millis(250)).registry(false);
    let limiter = connected(&builder, &server.url()).await;
    let policy = hourly("many", 5);
    let patient = server.limiter().await;
    for number in 0..2_000 {
        assert!(patient.check(&policy, &Subject::of(number)).await.unwrap().is_allowed());
    }
    let mut tallies = limiter.tallies(&policy, None).unwrap();
    let mut subjects = 0;
    until_found("a page is found", async || {
        let page = tallies.next_page().await.ok().flatten();
        subjects = page.map_or(0, |page| page.subjects().len());
        subjects > 0
    })
    .await;
    server.pause();
    assert!(tallies.next_page().await.is_err());
    server.resume();
    loop {
        match tallies.next_page().await {
            Ok(Some(page)) => subjects += page.subjects().len(),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    assert_eq!(subjects, 2_000);
}

#[tokio::test]
async fn in_memory_many_subjects_are_found_in_steps_that_look_at_few_of_them() {
    const SUBJECTS: usize = 20_000;
    let limiter = Limiter::in_memory();
    let (policy, other) = (hourly("many", 5), hourly("other", 5));
    for number in 0..SUBJECTS {
        let user = Subject::of("user").and(number);
        assert!(limiter.check(&policy, &user).await.unwrap().is_allowed());
        assert!(limiter.check(&other, &user).await.unwrap().is_allowed());
    }
    let mut tallies = limiter.tallies(&policy, None).unwrap();
    let (mut subjects, mut steps, mut progress) = (BTreeSet::new(), 0, 0.0);
    while let Some(page) = tallies.next_page().await.unwrap() {
        steps += 1;
        assert!(page.subjects().len() <= 1_000, "{} in a step", page.subjects().len());
        assert!(page.progress() > progress);
        progress = page.progress();
        for subject in page.subjects() {
            assert!(subjects.insert(subject.to_string()), "{subject} again");
        }
    }
    assert_eq!(subjects.len(), SUBJECTS);
    assert!((32..=64).contains(&steps) && progress >= 1.0, "{steps} steps, {progress}");
}

#[tokio::test]
async fn in_memory_who_stays_is_found_whatever_comes_meanwhile() {
    let limiter = Limiter::in_memory();
    let policy = hourly("many", 5);
    let call = async |numbers: std::ops::Range<usize>| {
        for number in numbers {
            assert!(limiter.check(&policy, &Subject::of(number)).await.unwrap().is_allowed());
        }
    };
    call(0..2_000).await;
    let mut tallies = limiter.tallies(&policy, None).unwrap();
    let (mut found, mut next) = (BTreeSet::new(), 2_000);
    while let Some(page) = tallies.next_page().await.unwrap() {
        found.extend(page.subjects().iter().map(ToString::to_string));
        call(next..next + 2_000).await;
        next += 2_000;
    }
    assert!((0..2_000).all(|number| found.contains(&number.to_string())));
}

#[tokio::test(start_paused = true)]
async fn in_memory_a_subject_with_nothing_left_that_counts_is_not_found() {
    let limiter = Limiter::in_memory();
    let policy = hourly("p", 5);
    assert!(limiter.check(&policy, &Subject::of("before")).await.unwrap().is_allowed());
    tokio::time::advance(HOUR).await;
    assert!(limiter.check(&policy, &Subject::of("after")).await.unwrap().is_allowed());
    assert_eq!(found(&limiter, &policy, None).await, ["after"]);
}
