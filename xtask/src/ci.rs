//! Everything that has to pass, cheapest first.

use std::process::Command;

use crate::step::{self, Outcome, cargo};
use crate::test::{self, Length, Servers};
use crate::{builds, dependencies, deploy, layers, package, pictures, soak, threads, tutorial, world};

type Check = (&'static str, fn() -> Outcome);

/// The checks, by their names.
const CHECKS: [Check; 18] = [
    ("format", format),
    ("layers", layers::run),
    ("licences", package::licences),
    ("dependencies", dependencies::run),
    ("lints", lints),
    ("features", builds::features),
    ("rust-version", builds::rust_version),
    ("minimal-versions", builds::minimal_versions),
    ("compatibility", package::compatibility),
    ("test", tests),
    ("threads", threads::run),
    ("world", world::check),
    ("deploy", deploy::run),
    ("soak", soak),
    ("documentation", documentation),
    ("tutorial", tutorial::run),
    ("pictures", pictures::check),
    ("package", package::run),
];

/// Runs the checks of those names, or all if none is named, up to the first that fails.
pub(crate) fn run(names: &[&str]) -> Outcome {
    let known = CHECKS.map(|(name, _)| name);
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no check `{unknown}`; there are {}", known.join(", ")));
    }
    let chosen = |(name, _): &&Check| names.is_empty() || names.contains(name);
    CHECKS.iter().filter(chosen).try_for_each(|(_, check)| check())
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
