//! What the log says of changes by operators.

use std::time::Duration;

use tallygate::config::Policies;
use tallygate::context::{self, Context};
use tallygate::{Ban, Limiter, Policy, Rule, Subject};
use tallygate_harness::log::Log;

const HOUR: Duration = Duration::from_secs(3_600);

async fn change(limiter: &Limiter) {
    let rules = Policy::builder("operated").rule(Rule::sliding_window(1, HOUR));
    let policy = rules.ban(Ban::new(3, HOUR, HOUR)).build().unwrap();
    let alice = Subject::of("alice");
    let check = || limiter.check(&policy, &alice);
    check().ban(HOUR).await.unwrap();
    check().unban().await.unwrap();
    check().reset().await.unwrap();
    check().reset_all().await.unwrap();
    limiter.apply(&Policies::from_toml("[policy.operated]\nrules = ['2 per 1h']").unwrap()).unwrap();
}

#[tokio::test]
async fn the_log_names_who_has_banned_or_reset_a_subject_or_applied_a_file() {
    let limiter = Limiter::in_memory();
    let (log, _listening) = Log::listen();
    let lines = |part: &str| log.lines().into_iter().filter(|line| line.contains(part)).collect::<Vec<_>>();
    // A program makes many changes of its own.
    change(&limiter).await;
    assert_eq!(lines("a change by an operator was carried out"), [""; 0]);
    context::scope(Context::new().with("operator", "zoe b."), change(&limiter)).await;
    let named = lines("zoe b.");
    let changes = [
        "a subject was banned",
        "a ban of a subject was ended, if there was one",
        "a subject was reset",
        "all subjects of a call were reset",
        "policies of a file are in force",
    ];
    assert_eq!(named.len(), changes.len(), "{named:?}");
    for (line, change) in named.iter().zip(changes) {
        assert!(line.contains(change), "{change}: {line}");
    }
    assert_eq!(lines("alice"), [""; 0], "no subject is in the log");
}
