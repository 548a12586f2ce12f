//! What handlers can return, and what rejected calls are answered.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tallygate::context::Context;
use tallygate::testing::ManualClock;
use tallygate::web::{self, Layer};
use tallygate::{Limiter, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_harness::server::{Server as Redis, connected, patient};
use tallygate_web_tests::Client;
use tallygate_web_tests::server::serve;

const TYPES: &str = "https://iana.org/assignments/http-problem-types";

#[rate_limit(name = "minute", rule(count = 1, per = "60s"), limiter = limiter)]
async fn limited(State(limiter): State<Limiter>) -> Result<Json<u8>, Rejection> {
    let _ = limiter;
    Ok(Json(7))
}

#[rate_limit(name = "twice", key = "k", prevent_duplicate, limiter = limiter)]
async fn duplicate(State(limiter): State<Limiter>) -> Result<Json<u8>, Rejection> {
    let _ = limiter;
    Ok(Json(7))
}

#[rate_limit(
    name = "closing",
    key = "k",
    rule(count = 1, per = "60s"),
    ban(denials = 1, within = "10m", duration = "1h"),
    limiter = limiter
)]
async fn banned(State(limiter): State<Limiter>) -> Result<Json<u8>, Rejection> {
    let _ = limiter;
    Ok(Json(7))
}

#[rate_limit(name = "response", rule(count = 1, per = "60s"), limiter = limiter)]
async fn response(State(limiter): State<Limiter>) -> Response {
    let _ = limiter;
    Json(7).into_response()
}

#[rate_limit(name = "response", rule(count = 1, per = "60s"), limiter = limiter)]
async fn response_error(State(limiter): State<Limiter>) -> Result<Json<u8>, Response> {
    let _ = limiter;
    Ok(Json(7))
}

#[rate_limit(name = "response", rule(count = 1, per = "60s"), limiter = limiter)]
async fn any_error(State(limiter): State<Limiter>) -> axum::response::Result<Json<u8>> {
    let _ = limiter;
    Ok(Json(7))
}

#[rate_limit(name = "own", rule(count = 1, per = "60s"), limiter = limiter)]
async fn own_error(State(limiter): State<Limiter>) -> Result<Json<u8>, ApiError> {
    let _ = limiter;
    Ok(Json(7))
}

enum ApiError {
    Rejected(Rejection),
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self::Rejected(rejection) = self;
        ([("x-mine", "yes")], rejection).into_response()
    }
}

#[rate_limit(name = "opaque", rule(count = 1, per = "60s"), limiter = limiter)]
async fn opaque(State(limiter): State<Limiter>) -> impl IntoResponse {
    let _ = limiter;
    if Json(7).0 == 8 {
        return ([("x-mine", "never")], Json(8));
    }
    ([("x-mine", "yes")], Json(7))
}

fn never<T>(_: &T) -> bool {
    false
}

#[rate_limit(name = "opaque", rule(count = 1, per = "60s"), limiter = limiter, refund_if = never)]
async fn opaque_and_refundable(State(limiter): State<Limiter>) -> impl IntoResponse + use<> {
    let _ = limiter;
    Json(7)
}

#[rate_limit(name = "opaque", rule(count = 1, per = "60s"), limiter = limiter)]
fn opaque_future(State(limiter): State<Limiter>) -> impl Future<Output = impl IntoResponse> + Send {
    let _ = limiter;
    async { Json(7) }
}

#[rate_limit(
    name = "opaque",
    rule(count = 1, per = "60s"),
    limiter = limiter,
    reject = |rejection| ([("x-mine", "yes")], rejection).into_response()
)]
async fn opaque_with_its_own_rejection(State(limiter): State<Limiter>) -> impl IntoResponse {
    let _ = limiter;
    Json(7).into_response()
}

fn router(limiter: Limiter, layer: Layer) -> Router {
    Router::new()
        .route("/limited", get(limited))
        .route("/duplicate", get(duplicate))
        .route("/banned", get(banned))
        .route("/response", get(response))
        .route("/response-error", get(response_error))
        .route("/any-error", get(any_error))
        .route("/own-error", get(own_error))
        .route("/opaque", get(opaque))
        .route("/opaque-and-refundable", get(opaque_and_refundable))
        .route("/opaque-future", get(opaque_future))
        .route("/opaque-own", get(opaque_with_its_own_rejection))
        .layer(layer)
        .with_state(limiter)
}

async fn client() -> Client {
    Client::new(serve(router(Limiter::in_memory(), Layer::new())).await)
}

#[tokio::test]
async fn each_kind_of_rejection_has_its_status_and_its_problem() {
    let client = client().await;
    for (path, statuses, kind, problem_type, policy) in [
        ("/limited", &[200, 429][..], "limited", format!("{TYPES}#quota-exceeded"), "minute.1m"),
        ("/duplicate", &[200, 409], "duplicate", "about:blank".to_owned(), "twice.duplicate"),
        ("/banned", &[200, 429, 429], "banned", format!("{TYPES}#abnormal-usage-detected"), "closing.ban"),
    ] {
        let mut last = None;
        for status in statuses {
            let answer = client.get(path).await;
            assert_eq!(answer.status, *status, "{path}");
            last = Some(answer);
        }
        let problem = last.unwrap().problem();
        assert_eq!((problem.kind.as_str(), problem.problem_type), (kind, problem_type));
        assert_eq!(problem.violated_policies, [policy]);
        assert!(problem.retry_after_ms.is_some());
    }
}

#[rate_limit(name = "twice", key = "k", prevent_duplicate, limiter = limiter)]
async fn duplicate_status(State(limiter): State<Limiter>) -> Result<Json<u8>, StatusCode> {
    let _ = limiter;
    Ok(Json(7))
}

/// A conflict of the application's own, whatever the limit says.
async fn conflict(limiter: State<Limiter>) -> StatusCode {
    _ = limited(limiter).await;
    StatusCode::CONFLICT
}

#[tokio::test]
async fn a_duplicate_has_its_wait_also_where_the_handler_returns_a_status() {
    let routes = Router::new().route("/", get(duplicate_status)).route("/conflict", get(conflict));
    let client = Client::new(serve(routes.layer(Layer::new()).with_state(Limiter::in_memory())).await);
    assert_eq!(client.get("/").await.status, 200);
    let answer = client.get("/").await;
    assert_eq!((answer.status, answer.limits()[0].t), (409, answer.retry_after()));
    assert!(answer.retry_after().is_some());
    for _ in 0..2 {
        let answer = client.get("/conflict").await;
        assert_eq!((answer.status, answer.retry_after()), (409, None));
    }
}

#[tokio::test]
async fn an_outage_is_answered_without_a_wait() {
    let mut redis = Redis::start();
    let limiter = redis.limiter().await;
    redis.kill();
    let client = Client::new(serve(router(limiter, Layer::new().on_success(true))).await);
    let answer = client.get("/limited").await;
    assert_eq!((answer.status, answer.retry_after(), answer.limits().len()), (503, None, 0));
    let problem = answer.problem();
    assert_eq!(problem.problem_type, format!("{TYPES}#temporary-reduced-capacity"));
    assert!(problem.violated_policies.is_empty() && !answer.body.contains(&redis.port().to_string()));
}

#[tokio::test]
async fn a_handler_may_return_what_handlers_return() {
    let own = ["/own-error", "/opaque-own"];
    let others = ["/response", "/response-error", "/any-error", "/opaque", "/opaque-and-refundable", "/opaque-future"];
    for path in own.into_iter().chain(others) {
        let client = client().await;
        assert_eq!(client.get(path).await.body, "7", "{path}");
        let answer = client.get(path).await;
        assert_eq!((answer.status, answer.problem().kind.as_str()), (429, "limited"), "{path}");
        assert_eq!(answer.header("x-mine").is_some(), own.contains(&path));
    }
}

#[tokio::test]
async fn the_text_is_in_the_language_of_the_request_where_the_application_has_one() {
    let layer = Layer::new().value("language", |parts| parts.header("accept-language").map(str::to_owned)).messages(
        |rejection, context| {
            let seconds = rejection.retry_after()?.as_secs();
            context.get("language")?.starts_with("de").then(|| format!("Noch {seconds} Sekunden."))
        },
    );
    let clock = ManualClock::new(SystemTime::now());
    let limiter = Limiter::builder().clock(&clock).build_in_memory().unwrap();
    let client = Client::new(serve(router(limiter, layer)).await);
    assert_eq!(client.get("/limited").await.status, 200);
    let german = client.get_with("/limited", &[("accept-language", "de-AT,de;q=0.9")]).await.problem();
    assert_eq!(german.detail, "Noch 60 Sekunden.");
    let english = client.get_with("/limited", &[("accept-language", "en")]).await.problem();
    assert!(english.detail.starts_with("too many requests"));
    assert!(client.get("/limited").await.problem().detail.starts_with("too many requests"));
}

#[tokio::test]
async fn the_texts_of_a_layer_stay_whatever_is_set_before_and_after_them() {
    let text = |_: &Rejection, context: &Context| context.get("shop").map(|shop| format!("{shop} is busy"));
    let context = || Context::new().with("shop", "Zoë's").messages(|_, _| Some("not this one".to_owned()));
    for layer in [Layer::new().messages(text).context(context()), Layer::new().context(context()).messages(text)] {
        let client = Client::new(serve(router(Limiter::in_memory(), layer)).await);
        assert_eq!(client.get("/limited").await.status, 200);
        assert_eq!(client.get("/limited").await.problem().detail, "Zoë's is busy");
    }
}

#[tokio::test]
async fn a_limit_and_a_check_by_hand_have_texts_of_their_own_unless_the_layer_has_one() {
    async fn checked() -> Result<(), Rejection> {
        static LIMITER: LazyLock<Limiter> = LazyLock::new(Limiter::in_memory);
        let (policy, subject) = (closed("checked"), Subject::everyone());
        let check = LIMITER.check(&policy, &subject).messages(|rejection| Some(format!("no {}", rejection.policy())));
        check.await?.into_result()?;
        Ok(())
    }
    fn closed(name: &'static str) -> Policy {
        Policy::builder(name).rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap().with_counts([0])
    }
    let limit = |name| web::limit(&closed(name), "all").unwrap().limiter(&Limiter::in_memory());
    let own = limit("own").messages(|rejection| Some(format!("no {}", rejection.policy())));
    let usual = limit("usual").messages(|_| None);
    let done = get(async || "done");
    let router = Router::new()
        .route("/own", done.clone().layer(own))
        .route("/usual", done.layer(usual))
        .route("/checked", get(checked));
    let plain = Client::new(serve(router.clone()).await);
    let first = Layer::new().messages(|rejection, _| (rejection.policy() == "own").then(|| "of the layer".to_owned()));
    let layered = Client::new(serve(router.layer(first)).await);
    let usual = "closed: no requests are admitted for now";
    for (path, alone, within) in
        [("/own", "no own", "of the layer"), ("/usual", usual, usual), ("/checked", "no checked", "no checked")]
    {
        assert_eq!(plain.get(path).await.problem().detail, alone);
        assert_eq!(layered.get(path).await.problem().detail, within);
    }
}

#[tokio::test]
async fn a_flood_of_denied_requests_is_answered_from_the_cache_also_where_fields_are_wanted() {
    let redis = Redis::start();
    let limiter = connected(&patient().denial_cache(Duration::from_secs(10)), &redis.url()).await;
    let client = Client::new(serve(router(limiter, Layer::new().on_success(true))).await);
    assert_eq!(client.get("/limited").await.limits()[0].r, 0);
    assert_eq!(client.get("/limited").await.status, 429);
    let calls = redis.calls("evalsha");
    for _ in 0..20 {
        let answer = client.get("/limited").await;
        assert_eq!((answer.status, answer.limits()[0].r), (429, 0));
        assert_eq!(answer.limits()[0].t, answer.retry_after());
    }
    assert_eq!(redis.calls("evalsha"), calls);
}
