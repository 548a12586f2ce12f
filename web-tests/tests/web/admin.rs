//! The routes of operators, in both frameworks, in memory and in Redis, behind the authorization of a service.

mod authorization;
mod bans;
mod files;
mod log;
mod mistakes;
mod openapi;
mod outages;
mod overrides;
mod pauses;
mod secrets;
mod subjects;

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::dev::ServiceRequest;
use actix_web::middleware::from_fn as actix_middleware;
use actix_web::{App, HttpServer};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use reqwest::Method;
use serde_json::Value;
use tallygate::web::AdminRoutes;
use tallygate::{Ban, Limiter, Policy, PolicyBuilder, Rule, Subject};
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until_found;
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Answer, Client};

const HOUR: Duration = Duration::from_secs(3_600);
const PREFIX: &str = "/admin/limits";
const TOKEN: (&str, &str) = ("authorization", "Bearer of the operators");

/// A service with the routes, and what its limiter counts.
pub(crate) struct Service {
    limiter: Limiter,
    client: Client,
    /// That of the tallies, unless they are in memory.
    server: Option<Server>,
}

impl Service {
    /// Each framework with each store.
    async fn all() -> Vec<Self> {
        vec![
            Self::in_axum(Limiter::in_memory(), None).await,
            Self::in_axum_and_redis().await,
            Self::in_actix(Limiter::in_memory(), None).await,
            Self::in_actix_and_redis().await,
        ]
    }

    async fn in_axum_and_redis() -> Self {
        let server = Server::start();
        Self::in_axum(listing(&server).await, Some(server)).await
    }

    async fn in_actix_and_redis() -> Self {
        let server = Server::start();
        Self::in_actix(listing(&server).await, Some(server)).await
    }

    async fn in_axum(limiter: Limiter, server: Option<Server>) -> Self {
        let routes = AdminRoutes::new(&limiter);
        Self { client: Client::new(serve_in_axum(routes).await), limiter, server }
    }

    async fn in_actix(limiter: Limiter, server: Option<Server>) -> Self {
        let routes = AdminRoutes::new(&limiter);
        Self { client: Client::new(serve_in_actix(routes).await), limiter, server }
    }

    /// Sends a request of an operator.
    async fn ask(&self, method: Method, path: &str, body: &str) -> Answer {
        self.client.send_body(method, &format!("{PREFIX}{path}"), &[TOKEN], body).await
    }

    /// The document that answers a request which is carried out.
    async fn done(&self, method: Method, path: &str, body: &str) -> Value {
        let answer = self.ask(method.clone(), path, body).await;
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.body);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        serde_json::from_str(&answer.body).unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        self.done(Method::GET, path, "").await
    }

    /// The status and the text of the problem that answers a mistaken request.
    async fn mistake(&self, method: Method, path: &str, body: &str) -> (u16, String) {
        let answer = self.ask(method.clone(), path, body).await;
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{method} {path}: {}", answer.body);
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{method} {path}");
        let problem: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(problem["status"], answer.status);
        (answer.status, problem["detail"].as_str().unwrap().to_owned())
    }

    /// Makes a call of that phone in the network `n`, and returns whether it is admitted.
    async fn call(&self, policy: &Policy, phone: &str) -> bool {
        let (phone, network) = (Subject::of("sms").and(phone), Subject::of("192.0.2.1"));
        let decision = self.limiter.check(policy, &phone).subject("network", &network).await.unwrap();
        decision.is_allowed()
    }

    /// Makes so many calls, of which two are admitted, and waits until the policy is listed.
    async fn calls(&self, policy: &Policy, phone: &str, calls: usize) {
        for call in 0..calls {
            assert_eq!(self.call(policy, phone).await, call < 2);
        }
        self.listed(policy).await;
    }

    /// Waits until the policy is listed.
    async fn listed(&self, policy: &Policy) {
        let path = path_of(policy, "");
        until_found("it is listed", async || self.ask(Method::GET, &path, "").await.status == 200).await;
    }
}

/// A limiter whose policies are listed for operators. It caches no denials, so that each change is seen at once.
async fn listing(server: &Server) -> Limiter {
    connected(&patient().registry(true), &server.url()).await
}

/// Admits two codes an hour for each phone, and many for each network. Three denials ban for two hours.
fn codes(name: &'static str) -> Policy {
    codes_builder(name).build().unwrap()
}

fn codes_builder(name: &'static str) -> PolicyBuilder {
    let rules = Policy::builder(name).rule(Rule::sliding_window(2, HOUR).named("hourly"));
    let rules = rules.rule_on("network", Rule::sliding_window(100, HOUR));
    rules.key("sms:{phone}").key_on("network", "{@ip}").ban(Ban::new(3, HOUR, 2 * HOUR))
}

/// A path of that policy, whose name may have any character.
fn path_of(policy: &Policy, rest: &str) -> String {
    let encoded = policy.name().replace('%', "%25").replace('/', "%2F").replace(' ', "%20");
    format!("/policies/{encoded}{rest}")
}

async fn authorize(request: Request, next: Next) -> Result<Response, StatusCode> {
    let is_operator = request.headers().get(TOKEN.0).is_some_and(|token| token == TOKEN.1);
    if is_operator { Ok(next.run(request).await) } else { Err(StatusCode::UNAUTHORIZED) }
}

async fn serve_in_axum(routes: AdminRoutes) -> SocketAddr {
    let operated = Router::new().nest_service(PREFIX, routes).route_layer(middleware::from_fn(authorize));
    serve(Router::new().merge(operated)).await
}

async fn serve_in_actix(routes: AdminRoutes) -> SocketAddr {
    let authorize = |request: ServiceRequest, next: actix_web::middleware::Next<_>| async move {
        let is_operator = request.headers().get(TOKEN.0).is_some_and(|token| token == TOKEN.1);
        if is_operator { next.call(request).await } else { Err(actix_web::error::ErrorUnauthorized("")) }
    };
    super::actix::run(move || {
        let server = HttpServer::new(move || {
            let scope = actix_web::web::scope(PREFIX).wrap(actix_middleware(authorize));
            App::new().service(scope.service(routes.clone()))
        });
        let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    })
    .await
}
