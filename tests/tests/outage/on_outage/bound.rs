//! What outages admit at most, and how long callers wait for it.

use std::time::Instant;

use tallygate::{DecidedBy, Limiter, OnOutage, Rule, Subject};
use tallygate_harness::proxy::Proxy;
use tallygate_harness::punctuality::Punctuality;
use tallygate_harness::server::Server;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{Duration, builder, call, policy, subject, until_decided_by};

const DEADLINE: Duration = Duration::from_millis(250);
const GRACE: Duration = Duration::from_millis(50);

fn limiter(url: &str) -> Limiter {
    Limiter::builder()
        .deadline(DEADLINE)
        .on_outage(OnOutage::Local)
        .processes(3)
        .registry(false)
        .connect_lazy(url)
        .unwrap()
}

/// An admitted call, and between which two times it was decided.
#[derive(Clone, Copy)]
struct Admitted {
    begun: Instant,
    ended: Instant,
    /// Which limiter was asked.
    process: usize,
    decided_by: DecidedBy,
}

/// Calls until that time, and returns what was admitted.
async fn calls(limiter: Limiter, process: usize, rule: Rule, is_over: impl Fn() -> bool) -> Vec<Admitted> {
    let policy = policy(rule);
    let mut admitted = Vec::new();
    while !is_over() {
        let begun = Instant::now();
        let decision = call(&limiter, &policy).await;
        if decision.is_allowed() {
            admitted.push(Admitted { begun, ended: Instant::now(), process, decided_by: decision.decided_by() });
        }
        sleep(Duration::from_millis(2)).await;
    }
    admitted
}

/// Asserts that no window of that length holds more than that many.
fn assert_at_most(most: usize, per: Duration, admitted: impl Iterator<Item = Admitted>) {
    let mut admitted: Vec<_> = admitted.collect();
    admitted.sort_by_key(|call| call.ended);
    for calls in admitted.windows(most + 1) {
        let first = calls.iter().map(|call| call.begun).min().unwrap();
        let last = calls.iter().map(|call| call.ended).max().unwrap();
        assert!(last - first >= per, "more than {most} within {:?}", last - first);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_outages_in_a_row_admit_no_more_than_one_does() {
    let (count, per, processes, part) = (30, Duration::from_secs(2), 3, 10);
    let server = Server::start();
    let (over, is_over) = tokio::sync::watch::channel(false);
    let limiters: Vec<_> = (0..processes).map(|_| limiter(&server.url())).collect();
    let mut running = JoinSet::new();
    for (process, limiter) in limiters.iter().enumerate() {
        for _ in 0..4 {
            let is_over = is_over.clone();
            let rule = Rule::sliding_window(count, per);
            running.spawn(calls(limiter.clone(), process, rule, move || *is_over.borrow()));
        }
    }
    for _ in 0..5 {
        for limiter in &limiters {
            until_decided_by(limiter, DecidedBy::Backend).await;
        }
        server.pause();
        for limiter in &limiters {
            until_decided_by(limiter, DecidedBy::Standby).await;
        }
        sleep(Duration::from_millis(500)).await;
        server.resume();
    }
    over.send(true).unwrap();
    let admitted: Vec<_> = running.join_all().await.into_iter().flatten().collect();
    let by = |decided_by| admitted.iter().copied().filter(move |call| call.decided_by == decided_by);
    let count = usize::try_from(count).unwrap();
    assert_at_most(count, per, by(DecidedBy::Backend));
    for process in 0..processes {
        let of_process = by(DecidedBy::Standby).filter(move |call| call.process == process);
        assert!(of_process.clone().count() >= part, "it decides in outages");
        assert_at_most(part, per, of_process);
    }
    assert_at_most(count + processes * part, per, admitted.iter().copied());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_callers_are_answered_in_time_and_then_at_once() {
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter = limiter(&proxy.url());
    until_decided_by(&limiter, DecidedBy::Backend).await;
    server.pause();
    let attempts = proxy.accepted();
    let outage = Instant::now();
    for bound in [DEADLINE, Duration::ZERO] {
        let machine = Punctuality::watch();
        let begun = Instant::now();
        let mut callers = JoinSet::new();
        for caller in 0..1_000 {
            let limiter = limiter.clone();
            callers.spawn(async move {
                let policy = policy(Rule::sliding_window(3, Duration::from_secs(3_600)));
                let begun = Instant::now();
                let decision = limiter.check(&policy, &Subject::of(caller % 500)).await.unwrap();
                (decision.decided_by(), decision.is_allowed(), begun.elapsed())
            });
        }
        let answers = callers.join_all().await;
        let (all, late) = (begun.elapsed(), machine.lateness());
        assert!(answers.iter().all(|(decided_by, ..)| *decided_by == DecidedBy::Standby));
        let slowest = answers.iter().map(|(.., took)| *took).max().unwrap();
        assert!(slowest <= bound + GRACE + late, "a call took {slowest:?}; the machine was late by {late:?}");
        assert!(all <= bound + 4 * GRACE + late, "all took {all:?}; the machine was late by {late:?}");
        let admitted = answers.iter().filter(|(_, is_allowed, _)| *is_allowed).count();
        assert_eq!(admitted, if bound == DEADLINE { 500 } else { 0 }, "one of three for each of five hundred");
    }
    // A call that knows of the outage begins no attempt of its own.
    let seconds = outage.elapsed().as_secs() + 1;
    assert!(proxy.accepted() - attempts <= 10 * seconds, "{} attempts", proxy.accepted() - attempts);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_limited_steps_of_one_request_share_what_is_known() {
    let server = Server::start();
    let limiter = limiter(&server.url());
    until_decided_by(&limiter, DecidedBy::Backend).await;
    server.pause();
    let machine = Punctuality::watch();
    let begun = Instant::now();
    let second = builder(Rule::fixed_window(3, DEADLINE)).build().unwrap();
    for policy in [policy(Rule::sliding_window(3, DEADLINE)), second] {
        assert_eq!(limiter.check(&policy, subject()).await.unwrap().decided_by(), DecidedBy::Standby);
    }
    let (took, late) = (begun.elapsed(), machine.lateness());
    assert!(took <= DEADLINE + GRACE + late, "both took {took:?}; the machine was late by {late:?}");
    server.resume();
}
