//! What is deployed beside a service: alerts and a dashboard, tested by Prometheus itself.

use std::path::PathBuf;
use std::process::Command;

use crate::server::{Server, VARIABLE};
use crate::step::{self, Outcome, cargo};
use crate::{install, pictures};

/// The package that has both programs.
const PACKAGE: &str = "prometheus";

const RULES: &str = "deploy/prometheus/alerts.yml";
const TESTS: [&str; 2] = ["deploy/prometheus/alerts_test.yml", "deploy/prometheus/alerts_of_days_test.yml"];

/// Names the binary for the test that asks it.
const PROMETHEUS_VARIABLE: &str = "TALLYGATE_TEST_PROMETHEUS";

/// Names the file to which that test writes the answers.
const RECORD_VARIABLE: &str = "TALLYGATE_RECORD_DASHBOARD";

/// Checks the alerts, and the queries of the dashboard on a running service.
pub(crate) fn run() -> Outcome {
    run_or_skip("promtool", "the alerts", |promtool| Ok(on_files(promtool, "check", &[RULES])))?;
    run_or_skip("promtool", "the tests of the alerts", |promtool| Ok(on_files(promtool, "test", &TESTS)))?;
    run_or_skip("prometheus", "the dashboard, asked of a Prometheus", ask)
}

/// Records what the queries of the dashboard answer, which takes some minutes, and draws it.
pub(crate) fn record() -> Outcome {
    let mut ask = ask(install::program("prometheus", PACKAGE)?)?;
    ask.env(RECORD_VARIABLE, step::root().join(pictures::RECORDED));
    step::run("record the dashboard", &mut ask)?;
    pictures::draw()
}

/// Runs a step by a program of the package, if that can be had.
fn run_or_skip(name: &str, title: &str, command: impl FnOnce(PathBuf) -> Result<Command, String>) -> Outcome {
    match install::program(name, PACKAGE) {
        Ok(program) => step::run(title, &mut command(program)?),
        Err(mistake) => {
            step::skip(title, &mistake);
            Ok(())
        }
    }
}

fn on_files(promtool: PathBuf, what: &str, files: &[&str]) -> Command {
    let mut command = Command::new(promtool);
    command.args([what, "rules"]).args(files).current_dir(step::root());
    command
}

/// The test that starts a Prometheus. With the whole workspace, so that nothing is built with other features.
fn ask(prometheus: PathBuf) -> Result<Command, String> {
    let mut test = cargo("test --workspace --test examples every_panel_has_data");
    test.env(PROMETHEUS_VARIABLE, prometheus).env(VARIABLE, Server::usual()?.binary);
    Ok(test)
}
