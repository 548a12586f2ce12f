//! A service, running as a process of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use escargot::CargoRun;
use reqwest::{Client, Method, RequestBuilder};
use rustix::process::{Pid, Signal, kill_process};

/// Names the address of the metrics.
pub(crate) const METRICS: &str = "METRICS_ADDRESS";

/// A service on a free port of 127.0.0.1. It is killed when dropped.
pub(crate) struct Service {
    child: Child,
    pub(crate) url: String,
    /// Where its metrics are, if it was told to serve them.
    metrics: Option<String>,
    client: Client,
}

impl Service {
    /// Starts an example with these variables.
    pub(crate) fn start(example: &CargoRun, variables: &[(&str, &str)]) -> Self {
        // On a busy machine, Redis may take longer to answer than the example waits.
        (0..5)
            .find_map(|_| Self::start_once(example, variables))
            .expect("it says where it listens, once in five starts")
    }

    /// Starts the example once. Returns `None` if it ends before it listens.
    fn start_once(example: &CargoRun, variables: &[(&str, &str)]) -> Option<Self> {
        let mut child = command(example, variables).stdout(Stdio::piped()).spawn().expect("the example starts");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let mut service = Self { child, url: String::new(), metrics: None, client: Client::new() };
        let mut address = |told: &str| {
            let line = lines.next()?.expect("the example prints text");
            Some(line.strip_prefix(told).unwrap_or_else(|| panic!("{told}…: {line}")).to_owned())
        };
        service.url = address("listening on ")?;
        if variables.iter().any(|(name, _)| *name == METRICS) {
            service.metrics = Some(address("metrics on ")?);
        }
        Some(service)
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// Returns where its metrics are.
    pub(crate) fn metrics(&self) -> &str {
        self.metrics.as_deref().expect("the service was told to serve metrics")
    }

    /// Returns how much memory it has, or 0 once it has ended.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    /// Asks the service to stop, as a service manager does, and waits until it has.
    pub(crate) fn stop(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("the process is ours");
        self.child.wait().expect("the process ends")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a service that cannot start, to its end.
pub(crate) fn fail_to_start(example: &CargoRun, variables: &[(&str, &str)]) -> Output {
    command(example, variables).output().expect("the example starts")
}

fn command(example: &CargoRun, variables: &[(&str, &str)]) -> Command {
    let mut command = example.command();
    for unset in ["TALLYGATE_URL", "TRUSTED_PROXIES", "ADMIN_TOKEN", "LIMITS_FILE", METRICS] {
        command.env_remove(unset);
    }
    command.arg("127.0.0.1:0").envs(variables.iter().copied());
    command
}
