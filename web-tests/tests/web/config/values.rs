//! Values that keys of a file show: what no layer of the program finds, and what one request lacks.

use axum::Router;
use axum::routing::any;
use tallygate::config::Policies;
use tallygate::{Limiter, context, web};
use tallygate_harness::log::Log;
use tallygate_web_tests::Client;
use tallygate_web_tests::server::serve;

fn file(key: &str, more: &str) -> Policies {
    let text = format!("[policy.values]\nmatch = {{ path = '/*' }}\nkey = '{key}'\nrules = ['1 per 1h']\n{more}");
    Policies::from_toml(&text).unwrap()
}

/// A limiter whose file counts by user, and a client of a router that is limited by it.
async fn started(key: &str) -> (Limiter, Client) {
    let limiter = Limiter::in_memory();
    limiter.apply(&file(key, "")).unwrap();
    let layer = web::Layer::new()
        .context(context::Context::new().with("values_region", "north"))
        .value("values_user", |parts| parts.header("x-user").map(str::to_owned));
    let router = Router::new().fallback(any(|| async { "done" })).layer(web::limits(&limiter).unwrap()).layer(layer);
    (limiter, Client::new(serve(router).await))
}

#[tokio::test]
async fn a_value_that_no_layer_finds_is_refused_when_the_file_is_applied() {
    let (limiter, client) = started("{@values_user}").await;
    let alice = [("x-user", "alice")];
    assert_eq!(client.get_with("/", &alice).await.status, 200);
    let refused = |key: &str, more: &str| limiter.apply(&file(key, more)).unwrap_err().to_string();
    let unknown = |name: &str| format!("no layer of this program finds `{{@{name}}}` in requests; ");
    let meant = "did you mean `values_user`?";
    assert_eq!(refused("{@values_usr}", ""), format!("line 3, column 7: {}{meant}", unknown("values_usr")));
    assert_eq!(refused("{@values_usr|@ip}", ""), format!("line 3, column 7: {}{meant}", unknown("values_usr")));
    assert!(refused("{@ipp}", "").ends_with("did you mean `ip`?"));
    let add = "add it with `web::Layer::value`, or say with `context::declare` that contexts of the program have it";
    assert!(refused("{@quite_another}", "").ends_with(add));
    let plan = refused("{@values_user}", "plan = '{@values_plam}'\nplans.free = 7");
    assert!(plan.starts_with(&format!("line 5, column 8: {}", unknown("values_plam"))), "{plan}");
    // The limits that were in force have stayed so.
    assert_eq!(client.get_with("/", &alice).await.status, 429);
    context::declare(["values_tenant"]);
    for key in ["{@values_region}", "{@values_tenant}", "{@method} {@path} {@route} {@header_x}"] {
        limiter.apply(&file(key, "")).unwrap();
    }
}

#[tokio::test]
async fn a_value_that_no_layer_finds_is_no_known_name_at_start_up() {
    let limiter = Limiter::in_memory();
    let applied = limiter.apply(&file("{@values_usr}", "")).unwrap();
    _ = web::Layer::new().value("values_user", |_| Some("alice"));
    let mistake = applied.require_known().unwrap_err().to_string();
    assert!(mistake.ends_with("`{@values_usr}` in requests; did you mean `values_user`?"), "{mistake}");
}

#[tokio::test]
async fn a_request_that_lacks_a_value_is_answered_without_an_alarm() {
    let (log, _listening) = Log::listen();
    let (_limiter, client) = started("{@values_user}").await;
    for _ in 0..3 {
        let answer = client.get("/").await;
        assert_eq!((answer.status, answer.problem().kind.as_str()), (401, "unidentified"));
    }
    assert_eq!(client.get_with("/", &[("x-user", "bob")]).await.status, 200);
    let lines = log.lines();
    assert!(!lines.iter().any(|line| line.contains("ERROR") || line.contains("WARN")), "{lines:?}");
    let told = lines.iter().filter(|line| line.contains("INFO") && line.contains("like `{@values_user|@ip}`")).count();
    assert_eq!(told, 1, "{lines:?}");
}

#[tokio::test]
async fn an_alternative_limits_requests_that_lack_a_value() {
    let (_limiter, client) = started("{@values_user|@ip}").await;
    for (fields, expected) in [(vec![], 200), (vec![("x-user", "zoe")], 200), (vec![], 429)] {
        assert_eq!(client.get_with("/", &fields).await.status, expected);
    }
}

#[test]
fn a_file_may_list_the_values_that_the_program_finds() {
    let policy = "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip} {@user}'\nrules = ['1 per 1m']";
    assert!(Policies::from_toml(format!("values = ['user']\n{policy}")).unwrap().unlisted().is_empty());
    let unlisted = Policies::from_toml(policy).unwrap().unlisted();
    let message =
        "whether requests have `{@user}`, only the program knows; list its values, like `values = [\"user\"]`";
    assert_eq!(unlisted.iter().map(ToString::to_string).collect::<Vec<_>>(), [format!("line 3, column 7: {message}")]);
}

#[tokio::test]
async fn a_plan_of_requests_that_the_file_does_not_list_is_told_once() {
    let (log, _listening) = Log::listen();
    let limiter = Limiter::in_memory();
    let policy =
        "[policy.asked]\nmatch = { path = '/*' }\nkey = 'all'\nrules = ['9 per 1h']\nplan = '{@header_x_plan}'\n";
    limiter.apply(&Policies::from_toml(format!("plans = ['free', 'piad']\n{policy}plans.piad = 1")).unwrap()).unwrap();
    let router = Router::new().fallback(any(|| async { "done" })).layer(web::limits(&limiter).unwrap());
    let client = Client::new(serve(router).await);
    let told = || log.lines().into_iter().filter(|line| line.contains("calls ask for a plan")).collect::<Vec<_>>();
    for plan in ["piad", "free"] {
        client.get_with("/", &[("x-plan", plan)]).await;
    }
    client.get("/").await;
    assert_eq!(told(), Vec::<String>::new(), "each of these is listed, or no plan");
    for _ in 0..2 {
        client.get_with("/", &[("x-plan", "paid")]).await;
        assert_eq!(limiter.plan_count("other", "paid"), None);
    }
    let told = told();
    let [line] = &told[..] else { panic!("{told:?}") };
    assert!(line.contains("WARN") && line.contains("policy=\"asked\"") && line.contains("alike=\"piad\""), "{line}");
}
