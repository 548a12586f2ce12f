//! Callers wait for admission: in the order in which they came, at the pace of the rule, and never beyond their deadline.

mod bans;
mod bounds;
mod looks;

use std::time::Duration;

use tallygate::{Decision, Limiter, Policy, Rule, Subject};
use tallygate_harness::server::Server;
use tokio::task::JoinSet;
use tokio::time::{Instant, advance, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn policy(count: u64, per: Duration) -> Policy {
    Policy::builder("waiting").rule(Rule::sliding_window(count, per)).build().unwrap()
}

fn subject() -> Subject {
    Subject::of("somebody")
}

/// Starts a call that waits, in a task of its own, which returns its number, its decision and how long that took.
fn caller(
    callers: &mut JoinSet<(usize, Decision, Duration)>,
    number: usize,
    limiter: &Limiter,
    policy: &Policy,
    patience: Duration,
) {
    let limiter = limiter.clone();
    let policy = policy.clone();
    let came = Instant::now();
    callers.spawn(async move {
        let decision = limiter.check(&policy, &subject()).wait(patience).await.expect("the backend answers");
        (number, decision, came.elapsed())
    });
}

#[tokio::test(start_paused = true)]
async fn a_thousand_callers_are_admitted_at_the_pace_of_the_rule_in_order_and_none_late() {
    let limiter = Limiter::in_memory();
    let policy = policy(10, SECOND);
    let mut callers = JoinSet::new();
    for number in 0..1_000 {
        caller(&mut callers, number, &limiter, &policy, 50 * SECOND);
    }
    let mut admitted_in = [0; 51];
    let mut order = Vec::new();
    let mut denied = 0;
    while let Some(answered) = callers.join_next().await {
        let (number, decision, after) = answered.unwrap();
        assert!(after <= 50 * SECOND, "{after:?}");
        if decision.is_allowed() {
            admitted_in[usize::try_from(after.as_secs()).unwrap()] += 1;
            order.push(number);
        } else {
            assert_eq!(after, Duration::ZERO, "a caller that cannot be served hears so at once");
            denied += 1;
        }
    }
    assert_eq!(admitted_in, [10; 51]);
    assert_eq!((order.len(), denied), (510, 490));
    // On timeout, each queued caller checks once more, in any order, and the last ten are admitted by that.
    assert!(order[..500].is_sorted(), "first come, first served");
    assert!(order.iter().all(|number| *number < 510), "those are turned away that came last");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_cannot_be_admitted_in_time_is_denied_at_once() {
    let limiter = Limiter::in_memory();
    let policy = policy(1, 10 * SECOND);
    assert!(limiter.check(&policy, &subject()).wait(SECOND).await.unwrap().is_allowed());
    let came = Instant::now();
    let Decision::Denied(denial) = limiter.check(&policy, &subject()).wait(9 * SECOND).await.unwrap() else {
        panic!("the window is full for ten seconds")
    };
    assert_eq!((denial.retry_after(), came.elapsed()), (Some(10 * SECOND), Duration::ZERO));
    assert!(limiter.check(&policy, &subject()).wait(10 * SECOND).await.unwrap().is_allowed());
    assert_eq!(came.elapsed(), 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_can_never_be_admitted_is_denied_at_once_however_long_it_may_wait() {
    let limiter = Limiter::in_memory();
    let policy = policy(5, SECOND);
    let came = Instant::now();
    for check in [limiter.acquire(&policy, &subject()), limiter.check(&policy, &subject()).wait(Duration::MAX)] {
        let Decision::Denied(denial) = check.cost(6).await.unwrap() else { panic!("six are more than five") };
        assert_eq!((denial.retry_after(), came.elapsed()), (None, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn acquiring_waits_as_long_as_it_takes() {
    let day = 86_400 * SECOND;
    let limiter = Limiter::in_memory();
    let policy = policy(1, day);
    let came = Instant::now();
    for calls in 0..4 {
        assert!(limiter.acquire(&policy, &subject()).await.unwrap().is_allowed());
        assert_eq!(came.elapsed(), calls * day);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_hears_as_soon_as_it_is_known_that_it_cannot_be_served() {
    let limiter = Limiter::in_memory();
    let policy = policy(1, 10 * SECOND);
    let mut callers = JoinSet::new();
    for (number, patience) in [30, 30, 29].into_iter().enumerate() {
        caller(&mut callers, number, &limiter, &policy, patience * SECOND);
    }
    sleep(15 * SECOND).await;
    // The limit is closed from now on. When the last caller came, it could be served.
    limiter.override_policy("waiting").text("0 per 10s").allow_unknown().set().await.unwrap();
    let mut answers = callers.join_all().await;
    answers.sort_by_key(|(number, ..)| *number);
    let answers: Vec<_> = answers.iter().map(|(_, decision, after)| (decision.is_allowed(), after.as_secs())).collect();
    assert_eq!(answers, [(true, 0), (true, 10), (false, 15)]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_room_does_not_wait_behind_one_whose_other_subject_has_none() {
    let limiter = Limiter::in_memory();
    let all = Rule::sliding_window(10, SECOND);
    let policy =
        Policy::builder("all").rule(all).rule_on("user", Rule::sliding_window(1, 10 * SECOND)).build().unwrap();
    let call = |user: &'static str| {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        async move {
            let (all, user) = (Subject::everyone(), Subject::of(user));
            let check = limiter.check(&policy, &all).subject("user", &user);
            check.wait(20 * SECOND).await.unwrap().is_allowed()
        }
    };
    assert!(call("alice").await);
    let waiting = tokio::spawn(call("alice"));
    sleep(SECOND).await;
    let came = Instant::now();
    assert!(call("bob").await);
    assert_eq!(came.elapsed(), Duration::ZERO);
    assert!(waiting.await.unwrap());
    assert_eq!(came.elapsed(), 9 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_caller_neither_counts_nor_delays_the_next() {
    let limiter = Limiter::in_memory();
    let policy = policy(1, 10 * SECOND);
    let mut callers = JoinSet::new();
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    let dropped = limiter.clone();
    let first = {
        let policy = policy.clone();
        tokio::spawn(async move { dropped.acquire(&policy, &subject()).await.map(drop) })
    };
    sleep(SECOND).await;
    caller(&mut callers, 1, &limiter, &policy, 60 * SECOND);
    sleep(SECOND).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let (_, decision, after) = callers.join_next().await.unwrap().unwrap();
    assert!(decision.is_allowed());
    assert_eq!(after, 9 * SECOND);
}

/// Compares the queue with a model of it: each second admits the first ten callers that are left.
#[tokio::test(start_paused = true)]
async fn callers_that_leave_at_random_delay_no_other() {
    let limiter = Limiter::in_memory();
    let policy = policy(10, SECOND);
    let mut callers = JoinSet::new();
    // No caller leaves at the very moment at which others are admitted.
    let stays_ms: Vec<_> = (0..400).map(|_| fastrand::u64(0..40) * 1_000 + fastrand::u64(1..1_000)).collect();
    for (number, &ms) in stays_ms.iter().enumerate() {
        let limiter = limiter.clone();
        let policy = policy.clone();
        let came = Instant::now();
        callers.spawn(async move {
            let subject = subject();
            let waiting = limiter.acquire(&policy, &subject).into_future();
            let decision = timeout(Duration::from_millis(ms), waiting).await.ok()?.expect("memory answers");
            decision.is_allowed().then(|| (came.elapsed().as_millis(), number))
        });
    }
    let mut admitted: Vec<_> = callers.join_all().await.into_iter().flatten().collect();
    admitted.sort_unstable();

    let mut queue: Vec<_> = (0..400).collect();
    let mut expected = Vec::new();
    for now_ms in (0..40_000).step_by(1_000) {
        queue.retain(|&number| stays_ms[number] > now_ms);
        expected.extend(queue.drain(..queue.len().min(10)).map(|number| (u128::from(now_ms), number)));
    }
    assert_eq!(admitted, expected);
}

#[tokio::test(start_paused = true)]
async fn subjects_have_queues_of_their_own() {
    let limiter = Limiter::in_memory();
    let policy = policy(1, 10 * SECOND);
    for subject in [Subject::of("a"), Subject::of("b")] {
        assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed());
        advance(SECOND).await;
    }
    let one = Subject::of("a");
    let another = Subject::of("b");
    let came = Instant::now();
    let both = tokio::join!(limiter.acquire(&policy, &one), async {
        let decision = limiter.acquire(&policy, &another).await;
        (decision, came.elapsed())
    });
    assert!(both.0.unwrap().is_allowed() && both.1.0.unwrap().is_allowed());
    assert_eq!(both.1.1, 9 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_costly_call_is_not_starved_by_cheap_ones_behind_it() {
    let limiter = Limiter::in_memory();
    let policy = policy(10, 10 * SECOND);
    let mut callers = JoinSet::new();
    assert!(limiter.check(&policy, &subject()).cost(5).await.unwrap().is_allowed());
    sleep(5 * SECOND).await;
    assert!(limiter.check(&policy, &subject()).cost(5).await.unwrap().is_allowed());
    let came = Instant::now();
    let costly = limiter.clone();
    let costly = {
        let policy = policy.clone();
        tokio::spawn(async move {
            let decision = costly.acquire(&policy, &subject()).cost(10).await;
            (decision.unwrap().is_allowed(), came.elapsed())
        })
    };
    sleep(SECOND).await;
    // Room for cheap calls comes in four seconds, for the costly one in nine.
    caller(&mut callers, 1, &limiter, &policy, 60 * SECOND);
    assert_eq!(costly.await.unwrap(), (true, 10 * SECOND));
    let (_, decision, after) = callers.join_next().await.unwrap().unwrap();
    assert_eq!((decision.is_allowed(), after), (true, 19 * SECOND));
}

/// Two limiters stand for two processes. Both share the server, which sets the pace.
#[tokio::test(flavor = "multi_thread")]
async fn callers_of_two_processes_share_the_pace_of_the_rule_with_few_requests() {
    let server = Server::start();
    let limiters = [server.limiter().await, server.limiter().await];
    let per = Duration::from_millis(200);
    let all = 200;
    let policy = policy(25, per);
    let mut callers = JoinSet::new();
    let came = Instant::now();
    for number in 0..all {
        caller(&mut callers, number, &limiters[number % 2], &policy, 60 * SECOND);
    }
    let answers = timeout(60 * SECOND, callers.join_all()).await.unwrap();
    assert!(answers.iter().all(|(_, decision, _)| decision.is_allowed()));
    // 25 at once, and the other 175 in seven windows.
    assert!(came.elapsed() >= 7 * per, "{:?}", came.elapsed());
    let asked = server.calls("evalsha") + server.calls("eval");
    // At first, every caller asks. After that, the first of each queue asks for each admission, and is denied now and
    // then. Several requests may share a call.
    assert!(asked <= 600, "{asked} calls for {all} admissions");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_are_dropped_at_random_never_admit_more_than_the_rule_allows() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let count = 5;
    let per = Duration::from_millis(100);
    let policy = policy(count, per);
    let mut callers = JoinSet::new();
    let started = Instant::now();
    for number in 0..120 {
        caller(&mut callers, number, &limiter, &policy, 60 * SECOND);
    }
    let mut random = fastrand::Rng::with_seed(7);
    let mut handles = Vec::new();
    for number in 0..120 {
        let limiter = limiter.clone();
        let policy = policy.clone();
        let dropped_after = Duration::from_millis(random.u64(0..400));
        let call = async move { limiter.acquire(&policy, &subject()).await };
        handles.push((number, tokio::spawn(timeout(dropped_after, call))));
    }
    let mut admitted = 0;
    for (_, handle) in handles {
        admitted += u64::from(matches!(handle.await.unwrap(), Ok(Ok(decision)) if decision.is_allowed()));
    }
    let answers = timeout(60 * SECOND, callers.join_all()).await.expect("a dropped caller delays no other");
    assert!(answers.iter().all(|(_, decision, _)| decision.is_allowed()));
    let windows = u64::try_from(started.elapsed().as_millis() / per.as_millis()).unwrap() + 1;
    assert!(120 + admitted <= count * windows, "{admitted} and 120 in {windows} windows");
}
