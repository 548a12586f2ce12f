//! The example, running as a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;

use escargot::{CargoBuild, CargoRun};
use reqwest::{Client, Response};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Built by the test itself: `cargo test --test captcha_server` builds no examples. With the features of the whole
/// workspace, as the tests are built by `cargo xtask test`, nothing is compiled twice.
static BUILT: LazyLock<CargoRun> = LazyLock::new(|| {
    let example = CargoBuild::new().arg("--workspace").example("captcha_server").current_release();
    example.run().expect("the example builds")
});

/// A server process on a free port of 127.0.0.1. It is killed when dropped.
pub(crate) struct Server {
    child: Child,
    address: String,
    client: Client,
}

impl Server {
    /// Starts a server whose tallies are where `url` says.
    pub(crate) fn start(url: &str) -> Self {
        Self::launch(command().env("TALLYGATE_URL", url))
    }

    /// Starts a server without settings.
    pub(crate) fn start_with_defaults() -> Self {
        Self::launch(&mut command())
    }

    fn launch(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the example starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the example prints");
        let address = line.trim().strip_prefix("listening on ").expect("the example says where it listens").to_owned();
        Self { child, address, client: Client::new() }
    }

    pub(crate) async fn captcha(&self, phone: &str) -> Response {
        self.post("captcha", &json!({ "phone": phone })).await
    }

    pub(crate) async fn lottery(&self, user: &str) -> Response {
        self.post("lottery", &json!({ "user": user })).await
    }

    pub(crate) async fn report(&self) -> Response {
        self.client.get(format!("{}/report", self.address)).send().await.expect("the server answers")
    }

    async fn post(&self, path: &str, body: &Value) -> Response {
        let request = self.client.post(format!("{}/{path}", self.address)).json(body);
        request.send().await.expect("the server answers")
    }

    /// Asks the server to stop, as a service manager does, and waits until it has.
    pub(crate) fn stop(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("the process is ours");
        self.child.wait().expect("the process ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a server that cannot start, to its end.
pub(crate) fn fail_to_start(url: &str) -> Output {
    command().env("TALLYGATE_URL", url).output().expect("the example starts")
}

fn command() -> Command {
    let mut command = BUILT.command();
    command.arg("127.0.0.1:0").env_remove("TALLYGATE_URL");
    command
}
