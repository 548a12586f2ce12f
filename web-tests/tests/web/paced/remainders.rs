//! Answers that say that less is left of a fixed window than is left here.

use http::Response;
use tallygate::client::{Meters, ResponseReader};
use tallygate::{PolicyBuilder, RuleStatus};
use tallygate_harness::server::{Server as Redis, connected, patient};
use tallygate_harness::until::until_found;

use tower::service_fn;

use super::pauses::pausable;
use super::*;

/// A partner that answers as if others had used all but 5 of its 100 calls. Its window ends at a point in time, or after so many
/// seconds from the answer.
async fn partner(reset: &'static str) -> Partner {
    let asked = Arc::new(AtomicUsize::new(0));
    let answer = async move || {
        let left = 5_usize.saturating_sub(asked.fetch_add(1, Ordering::SeqCst));
        let date = "Sat, 28 Nov 2026 08:00:00 GMT";
        let fields = [("x-ratelimit-limit", "100".to_owned()), ("x-ratelimit-remaining", left.to_string())];
        (fields, [("x-ratelimit-reset", reset), ("date", date)], "well")
    };
    Partner::answering(|router| router.route("/shared", any(answer))).await
}

/// 45 seconds behind the date of the answers.
const POINT_IN_TIME: &str = "1795852845";

async fn remaining(limiter: &Limiter) -> u64 {
    let policy = Policy::builder("partner").rule(per_minute(100)).pausable().build().unwrap();
    limiter.peek(&policy, &Subject::of("127.0.0.1")).await.unwrap().report()[0].remaining()
}

#[tokio::test]
async fn no_more_is_sent_than_the_other_side_says_until_its_reset_in_memory() {
    let (partner, limiter) = (partner(POINT_IN_TIME).await, Limiter::in_memory());
    let client = pausable().limiter(&limiter).layer(Client::builder(TokioExecutor::new()).build_http());
    assert_eq!(rejected(&client, partner.request("/shared")).await, None);
    assert_eq!(remaining(&limiter).await, 5);
    // Each answer says one less, as is left here, too: nothing more is taken.
    for _ in 0..5 {
        assert_eq!(rejected(&client, partner.request("/shared")).await, None);
    }
    assert!(rejected(&client, partner.request("/shared")).await.is_some());
}

#[tokio::test]
async fn a_reset_that_may_be_that_of_a_sliding_window_leaves_the_counts_alone_in_memory() {
    let (partner, limiter) = (partner("45").await, Limiter::in_memory());
    let client = pausable().limiter(&limiter).layer(Client::builder(TokioExecutor::new()).build_http());
    assert_eq!(rejected(&client, partner.request("/shared")).await, None);
    assert_eq!(remaining(&limiter).await, 99);
}

#[tokio::test]
async fn no_more_is_sent_until_a_reset_that_is_later_than_the_end_of_the_longest_pause() {
    let server = Redis::start();
    for limiter in [Limiter::in_memory(), connected(&patient(), &server.url()).await] {
        let partner = partner("1795924800").await;
        let policy = Policy::builder("day").rule(Rule::fixed_window(100, 24 * 60 * MINUTE)).pausable().build().unwrap();
        let pace = client::pace(&policy, "{@host}").unwrap().limiter(&limiter);
        let client = pace.layer(Client::builder(TokioExecutor::new()).build_http());
        assert_eq!(rejected(&client, partner.request("/shared")).await, None);
        until_found("no more than the partner says is left", async || {
            limiter.peek(&policy, &Subject::of("127.0.0.1")).await.unwrap().report()[0].remaining() == 5
        })
        .await;
    }
}

/// A client whose answers say that so much is left of 100 until a point in time.
fn answering(
    left: &'static str,
) -> impl tower::Service<Request<String>, Response = Response<String>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    service_fn(move |_| async move {
        let fields =
            [("x-ratelimit-limit", "100"), ("x-ratelimit-remaining", left), ("x-ratelimit-reset", POINT_IN_TIME)];
        let answer = fields.into_iter().fold(Response::builder(), |answer, (name, value)| answer.header(name, value));
        Ok(answer.header("date", "Sat, 28 Nov 2026 08:00:00 GMT").body(String::new()).unwrap())
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_look_takes_nothing_even_if_its_policy_asks_for_more() {
    let limiter = Limiter::in_memory();
    let policy = Policy::builder("partner").rule(per_minute(100)).warn_at(0.9).pausable().build().unwrap();
    let pace = client::pace(&policy, "partner").unwrap().limiter(&limiter).metered("calls").unwrap();
    let call = async |left| {
        let response = pace.layer(answering(left)).oneshot(Request::new(String::new())).await.unwrap();
        response.extensions().get::<Meters>().unwrap().get("calls").unwrap().add(1);
    };
    let left = async || limiter.peek(&policy, &Subject::of("partner")).await.unwrap().report()[0].remaining();
    call("50").await;
    assert_eq!(left().await, 50);
    call("40").await;
    assert_eq!(left().await, 49, "the other answer came a moment later");
    tokio::time::advance(Duration::from_millis(100)).await;
    call("30").await;
    assert_eq!(left().await, 30);
}

#[tokio::test]
async fn a_rule_that_counts_for_longer_or_another_number_leaves_its_counts_alone() {
    let hour = 60 * MINUTE;
    // In 45 seconds, the partner admits 100 calls again.
    for rule in [Rule::fixed_window(100, hour), Rule::fixed_window(5_000, MINUTE)] {
        let (partner, limiter) = (partner(POINT_IN_TIME).await, Limiter::in_memory());
        let policy = Policy::builder("partner").rule(rule.clone()).pausable().build().unwrap();
        let pace = client::pace(&policy, "{@host}").unwrap().limiter(&limiter);
        let client = pace.layer(Client::builder(TokioExecutor::new()).build_http());
        assert_eq!(rejected(&client, partner.request("/shared")).await, None);
        let peeked = limiter.peek(&policy, &tallygate::Subject::of("127.0.0.1")).await.unwrap();
        assert_eq!(peeked.report()[0].remaining(), rule.count() - 1);
    }
}

#[tokio::test]
async fn a_rule_that_is_named_counts_what_the_other_side_counts_whatever_its_window_and_count() {
    let policy = Policy::builder("partner").rule(per_minute(90).named("shared")).pausable().build().unwrap();
    for (name, left) in [(None, 89), (Some("shared"), 5)] {
        let (partner, limiter) = (partner(POINT_IN_TIME).await, Limiter::in_memory());
        let pace = client::pace(&policy, "{@host}").unwrap().limiter(&limiter);
        let pace = name.into_iter().fold(pace, |pace, name| pace.shared_rule(name).unwrap());
        let client = pace.layer(Client::builder(TokioExecutor::new()).build_http());
        assert_eq!(rejected(&client, partner.request("/shared")).await, None);
        let peeked = limiter.peek(&policy, &Subject::of("127.0.0.1")).await.unwrap();
        assert_eq!(peeked.report()[0].remaining(), left, "{name:?}");
    }
}

/// A partner that answers with its limits of a minute and of an hour, and how much is left of each.
async fn partner_of_two_limits() -> Partner {
    let answer = async || {
        let policy = r#""minute";q=10;w=60, "hour";q=100;w=3600"#;
        let left = r#""minute";r=3;t=45, "hour";r=40;t=1800"#;
        ([("ratelimit-policy", policy), ("ratelimit", left)], "well")
    };
    Partner::answering(|router| router.route("/shared", any(answer))).await
}

#[tokio::test]
async fn a_rule_that_is_named_leaves_the_limit_of_another_window_to_the_rule_that_counts_as_long() {
    let (partner, limiter) = (partner_of_two_limits().await, Limiter::in_memory());
    let daily = Rule::fixed_window(90, 60 * MINUTE).named("hourly");
    let policy = Policy::builder("partner").rules([Rule::fixed_window(9, MINUTE), daily]).pausable().build().unwrap();
    let pace = client::pace(&policy, "{@host}").unwrap().limiter(&limiter).shared_rule("hourly").unwrap();
    let pace = pace.responses(ResponseReader::new().fixed_windows(true));
    let client = pace.layer(Client::builder(TokioExecutor::new()).build_http());
    assert_eq!(rejected(&client, partner.request("/shared")).await, None);
    let peeked = limiter.peek(&policy, &Subject::of("127.0.0.1")).await.unwrap();
    assert_eq!(peeked.report().iter().map(RuleStatus::remaining).collect::<Vec<_>>(), [3, 40]);
}

#[test]
fn only_a_limit_on_the_subject_that_can_be_paused_is_shared() {
    let mistake = |policy: PolicyBuilder, name| {
        let policy = policy.build().unwrap();
        client::pace(&policy, "all").unwrap().shared_rule(name).err().map(|error| error.to_string())
    };
    let policy = || Policy::builder("partner").rule(per_minute(90).named("shared"));
    assert_eq!(mistake(policy().pausable(), "shared"), None);
    assert_eq!(
        mistake(policy().pausable(), "share").unwrap(),
        "`shared_rule`: policy `partner` has no rule `share`; did you mean `shared`?"
    );
    assert!(mistake(policy(), "shared").unwrap().ends_with("make it `pausable`"));
    let of_host = policy().rule_on("host", per_minute(900)).pausable_on("host");
    assert!(mistake(of_host, "shared").unwrap().ends_with("name a limit on it"));
    let concurrent = policy().rule(Rule::concurrency(3, MINUTE).named("running")).pausable();
    assert!(mistake(concurrent, "running").unwrap().ends_with("name a limit on it"));
}

#[tokio::test]
async fn the_whole_fleet_sends_no_more_than_the_other_side_says() {
    let (partner, server) = (partner(POINT_IN_TIME).await, Redis::start());
    let limiter = connected(&patient(), &server.url()).await;
    let client = pausable().limiter(&limiter).layer(Client::builder(TokioExecutor::new()).build_http());
    assert_eq!(rejected(&client, partner.request("/shared")).await, None);
    let another = connected(&patient(), &server.url()).await;
    until_found("the other process has no more, either", async || remaining(&another).await == 5).await;
}
