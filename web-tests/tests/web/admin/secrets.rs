//! Keys with digests, which depend on the secret of the programs.

use reqwest::Method;
use serde_json::{Value, json};
use tallygate::web::AdminRoutes;
use tallygate::{Ban, Limiter, Policy, Rule};
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until;
use tallygate_web_tests::Client;

use super::{HOUR, Service, listing, path_of, serve_in_axum};

const SECRET: &str = "a secret of the service that is long enough";

fn mails(name: &'static str) -> Policy {
    let policy = Policy::builder(name).rule(Rule::sliding_window(2, HOUR)).ban(Ban::new(3, HOUR, HOUR));
    policy.key("mail:{mail:trim:lower:hash}").build().unwrap()
}

/// Whether the ban of a mail address that is written differently holds for calls of this service.
async fn is_banned_by_routes(service: &Service, policy: &Policy) -> bool {
    let subject = service.limiter.subject().text("mail:").value("zoe@example.org").hash().build();
    assert!(service.limiter.check(policy, &subject).await.unwrap().is_allowed());
    service.listed(policy).await;
    let banned = service.done(Method::PUT, &path_of(policy, "/ban?mail=%20Zoe@Example.org"), "").await;
    assert_eq!(banned["banned"], subject.to_string());
    !service.limiter.check(policy, &subject).await.unwrap().is_allowed()
}

#[tokio::test]
async fn values_pass_the_filters_of_the_key_with_the_secret_of_the_service_or_without_one() {
    let policy = mails("admin.hashed");
    let with_secret = Limiter::builder().secret(SECRET).build_in_memory().unwrap();
    for limiter in [with_secret, Limiter::in_memory()] {
        let service = Service::in_axum(limiter, None).await;
        assert!(is_banned_by_routes(&service, &policy).await);
    }
    assert!(is_banned_by_routes(&Service::in_axum_and_redis().await, &policy).await);
}

#[tokio::test]
async fn where_neither_the_secret_nor_the_policy_is_at_hand_a_digest_is_refused_with_the_remedy() {
    let server = Server::start();
    {
        let policy = mails("admin.elsewhere");
        let program = connected(&patient().secret(SECRET).registry(true), &server.url()).await;
        assert!(is_banned_by_routes(&Service::in_axum(program, None).await, &policy).await);
    }
    // Whoever lists policies meanwhile holds them for a moment.
    until("this process has it no longer", || Limiter::policy("admin.elsewhere").is_none()).await;
    let service = Service::in_axum(listing(&server).await, None).await;
    for (method, rest) in [
        (Method::PUT, "/ban?mail=zoe@example.org"),
        (Method::DELETE, "/ban?mail=zoe@example.org"),
        (Method::DELETE, "/subject?mail=zoe@example.org"),
        (Method::GET, "/subject?mail=zoe@example.org"),
        (Method::PUT, "/override?mail=zoe@example.org"),
    ] {
        let path = format!("/policies/admin.elsewhere{rest}");
        let body = if rest.starts_with("/override") { r#"{"rules":"9 per 1h"}"# } else { "" };
        let (status, detail) = service.mistake(method, &path, body).await;
        let remedy = "give the limiter the secret of the programs (`LimiterBuilder::secret`), or say that they have none with \
                      `without_secret`";
        assert!(status == 422 && detail.ends_with(remedy), "{path}: {status} {detail}");
    }
    let banned = service.get("/policies/admin.elsewhere/bans").await["bans"][0]["subject"].take();
    let whole = format!("/policies/admin.elsewhere/subject?subject={}", banned.as_str().unwrap());
    assert_eq!(service.get(&whole).await["denied"]["kind"], "banned");

    let routes = AdminRoutes::new(&service.limiter).without_secret();
    let service = Service { client: Client::new(serve_in_axum(routes).await), ..service };
    let peeked = service.get("/policies/admin.elsewhere/subject?mail=zoe@example.org").await;
    assert_eq!((&peeked["admitted"], &peeked["denied"]), (&json!(true), &Value::Null));
}
