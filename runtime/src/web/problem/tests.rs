use tallygate_rules::{Ban, Rule};

use super::*;
use crate::context::{Context, scope};
use crate::error::BackendError;
use crate::limiter::Limiter;
use crate::policy::Policy;
use crate::subject::Subject;

const MINUTE: Duration = Duration::from_secs(60);

/// Calls until a call is rejected, `times` times.
async fn rejected(policy: &Policy, cost: u64, times: usize) -> Rejection {
    let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    let mut last = None;
    for _ in 0..times {
        let decision = limiter.check(policy, &alice).cost(cost).await.unwrap();
        last = decision.into_result().err();
        tokio::time::advance(Duration::from_micros(500)).await;
    }
    last.unwrap().into()
}

async fn limited() -> Rejection {
    let policy = Policy::builder("captcha").rule(Rule::sliding_window(1, MINUTE)).build().unwrap();
    rejected(&policy, 1, 2).await
}

/// Makes a call beside another concurrent call.
async fn one_too_many() -> Rejection {
    let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    let policy = Policy::builder("captcha").rule(Rule::concurrency(1, MINUTE)).build().unwrap();
    let _running = limiter.check(&policy, &alice).await.unwrap().into_result().unwrap();
    limiter.check(&policy, &alice).await.unwrap().into_result().unwrap_err().into()
}

/// One rejection of each kind, and one that is never admitted.
async fn each_kind() -> [Rejection; 6] {
    let policy = |rule| Policy::builder("captcha").rule(rule);
    let banning = policy(Rule::sliding_window(1, MINUTE)).ban(Ban::new(2, 10 * MINUTE, 60 * MINUTE)).build().unwrap();
    [
        limited().await,
        rejected(&policy(Rule::sliding_window(1, MINUTE)).build().unwrap(), 2, 1).await,
        rejected(&policy(Rule::duplicate(MINUTE)).build().unwrap(), 1, 2).await,
        one_too_many().await,
        rejected(&banning, 1, 4).await,
        Rejection::unavailable("captcha", BackendError::new("redis at 10.0.0.1: connection refused")),
    ]
}

const REGISTRY: &str = "https://iana.org/assignments/http-problem-types";

#[tokio::test(start_paused = true)]
async fn each_kind_has_a_status_a_wait_and_a_body() {
    let quota = format!(
        r#""type":"{REGISTRY}#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded""#
    );
    let abnormal = format!(
        r#""type":"{REGISTRY}#abnormal-usage-detected","title":"Request not satisfied due to detection of abnormal request pattern""#
    );
    let capacity = format!(
        r#""type":"{REGISTRY}#temporary-reduced-capacity","title":"Request cannot be satisfied due to temporary server capacity constraints""#
    );
    let conflict = r#""type":"about:blank","title":"Conflict""#.to_owned();
    let too_many = "too many requests: at most 1 per 1m";
    let expected = [
        (
            429,
            Some(60),
            format!(
                r#"{{{quota},"status":429,"detail":"{too_many}; try again in 1m","kind":"limited","violated-policies":["captcha.1m"],"retry_after_ms":60000}}"#
            ),
        ),
        (
            429,
            None,
            format!(
                r#"{{{quota},"status":429,"detail":"{too_many}; this request alone exceeds it","kind":"limited","violated-policies":["captcha.1m"]}}"#
            ),
        ),
        (
            409,
            Some(60),
            format!(
                r#"{{{conflict},"status":409,"detail":"duplicate request: the same one was admitted less than 1m ago; try again in 1m","kind":"duplicate","violated-policies":["captcha.duplicate"],"retry_after_ms":60000}}"#
            ),
        ),
        (
            429,
            Some(60),
            format!(
                r#"{{{quota},"status":429,"detail":"too many concurrent requests: at most 1; try again in 1m","kind":"concurrency","violated-policies":["captcha.concurrency"],"retry_after_ms":60000}}"#
            ),
        ),
        (
            429,
            Some(3_600),
            format!(
                r#"{{{abnormal},"status":429,"detail":"banned: no requests are admitted; try again in 1h","kind":"banned","violated-policies":["captcha.ban"],"retry_after_ms":3600000}}"#
            ),
        ),
        (
            503,
            None,
            format!(
                r#"{{{capacity},"status":503,"detail":"the rate limit cannot be checked right now; try again later","kind":"unavailable","violated-policies":[]}}"#
            ),
        ),
    ];
    let problems = each_kind().await.map(|rejection| Problem::from(&rejection));
    for (problem, expected) in problems.iter().zip(expected) {
        assert_eq!((problem.status().as_u16(), problem.retry_after_s(), problem.to_json()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_shortest_wait_is_a_second_and_a_millisecond() {
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_micros(700))).build().unwrap();
    let problem = Problem::from(&rejected(&policy, 1, 2).await);
    assert_eq!(problem.retry_after_s(), Some(1));
    assert!(problem.to_json().ends_with(r#""retry_after_ms":1}"#), "{}", problem.to_json());
}

#[tokio::test(start_paused = true)]
async fn any_text_becomes_a_body_that_can_be_parsed() {
    let text = "say \"no\" \\ to\n\u{1}\u{7f} Zoë 𝄞";
    let problem = Problem::from(&limited().await.with_message(text));
    assert_eq!(problem.detail(), text);
    let parsed: serde_json::Value = serde_json::from_str(&problem.to_json()).unwrap();
    assert_eq!(parsed["detail"], text);
}

#[tokio::test(start_paused = true)]
async fn the_context_may_have_a_text_in_the_language_of_the_request() {
    let rejection = limited().await;
    let messages = |rejection: &Rejection, context: &Context| {
        (context.get("language") == Some("de"))
            .then(|| format!("Noch {} s", rejection.retry_after().unwrap().as_secs()))
    };
    let detail = async |language: &str| {
        let outer = Context::new().messages(|_, _| Some("from outside".into()));
        let inner = Context::new().with("language", language).messages(messages);
        scope(outer, scope(inner, async { Problem::from(&rejection).detail().to_owned() })).await
    };
    assert_eq!(detail("de").await, "Noch 59 s");
    assert_eq!(detail("fr").await, "from outside");
    assert_eq!(Problem::from(&rejection).detail(), rejection.to_string());
}

#[tokio::test(start_paused = true)]
async fn every_framework_answers_with_the_same_status() {
    for rejection in each_kind().await {
        let problem = Problem::from(&rejection);
        let response = http::Response::<String>::from(&rejection);
        assert_eq!((response.status(), response.body()), (problem.status(), &problem.to_json()));
        let retry_after = response.headers().get("retry-after").map(|seconds| seconds.to_str().unwrap().to_owned());
        assert_eq!(retry_after, problem.retry_after_s().map(|seconds| seconds.to_string()));
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(StatusCode::from(rejection.clone()), problem.status());
        assert_eq!(<(StatusCode, String)>::from(rejection.clone()), (problem.status(), problem.detail().to_owned()));
        #[cfg(feature = "axum")]
        assert_eq!(axum::response::IntoResponse::into_response(rejection.clone()).headers(), response.headers());
        #[cfg(feature = "actix")]
        {
            let actix = actix_web::ResponseError::error_response(&rejection);
            assert_eq!(actix.status().as_u16(), problem.status().as_u16());
            let headers = actix.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
            let expected = response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
            assert_eq!(
                headers.collect::<std::collections::BTreeMap<_, _>>(),
                expected.collect::<std::collections::BTreeMap<_, _>>()
            );
        }
    }
}

#[cfg(feature = "tonic")]
#[tokio::test(start_paused = true)]
async fn each_kind_has_a_status_of_grpc_with_details() {
    use tonic::Code;
    use tonic_types::StatusExt as _;

    let codes = [
        (Code::ResourceExhausted, Some(60), Some("captcha.1m")),
        (Code::ResourceExhausted, None, Some("captcha.1m")),
        (Code::AlreadyExists, Some(60), Some("captcha.duplicate")),
        (Code::ResourceExhausted, Some(60), Some("captcha.concurrency")),
        (Code::ResourceExhausted, Some(3_600), Some("captcha.ban")),
        (Code::Unavailable, None, None),
    ];
    for (rejection, (code, wait_s, limit)) in each_kind().await.into_iter().zip(codes) {
        let text = rejection.to_string();
        let status = tonic::Status::from(rejection);
        assert_eq!((status.code(), status.message()), (code, text.as_str()));
        let wait = status.get_details_retry_info().and_then(|info| info.retry_delay);
        assert_eq!(wait.map(whole_seconds), wait_s);
        let violations = status.get_details_quota_failure().map(|failure| failure.violations).unwrap_or_default();
        assert_eq!(violations.first().map(|violation| violation.subject.as_str()), limit);
    }
}

#[tokio::test(start_paused = true)]
async fn a_problem_names_the_unit_of_a_limit_that_does_not_count_requests() {
    let policy = Policy::builder("chat").rule(Rule::sliding_window(9, MINUTE).counting("tokens")).build().unwrap();
    let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    let call = || async { limiter.check(&policy, &alice).cost_of("tokens", 9).await.unwrap().into_result() };
    call().await.unwrap();
    let denial = call().await.unwrap_err();
    let json: serde_json::Value = serde_json::from_str(&Problem::from(&denial.into()).to_json()).unwrap();
    assert_eq!(json["unit"], "tokens");
    assert_eq!(json["violated-policies"][0], "chat.tokens.1m");
    assert_eq!(json["detail"], "too many tokens: at most 9 per 1m; try again in 1m");
}
