//! What is deployed beside a service: alerts and a dashboard, tested by Prometheus itself.

use std::path::PathBuf;
use std::process::Command;

use crate::server::{Server, VARIABLE};
use crate::step::{self, Outcome, cargo, find};
use crate::{debian, pictures};

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
    const TITLE: &str = "the dashboard, asked of a Prometheus";
    check_alerts()?;
    match program("prometheus") {
        Ok(prometheus) => step::run(TITLE, &mut ask(prometheus)?),
        Err(mistake) => {
            step::skip(TITLE, &mistake);
            Ok(())
        }
    }
}

/// Records what the queries of the dashboard answer, which takes some minutes, and draws it.
pub(crate) fn record() -> Outcome {
    let mut ask = ask(program("prometheus")?)?;
    ask.env(RECORD_VARIABLE, step::root().join(pictures::RECORDED));
    step::run("record the dashboard", &mut ask)?;
    pictures::draw()
}

fn check_alerts() -> Outcome {
    const TITLE: &str = "the alerts";
    let promtool = match program("promtool") {
        Ok(promtool) => promtool,
        Err(mistake) => {
            step::skip(TITLE, &mistake);
            return Ok(());
        }
    };
    let command = |words: [&str; 2]| {
        let mut command = Command::new(&promtool);
        command.args(words).current_dir(step::root());
        command
    };
    step::run(TITLE, command(["check", "rules"]).arg(RULES))?;
    step::run("the tests of the alerts", command(["test", "rules"]).args(TESTS))
}

/// The test that starts a Prometheus. With the whole workspace, so that nothing is built with other features.
fn ask(prometheus: PathBuf) -> Result<Command, String> {
    let mut test = cargo("test --workspace --test examples every_panel_has_data");
    test.env(PROMETHEUS_VARIABLE, prometheus).env(VARIABLE, Server::usual()?.binary);
    Ok(test)
}

/// Finds a program of the package, which is installed where it is missing.
fn program(name: &str) -> Result<PathBuf, String> {
    if let Some(found) = find(name) {
        return Ok(found);
    }
    debian::install(PACKAGE).map_err(|mistake| format!("there is no `{name}`: {mistake}"))?;
    find(name).ok_or_else(|| format!("`{PACKAGE}` was installed, but `{name}` is not on the PATH"))
}
