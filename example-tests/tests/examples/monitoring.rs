//! What the dashboard and the alerts ask for is what a service emits.

use std::collections::BTreeSet;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use tallygate::context::{self, Context};
use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::server::Server as Redis;
use tallygate_harness::until::{until, until_found};

use crate::selector::Selector;
use crate::traffic::Traffic;

const ASKING: [(&str, &str); 4] = [
    ("the dashboard", include_str!("../../../deploy/grafana/tallygate.json")),
    ("the alerts", include_str!("../../../deploy/prometheus/alerts.yml")),
    ("the tests of the alerts", include_str!("../../../deploy/prometheus/alerts_test.yml")),
    ("the tests of days", include_str!("../../../deploy/prometheus/alerts_of_days_test.yml")),
];

/// The page that lists the metrics.
const PAGE: &str = include_str!("../../../runtime/guide/observability.md");

/// The metrics that the page lists.
fn listed() -> BTreeSet<&'static str> {
    let first_cells = PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    first_cells.map(|(name, _)| name).filter(|name| name.starts_with("tallygate_")).collect()
}

/// Brings about every outcome, and returns what is scraped then.
async fn scraped() -> String {
    let mut redis = Redis::start();
    let traffic = Traffic::start(&redis);
    let email = "alice@example.org";
    // Limited, first by Redis and then by the cache.
    for status in [200, 429] {
        assert_eq!(traffic.code(1, email).await, status);
    }
    for _ in 0..10 {
        assert_eq!(traffic.report(1).await, 200);
    }
    for _ in 0..10 {
        assert_eq!(traffic.report(1).await, 429);
    }
    // A duplicate, then a ban.
    until_found("a user who keeps clicking is banned", async || traffic.draw(2, "eve").await == 429).await;
    // Two imports at a time.
    let upload = traffic.import(2, "alice").await;
    until("the import is running", || redis.ask::<u64>("ZCARD tallygate:import/leases:alice") == 1).await;
    let denied = traffic.import(2, "alice").await.finish().await;
    assert!(denied.starts_with("HTTP/1.1 429 "), "{denied}");
    assert!(upload.finish().await.starts_with("HTTP/1.1 200 "));
    // A limit that is only tried out, and warns.
    for _ in 0..40 {
        assert_eq!(traffic.search(3).await, 200);
    }
    // Tokens of a language model.
    assert_eq!(traffic.answer("bob").await, 200);
    // Calls that are taken ahead.
    until_found("suggestions are decided ahead", async || {
        traffic.suggest(5).await;
        metrics(&traffic).await.contains("tallygate_prefetch_decisions_total")
    })
    .await;
    traffic.raise(email, "again = 3 per 1m for 2h").await;
    assert_eq!(traffic.code(1, email).await, 200);
    // The limit of each client is decided by the standby, that of reports is not decided, and searches are admitted undecided.
    redis.kill();
    until_found("redis is away", async || traffic.report(4).await == 503).await;
    assert_eq!(traffic.search(4).await, 200);
    metrics(&traffic).await
}

async fn metrics(traffic: &Traffic) -> String {
    let response = reqwest::get(traffic.service.metrics()).await.unwrap();
    response.text().await.unwrap()
}

/// The metrics of a process whose exporter has quantiles in place of buckets, as by default, in which a call has too many tokens,
/// another one is paused, and another one lacks the user that others have.
async fn of_another_process() -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let tokens = Rule::sliding_window(1_000, Duration::from_secs(60)).counting("tokens");
    let policy = Policy::builder("quantiles").rule(tokens).pausable().build().unwrap();
    let limiter = Limiter::in_memory();
    for (tokens, is_allowed) in [(1_000, true), (1, false)] {
        let decision = limiter.check(&policy, &Subject::everyone()).cost_of("tokens", tokens).await.unwrap();
        assert_eq!(decision.is_allowed(), is_allowed, "{tokens}");
    }
    let partner = Subject::of("partner");
    limiter.check(&policy, &partner).pause(Duration::from_secs(60)).await.unwrap();
    assert!(!limiter.check(&policy, &partner).cost_of("tokens", 1).await.unwrap().is_allowed());
    context::declare(["monitored_user"]);
    let unidentified = async { limiter.check(&policy, &limiter.subject().context("monitored_user").build()).await };
    context::scope(Context::new(), unidentified).await.unwrap_err();
    metrics.render()
}

fn series(scraped: &str) -> Vec<Selector> {
    let lines = scraped.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| Selector::all(line, "tallygate_")).collect()
}

/// The labels by which a query groups.
fn grouped_by(query: &str) -> impl Iterator<Item = &str> {
    query.split("by (").skip(1).filter_map(|rest| rest.split(')').next()).flat_map(|labels| labels.split(", "))
}

#[tokio::test]
async fn whatever_the_dashboard_and_the_alerts_ask_for_is_emitted_by_a_service() {
    let (scraped, another) = (scraped().await, of_another_process().await);
    for about in ["# HELP ", "# TYPE "] {
        let names =
            scraped.lines().chain(another.lines()).filter_map(|line| line.strip_prefix(about)?.split(' ').next());
        let ours: BTreeSet<_> = names.filter(|name| name.starts_with("tallygate_")).collect();
        assert_eq!(ours, listed(), "{about}in\n{scraped}");
    }
    assert!(scraped.contains("\ntallygate_overrides 1\n"), "{scraped}");
    let emitted: Vec<_> = series(&scraped).into_iter().chain(series(&another)).collect();
    let is_label = |name: &&str| emitted.iter().any(|series| series.matchers.iter().any(|label| label.label == *name));
    for (file, text) in ASKING {
        let text = text.replace("\\\"", "\"");
        let asked = Selector::all(&text, "tallygate_");
        assert!(asked.len() >= 3, "{file}");
        // The tests of the alerts have policies of their own.
        let variable = |mut selector: Selector| {
            let policies =
                selector.matchers.iter_mut().filter(|matcher| ["policy", "le", "quantile"].contains(&&*matcher.label));
            policies.for_each(|matcher| "$any".clone_into(&mut matcher.value));
            selector
        };
        for selector in asked {
            let selector = if file.contains("tests") { variable(selector) } else { selector };
            for one in selector.alternatives().chain([selector.clone()]) {
                assert!(
                    emitted.iter().any(|series| one.selects(series)),
                    "{file} asks for {one:?}, not emitted in\n{scraped}"
                );
            }
        }
        let unknown = grouped_by(&text).filter(|label| !["job", "instance"].contains(label) && !is_label(label));
        assert_eq!(unknown.collect::<Vec<_>>(), [""; 0], "{file}");
    }
}

#[tokio::test]
async fn no_metric_is_left_out_of_the_dashboard() {
    let asked = Selector::all(ASKING[0].1, "tallygate_");
    for metric in listed() {
        assert!(asked.iter().any(|selector| selector.name.starts_with(metric)), "{metric}");
    }
}
