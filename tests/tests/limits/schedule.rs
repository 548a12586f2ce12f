//! Windows between the ticks of a schedule go by the clock of the server, also where the clock of a caller is wrong.

use std::time::Duration;

use redis::Connection;
use tallygate::{Decision, Limiter, Policy, Rule, Schedule, Subject};
use tallygate_harness::server::{Server, connected, now_us, patient};

const COUNT: usize = 3;
const SECOND_US: u64 = 1_000_000;
const MINUTE_US: i64 = 60_000_000;
/// A little and a lot, ahead and behind.
const SKEWS_US: [i64; 7] =
    [0, -2_500_000, 9_500_000, 5 * MINUTE_US, -5 * MINUTE_US, 26 * 60 * MINUTE_US, -26 * 60 * MINUTE_US];

async fn skewed(server: &Server, ahead_us: i64) -> Limiter {
    connected(&patient().clock_ahead_by(ahead_us), &server.url()).await
}

fn policy(expression: &str) -> Policy {
    let schedule = Schedule::parse(expression, "UTC").unwrap();
    Policy::builder("p").rule(Rule::cron(COUNT as u64, schedule)).build().unwrap()
}

async fn call(limiter: &Limiter, policy: &Policy) -> Decision {
    limiter.check(policy, &Subject::of("s")).await.unwrap()
}

/// Calls once more than the count. Returns the second and which calls were admitted; `None` if they took longer.
async fn calls_in_one_second(limiter: &Limiter, policy: &Policy, server: &mut Connection) -> Option<(u64, Vec<bool>)> {
    let second = now_us(server) / SECOND_US;
    let mut admitted = Vec::new();
    for _ in 0..=COUNT {
        admitted.push(call(limiter, policy).await.is_allowed());
    }
    (now_us(server) / SECOND_US == second).then_some((second, admitted))
}

#[tokio::test]
async fn with_a_tick_every_second_a_caller_whose_clock_is_off_has_its_count_in_each_and_no_more() {
    let server = Server::start();
    let mut connection = server.connection();
    let policy = policy("* * * * * *");
    let mut taken = 0;
    for ahead_us in SKEWS_US {
        let limiter = skewed(&server, ahead_us).await;
        // Until all calls fall into one second in which nothing was counted before.
        loop {
            match calls_in_one_second(&limiter, &policy, &mut connection).await {
                Some((second, admitted)) if second != taken => {
                    assert_eq!(admitted, [true, true, true, false], "{ahead_us} µs ahead");
                    taken = second;
                    break;
                }
                _ => taken = now_us(&mut connection) / SECOND_US,
            }
            let Decision::Denied(denial) = call(&limiter, &policy).await else { continue };
            tokio::time::sleep(denial.retry_after().unwrap()).await;
        }
    }
}

#[tokio::test]
async fn callers_whose_clocks_disagree_share_one_count_and_wait_by_the_clock_of_the_server() {
    let server = Server::start();
    let mut connection = server.connection();
    // In the middle of the year, and so of no tick of this test.
    let policy = policy("0 0 0 1 1 *");
    let next_us = Schedule::parse("0 0 0 1 1 *", "UTC").unwrap().next_tick_us(now_us(&mut connection)).unwrap();
    let mut admitted = 0;
    for ahead_us in SKEWS_US {
        let limiter = skewed(&server, ahead_us).await;
        let before_us = now_us(&mut connection);
        match call(&limiter, &policy).await {
            Decision::Allowed(_) => admitted += 1,
            Decision::Denied(denial) => {
                let wait_us = u64::try_from(denial.retry_after().unwrap().as_micros()).unwrap();
                assert!((before_us..=now_us(&mut connection)).contains(&(next_us - wait_us)), "{ahead_us} µs ahead");
            }
        }
    }
    assert_eq!(admitted, COUNT);
}

#[tokio::test]
async fn a_wait_until_the_next_tick_is_exact_for_a_caller_whose_clock_is_off() {
    let server = Server::start();
    let policy = policy("* * * * * *");
    for ahead_us in [-MINUTE_US, MINUTE_US] {
        let limiter = skewed(&server, ahead_us).await;
        let wait = loop {
            if let Decision::Denied(denial) = call(&limiter, &policy).await {
                break denial.retry_after().unwrap();
            }
        };
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        tokio::time::sleep(wait).await;
        assert!(call(&limiter, &policy).await.is_allowed());
    }
}
