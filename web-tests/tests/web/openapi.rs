//! The responses of limited handlers in a document of OpenAPI.

mod fields;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use boon::{Compiler, Schemas};
use serde_json::{Value, json};
use tallygate::context::{self, Context};
use tallygate::web::{self, Problem};
use tallygate::{
    Ban, Denial, Limiter, Permit, Policy, PolicyBuilder, Rejection, Rule, Subject, TokenBucket, rate_limit,
};
use utoipa::openapi::{RefOr, Response};
use utoipa::{IntoResponses, OpenApi, PartialSchema as _, ToResponse};

const MINUTE: Duration = Duration::from_secs(60);

/// Sends a code.
#[utoipa::path(post, path = "/codes", responses((status = 200, description = "sent"), SendCodeLimits))]
#[rate_limit(
    key = "{@ip}",
    rule(count = 5, per = "60s"),
    rule(count = 1000, per = "60s", key = "all"),
    prevent_duplicate,
    ban(denials = 20, within = "10m", duration = "1h"),
    openapi = SendCodeLimits
)]
pub(crate) async fn send_code() -> Result<(), Rejection> {
    Ok(())
}

/// Draws a number.
#[utoipa::path(post, path = "/lottery", responses((status = 200, description = "drawn"), Rejection))]
#[rate_limit(rule(count = 5, per = "60s"))]
pub(crate) async fn draw() -> Result<String, Rejection> {
    Ok("7".into())
}

/// Draws another number.
#[rate_limit(key = "draw:{number}", rule(count = 5, per = "60s"))]
#[utoipa::path(post, path = "/draws/{number}", responses((status = 200, description = "drawn"), Rejection))]
pub(crate) async fn redraw(number: u32) -> Result<String, Rejection> {
    Ok(number.to_string())
}

struct ApiLimits;

impl IntoResponses for ApiLimits {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let policy = Policy::builder("api").rule(Rule::sliding_window(100, MINUTE)).build();
        web::limit_responses(&policy.unwrap())
    }
}

/// Lists items, by a router that is limited as a whole.
#[utoipa::path(get, path = "/items", responses((status = 200, description = "items"), ApiLimits))]
pub(crate) fn items() -> String {
    "items".into()
}

#[derive(OpenApi)]
#[openapi(paths(send_code, draw, redraw, items))]
struct Api;

fn responses(method: &str, path: &str) -> Value {
    let document: Value = serde_json::to_value(Api::openapi()).unwrap();
    document["paths"][path][method]["responses"].clone()
}

fn statuses(responses: &Value) -> Vec<&str> {
    responses.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_limited_handler_lists_its_rejections_with_its_limits() {
    let responses = responses("post", "/codes");
    assert_eq!(statuses(&responses), ["200", "409", "429", "503"]);
    let limited = &responses["429"];
    let description = limited["description"].as_str().unwrap();
    for limit in
        ["`5 per 1m`", "`1000 per 1m`", "For each client address:", "no duplicate within `5s`", "banned for `1h`"]
    {
        assert!(description.contains(limit), "{description}");
    }
    assert_eq!(limited["headers"]["Retry-After"]["schema"]["type"], "integer");
    let problem = &limited["content"]["application/problem+json"]["schema"];
    assert_eq!(problem["properties"]["retry_after_ms"]["type"], "integer");
    assert!(problem["required"].as_array().unwrap().contains(&json!("violated-policies")));
    let _ = (send_code().await, draw().await, items());
}

#[tokio::test]
async fn an_operation_is_described_to_clients_as_its_developer_wrote_it() {
    let document: Value = serde_json::to_value(Api::openapi()).unwrap();
    for (path, summary) in [("/codes", "Sends a code."), ("/draws/{number}", "Draws another number.")] {
        let operation = &document["paths"][path]["post"];
        assert_eq!((&operation["summary"], &operation["description"]), (&json!(summary), &Value::Null));
    }
    assert_eq!(redraw(7).await.unwrap(), "7");
}

struct User {
    plan: u64,
    phone: String,
}

#[rate_limit(
    key = "code:{user.phone:trim}",
    rule(count = user.plan, per = "1h"),
    ban(denials = 20, within = "10m", duration = "1h"),
    openapi = PlanLimits
)]
async fn by_plan(user: &User) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

static ONCE: LazyLock<Policy> =
    LazyLock::new(|| Policy::builder("once").rule(Rule::duplicate(MINUTE)).build().expect("the rules are sound"));
static OFTEN: LazyLock<Policy> = LazyLock::new(|| {
    Policy::builder("often").rule(Rule::sliding_window(9, MINUTE)).build().expect("the rules are sound")
});

#[rate_limit(policy = ONCE, key = "{user.phone}", openapi = OnceLimits)]
async fn once(user: &User) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

#[rate_limit(policy = OFTEN, key = "{user.phone}", openapi = OftenLimits)]
async fn often(user: &User) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

#[tokio::test]
async fn responses_tell_clients_nothing_of_the_code() {
    let limited = serde_json::to_value(PlanLimits::responses()).unwrap()["429"]["description"].to_string();
    for code in ["{", "user.", "trim", "code:"] {
        assert!(!limited.contains(code), "{limited}");
    }
    assert!(limited.contains("For each phone:") && limited.contains("the phone is banned"), "{limited}");
    assert!(limited.contains("at most `n per 1h`, where `n` depends on the caller"), "{limited}");
    let user = User { plan: 1, phone: "138".into() };
    assert!(by_plan(&user).await.is_ok() && once(&user).await.is_ok() && often(&user).await.is_ok());
}

#[rate_limit(prevent_duplicate(per = "5s"), ban(denials = 3, within = "10m", duration = "1h"), openapi = BannedLimits)]
async fn banned() -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(prevent_duplicate(per = "5s"), openapi = SingleLimits)]
async fn single() -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(rule(count = 5, per = "60s"), pause = |_| None::<Duration>, openapi = PausedLimits)]
async fn by_pause() -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(rule(count = 5, per = "60s"), prevent_duplicate, shadow, openapi = TriedLimits)]
async fn tried() -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(
    rule(count = 5, per = "60s", algorithm = "fixed_window"),
    rule(count = 100, per = "1h", algorithm = "token_bucket", capacity = 200, initial = 3),
    concurrency(limit = 2, lease = "30s"),
    openapi = ManyLimits
)]
async fn many() -> Result<(), Rejection> {
    Ok(())
}

fn listed(responses: BTreeMap<String, RefOr<Response>>) -> Value {
    serde_json::to_value(responses).unwrap()
}

#[tokio::test]
async fn only_what_happens_is_listed_and_the_limits_once() {
    let single_limits = listed(SingleLimits::responses());
    assert_eq!(statuses(&single_limits), ["409", "503"]);
    assert!(single_limits["409"]["description"].as_str().unwrap().contains("* no duplicate within `5s`"));
    let banned_limits = listed(BannedLimits::responses());
    assert_eq!(statuses(&banned_limits), ["409", "429", "503"]);
    assert!(!banned_limits["409"]["description"].as_str().unwrap().contains("5s"));
    assert_eq!(listed(TriedLimits::responses()), json!({}));
    let unavailable = &banned_limits["503"];
    assert!(unavailable["headers"].is_null(), "an outage does not say how long it takes: {unavailable}");
    let pausable = Policy::builder("paused").rule(Rule::sliding_window(2, MINUTE)).pausable().build().unwrap();
    for paused in [listed(web::limit_responses(&pausable)), listed(PausedLimits::responses())] {
        assert_eq!(statuses(&paused), ["429", "503"]);
        assert_eq!(paused["503"]["headers"]["Retry-After"]["schema"]["type"], "integer");
    }
    assert!(by_pause().await.is_ok() && banned().await.is_ok() && single().await.is_ok() && tried().await.is_ok());
}

#[tokio::test]
async fn rules_of_attributes_and_of_policies_are_described_in_the_same_words() {
    let rules = ["`5 per 1m`, in fixed windows", "`100 per 1h`, and up to `200` at once", "`2` concurrent requests"];
    let rules = rules.map(|rule| format!("* at most {rule}")).join("\n");
    let many_limits = listed(ManyLimits::responses());
    assert!(many_limits["429"]["description"].as_str().unwrap().ends_with(&rules), "{many_limits}");
    let bucket = TokenBucket::new(60 * MINUTE).with_capacity(200).with_initial(3);
    let policy = Policy::builder("many").rule(Rule::fixed_window(5, MINUTE)).rule(Rule::from_bucket(100, bucket));
    assert_eq!(limits(&policy.rule(Rule::concurrency(2, MINUTE)).build().unwrap()), rules);
    assert!(many().await.is_ok());
}

#[test]
fn only_a_policy_with_duplicates_lists_their_status() {
    assert_eq!(statuses(&listed(OnceLimits::responses())), ["409", "503"]);
    let often = listed(OftenLimits::responses());
    assert_eq!(statuses(&often), ["429", "503"]);
    assert!(often["429"]["description"].as_str().unwrap().contains("`9 per 1m`"));
}

#[test]
fn a_policy_that_is_built_by_hand_lists_its_rules() {
    let responses = responses("get", "/items");
    assert_eq!(statuses(&responses), ["200", "429", "503"]);
    assert!(responses["429"]["description"].as_str().unwrap().contains("* at most `100 per 1m`"));
}

/// The description of 429 in the responses of a policy.
fn limits(policy: &Policy) -> String {
    let responses = serde_json::to_value(web::limit_responses(policy)).unwrap();
    let (_, limits) = responses["429"]["description"].as_str().unwrap().split_once("\n\n").unwrap();
    limits.to_owned()
}

#[test]
fn a_policy_that_is_built_by_hand_describes_the_subjects_that_it_bans_and_counts() {
    let bare = || {
        let rules = Policy::builder("api").rule(Rule::sliding_window(100, MINUTE));
        rules.rule_on("network", Rule::sliding_window(1_000, MINUTE)).ban(Ban::new(20, 10 * MINUTE, 60 * MINUTE))
    };
    let network = "at most `1000 per 1m` for each network";
    let ban = "After 20 denials within `10m`, the caller is banned for `1h`.";
    assert_eq!(limits(&bare().build().unwrap()), format!("* at most `100 per 1m`\n* {network}\n\n{ban}"));

    let described = bare().key("{@ip}").key_on("network", "{@ip:subnet}").build().unwrap();
    let network = "at most `1000 per 1m` for each client network";
    let ban = "After 20 denials within `10m`, the client address is banned for `1h`.";
    assert_eq!(limits(&described), format!("* at most `100 per 1m`\n* {network}\n\n{ban}"));

    let of_all = limits(&bare().key("").key_on("network", "all").build().unwrap());
    assert!(of_all.contains("`1000 per 1m` for all calls together\n\n"), "{of_all}");
    assert!(of_all.ends_with("all calls are banned for `1h`."), "{of_all}");
}

/// Calls until a call is rejected, while the others are running.
async fn rejected(policy: PolicyBuilder, times: usize) -> Rejection {
    let (limiter, policy, alice) = (Limiter::in_memory(), policy.build().unwrap(), Subject::of("alice"));
    let mut results: Vec<Result<Permit, Denial>> = Vec::new();
    for _ in 0..times {
        results.push(limiter.check(&policy, &alice).await.unwrap().into_result());
    }
    results.pop().unwrap().unwrap_err().into()
}

#[tokio::test]
async fn the_body_of_each_kind_of_rejection_is_as_its_schema_says() {
    let schema = serde_json::to_value(Problem::schema()).unwrap();
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.add_resource("file:///problem.json", schema.clone()).unwrap();
    let index = compiler.compile("file:///problem.json", &mut schemas).unwrap();

    let policy = |rule| Policy::builder("api").rule(rule);
    let one = || policy(Rule::sliding_window(1, MINUTE));
    let rejections = [
        rejected(one(), 2).await,
        rejected(policy(Rule::duplicate(MINUTE)), 2).await,
        rejected(policy(Rule::concurrency(1, MINUTE)), 2).await,
        rejected(one().ban(Ban::new(2, MINUTE, MINUTE)), 4).await,
        send_code().await.expect_err("there is no client"),
        unidentified().await,
        paused().await,
    ];
    let mut kinds = BTreeSet::new();
    for rejection in rejections {
        let body: Value = serde_json::from_str(&Problem::from(&rejection).to_json()).unwrap();
        schemas.validate(&body, index).unwrap_or_else(|error| panic!("{body}\n{error}"));
        for name in body.as_object().unwrap().keys() {
            assert!(schema["properties"].get(name).is_some(), "the schema has no `{name}`");
        }
        kinds.insert(body["kind"].as_str().unwrap().to_owned());
    }
    let listed = schema["properties"]["kind"]["enum"].as_array().unwrap().iter();
    assert_eq!(kinds, listed.map(|kind| kind.as_str().unwrap().to_owned()).collect());
    assert!(schemas.validate(&json!({ "kind": "limited" }), index).is_err(), "the schema refuses what is no problem");
}

async fn paused() -> Rejection {
    let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    let policy = Policy::builder("api").rule(Rule::sliding_window(1, MINUTE)).pausable().build().unwrap();
    limiter.check(&policy, &alice).pause(MINUTE).await.unwrap();
    limiter.check(&policy, &alice).await.unwrap().into_result().unwrap_err().into()
}

/// A rejection of a call that nobody has signed in for.
async fn unidentified() -> Rejection {
    let limiter = Limiter::in_memory();
    let policy = Policy::builder("api").rule(Rule::sliding_window(1, MINUTE)).build().unwrap();
    context::declare(["openapi_user"]);
    let call = async { limiter.check(&policy, &limiter.subject().context("openapi_user").build()).await };
    context::scope(Context::new(), call).await.unwrap_err().into()
}

#[test]
fn a_rejection_lists_all_that_it_becomes() {
    assert_eq!(statuses(&responses("post", "/lottery")), ["200", "409", "429", "503"]);
}

#[rate_limit(rule(count = 5, per = "60s"), reject = |_| Err("slow down"), openapi = OwnTextLimits)]
async fn own_text() -> Result<(), &'static str> {
    Ok(())
}

struct ApiError;

impl From<Rejection> for ApiError {
    fn from(_: Rejection) -> Self {
        Self
    }
}

#[rate_limit(rule(count = 5, per = "60s"), openapi = OwnErrorLimits)]
async fn own_error() -> Result<(), ApiError> {
    Ok(())
}

#[tokio::test]
async fn no_media_type_is_claimed_where_the_program_makes_the_response_itself() {
    for own in [listed(OwnTextLimits::responses()), listed(OwnErrorLimits::responses())] {
        assert_eq!(statuses(&own), ["429", "503"]);
        assert!(own["429"]["description"].as_str().unwrap().contains("`5 per 1m`"));
        assert!(own["429"]["content"].is_null() && own["503"]["content"].is_null(), "{own}");
    }
    assert!(own_text().await.is_ok() && own_error().await.is_ok());
}

/// Mails a code, which is limited by hand.
#[utoipa::path(post, path = "/mails", responses((status = 200, description = "mailed"), MailLimits))]
pub(crate) async fn mails() -> Result<(), Rejection> {
    mail_limit().await?.into_result().map(drop)?;
    Ok(())
}

#[rate_limit(rule(count = 7, per = "60s"), check_fn = mail_limit, openapi = MailLimits)]
async fn mail() -> Result<(), Rejection> {
    Ok(())
}

#[utoipa::path(get, path = "/items/{id}", responses((status = 200, description = "item"), (status = 403, description = "no")))]
pub(crate) fn item() -> String {
    "item".into()
}

#[utoipa::path(
    get, path = "/shared", responses(
        (status = 200, response = Found),
        (status = 429, response = TooMany),
        (status = 503, content_type = "application/problem+json", body = Problem, description = "away")
    )
)]
pub(crate) fn shared() -> String {
    "shared".into()
}

/// A response that several operations refer to.
#[derive(ToResponse)]
#[response(description = "slow down", content_type = "application/problem+json")]
struct TooMany(#[allow(dead_code, reason = "only described")] Problem);

#[derive(ToResponse)]
#[response(description = "found")]
struct Found;

#[derive(OpenApi)]
#[openapi(paths(mails, draw, item, items, shared), components(responses(TooMany, Found), schemas(Problem)))]
struct Service;

const FILE: &str = r#"
[policy."openapi.tried"]
match = { path = "/*" }
key = "{@ip}"
rules = ["3 per 1s"]
shadow = true

[policy."openapi.item"]
match = { path = "/items/*", methods = ["GET"] }
key = "{@ip}"
rules = ["30 per 1m"]
reject = { status = 403, body = "<p>no</p>", content_type = "text/html" }

[policy."openapi.rest"]
match = { path = "/*" }
key = "{@ip}"
rules = ["300 per 1m"]
exempt_paths = ["/items"]
"#;

#[test]
fn responses_that_are_given_by_reference_are_described_and_others_stay_references() {
    let layer = web::Layer::new().reject(|_, _| {
        let response = http::Response::builder().header("content-type", "application/json");
        response.status(429).body("{}".to_owned()).unwrap()
    });
    let responses = described(&layer)("get", "/shared");
    assert_eq!(responses["200"], serde_json::json!({ "$ref": "#/components/responses/Found" }));
    assert_eq!(statuses(&responses), ["200", "429"]);
    assert_eq!(media_types(&responses["429"]), ["application/json"]);
    let limited = responses["429"]["description"].as_str().unwrap();
    assert!(["slow down", "* at most `300 per 1m`", "away"].iter().all(|text| limited.contains(text)), "{limited}");
    assert_eq!(shared(), "shared");
}

/// Returns the responses to an operation of the service, with the limits of the file.
fn described(layer: &web::Layer) -> impl Fn(&str, &str) -> Value + use<> {
    let limiter = Limiter::in_memory();
    limiter.apply(&tallygate::config::Policies::from_toml(FILE).unwrap()).unwrap();
    let mut document = Service::openapi();
    web::limits(&limiter).unwrap().describe(&mut document);
    layer.describe(&mut document);
    let document = serde_json::to_value(document).unwrap();
    move |method, path| document["paths"][path][method]["responses"].clone()
}

fn media_types(response: &Value) -> Vec<&str> {
    response["content"].as_object().into_iter().flat_map(|content| content.keys()).map(String::as_str).collect()
}

#[tokio::test]
async fn the_limits_of_a_file_and_of_a_check_by_hand_are_listed() {
    let responses = described(&web::Layer::new());
    let mailed = responses("post", "/mails");
    assert_eq!(statuses(&mailed), ["200", "429", "503"]);
    let limits = "Too many requests.\n\nFor all calls together:\n\n* at most `7 per 1m`\n\n* at most `300 per 1m`";
    assert_eq!(mailed["429"]["description"], limits);
    assert_eq!(mailed["503"]["description"], "The limits cannot be checked right now.");
    assert_eq!(media_types(&mailed["429"]), ["application/problem+json"]);

    let one = responses("get", "/items/{id}");
    assert_eq!(statuses(&one), ["200", "403"]);
    let limits = "no\n\nToo many requests.\n\n* at most `30 per 1m`\n\nThe limits cannot be checked right now.";
    assert_eq!(one["403"]["description"], limits);
    assert_eq!(media_types(&one["403"]), ["text/html"]);
    assert!(one["403"]["headers"]["Retry-After"].is_object(), "{one}");

    let items = responses("get", "/items");
    assert!(!items["429"]["description"].as_str().unwrap().contains("300"), "it is exempt: {items}");
    assert!(mails().await.is_ok() && mail().await.is_ok() && !item().is_empty());
}

#[test]
fn the_media_types_are_those_that_the_layer_answers_with() {
    let layer = web::Layer::new().reject(|rejection, _| {
        let response = http::Response::builder().header("content-type", "application/json");
        let is_duplicate = rejection.kind() == tallygate::RejectionKind::Duplicate;
        response.status(if is_duplicate { 429 } else { 420 }).body("{}".to_owned()).unwrap()
    });
    let responses = described(&layer);
    let draw = responses("post", "/lottery");
    assert_eq!(statuses(&draw), ["200", "420", "429"]);
    for status in ["420", "429"] {
        assert_eq!(media_types(&draw[status]), ["application/json"]);
    }
    assert!(draw["420"]["headers"]["Retry-After"].is_null() && draw["429"]["headers"]["Retry-After"].is_object());
    assert_eq!(media_types(&responses("get", "/items/{id}")["403"]), ["text/html"], "as the file says");
    let problems = described(&web::Layer::new().messages(|_, _| Some("slow down".to_owned())));
    assert_eq!(
        problems("post", "/lottery")["429"]["content"],
        described(&web::Layer::new())("post", "/lottery")["429"]["content"]
    );
}
