//! How long tallies live, and what leaves them as they are: the same for rules of every kind.

use std::time::Duration;

use futures_util::future::join_all;
use tallygate::{BackendError, Limiter, Policy, Rejection, RejectionKind, Rule, Subject, rate_limit};
use tallygate_harness::clocked::Clocked;
use tallygate_harness::length::cases;
use tallygate_harness::lifetime::lifetime;
use tallygate_harness::mixes::mixes;
use tallygate_harness::server::{Server, ask, key_of, now_us};
use tallygate_harness::stored::Stored;

const MINUTE: Duration = Duration::from_secs(60);

/// Decides a call; of an admitted one, returns the longest time for which a rule remembers it.
async fn call(limiter: &Limiter, policy: &Policy) -> Result<Option<Duration>, BackendError> {
    let decision = limiter.check(policy, &Subject::of("s")).report().await?;
    Ok(decision.is_allowed().then(|| decision.report().iter().map(tallygate::RuleStatus::reset).max().unwrap()))
}

async fn admitted(limiter: &Limiter, policy: &Policy) {
    assert!(call(limiter, policy).await.unwrap().is_some(), "{policy:?}");
}

/// Calls until a call is denied.
async fn fill(limiter: &Limiter, policy: &Policy) {
    while call(limiter, policy).await.unwrap().is_some() {}
}

/// The longest that a tally may live after a hit: twice as long as a rule remembers one, or for more than an hour an eighth
/// longer.
fn bound(policy: &Policy, now_us: u64) -> Duration {
    let longest = policy.rules().iter().map(|rule| lifetime(rule, now_us)).max().unwrap();
    // Redis counts whole milliseconds.
    let slack = if longest <= Duration::from_secs(3_600) { longest } else { longest / 8 };
    longest + slack + Duration::from_millis(1)
}

/// What Redis answers in place of the TTL of a key that is not there.
const GONE: i64 = -2;

fn millis(ttl_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ttl_ms).unwrap())
}

#[tokio::test]
async fn every_write_leaves_a_ttl_within_its_bounds() {
    let server = Server::start();
    let (limiter, mut connection) = (server.limiter().await, server.connection());
    for policy in [8, 40, 170].map(Duration::from_millis).into_iter().flat_map(mixes) {
        let (mut stored, mut hits) = (Stored::on(&server, "mix", "s"), 0);
        while hits < cases(5, 20) {
            let before_us = now_us(&mut connection);
            let Some(needed) = call(&limiter, &policy).await.unwrap() else { continue };
            // On a busy machine it may be over before it is asked for; then nothing of it was needed any more.
            let left = match stored.ttl_ms() {
                GONE => Duration::ZERO,
                left_ms => millis(left_ms),
            };
            let since = Duration::from_micros(now_us(&mut connection) - before_us);
            assert!(left <= bound(&policy, before_us), "{left:?} is too long for {policy:?}");
            assert!(left + since + Duration::from_millis(2) >= needed, "{left:?} < {needed:?} of {policy:?}");
            hits += 1;
        }
        server.ask::<()>("FLUSHALL");
    }
}

#[tokio::test]
async fn nothing_is_left_after_the_longest_window() {
    let server = Server::start();
    let (limiter, mut connection) = (server.limiter().await, server.connection());
    for policy in mixes(Duration::from_millis(100)) {
        for _ in 0..20 {
            let _ = call(&limiter, &policy).await.unwrap();
        }
        let called_us = now_us(&mut connection);
        let bound_us = called_us + u64::try_from(bound(&policy, called_us).as_micros()).unwrap();
        loop {
            let asked_us = now_us(&mut connection);
            // Unlike `DBSIZE`, this does not count what has expired and is yet to be cleared away.
            if ask::<Vec<String>>(&mut connection, "KEYS *").is_empty() {
                break;
            }
            assert!(asked_us <= bound_us, "a tally of {policy:?} outlives its rules");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn a_tally_that_lost_its_ttl_gets_another_with_a_later_hit() {
    let clocked = Clocked::start();
    let limiter = clocked.limiter().await;
    for policy in mixes(MINUTE) {
        let mut stored = Stored::on(clocked.server(), "mix", "s");
        for _ in 0..10 {
            admitted(&limiter, &policy).await;
            assert!(
                (Duration::ZERO..=bound(&policy, clocked.now_us())).contains(&millis(stored.ttl_ms())),
                "{policy:?}"
            );
            stored.persist();
            // Until the next period of the longest rule: its first hit renews the TTL.
            clocked.advance(2 * MINUTE);
        }
        clocked.server().ask::<()>("FLUSHALL");
    }
}

#[tokio::test]
async fn a_denial_changes_no_byte_and_no_ttl() {
    let clocked = Clocked::start();
    let limiter = clocked.limiter().await;
    for policy in mixes(MINUTE) {
        let mut stored = Stored::on(clocked.server(), "mix", "s");
        fill(&limiter, &policy).await;
        let (digest, left_ms) = (stored.digest(), stored.ttl_ms());
        assert!(call(&limiter, &policy).await.unwrap().is_none());
        assert_eq!(stored.digest(), digest, "{policy:?}");
        assert!((1..=left_ms).contains(&stored.ttl_ms()));
        // A TTL that was taken away does not run down: what is there later, a denial has set.
        stored.persist();
        let digest = stored.digest();
        let mut denials = 0;
        while !limiter.check(&policy, &Subject::of("s")).await.unwrap().is_allowed() {
            assert!(call(&limiter, &policy).await.unwrap().is_none(), "{policy:?}");
            assert_eq!((stored.digest(), stored.ttl_ms()), (digest.clone(), -1), "{policy:?}");
            denials += 1;
            clocked.advance(Duration::from_millis(250));
        }
        assert!(denials > 1 && stored.digest() != digest, "{denials} denials by {policy:?}");
        clocked.server().ask::<()>("FLUSHALL");
    }
}

#[tokio::test]
async fn a_server_out_of_memory_admits_nothing_and_stores_nothing() {
    let clocked = Clocked::start();
    let (limiter, server) = (clocked.limiter().await, clocked.server());
    for policy in mixes(MINUTE) {
        let mut stored = Stored::on(server, "mix", "s");
        admitted(&limiter, &policy).await;
        clocked.advance(MINUTE);
        let before = (stored.digest(), stored.memory());
        server.ask::<()>("CONFIG SET maxmemory 1");
        for subject in ["s", "new"] {
            let outage = limiter.check(&policy, &Subject::of(subject)).await.unwrap_err();
            assert!(outage.to_string().contains("OOM"), "{outage} of {policy:?}");
        }
        assert_eq!((stored.digest(), stored.memory()), before, "{policy:?}");
        assert_eq!(server.ask::<u64>("DBSIZE"), 1);
        server.ask::<()>("CONFIG SET maxmemory 0");
        admitted(&limiter, &policy).await;
        server.ask::<()>("FLUSHALL");
    }
}

#[rate_limit(name = "mix", key = "s", limiter = limiter, rule(count = 10, per = "1m"))]
async fn limited(limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn a_call_that_a_server_cannot_count_is_rejected_as_unavailable() {
    let server = Server::start();
    let limiter = server.limiter().await;
    server.ask::<()>("CONFIG SET maxmemory 1");
    assert_eq!(limited(&limiter).await.unwrap_err().kind(), RejectionKind::Unavailable);
    server.ask::<()>("CONFIG SET maxmemory 0");
    server.ask::<()>("LPUSH tallygate:mix/w1m:s foreign");
    assert_eq!(limited(&limiter).await.unwrap_err().kind(), RejectionKind::Unavailable);
}

#[tokio::test]
async fn a_foreign_value_fails_its_own_calls_alone_and_stays_as_it_was() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let text = |bytes| (format!("SET {{}} {}", "~".repeat(bytes)), "no tally");
    let foreign = [("LPUSH {} a".to_owned(), "WRONGTYPE"), text(8), text(7), text(21), text(7 * 64)];
    for (foreign, error) in foreign {
        for policy in mixes(MINUTE) {
            let mut stored = Stored::on(&server, "mix", "s");
            admitted(&limiter, &policy).await;
            let key = key_of(&mut server.connection(), "mix", "s");
            server.ask::<()>(&format!("DEL {key}"));
            server.ask::<()>(&foreign.replace("{}", &key));
            let digest = stored.digest();
            let subjects: Vec<_> = ["a", "s", "b", "s", "c"].into_iter().map(Subject::of).collect();
            // The first goes alone, the others together.
            let decisions =
                join_all(subjects.iter().map(|subject| async { limiter.check(&policy, subject).await })).await;
            for (subject, decision) in ["a", "s", "b", "s", "c"].into_iter().zip(decisions) {
                match decision {
                    Ok(decision) => assert!(subject != "s" && decision.is_allowed(), "{policy:?}"),
                    Err(outage) => assert!(subject == "s" && outage.to_string().contains(error), "{outage}"),
                }
            }
            assert_eq!(stored.digest(), digest, "{policy:?}");
            server.ask::<()>("FLUSHALL");
        }
    }
}

#[tokio::test]
async fn counts_up_to_the_greatest_exact_number_are_kept_to_the_last_unit() {
    let server = Server::start();
    let limiter = server.limiter().await;
    for count in [1 << 31, (1 << 31) + 1, 1 << 32, (1 << 32) + 1, (1 << 53) - 1] {
        let policy = Policy::builder("great").rule(Rule::fixed_window(count, MINUTE)).build().unwrap();
        let subject = Subject::of(count);
        for (cost, left) in [(count - 2, 2), (1, 1), (1, 0)] {
            let decision = limiter.check(&policy, &subject).cost(cost).report().await.unwrap();
            assert_eq!((decision.is_allowed(), decision.report()[0].remaining()), (true, left));
        }
        assert!(!limiter.check(&policy, &subject).await.unwrap().is_allowed());
    }
}
