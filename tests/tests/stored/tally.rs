//! What is stored of a subject, and for how long: read by Redis's own commands, as an operator would.

use std::time::Duration;

use tallygate::{Decision, Limiter, Policy, Rule, Subject, TokenBucket};
use tallygate_harness::clocked::{Clocked, START_US};
use tallygate_harness::server::{Server, now_us};
use tallygate_harness::stored::{Stored, calls, log};
use tallygate_lua::{CELL_BYTES, CLEAN_UP_ENTRIES, ENTRY_BYTES, INTEGER_BYTES};

fn policy<const N: usize>(rules: [(u64, Duration); N]) -> Policy {
    Policy::builder("p").rules(rules.map(|(count, per)| Rule::sliding_window(count, per))).build().unwrap()
}

async fn call(limiter: &Limiter, policy: &Policy) -> Decision {
    limiter.check(policy, &Subject::of("s")).await.unwrap()
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

/// Integers of seven bytes.
fn packed(integers: &[u64]) -> Vec<u8> {
    integers.iter().flat_map(|integer| integer.to_be_bytes()[8 - INTEGER_BYTES..].to_vec()).collect()
}

async fn clocked() -> (Clocked, Limiter, Stored) {
    let clocked = Clocked::start();
    let (limiter, stored) = (clocked.limiter().await, Stored::on(clocked.server(), "p", "s"));
    (clocked, limiter, stored)
}

#[tokio::test]
async fn a_tally_is_the_times_of_its_calls_and_a_sum_of_four_bytes_each() {
    let (clocked, limiter, mut stored) = clocked().await;
    let policy = policy([(2, secs(60)), (3, secs(3_600))]);
    for _ in 0..5 {
        let _ = call(&limiter, &policy).await;
        clocked.advance(secs(40));
    }
    // The call at 40 seconds is the second, the one at 80 the third and last.
    assert_eq!(stored.bytes(), log(&[START_US, START_US + 40_000_000, START_US + 80_000_000]));
    // An entry in front of them counts nothing. As each call weighs 1, there is nothing to sum up.
    let first = [0x06, 0x65, 0x17, 0x28, 0x98, 0x7f, 0xf9, 0, 0, 0, 0];
    assert_eq!(stored.bytes()[..2 * ENTRY_BYTES], [[0; ENTRY_BYTES], first].concat());
    let keys: Vec<String> = clocked.server().ask("KEYS *");
    assert_eq!(keys, ["tallygate:p/w1h:s"]);
}

#[tokio::test]
async fn times_keep_their_microseconds_far_in_the_future() {
    let (clocked, limiter, mut stored) = clocked().await;
    let policy = policy([(1, secs(3_660 * 86_400))]);
    // 2^31 seconds, 2^32 seconds, and the year 2200.
    for now_us in [2_147_483_648_000_000, 4_294_967_296_000_001, 7_258_118_400_999_999] {
        clocked.server().ask::<()>("FLUSHALL");
        clocked.set(now_us);
        assert!(call(&limiter, &policy).await.is_allowed());
        clocked.advance(Duration::from_micros(1));
        let Decision::Denied(denial) = call(&limiter, &policy).await else { panic!("the window is full") };
        assert_eq!(denial.retry_after().map(us), Some(us(secs(3_660 * 86_400)) - 1));
        assert_eq!(stored.bytes(), log(&[now_us]));
    }
}

#[tokio::test]
async fn a_tally_drops_what_counts_no_more_once_it_is_long() {
    let (clocked, limiter, mut stored) = clocked().await;
    let policy = policy([(3, secs(10)), (8, secs(60))]);
    let (mut longest, mut random) = (0, fastrand::Rng::with_seed(1));
    for _ in 0..1_000 {
        let _ = call(&limiter, &policy).await;
        clocked.advance(Duration::from_micros(random.u64(0..20_000_000)));
        longest = longest.max(calls(&stored.bytes()).len());
    }
    assert!(longest <= 2 * CLEAN_UP_ENTRIES, "{longest}");
}

#[tokio::test]
async fn a_log_beside_a_rule_of_long_memory_is_as_short_as_alone() {
    let (clocked, limiter, mut stored) = clocked().await;
    let rules = [Rule::sliding_window(8, secs(60)), Rule::fixed_window(100_000, secs(86_400))];
    let policy = Policy::builder("p").rules(rules).build().unwrap();
    for _ in 0..200 {
        let _ = call(&limiter, &policy).await;
        clocked.advance(secs(7));
        assert!(stored.bytes().len() <= CELL_BYTES + 2 * CLEAN_UP_ENTRIES * ENTRY_BYTES);
    }
}

#[tokio::test]
async fn a_cell_is_three_numbers_in_front_of_the_log() {
    let (clocked, limiter, mut stored) = clocked().await;
    let bucket = Rule::from_bucket(5, TokenBucket::new(secs(1)).with_capacity(9));
    let rules = [Rule::fixed_window(9, secs(60)), Rule::sliding_window(9, secs(1)), bucket, COUNTER];
    let policy = Policy::builder("p").rules(rules).build().unwrap();
    let subject = Subject::of("s");
    let cost = |cost| limiter.check(&policy, &subject).cost(cost).into_future();
    assert!(cost(2).await.unwrap().is_allowed());
    clocked.advance(secs(1));
    assert!(cost(3).await.unwrap().is_allowed());
    let (first, second) = (START_US, START_US + 1_000_000);
    // Tokens times their period: nine at first, then two less, five more and three less, but never more than nine. As the
    // bucket was full again, it holds nothing of the first call.
    let cells = [first, 5, 0, second, 6_000_000, second, second - second % 1_000_000, 3, 2];
    let bytes = stored.bytes();
    let (stored_cells, stored_log) = bytes.split_at(3 * CELL_BYTES);
    // The window is over at the second call, so the log begins anew.
    assert_eq!((stored_cells, calls(stored_log)), (&packed(&cells)[..], vec![(second, 3)]));
}

const COUNTER: Rule = Rule::sliding_counter(9, secs(1));

#[tokio::test]
async fn a_clock_that_was_ahead_blocks_no_subject_when_it_is_set_back() {
    let (clocked, limiter, mut stored) = clocked().await;
    let policy = policy([(2, secs(60))]);
    assert!(call(&limiter, &policy).await.is_allowed());
    clocked.advance(secs(30));
    assert!(call(&limiter, &policy).await.is_allowed());
    clocked.set(START_US + 1);
    // The call of before the jump still counts; that of the seconds that never were does not.
    assert!(call(&limiter, &policy).await.is_allowed());
    assert_eq!(stored.bytes(), log(&[START_US, START_US + 1]));
    assert!(!call(&limiter, &policy).await.is_allowed());
    assert!((60_000..=121_000).contains(&(stored.ttl_ms() + 1_000)));
}

#[tokio::test]
async fn hits_from_the_future_are_forgotten() {
    let server = Server::start();
    let (limiter, policy, mut connection) = (server.limiter().await, policy([(3, secs(60))]), server.connection());
    let hours_us = [1, 1, 2].map(|hours| now_us(&mut connection) + us(secs(hours * 3_600)));
    redis::cmd("SET").arg("tallygate:p/w1m:s").arg(log(&hours_us)).exec(&mut connection).unwrap();
    for _ in 0..3 {
        assert!(call(&limiter, &policy).await.is_allowed());
    }
    assert!(!call(&limiter, &policy).await.is_allowed());
    assert!(Stored::on(&server, "p", "s").ttl_ms() > 0);
}
