//! Functions that are not async: they block until they are decided. In memory, no runtime is there.

use std::fmt::Display;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tallygate::context::{self, Context};
use tallygate::{Limiter, Policy, Rejection, RejectionKind, Rule, Subject, rate_limit};

use crate::{Failure, assert_limited};

#[rate_limit(key = "{user}", rule(count = 1, per = "3h"), message = "{user} waits {@retry_after}")]
fn report(user: &str) -> Result<&str, Rejection> {
    Ok(user)
}

#[test]
fn it_runs_if_it_is_admitted_and_only_then() {
    assert_eq!(report("alice").unwrap(), "alice");
    // Shown in minutes, so that the same is shown some seconds later.
    assert_eq!(report("alice").unwrap_err().to_string(), "alice waits 3h");
    assert_eq!(report("bob").unwrap(), "bob");
}

struct Shop {
    limiter: Limiter,
    orders: Vec<u32>,
}

trait Order<T> {
    fn order(&mut self, number: T) -> Result<&[u32], Failure>;
}

impl<T: Copy + Display + Into<u32>> Order<T> for Shop {
    #[rate_limit(key = "{number}", rule(count = 1, per = "60s"), refund_if = Result::is_err, limiter = self.limiter)]
    fn order(&mut self, number: T) -> Result<&[u32], Failure> {
        let first = self.orders.is_empty();
        self.orders.push(number.into());
        if first {
            report("carol")?;
            report("carol")?;
        }
        Ok(&self.orders)
    }
}

#[test]
fn a_method_is_refunded_however_its_body_is_left() {
    let mut shop = Shop { limiter: Limiter::in_memory(), orders: Vec::new() };
    assert_limited(shop.order(7_u8).map(drop));
    assert_eq!(shop.order(7_u8).unwrap(), [7, 7], "the first one was refunded");
    assert_limited(shop.order(7_u8).map(drop));
    assert_eq!(shop.orders.len(), 2);
}

#[rate_limit(rule(count = 100, per = "60s"), cost = 50, settle = |used| u64::from(*used.as_ref().unwrap_or(&0)), limiter = limiter)]
fn tokens(limiter: &Limiter, used: u32) -> Result<u32, Failure> {
    let _ = limiter;
    Ok(used)
}

#[test]
fn it_is_settled_for_what_it_has_used() {
    let limiter = Limiter::in_memory();
    for used in [10, 20, 30] {
        tokens(&limiter, used).unwrap();
    }
    assert_limited(tokens(&limiter, 30));
}

#[rate_limit(
    key = "{phone}",
    prevent_duplicate(per = "1h", release_if = Result::is_err),
    rule(count = 2, per = "1h"),
    limiter = limiter
)]
fn send(limiter: &Limiter, phone: &str) -> Result<(), Failure> {
    tokens(limiter, 99)?;
    tokens(limiter, 99).map(|_| assert_eq!(phone.len(), 3))
}

#[test]
fn its_duplicates_are_released() {
    let limiter = Limiter::in_memory();
    for _ in 0..2 {
        assert_limited(send(&limiter, "138"));
    }
    assert_limited(send(&limiter, "138"));
}

#[rate_limit(concurrency(limit = 1, lease = "30s"), limiter = limiter)]
fn export<T>(limiter: &Limiter, body: impl FnOnce() -> T) -> Result<T, Rejection> {
    let _ = limiter;
    Ok(body())
}

#[test]
fn it_is_counted_as_concurrent_until_its_body_is_over() {
    let limiter = Limiter::in_memory();
    let within = export(&limiter, || export(&limiter, || ()).unwrap_err().kind());
    assert_eq!(within.unwrap(), RejectionKind::Concurrency);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| export(&limiter, || panic!("a body"))));
    assert!(panicked.is_err());
    assert!(export(&limiter, || ()).is_ok());
}

#[rate_limit(rule(count = 1, per = "50ms"), wait = "60s", limiter = limiter)]
fn paced(limiter: &Limiter) -> Result<Instant, Rejection> {
    let _ = limiter;
    Ok(Instant::now())
}

#[test]
fn callers_on_threads_without_a_runtime_wait_for_admission_in_turn() {
    let limiter = Limiter::in_memory();
    let started = Instant::now();
    let callers: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn({
                let limiter = limiter.clone();
                move || paced(&limiter).unwrap()
            })
        })
        .collect();
    let mut times: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
    times.sort();
    assert!(times[3] - started >= Duration::from_millis(150), "three of them have waited");
}

#[tokio::test]
async fn one_that_waits_is_not_queued_behind_tasks_of_the_thread_that_it_blocks() {
    let limiter = Limiter::in_memory();
    let policy = Policy::builder("shared").rule(Rule::sliding_window(1, Duration::from_millis(50))).build().unwrap();
    let subject = Subject::everyone();
    assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed());
    let queued = tokio::spawn({
        let (limiter, policy) = (limiter.clone(), policy.clone());
        async move { limiter.acquire(&policy, &Subject::everyone()).await.unwrap().is_allowed() }
    });
    tokio::task::yield_now().await;
    assert!(limiter.acquire(&policy, &subject).blocking_decide().unwrap().is_allowed());
    assert!(queued.await.unwrap());
}

#[rate_limit(key = "{@user}", rule(count = 1, per = "60s"), rule(count = 1, per = "90s", key = "{@ip}"), wait = "1ms", limiter = limiter)]
fn of_the_context(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test]
async fn its_key_shows_values_of_the_context_of_the_task() {
    let limiter = Limiter::in_memory();
    let call = |user: &str, ip: &str| {
        context::scope(Context::new().with("user", user).with("ip", ip), async { of_the_context(&limiter) })
    };
    assert!(call("alice", "192.0.2.1").await.is_ok());
    assert_limited(call("alice", "192.0.2.2").await);
    assert_limited(call("bob", "192.0.2.1").await);
    assert!(call("bob", "192.0.2.2").await.is_ok());
    assert_eq!(of_the_context(&limiter).unwrap_err().kind(), RejectionKind::Unavailable);
}

#[rate_limit(key = "{user}", rule(count = 1, per = "60s"), check_fn = handled_limit, shadow)]
fn handled(user: String) -> Result<impl Display, Rejection> {
    Ok(user)
}

#[test]
fn its_companion_is_decided_by_hand() {
    assert_eq!(handled("alice".to_owned()).unwrap().to_string(), "alice");
    assert_eq!(handled("alice".to_owned()).unwrap().to_string(), "alice", "in shadow, every call runs");
    let decision = handled_limit("alice".to_owned()).peek().report().blocking_decide().unwrap();
    assert_eq!(decision.report()[0].remaining(), 0);
}

#[test]
fn a_function_that_warns_may_call_another_one_that_needs_no_thread() {
    let (sender, warned) = mpsc::channel();
    let within = Limiter::in_memory();
    let limiter =
        Limiter::builder().on_warning(move |_| _ = sender.send(tokens(&within, 1).is_ok())).build_in_memory().unwrap();
    let policy =
        Policy::builder("p").rule(Rule::sliding_window(2, Duration::from_secs(60))).warn_at(0.5).build().unwrap();
    assert!(limiter.check(&policy, &Subject::everyone()).blocking_decide().unwrap().is_allowed());
    assert!(warned.recv().unwrap());
}
