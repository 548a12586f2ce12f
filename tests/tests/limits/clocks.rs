//! The clocks that tests of a program set: tokio's, paused, and one that is moved by hand.

use std::time::{Duration, SystemTime};

use tallygate::testing::ManualClock;
use tallygate::{Ban, Decision, Limiter, Policy, Rejection, Rule, Schedule, Subject, rate_limit};
use tallygate_harness::server::{Server, connected, patient};
use tokio::task::JoinSet;
use tokio::time::{Instant, advance, pause, sleep};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

fn policy(count: u64, per: Duration) -> Policy {
    Policy::builder("clocks").rule(Rule::sliding_window(count, per)).build().unwrap()
}

fn subject() -> Subject {
    Subject::of("somebody")
}

/// Uses every operation that asks the server.
async fn assert_works(limiter: &Limiter) {
    let policy = policy(2, HOUR);
    let subject = subject();
    let check = || limiter.check(&policy, &subject);
    check().reset().await.unwrap();
    assert!(check().await.unwrap().is_allowed());
    let permit = check().refundable().await.unwrap().into_result().unwrap();
    assert!(!check().report().await.unwrap().is_allowed());
    assert!(permit.refund().await.unwrap());
    assert!(check().await.unwrap().is_allowed());
}

#[tokio::test(start_paused = true)]
async fn redis_is_connected_to_and_decides_while_tokios_clock_is_paused() {
    let server = Server::start();
    let paused = Instant::now();
    // The name of the host is looked up, which takes a blocking task.
    let url = format!("redis://localhost:{}/", server.port());
    let eager = connected(&patient(), &url).await;
    let lazy = patient().connect_lazy(&url).unwrap();
    for limiter in [&eager, &lazy] {
        assert_works(limiter).await;
    }
    assert_eq!(paused.elapsed(), Duration::ZERO, "the paused clock stands still");
    advance(HOUR).await;
    for limiter in [eager, lazy, connected(&patient(), &url).await] {
        assert_works(&limiter).await;
    }
    assert_eq!(paused.elapsed(), HOUR);
}

#[tokio::test]
async fn redis_decides_when_tokios_clock_is_paused_after_connecting() {
    let server = Server::start();
    let limiter = server.limiter().await;
    assert_works(&limiter).await;
    pause();
    assert_works(&limiter).await;
    let lazy = patient().connect_lazy(server.url()).unwrap();
    assert_works(&lazy).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_at_once_are_decided_while_tokios_clock_is_paused() {
    let server = Server::start();
    let paused = Instant::now();
    let limiter = patient().connect_lazy(format!("redis://localhost:{}/", server.port())).unwrap();
    let mut calls = JoinSet::new();
    for _ in 0..1_000 {
        let limiter = limiter.clone();
        calls.spawn(async move { limiter.check(&policy(600, HOUR), &subject()).await.unwrap().is_allowed() });
    }
    let admitted = calls.join_all().await.into_iter().filter(|&admitted| admitted).count();
    assert_eq!((admitted, paused.elapsed()), (600, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up_while_tokios_clock_is_paused() {
    let server = Server::start();
    let paused = Instant::now();
    let limiter = connected(&Limiter::builder().deadline(SECOND / 10), &server.url()).await;
    server.pause();
    let started = std::time::Instant::now();
    let error = limiter.check(&policy(1, HOUR), &subject()).await.unwrap_err();
    assert!(error.to_string().contains("no answer within the deadline"), "{error}");
    assert!(started.elapsed() >= SECOND / 10);
    assert_eq!(paused.elapsed(), Duration::ZERO);
}

/// Returns a limiter in memory and one in Redis, with clocks that show that time.
async fn limiters(server: &Server, now: SystemTime) -> [(ManualClock, Limiter); 2] {
    let clocks = [ManualClock::new(now), ManualClock::new(now)];
    let in_memory = Limiter::builder().clock(&clocks[0]).build_in_memory().unwrap();
    let in_redis = connected(&patient().clock(&clocks[1]), &server.url()).await;
    let [for_memory, for_redis] = clocks;
    [(for_memory, in_memory), (for_redis, in_redis)]
}

/// 2027-03-01 06:00 in Shanghai.
fn six_in_shanghai() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_803_852_000)
}

#[rate_limit(
    name = "coupons",
    key = "{user}",
    limiter = limiter,
    rule(count = 1, cron = "0 0 6 * * *", tz = "Asia/Shanghai")
)]
async fn draw_coupon(limiter: &Limiter, user: &str) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn a_daily_quota_starts_anew_at_its_tick_by_a_manual_clock() {
    const DAY: Duration = Duration::from_secs(86_400);
    let server = Server::start();
    for (clock, limiter) in limiters(&server, six_in_shanghai() - SECOND).await {
        draw_coupon(&limiter, "alice").await.unwrap();
        for day in 0..3 {
            let tick = six_in_shanghai() + day * DAY;
            for before in [SECOND, Duration::from_micros(1)] {
                clock.set(tick - before);
                let rejection = draw_coupon(&limiter, "alice").await.unwrap_err();
                assert_eq!(rejection.retry_after(), Some(before));
            }
            clock.advance(Duration::from_micros(1));
            assert_eq!(clock.now(), tick);
            draw_coupon(&limiter, "alice").await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_manual_clock_moves_windows_and_may_be_set_back() {
    let server = Server::start();
    for (clock, limiter) in limiters(&server, SystemTime::now()).await {
        let policy = policy(1, HOUR);
        let subject = subject();
        let admitted = async || limiter.check(&policy, &subject).await.unwrap().is_allowed();
        let start = clock.now();
        assert!(admitted().await && !admitted().await);
        clock.advance(HOUR);
        assert!(admitted().await && !admitted().await);
        clock.set(start - HOUR);
        assert!(admitted().await, "a hit in the future does not count");
        assert!(!admitted().await);
    }
}

/// One rule of each algorithm, which admits a single call.
fn single_calls() -> Vec<Policy> {
    let rules = [
        ("window", Rule::sliding_window(1, HOUR)),
        ("duplicate", Rule::duplicate(HOUR)),
        ("counter", Rule::sliding_counter(1, HOUR)),
        ("fixed", Rule::fixed_window(1, HOUR)),
        ("bucket", Rule::token_bucket(1, HOUR)),
        ("schedule", Rule::cron(1, Schedule::parse("0 0 6 * * *", "Asia/Shanghai").unwrap())),
    ];
    rules.map(|(name, rule)| Policy::builder(name).rule(rule).build().unwrap()).into()
}

#[tokio::test]
async fn a_clock_that_goes_back_by_little_stands_still() {
    const LITTLE: [Duration; 3] = [Duration::from_micros(1), Duration::from_millis(1), Duration::from_millis(128)];
    let server = Server::start();
    for (clock, limiter) in limiters(&server, six_in_shanghai() + HOUR).await {
        for (policy, back) in single_calls().into_iter().flat_map(|policy| LITTLE.map(|back| (policy.clone(), back))) {
            let now = clock.now();
            let subject = Subject::of(policy.name()).and(back.as_micros());
            let check = || limiter.check(&policy, &subject).report();
            let permit = check().refundable().await.unwrap().into_result().unwrap();
            let denied = check().await.unwrap();
            clock.set(now - back);
            let answer = |decision: &Decision| format!("{decision:?}");
            assert_eq!(answer(&check().await.unwrap()), answer(&denied), "{policy:?} {back:?} earlier");
            assert!(permit.refund().await.unwrap(), "{policy:?} {back:?} earlier");
            let next = check().refundable().await.unwrap().into_result().unwrap();
            assert!(next.refund().await.unwrap(), "{policy:?} {back:?} earlier");
            clock.set(now);
        }
    }
}

#[tokio::test]
async fn all_subjects_of_a_call_are_decided_as_of_the_latest_time_that_one_of_them_knows() {
    const BACK: Duration = Duration::from_millis(100);
    let server = Server::start();
    for (clock, limiter) in limiters(&server, six_in_shanghai()).await {
        let rule = || Rule::sliding_window(1, HOUR);
        let policy = Policy::builder("two").rule(rule()).rule_on("ip", rule()).build().unwrap();
        let (early, late) = (Subject::of("early"), Subject::of("late"));
        let call = async |user: &Subject, ip: &Subject| {
            limiter.check(&policy, user).subject("ip", ip).refundable().await.unwrap().into_result()
        };
        clock.set(six_in_shanghai() - BACK);
        let first = call(&early, &Subject::of("ip of early")).await.unwrap();
        clock.set(six_in_shanghai());
        call(&Subject::of("user of late"), &late).await.unwrap();
        assert!(first.refund().await.unwrap());
        // An hour later for one of them, and a tenth of a second less for the other.
        clock.set(six_in_shanghai() + HOUR);
        let permit = call(&Subject::of("user"), &late).await.unwrap();
        clock.set(six_in_shanghai() + HOUR - BACK);
        let denial = call(&early, &late).await.unwrap_err();
        assert_eq!(denial.retry_after(), Some(HOUR));
        assert!(permit.refund().await.unwrap());
        assert!(call(&early, &late).await.unwrap().refund().await.unwrap());
    }
}

#[tokio::test]
async fn a_ban_holds_while_the_clock_stands_still_and_none_of_no_duration_begins() {
    let server = Server::start();
    for (clock, limiter) in limiters(&server, six_in_shanghai()).await {
        let ban = Ban::new(3, HOUR, HOUR);
        let policy = Policy::builder("banned").rule(Rule::sliding_window(9, HOUR)).ban(ban).build().unwrap();
        let subject = subject();
        let check = || limiter.check(&policy, &subject).peek();
        check().ban(HOUR).await.unwrap();
        clock.set(six_in_shanghai() - Duration::from_millis(1));
        assert!(!check().await.unwrap().is_allowed());
        clock.set(six_in_shanghai());
        check().unban().await.unwrap();
        clock.set(six_in_shanghai() - Duration::from_millis(1));
        assert!(check().await.unwrap().is_allowed());
        clock.set(six_in_shanghai());
    }
}

/// Lets tasks run until each of them waits for the clock.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Tokio's clock is paused, so it would jump if a caller waited by it.
#[tokio::test(start_paused = true)]
async fn callers_wait_for_admission_by_a_manual_clock() {
    let clock = ManualClock::new(SystemTime::now());
    let limiter = Limiter::builder().clock(&clock).build_in_memory().unwrap();
    let policy = policy(1, HOUR);
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    let mut callers = JoinSet::new();
    for (number, patience) in [(1, 3 * HOUR), (2, 3 * HOUR), (3, 3 * HOUR / 2)] {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        callers.spawn(async move {
            (number, limiter.check(&policy, &subject()).wait(patience).await.unwrap().is_allowed())
        });
        settle().await;
    }
    let mut answers = Vec::new();
    for _ in 0..4 {
        clock.advance(HOUR / 2);
        settle().await;
        let answered = std::iter::from_fn(|| callers.try_join_next());
        answers.push(answered.map(Result::unwrap).collect::<Vec<_>>());
    }
    // In its time there is room for one, and two wait before it for longer: it hears so at once.
    assert_eq!(answers, [vec![(3, false)], vec![(1, true)], vec![], vec![(2, true)]]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_waits_for_redis_by_a_manual_clock() {
    let server = Server::start();
    let [_, (clock, limiter)] = limiters(&server, SystemTime::now()).await;
    let policy = policy(1, HOUR);
    let start = clock.now();
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    let call = tokio::spawn(async move { limiter.acquire(&policy, &subject()).await.unwrap().is_allowed() });
    while !call.is_finished() {
        clock.advance(HOUR / 8);
        sleep(Duration::from_millis(1)).await;
    }
    assert!(call.await.unwrap());
    assert!(clock.now() >= start + HOUR);
}
