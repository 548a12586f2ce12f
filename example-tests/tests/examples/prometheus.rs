//! A real Prometheus that scrapes a service.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::process::{Child, Command, Stdio};

use reqwest::{Client, Response, Url};
use serde_json::Value;
use tallygate_harness::server::free_port;
use tallygate_harness::until::until_found;
use tempfile::TempDir;

/// A Prometheus on a free port of 127.0.0.1, which scrapes once a second. It is killed when dropped.
pub(crate) struct Prometheus {
    child: Child,
    url: String,
    client: Client,
    _folder: TempDir,
}

/// What a query has answered: values by time, in seconds, of each series.
pub(crate) struct Answered {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) values: Vec<(f64, f64)>,
}

impl Prometheus {
    /// Starts one that scrapes these metrics.
    pub(crate) async fn start(binary: &OsStr, metrics: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let target =
            metrics.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics")).expect("an address");
        let config = format!(
            "global: {{scrape_interval: 1s}}\n\
             scrape_configs: [{{job_name: shop, static_configs: [{{targets: ['{target}']}}]}}]\n"
        );
        fs::write(folder.path().join("prometheus.yml"), config).expect("the folder can be written to");
        let address = format!("127.0.0.1:{}", free_port());
        let mut prometheus = Command::new(binary);
        prometheus.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"]);
        prometheus.arg(format!("--web.listen-address={address}")).current_dir(folder.path()).stderr(Stdio::null());
        let child = prometheus.spawn().expect("prometheus starts");
        let url = format!("http://{address}");
        let started = Self { child, url, client: Client::new(), _folder: folder };
        until_found("prometheus has scraped", async || !started.query("up == 1").await.is_empty()).await;
        started
    }

    async fn get(&self, what: &str, parameters: &[(&str, &str)]) -> reqwest::Result<Response> {
        let url = Url::parse_with_params(&format!("{}/api/v1/{what}", self.url), parameters).expect("a url");
        self.client.get(url).send().await
    }

    /// Asks for the values now.
    pub(crate) async fn query(&self, query: &str) -> Vec<Value> {
        let asked = self.get("query", &[("query", query)]).await;
        // Until it has started, it does not answer.
        let Ok(answer) = asked else { return Vec::new() };
        let answer: Value = answer.json().await.unwrap_or_default();
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// Asks for the values of each step, in seconds since 1970.
    pub(crate) async fn query_range(&self, query: &str, [start, end]: [f64; 2], step: u32) -> Vec<Answered> {
        let [start, end, step] = [start.to_string(), end.to_string(), step.to_string()];
        let parameters = [("query", query), ("start", &start), ("end", &end), ("step", &step)];
        let answer = self.get("query_range", &parameters).await.expect("prometheus answers");
        let answer: Value = answer.json().await.expect("it answers in JSON");
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().expect("series").iter().map(Answered::read).collect()
    }
}

impl Answered {
    fn read(series: &Value) -> Self {
        let labels = serde_json::from_value(series["metric"].clone()).expect("labels");
        let value = |pair: &Value| {
            let value = pair[1].as_str().and_then(|value| value.parse().ok());
            (pair[0].as_f64().expect("a time"), value.expect("a number"))
        };
        Self { labels, values: series["values"].as_array().expect("values").iter().map(value).collect() }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
