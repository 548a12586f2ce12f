//! What is stored of a subject, and for how long: looked at as an operator would, with Redis's own commands.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use redis::Connection;
use tallygate::{Decision, Limiter, Policy, Rule, Subject};
use tallygate_lua::INTEGER_BYTES;
use tallygate_tests::clocked::{Clocked, START_US};
use tallygate_tests::server::{Server, ask, key_of, now_us};

fn policy<const N: usize>(rules: [(u64, Duration); N]) -> Policy {
    Policy::builder("p").rules(rules.map(|(count, per)| Rule::sliding_window(count, per))).build().unwrap()
}

async fn call(limiter: &Limiter, policy: &Policy) -> Decision {
    limiter.check(policy, &Subject::of("s")).await.unwrap()
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

/// The bytes of a tally with hits at these times.
fn tally(hits_us: &[u64]) -> Vec<u8> {
    hits_us.iter().flat_map(|hit| hit.to_be_bytes()[1..].to_vec()).collect()
}

fn store(connection: &mut Connection, reach: &str, hits_us: &[u64]) {
    redis::cmd("SET").arg(format!("tallygate:p/{reach}:s")).arg(tally(hits_us)).exec(connection).unwrap();
}

fn key(connection: &mut Connection) -> String {
    key_of(connection, "p", "s")
}

fn stored(connection: &mut Connection) -> Vec<u8> {
    {
        let key = key(connection);
        ask(connection, &format!("GET {key}"))
    }
}

fn ttl_ms(connection: &mut Connection) -> i64 {
    {
        let key = key(connection);
        ask(connection, &format!("PTTL {key}"))
    }
}

/// Changes with every byte of the value, and of nothing else.
fn digest(connection: &mut Connection) -> String {
    let digests: Vec<String> = {
        let key = key(connection);
        ask(connection, &format!("DEBUG DIGEST-VALUE {key}"))
    };
    digests.concat()
}

#[tokio::test]
async fn a_tally_is_the_times_of_its_hits_in_seven_bytes_each() {
    let clocked = Clocked::start();
    let (limiter, policy) = (clocked.limiter().await, policy([(2, secs(60)), (3, secs(3_600))]));
    for _ in 0..5 {
        let _ = call(&limiter, &policy).await;
        clocked.advance(secs(40));
    }
    let mut connection = clocked.server().connection();
    // The call at 40 seconds is the second, the one at 80 the third and last.
    assert_eq!(stored(&mut connection), tally(&[START_US, START_US + 40_000_000, START_US + 80_000_000]));
    assert_eq!(stored(&mut connection)[..7], [0x06, 0x65, 0x17, 0x28, 0x98, 0x7f, 0xf9]);
    let keys: Vec<String> = ask(&mut connection, "KEYS tallygate*");
    assert_eq!(keys, ["tallygate:p/1h:s"]);
}

#[tokio::test]
async fn times_keep_their_microseconds_far_in_the_future() {
    let clocked = Clocked::start();
    let (limiter, policy) = (clocked.limiter().await, policy([(1, secs(3_660 * 86_400))]));
    // 2^31 seconds, 2^32 seconds, and the year 2200.
    for now_us in [2_147_483_648_000_000, 4_294_967_296_000_001, 7_258_118_400_999_999] {
        clocked.server().ask::<()>("FLUSHALL");
        clocked.set(now_us);
        assert!(call(&limiter, &policy).await.is_allowed());
        clocked.advance(Duration::from_micros(1));
        let Decision::Denied(denial) = call(&limiter, &policy).await else { panic!("the window is full") };
        assert_eq!(denial.retry_after().map(us), Some(us(secs(3_660 * 86_400)) - 1));
        assert_eq!(stored(&mut clocked.server().connection()), tally(&[now_us]));
    }
}

#[tokio::test]
async fn a_tally_never_holds_more_than_twice_its_largest_count() {
    let clocked = Clocked::start();
    let (limiter, policy) = (clocked.limiter().await, policy([(3, secs(10)), (8, secs(60))]));
    let mut connection = clocked.server().connection();
    let (mut longest, mut random) = (0, fastrand::Rng::with_seed(1));
    for _ in 0..1_000 {
        let _ = call(&limiter, &policy).await;
        clocked.advance(Duration::from_micros(random.u64(0..20_000_000)));
        longest = longest.max(stored(&mut connection).len() / INTEGER_BYTES);
    }
    assert_eq!(longest, 16);
}

#[tokio::test]
async fn every_write_leaves_a_ttl_within_its_bounds() {
    let server = Server::start();
    let (limiter, mut connection) = (server.limiter().await, server.connection());
    for (count, per) in [(1, millis(8)), (4, millis(100)), (40, millis(333))] {
        let policy = policy([(count, per / 2), (count + 1, per)]);
        let mut admitted = 0;
        while admitted < 60 {
            let before_us = now_us(&mut connection);
            if !call(&limiter, &policy).await.is_allowed() {
                continue;
            }
            admitted += 1;
            let left_us = ttl_ms(&mut connection) * 1_000;
            let since_us = i64::try_from(now_us(&mut connection) - before_us).unwrap();
            let per_us = i64::try_from(us(per)).unwrap();
            assert!(left_us != -1_000, "the tally has a TTL");
            assert!(left_us <= per_us * 5 / 4 + 1_000, "{left_us} of {per_us}: at most a quarter longer");
            // Redis counts whole milliseconds.
            assert!(left_us + since_us + 2_000 >= per_us, "{left_us} of {per_us}: while the hit counts");
        }
        server.ask::<()>("FLUSHALL");
    }
}

#[tokio::test]
async fn nothing_is_left_after_the_longest_window() {
    let server = Server::start();
    let (limiter, mut connection) = (server.limiter().await, server.connection());
    let (shorter, longest) = (millis(40), millis(200));
    for _ in 0..20 {
        let _ = call(&limiter, &policy([(3, shorter), (5, longest)])).await;
        let _ = limiter.check(&policy([(1, shorter)]), &Subject::of("other")).await.unwrap();
    }
    let called_us = now_us(&mut connection);
    loop {
        let asked_us = now_us(&mut connection);
        // Unlike `DBSIZE`, which also counts what has expired and is yet to be cleared away.
        if ask::<u64>(&mut connection, "EXISTS tallygate:p/200ms:s tallygate:p/40ms:other") == 0 {
            break;
        }
        assert!(asked_us <= called_us + us(longest) * 5 / 4 + 1_000, "a tally outlives its window");
        tokio::time::sleep(millis(1)).await;
    }
}

#[tokio::test]
async fn a_tally_that_lost_its_ttl_gets_another_with_a_later_hit() {
    let clocked = Clocked::start();
    let (limiter, policy) = (clocked.limiter().await, policy([(10, secs(80))]));
    let mut connection = clocked.server().connection();
    assert!(call(&limiter, &policy).await.is_allowed());
    for _ in 0..20 {
        let key = key(&mut connection);
        let _: () = ask(&mut connection, &format!("PERSIST {key}"));
        clocked.advance(secs(10));
        assert!(call(&limiter, &policy).await.is_allowed());
        assert!((1..=100_000).contains(&ttl_ms(&mut connection)));
    }
}

#[tokio::test]
async fn a_denial_changes_no_byte_and_no_ttl() {
    let clocked = Clocked::start();
    let (limiter, policy) = (clocked.limiter().await, policy([(2, secs(80)), (3, secs(800))]));
    let mut connection = clocked.server().connection();
    for _ in 0..2 {
        assert!(call(&limiter, &policy).await.is_allowed());
    }
    let (before, mut left_ms) = (digest(&mut connection), ttl_ms(&mut connection));
    // More than an eighth of either window passes, after which a hit would renew the TTL.
    for _ in 0..79 {
        clocked.advance(secs(1));
        assert!(!call(&limiter, &policy).await.is_allowed());
        assert_eq!(digest(&mut connection), before);
        assert!((1..=left_ms).contains(&ttl_ms(&mut connection)));
        left_ms = ttl_ms(&mut connection);
    }
    clocked.advance(secs(1));
    assert!(call(&limiter, &policy).await.is_allowed());
    assert_ne!(digest(&mut connection), before);
    assert!(!call(&limiter, &policy).await.is_allowed());
    let key = key(&mut connection);
    let _: () = ask(&mut connection, &format!("PERSIST {key}"));
    assert!(!call(&limiter, &policy).await.is_allowed());
    assert_eq!(ttl_ms(&mut connection), -1, "a denial heals nothing either");
}

#[tokio::test]
async fn a_clock_that_was_ahead_blocks_nobody_when_it_is_set_back() {
    let clocked = Clocked::start();
    let (limiter, policy) = (clocked.limiter().await, policy([(2, secs(60))]));
    assert!(call(&limiter, &policy).await.is_allowed());
    clocked.advance(secs(86_400));
    assert!(call(&limiter, &policy).await.is_allowed());
    assert!(call(&limiter, &policy).await.is_allowed());
    clocked.set(START_US + 1);
    let mut connection = clocked.server().connection();
    // The hits of the day that never was are forgotten, and so is the one that they had outlived.
    assert!(call(&limiter, &policy).await.is_allowed());
    assert_eq!(stored(&mut connection), tally(&[START_US + 1]));
    assert!(call(&limiter, &policy).await.is_allowed());
    assert!(!call(&limiter, &policy).await.is_allowed());
    assert!((60_000..=75_000).contains(&(ttl_ms(&mut connection) + 1_000)));
}

#[tokio::test]
async fn hits_from_the_future_are_forgotten() {
    let server = Server::start();
    let (limiter, policy, mut connection) = (server.limiter().await, policy([(3, secs(60))]), server.connection());
    let now_us = now_us(&mut connection);
    let hour_us = us(secs(3_600));
    store(&mut connection, "1m", &[now_us + hour_us, now_us + hour_us, now_us + 2 * hour_us]);
    for _ in 0..3 {
        assert!(call(&limiter, &policy).await.is_allowed());
    }
    assert!(!call(&limiter, &policy).await.is_allowed());
    assert!(ttl_ms(&mut connection) > 0);
}
