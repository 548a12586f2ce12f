//! Rejections of one service look alike, whatever limits it: functions, checks by hand, a router, and a file.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use actix_web::dev::ServiceRequest;
use actix_web::middleware::{Next, from_fn};
use actix_web::{App, HttpResponse, HttpServer, Responder, web as actix};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next as AxumNext, from_fn as axum_from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tallygate::config::Policies;
use tallygate::context::{self, Context};
use tallygate::web::{self, Layer, Problem};
use tallygate::{BackendError, Limiter, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_web_tests::Client;
use tallygate_web_tests::server::serve;
use tonic::Code;

use crate::actix::run;
use crate::tonic::serve as serve_grpc;
use crate::tonic::text::call;

const MINUTE: Duration = Duration::from_secs(60);

const FILE: &str = r#"
[policy."alike.own"]
match = { path = "/file-own" }
key = "all"
rules = ["1 per 1m"]
reject = { status = 403, body = "as the file says" }

[policy."alike.file"]
match = { path = "/file" }
key = "all"
rules = ["1 per 1m"]
ban = { denials = 1, within = "1m", duration = "1h" }
"#;

static LIMITER: LazyLock<Limiter> = LazyLock::new(|| {
    let limiter = Limiter::in_memory();
    limiter.apply(&Policies::from_toml(FILE).unwrap()).unwrap();
    limiter
});

/// Each service has tallies of its own.
fn service() -> String {
    Context::current().unwrap().get("service").unwrap().to_owned()
}

#[rate_limit(key = "{@service}", rule(count = 1, per = "60s"), limiter = &*LIMITER)]
async fn limited() -> Result<&'static str, Rejection> {
    Ok("done")
}

#[rate_limit(key = "{@service}", prevent_duplicate(per = "60s"), limiter = &*LIMITER)]
async fn once() -> impl IntoResponse {
    "done"
}

#[rate_limit(key = "{@service}", prevent_duplicate(per = "60s"), limiter = &*LIMITER)]
async fn once_in_actix() -> impl Responder {
    "done"
}

#[rate_limit(key = "{@service}", rule(count = 1, per = "60s"), limiter = &*LIMITER, check_fn = mail_limit)]
async fn mail() -> Result<&'static str, Rejection> {
    Ok("done")
}

/// Decides by hand.
async fn checked() -> Result<&'static str, Rejection> {
    let _ = mail_limit().await?.into_result()?;
    Ok("done")
}

/// Asks a server that is not there.
async fn away() -> Result<&'static str, BackendError> {
    let policy = Policy::builder("away").rule(Rule::sliding_window(1, MINUTE)).build().unwrap();
    let away = Limiter::builder().connect_lazy("redis://127.0.0.1:1/").unwrap();
    let decision = away.check(&policy, &Subject::of(service())).await?;
    Ok(if decision.is_allowed() { "done" } else { "denied" })
}

#[rate_limit(
    key = "{@service}",
    rule(count = 1, per = "60s"),
    limiter = &*LIMITER,
    reject = |_| "as the handler says".into_response()
)]
async fn own() -> Response {
    "done".into_response()
}

#[rate_limit(
    key = "{@service}",
    rule(count = 1, per = "60s"),
    limiter = &*LIMITER,
    reject = |_| HttpResponse::Ok().body("as the handler says")
)]
async fn own_in_actix() -> HttpResponse {
    HttpResponse::Ok().body("done")
}

/// What the service says to all rejected requests, in the language of the request.
fn too_many(rejection: &Rejection, context: &Context) -> http::Response<String> {
    let message = Problem::from(rejection).detail().to_owned();
    let body =
        json!({ "error": { "code": rejection.kind().as_str(), "message": message, "in": context.get("language") } });
    // In whatever context, this is the response with a problem, and no call of this function.
    let usual = || http::Response::from(rejection);
    let mut response = context::scope_fn(context.clone(), usual).map(|_: String| body.to_string());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn layer(service: &'static str) -> Layer {
    let layer = Layer::new().value("service", move |_| Some(service));
    let layer = layer.value("language", |parts| parts.header("accept-language").map(str::to_owned));
    layer.messages(|rejection, _| Some(format!("slow down: {}", rejection.kind()))).reject(too_many)
}

fn by_router() -> web::Limit {
    let policy = Policy::builder("alike.router").rule(Rule::sliding_window(1, MINUTE)).build().unwrap();
    web::limit(&policy, "all").unwrap().limiter(&Limiter::in_memory())
}

fn by_file() -> web::Limits {
    let limiter = Limiter::in_memory();
    limiter.apply(&Policies::from_toml(FILE).unwrap()).unwrap();
    web::limits(&limiter).unwrap()
}

async fn serve_axum(layer: Layer) -> SocketAddr {
    let done = async || "done";
    let router = Router::new()
        .route("/limited", get(limited))
        .route("/once", get(once))
        .route("/checked", get(checked))
        .route("/mail", get(mail))
        .route("/away", get(away))
        .route("/own", get(own))
        .route("/router", get(done).layer(by_router()))
        .route(
            "/middleware",
            get(done).layer(axum_from_fn(async |request: Request, next: AxumNext| {
                limited().await?;
                Ok::<_, Rejection>(next.run(request).await)
            })),
        )
        .route(
            "/middleware/away",
            get(done).layer(axum_from_fn(async |request: Request, next: AxumNext| {
                away().await?;
                Ok::<_, BackendError>(next.run(request).await)
            })),
        )
        .fallback(any(done));
    serve(router.layer(by_file()).layer(layer)).await
}

async fn serve_actix(layer: Layer) -> SocketAddr {
    let done = async || "done";
    run(move || {
        let (by_router, by_file) = (by_router(), by_file());
        let server = HttpServer::new(move || {
            App::new()
                .route("/limited", actix::get().to(limited))
                .route("/once", actix::get().to(once_in_actix))
                .route("/checked", actix::get().to(checked))
                .route("/mail", actix::get().to(mail))
                .route("/away", actix::get().to(away))
                .route("/own", actix::get().to(own_in_actix))
                .service(actix::resource("/router").wrap(by_router.clone()).to(done))
                .service(actix::resource("/middleware").to(done).wrap(from_fn(
                    async |request: ServiceRequest, next: Next<_>| {
                        limited().await?;
                        next.call(request).await
                    },
                )))
                .service(actix::resource("/middleware/away").to(done).wrap(from_fn(
                    async |request: ServiceRequest, next: Next<_>| {
                        away().await?;
                        next.call(request).await
                    },
                )))
                .default_service(actix::to(done))
                .wrap(by_file.clone())
                .wrap(layer.clone())
        });
        let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    })
    .await
}

async fn assert_alike(server: SocketAddr) {
    let client = Client::new(server);
    for (path, statuses, code) in [
        ("/limited", &[200, 429][..], "limited"),
        ("/checked", &[200, 429], "limited"),
        ("/mail", &[429], "limited"),
        ("/router", &[200, 429], "limited"),
        ("/file", &[200, 429, 429], "banned"),
        ("/middleware", &[429], "limited"),
        ("/middleware/away", &[503], "unavailable"),
        ("/once", &[200, 409], "duplicate"),
        ("/away", &[503], "unavailable"),
    ] {
        let mut last = None;
        for status in statuses {
            let answer = client.get_with(path, &[("accept-language", "de")]).await;
            assert_eq!(answer.status, *status, "{path}");
            last = Some(answer);
        }
        let answer = last.unwrap();
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        let message = format!("slow down: {code}");
        assert_eq!(body, json!({ "error": { "code": code, "message": message, "in": "de" } }), "{path}");
        assert_eq!(answer.retry_after().is_some(), code != "unavailable", "{path}");
        assert_eq!(answer.limits().is_empty(), code == "unavailable", "{path}");
    }
    for (path, status, body) in [("/own", 200, "as the handler says"), ("/file-own", 403, "as the file says")] {
        assert_eq!(client.get(path).await.body, "done", "{path}");
        let answer = client.get(path).await;
        assert_eq!((answer.status, answer.body.as_str()), (status, body), "{path}");
    }
}

#[tokio::test]
async fn in_axum_all_rejections_are_answered_as_the_layer_says() {
    assert_alike(serve_axum(layer("axum")).await).await;
}

#[tokio::test]
async fn in_actix_web_all_rejections_are_answered_as_the_layer_says() {
    assert_alike(serve_actix(layer("actix")).await).await;
}

#[tokio::test]
async fn without_such_a_layer_all_rejections_are_problems() {
    let plain = |service| Layer::new().value("service", move |_| Some(service));
    for server in [serve_axum(plain("plain axum")).await, serve_actix(plain("plain actix")).await] {
        let client = Client::new(server);
        for path in ["/limited", "/checked", "/router", "/file", "/once"] {
            assert_eq!(client.get(path).await.status, 200, "{path}");
            let (answer, again) = (client.get(path).await, client.get(path).await);
            assert_eq!(answer.problem().kind, if path == "/once" { "duplicate" } else { "limited" }, "{path}");
            assert_eq!(again.problem().kind == "banned", path == "/file");
        }
        assert_eq!(client.get("/away").await.problem().kind, "unavailable");
    }
}

#[tokio::test]
async fn calls_of_grpc_are_answered_with_a_status_as_ever() {
    let limit =
        web::limit(&Policy::builder("alike.grpc").rule(Rule::sliding_window(1, MINUTE)).build().unwrap(), "all");
    let server = serve_grpc(Some(layer("grpc")), Some(limit.unwrap().limiter(&Limiter::in_memory()))).await;
    assert!(call(server, "Send", "138", &[]).await.is_ok());
    let status = call(server, "Send", "138", &[]).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "slow down: limited"));
    let server = serve_grpc(Some(layer("grpc")), None).await;
    assert!(call(server, "Draw", "138", &[]).await.is_ok());
    let status = call(server, "Draw", "138", &[]).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::AlreadyExists, "slow down: duplicate"));
}

#[tokio::test]
async fn the_nearest_layer_around_a_rejection_makes_its_response() {
    let outer = Layer::new().reject(|_, _| http::Response::new("outer".to_owned()));
    let inner = Layer::new().reject(|_, _| http::Response::new("inner".to_owned()));
    let reject = |rejection: &Rejection, _: &web::Parts<'_>| {
        http::Response::from(rejection).map(|usual: String| format!("the limit, and not the {usual}"))
    };
    let done = get(async || "done");
    let router = Router::new()
        .route("/outer", done.clone().layer(by_router()))
        .merge(Router::new().route("/inner", done.clone()).layer(by_router()).layer(inner))
        .route("/limit", done.layer(by_router().reject(reject)));
    let client = Client::new(serve(router.layer(outer)).await);
    for (path, body) in [("/outer", "outer"), ("/inner", "inner"), ("/limit", "the limit, and not the outer")] {
        assert_eq!(client.get(path).await.body, "done");
        assert_eq!(client.get(path).await.body, body);
    }
}
