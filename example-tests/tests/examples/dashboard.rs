//! The dashboard on the numbers of a service that a real Prometheus has scraped.

use std::collections::VecDeque;
use std::env;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tallygate_harness::server::Server as Redis;
use tokio::time::{Instant, interval};

use crate::prometheus::{Answered, Prometheus};
use crate::traffic::Traffic;

const DASHBOARD: &str = include_str!("../../../deploy/grafana/tallygate.json");

/// Names the binary of Prometheus. `cargo xtask ci deploy` sets it where there is one.
const BINARY_VARIABLE: &str = "TALLYGATE_TEST_PROMETHEUS";

/// Names the file to which the answers are written, for the picture of the dashboard: `cargo xtask pictures --record`.
const RECORD_VARIABLE: &str = "TALLYGATE_RECORD_DASHBOARD";

/// How long each part of the story takes: to be recorded, it is longer.
struct Pace {
    part: Duration,
    /// The window of rates.
    rate_s: u32,
    step_s: u32,
}

const SHORT: Pace = Pace { part: Duration::from_secs(4), rate_s: 4, step_s: 1 };
const RECORDED: Pace = Pace { part: Duration::from_secs(20), rate_s: 8, step_s: 2 };

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Calm,
    /// One client asks for reports again and again.
    Flood,
    /// One user keeps clicking, until the ban and beyond.
    Clicks,
    /// Redis is away.
    Outage,
    Recovery,
}

const STORY: [Part; 5] = [Part::Calm, Part::Flood, Part::Clicks, Part::Outage, Part::Recovery];

async fn play(traffic: &Traffic, redis: &mut Redis, pace: &Pace) {
    let mut ticks = interval(Duration::from_millis(100));
    let mut tick = 0_u8;
    let mut uploads = VecDeque::new();
    for part in STORY {
        let until = Instant::now() + pace.part;
        match part {
            Part::Clicks => traffic.raise("alice@example.org", "again = 3 per 1m").await,
            Part::Outage => redis.kill(),
            Part::Recovery => redis.restart(),
            Part::Calm | Part::Flood => {}
        }
        while Instant::now() < until {
            ticks.tick().await;
            tick = tick.wrapping_add(1);
            everyday(traffic, tick).await;
            // Imports take longer while clients ask again and again, and some users begin another one, which waits.
            let (running, users) = if part == Part::Flood { (12, 8) } else { (4, 32) };
            uploads.push_back(traffic.import(tick % 240, &format!("user{}", tick % users)).await);
            for upload in uploads.drain(..uploads.len().saturating_sub(running)) {
                upload.finish().await;
            }
            match part {
                Part::Flood => {
                    for _ in 0..6 {
                        traffic.report(250).await;
                    }
                }
                Part::Clicks => drop(traffic.draw(251, "eve").await),
                _ => {}
            }
        }
    }
}

/// What goes on all the time, ten times a second.
async fn everyday(traffic: &Traffic, tick: u8) {
    traffic.report(tick % 240).await;
    traffic.search(tick % 16).await;
    traffic.search(241).await;
    for client in 0..4 {
        traffic.suggest(tick % 60 * 4 + client).await;
    }
    let address = if tick.is_multiple_of(8) { "alice".to_owned() } else { format!("user{}", fastrand::u32(..)) };
    traffic.code(tick % 240, &format!("{address}@example.org")).await;
    if tick.is_multiple_of(4) {
        traffic.answer(&format!("user{}", fastrand::u32(..))).await;
        traffic.draw(tick % 240, &format!("user{tick}")).await;
    }
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs_f64()
}

/// A query of the dashboard as Grafana sends it, with all jobs and policies.
fn query(target: &Value, pace: &Pace) -> String {
    let query = target["expr"].as_str().expect("a query").replace("$__rate_interval", &format!("{}s", pace.rate_s));
    query.replace("$job", ".*").replace("$policy", ".*")
}

/// The name of a series, by the template of the dashboard. It ends without a unit if the series has none.
fn name(target: &Value, answered: &Answered) -> String {
    let template = target["legendFormat"].as_str().expect("a template").to_owned();
    let name =
        answered.labels.iter().fold(template, |name, (label, value)| name.replace(&format!("{{{{{label}}}}}"), value));
    name.replace("{{unit}}", "").trim_end().to_owned()
}

/// The values of each step, to three digits; none where there is nothing, or no number.
fn values(answered: &Answered, [start, end]: [f64; 2], pace: &Pace) -> Vec<Value> {
    let mut values = Vec::new();
    let mut at = start;
    while at <= end {
        let there = answered.values.iter().find(|(time, value)| (time - at).abs() < 0.5 && value.is_finite());
        let rounded = there.map(|(_, value)| format!("{value:.2e}").parse::<f64>().expect("a number"));
        values.push(json!(rounded));
        at += f64::from(pace.step_s);
    }
    values
}

#[tokio::test(flavor = "multi_thread")]
async fn every_panel_has_data_where_prometheus_is_installed() {
    let Some(binary) = env::var_os(BINARY_VARIABLE) else { return };
    let record = env::var_os(RECORD_VARIABLE);
    let pace = if record.is_some() { RECORDED } else { SHORT };
    let mut redis = Redis::start();
    let traffic = Traffic::start(&redis);
    let prometheus = Prometheus::start(&binary, traffic.service.metrics()).await;
    let start = now_s().floor();
    play(&traffic, &mut redis, &pace).await;
    let times = [start, now_s().floor()];

    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("the dashboard is JSON");
    let mut recorded = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let mut series = Vec::new();
        for target in panel["targets"].as_array().expect("queries") {
            let answered = prometheus.query_range(&query(target, &pace), times, pace.step_s).await;
            let of_target =
                |answered| json!({ "name": name(target, answered), "values": values(answered, times, &pace) });
            series.extend(answered.iter().map(of_target));
        }
        let has_data =
            series.iter().any(|series| series["values"].as_array().is_some_and(|all| all.iter().any(Value::is_f64)));
        assert!(has_data, "{}", panel["title"]);
        recorded.push(json!({ "id": panel["id"], "series": series }));
    }
    if let Some(record) = record {
        let lines: Vec<_> = recorded.iter().map(Value::to_string).collect();
        let text = format!("{{\"step_s\": {}, \"panels\": [\n{}\n]}}\n", pace.step_s, lines.join(",\n"));
        fs::write(record, text).expect("the file can be written to");
    }
}
