//! Each error of a server is understood: whether waiting may help, what to do, whether another connection is better, and
//! what becomes of the call by each policy of outages.

mod codes;
mod real;

use std::time::Duration;

use tallygate::BackendErrorKind::{Away, Unknown, Wrong};
use tallygate::{
    BackendError, BackendErrorKind, DecidedBy, Decision, Limiter, OnOutage, Policy, PolicyBuilder, Rejection,
    RejectionKind, Rule, Subject,
};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::fake::Fake;
use tallygate_harness::sentinels::Sentinels;
use tallygate_harness::server::{free_port, patient};
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(20);

fn policy() -> PolicyBuilder {
    Policy::builder("p").rule(Rule::sliding_window(1_000, Duration::from_secs(3_600)))
}

/// Calls, and returns why that was not decided.
async fn fault(limiter: &Limiter) -> BackendError {
    let policy = policy().build().unwrap();
    let error = limiter.check(&policy, &Subject::of("s")).await.expect_err("the server cannot decide this call");
    assert_eq!(Rejection::unavailable("p", error.clone()).kind(), RejectionKind::Unavailable);
    error
}

/// Asserts that a call fails so, and what becomes of calls that do not have to be decided by the server.
async fn assert_fault(limiter: &Limiter, kind: BackendErrorKind, words: &str) {
    let error = fault(limiter).await;
    assert_eq!((error.kind(), error.to_string().contains(words)), (kind, true), "{error}");
    let expected = match kind {
        Away => [Some(DecidedBy::Standby), Some(DecidedBy::Nobody)],
        // No call was decided yet.
        _ => [None, None],
    };
    for (on_outage, expected) in [OnOutage::Local, OnOutage::Allow].into_iter().zip(expected) {
        let policy = policy().on_outage(on_outage).build().unwrap();
        // The second one may be decided by what is known since the first.
        for _ in 0..2 {
            let decided = limiter.check(&policy, &Subject::of("s")).await;
            assert!(decided.as_ref().is_ok_and(Decision::is_allowed) == expected.is_some(), "{decided:?}");
            assert_eq!(decided.ok().map(|decision| decision.decided_by()), expected, "{on_outage}: {error}");
        }
    }
}

#[tokio::test]
async fn each_code_is_understood_over_the_same_connection() {
    let fake = Fake::start().await;
    let script = "Error running script (call to f_11631ba05bccc1029901576bbd2b147c272a1abc): @user_script:1: ";
    let in_script = |inner: &str| format!("ERR {script}{inner}");
    let limiter = patient().connect_lazy(fake.url()).unwrap();
    for (line, kind, words) in [
        ("MOVED 7629 127.0.0.1:7000".to_owned(), Wrong, "MOVED 7629 127.0.0.1:7000; the server is a node of a cluster"),
        ("ASK 3300 127.0.0.1:7000".to_owned(), Wrong, "a node of a cluster"),
        ("TRYAGAIN Multiple keys request during rehashing of slot".to_owned(), Away, "TRYAGAIN Multiple keys"),
        ("CROSSSLOT Keys in request don't hash to the same slot".to_owned(), Wrong, "CROSSSLOT Keys in request"),
        ("CLUSTERDOWN The cluster is down".to_owned(), Away, "CLUSTERDOWN The cluster is down"),
        ("LOADING Redis is loading the dataset in memory".to_owned(), Away, "LOADING Redis is loading"),
        ("BUSY Redis is busy running a script.".to_owned(), Away, "BUSY Redis is busy"),
        ("OOM command not allowed".to_owned(), Away, "the server is full: raise its `maxmemory`"),
        (
            in_script("@user_script: 1: -OOM command not allowed"),
            Away,
            "redis: OOM command not allowed; the server is full",
        ),
        ("MISCONF Redis is configured to save".to_owned(), Away, "MISCONF Redis"),
        ("NOREPLICAS Not enough good replicas to write.".to_owned(), Away, "NOREPLICAS Not enough"),
        ("NOAUTH Authentication required.".to_owned(), Wrong, "put user and password into the url"),
        ("WRONGPASS invalid username-password pair".to_owned(), Wrong, "check user and password in the url"),
        ("NOPERM User a has no permissions".to_owned(), Wrong, "give the user the permissions"),
        ("ERR ACL failure in script: User a has no permissions".to_owned(), Wrong, "give the user the permissions"),
        (in_script("@user_script: 1: The user executing the script can't run"), Wrong, "give the user the permissions"),
        ("WRONGTYPE Operation against a key".to_owned(), Wrong, "a key with the prefix of the limiter is no tally"),
        (in_script("WRONGTYPE Operation against a key"), Wrong, "a key with the prefix of the limiter is no tally"),
        ("NOSCRIPT No matching script.".to_owned(), Wrong, "NOSCRIPT No matching script"),
        ("EXECABORT Transaction discarded because of previous errors.".to_owned(), Wrong, "EXECABORT Transaction"),
        ("TALLYGATE this script speaks protocol 5, not 4".to_owned(), Wrong, "TALLYGATE this script speaks protocol 5"),
        ("ERR user_script:1: attempt to index a nil value".to_owned(), Wrong, "attempt to index"),
        ("ERR max number of clients reached".to_owned(), Away, "raise `maxclients`"),
        ("NOPROTO unsupported protocol version".to_owned(), Wrong, "has to be Redis 6.2 or later"),
        ("ERR upstream failure".to_owned(), Unknown, "redis: ERR upstream failure"),
        ("QUOTA exceeded".to_owned(), Unknown, "redis: QUOTA exceeded"),
    ] {
        fake.answer_with(&line);
        assert_fault(&limiter, kind, words).await;
        let ping = limiter.ping().await.unwrap_err();
        assert_eq!((ping.kind(), ping.to_string().contains(words)), (kind, true), "{ping}");
    }
    assert_eq!(fake.accepted(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_no_primary_is_left_for_the_one_that_the_address_leads_to_by_then() {
    for (line, words) in [
        ("READONLY You can't write against a read only replica.", "the url has to lead to the primary"),
        ("MASTERDOWN Link with MASTER is down", "the url has to lead to the primary"),
        ("UNBLOCKED force unblock from blocking operation, instance state changed", "UNBLOCKED force unblock"),
    ] {
        let fake = Fake::start().await;
        let limiter = patient().connect_lazy(fake.url()).unwrap();
        fake.answer_with("LOADING for the moment");
        assert_fault(&limiter, Away, "LOADING").await;
        fake.answer_with(line);
        assert_fault(&limiter, Away, words).await;
        let attempts = async {
            while fake.accepted() < 4 {
                assert_fault(&limiter, Away, line.split(' ').next().unwrap()).await;
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, attempts).await.expect("the limiter keeps trying");
        // The fake may notice late that a connection was left.
        assert!(fake.most_open() <= 3, "one attempt at a time, and the connections that were left");
    }
}

#[tokio::test]
async fn a_greeting_that_is_refused_is_understood() {
    for (line, kind, words) in [
        ("WRONGPASS invalid username-password pair or user is disabled.", Wrong, "check user and password in the url"),
        ("NOAUTH HELLO must be called with the client already authenticated", Wrong, "put user and password"),
        ("NOPERM this user has no permissions to run the 'hello' command", Wrong, "give the user the permissions"),
        ("ERR max number of clients reached", Away, "raise `maxclients`"),
        ("DENIED Redis is running in protected mode", Wrong, "protected mode"),
        ("LOADING Redis is loading the dataset in memory", Away, "LOADING"),
        ("ERR unknown command 'HELLO', with args beginning with: '3' ", Wrong, "has to be Redis 6.2 or later"),
        ("QUOTA exceeded", Wrong, "QUOTA exceeded"),
    ] {
        let fake = Fake::start().await;
        fake.greet_with(line);
        let limiter = patient().connect_lazy(fake.url()).unwrap();
        assert_fault(&limiter, kind, words).await;
        // Known by now, so not asked for again.
        assert_fault(&limiter, kind, "redis at 127.0.0.1:").await;
    }
}

#[tokio::test]
async fn an_unknown_error_is_an_outage_once_a_call_was_decided() {
    let fake = Fake::start().await;
    let limiter = patient().connect_lazy(fake.url()).unwrap();
    let local = policy().on_outage(OnOutage::Local).build().unwrap();
    let decided_by = async |policy: &Policy| {
        let decided = limiter.check(policy, &Subject::of("s")).await;
        decided.map(|decision| decision.decided_by()).map_err(|error| error.kind())
    };
    fake.answer_with("QUOTA exceeded");
    assert_eq!(decided_by(&local).await, Err(Unknown));
    fake.admit();
    assert_eq!(decided_by(&local).await, Ok(DecidedBy::Backend));
    fake.answer_with("QUOTA exceeded");
    assert_eq!(decided_by(&local).await, Ok(DecidedBy::Standby));
    let allow = policy().on_outage(OnOutage::Allow).build().unwrap();
    assert_eq!(decided_by(&allow).await, Err(Unknown));
    fake.answer_with("WRONGTYPE Operation against a key");
    assert_eq!(decided_by(&local).await, Err(Wrong), "no mistake that is known admits a call");
}

#[tokio::test]
async fn whoever_does_not_answer_what_nodes_and_sentinels_are_asked_is_a_mistake_but_for_a_state() {
    for (line, kind) in [
        ("QUOTA exceeded", Wrong),
        ("ERR upstream failure", Wrong),
        ("ERR This instance has cluster support disabled", Wrong),
        ("ERR unknown command 'SENTINEL', with args beginning with: 'GET-MASTER-ADDR-BY-NAME' ", Wrong),
        ("NOPERM User a has no permissions to run the 'cluster|slots' command", Wrong),
        ("LOADING Redis is loading the dataset in memory", Away),
        ("BUSY Redis is busy running a script", Away),
    ] {
        let fake = Fake::start().await;
        fake.answer_with(line);
        for url in [format!("redis+cluster://{}/", fake.address()), format!("redis+sentinel://{}/p", fake.address())] {
            assert_fault(&patient().connect_lazy(&url).unwrap(), kind, line.split(',').next().unwrap()).await;
        }
    }
    let fake = Fake::start().await;
    fake.reply_with("+OK\r\n");
    let url = format!("redis+cluster://{}/", fake.address());
    assert_fault(&patient().connect_lazy(&url).unwrap(), Wrong, "to `CLUSTER SLOTS` is none").await;
}

#[tokio::test]
async fn a_mistake_at_one_node_is_the_reason_whichever_others_are_away() {
    let fake = Fake::start().await;
    fake.answer_with("QUOTA exceeded");
    for hosts in [[fake.address().port(), free_port()], [free_port(), fake.address().port()]] {
        let url = Cluster::url_of(hosts);
        assert_fault(&patient().connect_lazy(&url).unwrap(), Wrong, "QUOTA exceeded").await;
        let url = Sentinels::url_of(hosts);
        assert_fault(&patient().connect_lazy(&url).unwrap(), Wrong, "QUOTA exceeded").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_of_a_server_is_a_mistake() {
    for reply in ["+OK\r\n", ":7\r\n", "$3\r\nabc\r\n", "*0\r\n", "_\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let fake = Fake::start().await;
        fake.answer_with("LOADING for the moment");
        let limiter = patient().connect_lazy(fake.url()).unwrap();
        assert_fault(&limiter, Away, "LOADING").await;
        fake.reply_with(reply);
        assert_fault(&limiter, Wrong, "redis").await;
    }
}
