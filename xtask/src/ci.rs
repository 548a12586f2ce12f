//! Everything that has to pass, cheapest first.

use std::env;
use std::process::Command;

use crate::step::{self, Outcome, cargo};
use crate::test::{self, Length, Servers};
use crate::{builds, dependencies, deploy, layers, package, pictures, soak, threads, tutorial, world};

type Check = (&'static str, fn() -> Outcome);

/// The checks, by their names.
const CHECKS: [Check; 19] = [
    ("format", format),
    ("layers", layers::run),
    ("licences", package::licences),
    ("dependencies", dependencies::run),
    ("lints", lints),
    ("features", builds::features),
    ("compatibility", package::compatibility),
    ("test", tests),
    (OTHER_SERVERS, other_servers),
    ("rust-version", builds::rust_version),
    ("minimal-versions", builds::minimal_versions),
    ("threads", threads::run),
    ("package", package::run),
    ("world", world::check),
    ("deploy", deploy::run),
    ("soak", soak),
    ("documentation", documentation),
    ("tutorial", tutorial::run),
    ("pictures", pictures::check),
];

const OTHER_SERVERS: &str = "other-servers";

/// Checks that mostly compile, each into a folder of its own. If all checks run, they run beside [`other_servers`], whose
/// tests wait for half of the time.
const BESIDE: [&str; 4] = ["rust-version", "minimal-versions", "threads", "package"];

/// Runs the checks of those names, or all if none is named, up to the first that fails.
pub(crate) fn run(names: &[&str]) -> Outcome {
    let known = CHECKS.map(|(name, _)| name);
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no check `{unknown}`; there are {}", known.join(", ")));
    }
    if names.is_empty() {
        let mut others = CHECKS.iter().filter(|(name, _)| !BESIDE.contains(name));
        return others
            .try_for_each(|(name, check)| if *name == OTHER_SERVERS { other_servers_and_beside() } else { check() });
    }
    CHECKS.iter().filter(|(name, _)| names.contains(name)).try_for_each(|(_, check)| check())
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
    test::run(Length::Long, Servers::Usual)
}

fn other_servers() -> Outcome {
    test::run_on_others(Length::Short)
}

/// Starts this program again for [`BESIDE`], with so little claim to the processor that no server seems dead to a test.
fn other_servers_and_beside() -> Outcome {
    let this = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut beside = Command::new("nice");
    beside.args(["-n", "19"]).arg(this).arg("ci").args(BESIDE);
    step::run_beside("checks beside the tests", beside, other_servers)
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
