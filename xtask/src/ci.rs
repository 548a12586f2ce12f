//! Everything that has to pass, cheapest first.

use std::env;
use std::process::Command;

use crate::step::{self, Outcome, cargo};
use crate::test::{self, Length, Servers};
use crate::{builds, dependencies, deploy, layers, package, pictures, soak, threads, tutorial, world};

type Check = (&'static str, fn() -> Outcome);

/// The checks, by their names. Those of [`BESIDE`] run beside `test` where all run.
const CHECKS: [Check; 18] = [
    ("format", format),
    ("layers", layers::run),
    ("licences", package::licences),
    ("dependencies", dependencies::run),
    ("lints", lints),
    ("compatibility", package::compatibility),
    ("test", tests),
    ("features", builds::features),
    ("rust-version", builds::rust_version),
    ("minimal-versions", builds::minimal_versions),
    ("threads", threads::run),
    ("world", world::check),
    ("deploy", deploy::run),
    ("soak", soak),
    ("documentation", documentation),
    ("tutorial", tutorial::run),
    ("pictures", pictures::check),
    ("package", package::run),
];

/// They compile for minutes, in folders of their own, while the tests wait for their servers.
const BESIDE: [&str; 5] = ["features", "rust-version", "minimal-versions", "threads", "package"];

/// Runs the checks of those names, or all if none is named, up to the first that fails.
pub(crate) fn run(names: &[&str]) -> Outcome {
    let known = CHECKS.map(|(name, _)| name);
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no check `{unknown}`; there are {}", known.join(", ")));
    }
    if names.is_empty() {
        return CHECKS.iter().filter(|(name, _)| !BESIDE.contains(name)).try_for_each(|(name, check)| match *name {
            "test" => beside(*check),
            _ => check(),
        });
    }
    CHECKS.iter().filter(|(name, _)| names.contains(name)).try_for_each(|(_, check)| check())
}

/// Runs the checks of [`BESIDE`] beside another one. They only get the time that it leaves: a test whose server is late fails.
fn beside(check: fn() -> Outcome) -> Outcome {
    let program = env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
    let mut checks = step::as_from_a_shell("nice");
    checks.args(["-n", "19"]).arg(program).arg("ci").args(BESIDE).current_dir(step::root());
    step::run_beside("checks beside the tests", checks, check)
}

fn format() -> Outcome {
    step::run("format", &mut cargo("fmt --all --check"))
}

fn lints() -> Outcome {
    step::run("lints", &mut cargo("clippy --workspace --all-targets -- -D warnings"))?;
    step::run(
        "lints of the figures of the web",
        &mut cargo("clippy -p tallygate-benches --features web -- -D warnings"),
    )
}

/// In the long form on the usual server. `cargo xtask test --long --servers all` takes that long on each.
fn tests() -> Outcome {
    test::run(Length::Long, Servers::Usual)?;
    test::run_on_others(Length::Short)
}

/// As long as it takes to see that it runs, and that nothing leaks fast.
fn soak() -> Outcome {
    soak::run(&["--minutes", "1"])
}

/// The pages of rustdoc, and the example that stands in the README; the tests run the other examples.
fn documentation() -> Outcome {
    step::run("documentation", cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings"))?;
    // Beside a test, so that what the tests have built is not built again with other features.
    let mut build = cargo("build --workspace --profile test --example quickstart --test concurrency");
    step::run("build the example `quickstart`", &mut build)?;
    step::run("the example `quickstart`", &mut Command::new(step::target().join("debug/examples/quickstart")))
}
