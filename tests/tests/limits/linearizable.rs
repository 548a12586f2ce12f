//! Callers at once are decided as if one had called after the other.
//!
//! Each call is recorded with the time before it was made and the time after its answer, between which it was decided.
//!
//! Where nothing leaves the window, an order of the calls that explains all answers has every admission before every denial,
//! and may have any such order. It respects the times of the calls exactly if no denial had its answer before the last
//! admission was asked for. So this and the number of admissions is all there is to check, and a history that passes has a
//! valid order.
//!
//! Where hits leave the window, a valid order is not constructed. What every valid order implies is checked instead: calls
//! that were admitted and lie wholly within one window are at most `count`, and around a denial there are at least `count`
//! admissions that may lie in its window. This never blames a valid history.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::length::cases;
use tallygate_harness::server::Server;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const CALLERS: usize = 16;
const HOUR: Duration = Duration::from_secs(3_600);
/// Clocks of one machine may differ by so little in a window.
const DRIFT: Duration = Duration::from_micros(50);

/// One call, as its caller saw it.
#[derive(Clone, Copy, Debug)]
struct Call {
    asked: Instant,
    answered: Instant,
    admitted: bool,
}

/// Lets callers call at once, each that often and that long, and returns what was admitted and what was denied.
async fn history(
    limiter: &Limiter,
    policy: &Policy,
    subject: &Subject,
    calls: usize,
    lasting: Duration,
) -> (Vec<Call>, Vec<Call>) {
    let together = Arc::new(Barrier::new(CALLERS));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject.clone());
        let together = Arc::clone(&together);
        callers.spawn(async move {
            together.wait().await;
            let (began, mut history) = (Instant::now(), Vec::new());
            while history.len() < calls || began.elapsed() < lasting {
                let asked = Instant::now();
                let admitted = limiter.check(&policy, &subject).await.unwrap().is_allowed();
                history.push(Call { asked, answered: Instant::now(), admitted });
            }
            history
        });
    }
    callers.join_all().await.into_iter().flatten().partition(|call| call.admitted)
}

/// The history of callers that go on until more were admitted than fit into one window: a busy machine may let them begin
/// late.
async fn history_of_more(limiter: &Limiter, policy: &Policy, count: u64, lasting: Duration) -> (Vec<Call>, Vec<Call>) {
    for round in 0..100 {
        let (admitted, denied) = history(limiter, policy, &Subject::of(count).and(round), 0, lasting).await;
        if admitted.len() as u64 > count {
            return (admitted, denied);
        }
    }
    panic!("the window does not slide");
}

async fn a_full_window_is_filled_before_anybody_is_denied(limiter: &Limiter) {
    for count in [1, 5, 40, 100] {
        let policy = Policy::builder("still").rule(Rule::sliding_window(count, HOUR)).build().unwrap();
        for round in 0..cases(10, 50) {
            let (admitted, denied) =
                history(limiter, &policy, &Subject::of(count).and(round), 20, Duration::ZERO).await;
            assert_eq!(admitted.len() as u64, count);
            let last_asked = admitted.iter().map(|call| call.asked).max().unwrap();
            let first_denied = denied.iter().map(|call| call.answered).min().unwrap();
            assert!(last_asked <= first_denied, "a call was admitted that began after another was denied");
        }
    }
}

async fn a_window_that_slides_is_never_overfull_and_never_denies_without_reason(limiter: &Limiter) {
    for (count, per) in [(1, Duration::from_millis(5)), (8, Duration::from_millis(20))] {
        let policy = Policy::builder("sliding").rule(Rule::sliding_window(count, per)).build().unwrap();
        let (admitted, denied) = history_of_more(limiter, &policy, count, 10 * per).await;
        for first in &admitted {
            let end = first.asked + per;
            let within = admitted.iter().filter(|call| call.asked >= first.asked && call.answered + DRIFT < end);
            assert!(within.count() as u64 <= count, "more than {count} within {per:?}");
        }
        let (mut asked, mut gone): (Vec<_>, Vec<_>) =
            admitted.iter().map(|call| (call.asked, call.answered + per + DRIFT)).unzip();
        asked.sort();
        gone.sort();
        for denial in &denied {
            let began = asked.partition_point(|&asked| asked < denial.answered);
            let surely_gone = gone.partition_point(|&gone| gone <= denial.asked);
            assert!((began - surely_gone) as u64 >= count, "denied with room for more");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_still_window_in_memory_is_linearizable() {
    a_full_window_is_filled_before_anybody_is_denied(&Limiter::in_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_still_window_in_redis_is_linearizable() {
    let server = Server::start();
    a_full_window_is_filled_before_anybody_is_denied(&server.limiter().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sliding_window_in_memory_is_linearizable() {
    a_window_that_slides_is_never_overfull_and_never_denies_without_reason(&Limiter::in_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sliding_window_in_redis_is_linearizable() {
    let server = Server::start();
    a_window_that_slides_is_never_overfull_and_never_denies_without_reason(&server.limiter().await).await;
}
