//! What was decided can be read: by functions, handlers, layers around them, and from permits and rejections.

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::dev::ServiceResponse;
use actix_web::middleware::{Next, from_fn as around_actix};
use actix_web::{App, HttpServer, web as actix};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use http::HeaderValue;
use tallygate::web::{Decisions, Layer};
use tallygate::{Limiter, Policy, Rejection, Rule, RuleStatus, Subject, rate_limit};
use tallygate_harness::server::Server as Redis;
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Answer, Client};

use crate::actix::run;

const MINUTE: Duration = Duration::from_secs(60);

/// Shows the policy, and of the rule the position, the limit, and what is used and remains.
fn shown(name: &str, status: &RuleStatus) -> String {
    assert!(!status.reset().is_zero() && status.reset() <= 60 * MINUTE, "{status:?}");
    let parts = [status.position() as u64, status.limit(), status.used(), status.remaining()];
    format!("{name} {parts:?}")
}

fn shown_all(decisions: &Decisions) -> String {
    let all: Vec<_> = decisions.report().iter().map(|(policy, status)| shown(policy.name(), status)).collect();
    all.join("; ")
}

#[rate_limit(name = "draw", rule(count = 2, per = "60s"), rule(count = 9, per = "1h"), cost = 2, limiter = limiter)]
async fn draw(limiter: &Limiter) -> Result<String, Rejection> {
    let _ = limiter;
    Ok(Decisions::current().map(|decisions| shown_all(&decisions)).unwrap_or_default())
}

/// Answers with what the function sees, and with what the handler sees.
async fn drawn(limiter: &Limiter) -> Result<String, Rejection> {
    let seen = draw(limiter).await?;
    let decisions = Decisions::current().unwrap();
    assert_eq!(seen, shown_all(&decisions));
    Ok(seen)
}

/// Answers a rejection with what it knows itself.
fn layer() -> Layer {
    Layer::new().on_success(true).reject(|rejection, _| {
        let own: Vec<_> = rejection.report().iter().map(|status| shown(rejection.policy(), status)).collect();
        http::Response::from(rejection).map(|_: String| own.join("; "))
    })
}

async fn with_log(mut response: Response) -> Response {
    let logged = response.extensions().get::<Decisions>().map(shown_all);
    response.headers_mut().extend(logged.map(|text| (http::HeaderName::from_static("x-log"), text.parse().unwrap())));
    response
}

async fn serve_axum(limiter: Limiter) -> SocketAddr {
    let drawn = get(async |Extension(limiter): Extension<Limiter>| drawn(&limiter).await);
    let router = Router::new().route("/draw", drawn).route("/", get(async || "nothing"));
    serve(router.layer(layer()).layer(map_response(with_log)).layer(Extension(limiter))).await
}

async fn serve_actix(limiter: Limiter) -> SocketAddr {
    run(move || {
        let limiter = actix::Data::new(limiter);
        let layer = layer();
        let server = HttpServer::new(move || {
            let drawn = async |limiter: actix::Data<Limiter>| drawn(&limiter).await;
            let logged = async |request, next: Next<_>| {
                let mut response: ServiceResponse<_> = next.call(request).await?;
                let logged = response.response().extensions().get::<Decisions>().map(shown_all);
                if let Some(text) = logged {
                    let (name, value) = ("x-log".parse().unwrap(), text.parse().unwrap());
                    response.headers_mut().insert(name, value);
                }
                Ok::<_, actix_web::Error>(response)
            };
            App::new()
                .app_data(limiter.clone())
                .route("/draw", actix::get().to(drawn))
                .route("/", actix::get().to(async || "nothing"))
                .wrap(layer.clone())
                .wrap(around_actix(logged))
        });
        let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    })
    .await
}

fn log(answer: &Answer) -> Option<&str> {
    answer.headers.get("x-log").map(HeaderValue::to_str).transpose().unwrap()
}

async fn assert_seen(server: SocketAddr) {
    let client = Client::new(server);
    assert_eq!(log(&client.get("/").await), None, "nothing was decided");
    let decided = "draw [0, 2, 2, 0]; draw [1, 9, 2, 7]";
    for status in [200, 429] {
        let answer = client.get("/draw").await;
        assert_eq!((answer.status, answer.body.as_str(), log(&answer)), (status, decided, Some(decided)));
    }
}

#[tokio::test]
async fn a_function_a_handler_a_layer_and_a_rejection_see_where_each_rule_stands() {
    let redis = Redis::start();
    for limiter in [Limiter::in_memory(), redis.limiter().await] {
        assert_seen(serve_axum(limiter).await).await;
    }
}

#[tokio::test]
async fn in_actix_web_they_see_it_too() {
    let redis = Redis::start();
    for limiter in [Limiter::in_memory(), redis.limiter().await] {
        assert_seen(serve_actix(limiter).await).await;
    }
}

#[tokio::test]
async fn a_permit_and_a_rejection_of_a_check_by_hand_see_it() {
    let redis = Redis::start();
    for limiter in [Limiter::in_memory(), redis.limiter().await] {
        let policy = Policy::builder("hand").rule(Rule::sliding_window(3, MINUTE)).build().unwrap();
        let check = async || limiter.check(&policy, &Subject::of("alice")).cost(2).report().await.unwrap();
        let permit = check().await.into_result().unwrap();
        assert_eq!(shown("hand", &permit.report()[0]), "hand [0, 3, 2, 1]");
        let rejection = Rejection::from(check().await.into_result().unwrap_err());
        assert_eq!(shown("hand", &rejection.report()[0]), "hand [0, 3, 2, 1]");
    }
}

#[tokio::test]
async fn where_only_denials_are_collected_the_rule_that_denied_has_its_wait() {
    let router = Router::new().route("/draw", get(async |Extension(limiter): Extension<Limiter>| draw(&limiter).await));
    let router = router.layer(Layer::new()).layer(map_response(with_log)).layer(Extension(Limiter::in_memory()));
    let client = Client::new(serve(router).await);
    let answer = client.get("/draw").await;
    assert_eq!((answer.status, answer.body.as_str(), log(&answer)), (200, "", None));
    assert_eq!(log(&client.get("/draw").await), Some("draw [0, 2, 2, 0]"));
}
