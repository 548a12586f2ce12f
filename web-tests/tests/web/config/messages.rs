//! The messages of requests that a file limits.

use axum::Router;
use axum::routing::any;
use tallygate::config::Policies;
use tallygate::{Limiter, Rejection, Rule, web};
use tallygate_web_tests::Client;
use tallygate_web_tests::server::serve;

const FILE: &str = r#"
[policy."messages.search"]
match = { path = "/search" }
key = "all"
rules = [
    { count = 2, per = "1m", name = "minute", message = "{@header_x_user}, {{{@method}}}: {@count} {@unit} per {@per}, {@rule}" },
    { count = 2, per = "1h", key = "{@path}" },
    { count = 3, per = "1d" },
]
message = "{@retry_after} to go{@header_x_missing}"

[policy."messages.tokens"]
match = { path = "/tokens" }
key = "all"
rules = ["20_000 tokens per 1h"]
cost = { tokens = 20_000 }
message = "at most {@count} {@unit}"

[policy."messages.ban"]
match = { path = "/banned" }
key = "all"
rules = ["1 per 1m"]
ban = { denials = 1, within = "1m", duration = "1h", message = "come back in {@retry_after}" }

[policy."messages.own"]
match = { path = "/own" }
key = "all"
rules = ["1 per 1m"]
reject = { status = 403, body = "no" }
message = "not shown"
"#;

fn limiter() -> Limiter {
    let limiter = Limiter::in_memory();
    limiter.apply(&Policies::from_toml(FILE).unwrap()).unwrap();
    limiter
}

async fn client(limiter: &Limiter, layer: web::Layer) -> Client {
    let router = Router::new().fallback(any(|| async { "done" }));
    Client::new(serve(router.layer(web::limits(limiter).unwrap()).layer(layer)).await)
}

/// Returns the text of the first rejection.
async fn rejected(client: &Client, path: &str) -> String {
    loop {
        let answer = client.get_with(path, &[("x-user", "zoë")]).await;
        if answer.status != 200 {
            return answer.problem().detail;
        }
    }
}

#[tokio::test]
async fn the_message_of_the_rule_that_denies_a_request_goes_before_that_of_the_policy() {
    let limiter = limiter();
    let client = client(&limiter, web::Layer::new()).await;
    let raised = async |count: u64, per: &str| {
        let rules: [Rule; 2] = [format!("{count} per {per} as minute").parse().unwrap(), "3 per 1d".parse().unwrap()];
        limiter.override_policy("messages.search").rules(rules).set().await.unwrap();
    };
    let hour = rejected(&client, "/search").await;
    assert_eq!(hour, "1h to go", "the rule with the longest wait has no message of its own");
    limiter
        .override_policy("messages.search")
        .label("{@path}")
        .rules(["9 per 1h".parse::<Rule>().unwrap()])
        .set()
        .await
        .unwrap();
    assert_eq!(rejected(&client, "/search").await, "zoë, {GET}: 2 requests per 1m, minute");
    raised(1, "1m").await;
    assert_eq!(rejected(&client, "/search").await, "zoë, {GET}: 1 requests per 1m, minute");
}

#[tokio::test]
async fn a_message_names_the_unit_and_a_ban_has_a_message_of_its_own() {
    let client = client(&limiter(), web::Layer::new()).await;
    assert_eq!(rejected(&client, "/tokens").await, "at most 20,000 tokens");
    assert!(rejected(&client, "/banned").await.starts_with("too many requests: "));
    assert_eq!(rejected(&client, "/banned").await, "come back in 1h");
}

#[tokio::test]
async fn the_messages_of_the_service_go_before_those_of_the_file_and_an_own_body_stays() {
    let german = |rejection: &Rejection, _: &_| (rejection.policy() == "messages.tokens").then(|| "zu viel".to_owned());
    let client = client(&limiter(), web::Layer::new().messages(german)).await;
    assert_eq!(rejected(&client, "/tokens").await, "zu viel");
    assert_eq!(rejected(&client, "/search").await, "1h to go");
    assert_eq!(client.get("/own").await.status, 200);
    assert_eq!(client.get("/own").await.body, "no");
}
