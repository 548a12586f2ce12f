//! Pauses that the other side asks for.

use metrics_exporter_prometheus::PrometheusBuilder;
use tallygate_harness::clocked::new_clock;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::{Server as Redis, away, connected, patient};
use tallygate_harness::until::{until, until_found};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::*;

pub(super) fn pausable() -> Pace {
    pausable_by("{@host}")
}

pub(super) fn pausable_by(key: &str) -> Pace {
    let policy = Policy::builder("partner").rule(per_minute(100)).pausable().build().unwrap();
    client::pace(&policy, key).unwrap()
}

fn paced_by(limiter: &Limiter) -> Paced {
    pausable().limiter(limiter).layer(Client::builder(TokioExecutor::new()).build_http())
}

#[tokio::test]
async fn after_a_denial_of_the_other_side_nothing_is_sent_until_it_says() {
    let limit = web::limit(&policy([per_minute(1)]), "all").unwrap().limiter(&Limiter::in_memory());
    let partner = Partner::answering(|router| router.layer(limit)).await;
    let client = paced(pausable());
    assert_eq!(rejected(&client, partner.request("/admitted")).await, None);
    let denied = client.clone().oneshot(partner.request("/denied")).await.unwrap();
    let pause = denied.extensions().get::<Heard>().unwrap().wait().unwrap();
    assert_eq!((denied.status(), pause), (StatusCode::TOO_MANY_REQUESTS, MINUTE));

    let error = client.clone().oneshot(partner.request("/paused")).await.unwrap_err();
    let rejection = error.rejection().unwrap();
    assert_eq!(rejection.kind(), RejectionKind::Paused);
    assert!(rejection.retry_after().is_some_and(|wait| wait <= pause && wait > MINUTE / 2));
    assert_eq!(partner.asked(), ["/admitted"]);
    // Other hosts are not paused.
    let port = partner.address.port();
    let elsewhere = Request::get(format!("http://localhost:{port}/")).body(Noted::default()).unwrap();
    assert_eq!(rejected(&client, elsewhere).await, None);
}

/// The partner is a server with our layer, which calls a partner of its own.
#[tokio::test]
async fn a_partner_whose_own_subject_is_paused_is_called_again_when_it_says() {
    let behind = Policy::builder("behind").rule(per_minute(100)).pausable().build().unwrap();
    for layer in [WebLayer::new(), WebLayer::new().on_success(true).fields(None)] {
        let clock = new_clock();
        let [served, calling] = [(); 2].map(|()| Limiter::builder().clock(&clock).build_in_memory().unwrap());
        let limit = web::limit(&behind, "all").unwrap().limiter(&served);
        let partner = Partner::answering(|router| router.layer(limit).layer(layer)).await;
        let client = paced_by(&calling);
        assert_eq!(rejected(&client, partner.request("/admitted")).await, None);

        served.check(&behind, &Subject::of("all")).pause(MINUTE / 2).await.unwrap();
        let paused = client.clone().oneshot(partner.request("/paused")).await.unwrap();
        let heard = paused.extensions().get::<Heard>().unwrap();
        assert_eq!((paused.status(), heard.wait()), (StatusCode::SERVICE_UNAVAILABLE, Some(MINUTE / 2)));
        assert_eq!(heard.pause().and_then(HeardPause::field), Some("retry-after"));
        let rejection = client.clone().oneshot(partner.request("/not-sent")).await.unwrap_err();
        let rejection = rejection.rejection().unwrap();
        assert_eq!((rejection.kind(), rejection.retry_after()), (RejectionKind::Paused, Some(MINUTE / 2)));

        clock.advance(MINUTE / 2);
        for path in ["/tried", "/open"] {
            assert_eq!(client.clone().oneshot(partner.request(path)).await.unwrap().status(), StatusCode::OK);
        }
        assert_eq!(partner.asked(), ["/admitted", "/tried", "/open"]);
    }
}

#[tokio::test]
async fn who_looks_at_a_pause_sees_the_field_that_asked_for_it() {
    let limit = web::limit(&policy([per_minute(1)]), "all").unwrap().limiter(&Limiter::in_memory());
    let partner = Partner::answering(|router| router.layer(limit)).await;
    let limiter = Limiter::in_memory();
    let client = paced_by(&limiter);
    for path in ["/admitted", "/denied"] {
        client.clone().oneshot(partner.request(path)).await.unwrap();
    }
    let policy = Policy::builder("partner").rule(per_minute(100)).pausable().build().unwrap();
    let status = limiter.check(&policy, &Subject::of("127.0.0.1")).pause_status().await.unwrap().unwrap();
    assert_eq!((status.field(), status.operator()), (Some("retry-after"), None));
    assert!(status.left() > MINUTE / 2 && status.left() <= MINUTE);
}

#[tokio::test]
async fn each_answer_that_asks_for_a_pause_is_counted_by_its_field() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let limit = web::limit(&policy([per_minute(1)]), "all").unwrap().limiter(&Limiter::in_memory());
    let partner = Partner::answering(|router| router.layer(limit)).await;
    for limiter in [Limiter::in_memory(), Limiter::in_memory()] {
        let client = paced_by(&limiter);
        for path in ["/admitted", "/denied"] {
            let _ = client.clone().oneshot(partner.request(path)).await;
        }
    }
    // The first one was admitted once, and denied once; the second one was denied at once, and then paused.
    let rendered = metrics.render();
    let counted: Vec<_> = rendered.lines().filter(|line| line.starts_with("tallygate_pauses_total")).collect();
    assert_eq!(counted, [r#"tallygate_pauses_total{policy="partner",field="retry-after"} 2"#]);
}

#[tokio::test]
async fn a_call_waits_for_the_end_of_a_pause() {
    let denials = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&denials);
    let answer = async move || {
        let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        let status = if is_first { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
        (status, [("retry-after-ms", "300")])
    };
    let partner = Partner::answering(|router| router.route("/busy", any(answer))).await;
    let client = paced(pausable().wait(MINUTE));
    let before = std::time::Instant::now();
    let denied = client.clone().oneshot(partner.request("/busy")).await.unwrap();
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    let admitted = client.clone().oneshot(partner.request("/busy")).await.unwrap();
    assert_eq!((admitted.status(), denials.load(Ordering::SeqCst)), (StatusCode::OK, 2));
    assert!(before.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn after_a_pause_a_good_answer_opens_for_all_and_a_failure_lets_the_next_call_be_tried() {
    let asked = Arc::new(AtomicUsize::new(0));
    let answer = async move || match asked.fetch_add(1, Ordering::SeqCst) {
        0 => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "60")], "later"),
        1 => (StatusCode::SERVICE_UNAVAILABLE, [("x-well", "no")], "gone"),
        _ => (StatusCode::OK, [("x-well", "yes")], "well"),
    };
    let partner = Partner::answering(|router| router.route("/busy", any(answer))).await;
    let clock = new_clock();
    let limiter = away(|builder| builder.clock(&clock));
    let client = paced_by(&limiter);
    let call = || client.clone().oneshot(partner.request("/busy"));
    assert_eq!(call().await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    clock.advance(MINUTE);
    for (status, others) in [(503, Some(RejectionKind::Paused)), (200, None)] {
        // The body of the answer is not read, so the call is running.
        let tried = call().await.unwrap();
        assert_eq!((tried.status().as_u16(), rejected(&client, partner.request("/busy")).await), (status, others));
    }
}

#[tokio::test]
async fn the_subject_is_paused_that_the_policy_lets_be_paused() {
    let limit = web::limit(&policy([per_minute(1)]), "all").unwrap().limiter(&Limiter::in_memory());
    let partner = Partner::answering(|router| router.layer(limit)).await;
    let rules = Policy::builder("partner").rule(per_minute(100)).rule_on("host", per_minute(100));
    let pace = client::pace(&rules.pausable_on("host").build().unwrap(), "{@header_x_customer}").unwrap();
    let client = paced(pace.clone().subject("host", "{@host}").unwrap());
    let of_customer = |mut request: Request<Noted>, customer: &str| {
        request.headers_mut().insert("x-customer", customer.parse().unwrap());
        request
    };
    for (customer, rejection) in
        [("a", None), ("a", None), ("a", Some(RejectionKind::Paused)), ("b", Some(RejectionKind::Paused))]
    {
        assert_eq!(rejected(&client, of_customer(partner.request("/"), customer)).await, rejection, "{customer}");
    }
    let elsewhere =
        Request::get(format!("http://localhost:{}/", partner.address.port())).body(Noted::default()).unwrap();
    assert_eq!(rejected(&client, of_customer(elsewhere, "a")).await, None);

    let mistake = pace.clone().subject("hst", "{@host}").err().unwrap().to_string();
    assert_eq!(mistake, "`subject`: policy `partner` has no rule on a subject `hst`; did you mean `host`?");
    let lacking = paced(pace);
    assert_eq!(rejected(&lacking, of_customer(partner.request("/"), "a")).await, Some(RejectionKind::Unavailable));
}

#[tokio::test]
async fn a_policy_that_cannot_be_paused_only_paces() {
    let limit = web::limit(&policy([per_minute(1)]), "all").unwrap().limiter(&Limiter::in_memory());
    let partner = Partner::answering(|router| router.layer(limit)).await;
    let client = paced(pace([per_minute(100)], "{@host}"));
    for _ in 0..3 {
        assert_eq!(rejected(&client, partner.request("/")).await, None);
    }
}

#[tokio::test]
async fn nobody_waits_until_the_store_has_heard_of_a_pause() {
    let redis = Redis::start();
    let proxy = Arc::new(Proxy::start(redis.port()).await);
    let silent = Arc::clone(&proxy);
    let answer = async move || {
        silent.hold_replies();
        (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "60")])
    };
    let partner = Partner::answering(|router| router.route("/busy", any(answer))).await;
    let limiter = connected(&patient().deadline(10 * MINUTE), &proxy.url()).await;
    let client = paced_by(&limiter);
    let denied = timeout(MINUTE, client.clone().oneshot(partner.request("/busy"))).await.expect("no reply is awaited");
    assert_eq!(denied.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(rejected(&client, partner.request("/")).await, Some(RejectionKind::Paused));
    until("a reply is held back", || proxy.held() > 0).await;
    proxy.deliver();

    let elsewhere = paced_by(&connected(&patient(), &redis.url()).await);
    until_found("others hear of the pause", async || {
        rejected(&elsewhere, partner.request("/")).await == Some(RejectionKind::Paused)
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_asks_for_less_than_is_known_tells_the_store_nothing() {
    let redis = Redis::start();
    let [asked, told] = [(); 2].map(|()| Arc::new(Notify::new()));
    let (is_asked, may_answer) = (Arc::clone(&asked), Arc::clone(&told));
    let denial = |seconds: &'static str| (StatusCode::TOO_MANY_REQUESTS, [("retry-after", seconds)]);
    let short = async move || {
        is_asked.notify_one();
        may_answer.notified().await;
        denial("30")
    };
    let routes = |router: Router| router.route("/long", any(async move || denial("60"))).route("/short", any(short));
    let partner = Partner::answering(routes).await;
    // What the store has said is believed for longer than this test takes.
    let limiter = connected(&patient().denial_cache(Duration::from_secs(10)), &redis.url()).await;
    let client = paced_by(&limiter);
    // Then the server knows all scripts.
    let elsewhere = format!("http://localhost:{}/long", partner.address.port());
    assert_eq!(rejected(&client, Request::get(elsewhere).body(Noted::default()).unwrap()).await, None);
    assert!(limiter.drain(MINUTE).await.is_nothing());
    let before = redis.calls("evalsha");

    let answer = tokio::spawn(client.clone().oneshot(partner.request("/short")));
    asked.notified().await;
    assert_eq!(rejected(&client, partner.request("/long")).await, None);
    told.notify_one();
    assert_eq!(answer.await.unwrap().unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(limiter.drain(MINUTE).await.is_nothing());
    let (calls, pauses) = (2, 1);
    assert_eq!(redis.calls("evalsha") - before, calls + pauses);
}

#[tokio::test]
async fn an_answer_tells_the_store_of_a_pause_if_another_process_may_have_ended_the_one_that_is_known() {
    let redis = Redis::start();
    let [asked, told] = [(); 2].map(|()| Arc::new(Notify::new()));
    let (is_asked, may_answer) = (Arc::clone(&asked), Arc::clone(&told));
    let denial = |seconds: &'static str| (StatusCode::TOO_MANY_REQUESTS, [("retry-after", seconds)]);
    let short = async move || {
        is_asked.notify_one();
        may_answer.notified().await;
        denial("1800")
    };
    let routes = |router: Router| router.route("/long", any(async move || denial("3600"))).route("/short", any(short));
    let partner = Partner::answering(routes).await;
    let doubting = || patient().denial_cache(Duration::ZERO);
    let limiter = connected(&doubting(), &redis.url()).await;
    let client = paced_by(&limiter);
    let answer = tokio::spawn(client.clone().oneshot(partner.request("/short")));
    asked.notified().await;
    assert_eq!(rejected(&client, partner.request("/long")).await, None);
    assert!(limiter.drain(MINUTE).await.is_nothing());

    let other = connected(&doubting(), &redis.url()).await;
    let policy = Policy::builder("partner").rule(per_minute(100)).pausable().build().unwrap();
    other.check(&policy, &Subject::of("127.0.0.1")).resume().await.unwrap();
    let elsewhere = paced_by(&other);
    assert_eq!(rejected(&elsewhere, partner.request("/")).await, None);
    told.notify_one();
    assert_eq!(answer.await.unwrap().unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(limiter.drain(MINUTE).await.is_nothing());
    assert_eq!(rejected(&elsewhere, partner.request("/")).await, Some(RejectionKind::Paused));
}

#[tokio::test]
async fn after_a_second_denial_that_says_no_more_the_end_of_the_pause_is_still_heard() {
    let redis = Redis::start();
    let [asked, told] = [(); 2].map(|()| Arc::new(Notify::new()));
    let (is_asked, may_answer) = (Arc::clone(&asked), Arc::clone(&told));
    let denial = |seconds: &'static str| (StatusCode::TOO_MANY_REQUESTS, [("retry-after", seconds)]);
    let second = async move || {
        is_asked.notify_one();
        may_answer.notified().await;
        denial("3599")
    };
    let routes =
        |router: Router| router.route("/first", any(async move || denial("3600"))).route("/second", any(second));
    let partner = Partner::answering(routes).await;
    let limiter = connected(&patient().denial_cache(Duration::from_secs(1)), &redis.url()).await;
    let client = paced_by(&limiter);
    let answer = tokio::spawn(client.clone().oneshot(partner.request("/second")));
    asked.notified().await;
    assert_eq!(rejected(&client, partner.request("/first")).await, None);
    assert!(limiter.drain(MINUTE).await.is_nothing());
    told.notify_one();
    assert_eq!(answer.await.unwrap().unwrap().status(), StatusCode::TOO_MANY_REQUESTS);

    let other = connected(&patient(), &redis.url()).await;
    let policy = Policy::builder("partner").rule(per_minute(100)).pausable().build().unwrap();
    other.check(&policy, &Subject::of("127.0.0.1")).resume().await.unwrap();
    until_found("calls are sent again", async || rejected(&client, partner.request("/")).await.is_none()).await;
}

#[tokio::test]
async fn many_answers_that_say_the_same_pause_one_after_the_other_tell_the_store_once() {
    const CALLS: usize = 23;
    let redis = Redis::start();
    let (asked, told) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
    let (counted, may_answer) = (Arc::clone(&asked), Arc::clone(&told));
    let denial = async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        drop(may_answer.acquire().await);
        (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "57")])
    };
    let partner = Partner::answering(|router| router.route("/busy", any(denial))).await;
    // What the store has said is believed for longer than this test takes.
    let limiter = connected(&patient().denial_cache(Duration::from_secs(10)), &redis.url()).await;
    let client = paced_by(&limiter);
    let answers = join_all((0..CALLS).map(|_| tokio::spawn(client.clone().oneshot(partner.request("/busy")))));
    let answers = tokio::spawn(answers);
    until("all calls are on their way", || asked.load(Ordering::SeqCst) == CALLS).await;
    // Then the server knows the script.
    let policy = Policy::builder("partner").rule(per_minute(100)).pausable().build().unwrap();
    limiter.check(&policy, &Subject::of("other")).pause(MINUTE).await.unwrap();
    let before = redis.calls("evalsha");
    // Each answer comes a moment after the one before it.
    told.add_permits(1);
    for answer in answers.await.unwrap() {
        assert_eq!(answer.unwrap().unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    }
    // It is told the last moments when the process ends.
    assert!(limiter.drain(MINUTE).await.is_nothing());
    assert!((1..=2).contains(&(redis.calls("evalsha") - before)));
}

#[tokio::test]
async fn a_good_call_asks_the_store_once_and_a_pause_once_more() {
    const GOOD: usize = 20;
    let redis = Redis::start();
    let denial = async || (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "57")]);
    let partner = Partner::answering(|router| router.route("/busy", any(denial))).await;
    let limiter = connected(&patient().denial_cache(Duration::from_secs(10)), &redis.url()).await;
    let client = paced_by(&limiter);
    // Then the server knows all scripts.
    assert_eq!(rejected(&client, partner.request("/")).await, None);
    let policy = Policy::builder("partner").rule(per_minute(100)).pausable().build().unwrap();
    limiter.check(&policy, &Subject::of("other")).pause(MINUTE).await.unwrap();
    let before = redis.calls("evalsha");
    for _ in 0..GOOD {
        assert_eq!(rejected(&client, partner.request("/")).await, None);
    }
    assert!(limiter.drain(MINUTE).await.is_nothing());
    assert_eq!(redis.calls("evalsha") - before, GOOD);
    assert_eq!(rejected(&client, partner.request("/busy")).await, None);
    assert!(limiter.drain(MINUTE).await.is_nothing());
    assert_eq!(redis.calls("evalsha") - before, GOOD + 2);
}

#[tokio::test]
async fn while_a_pause_is_known_no_call_asks_the_store() {
    let redis = Redis::start();
    let answer = async || (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "57")]);
    let partner = Partner::answering(|router| router.route("/busy", any(answer))).await;
    let limiter = connected(&patient().denial_cache(Duration::from_secs(10)), &redis.url()).await;
    assert_eq!(rejected(&paced_by(&limiter), partner.request("/busy")).await, None);
    assert!(limiter.drain(MINUTE).await.is_nothing());
    let before = redis.calls("evalsha");
    // The first call of each pace looks where the rules stand.
    for client in [(); 3].map(|()| paced_by(&limiter)) {
        assert_eq!(rejected(&client, partner.request("/")).await, Some(RejectionKind::Paused));
    }
    assert_eq!(redis.calls("evalsha") - before, 0);
}
