//! Everything that has to pass, cheapest first.

use crate::step::{self, Outcome, cargo};
use crate::test::{self, Length};
use crate::{
    compatibility, dependencies, deploy, features, layers, licences, minimal_versions, package, pictures, rust_version,
    soak,
};

struct Check {
    name: &'static str,
    run: fn() -> Outcome,
}

const CHECKS: [Check; 15] = [
    Check { name: "format", run: format },
    Check { name: "layers", run: layers::run },
    Check { name: "licences", run: licences::run },
    Check { name: "dependencies", run: dependencies::run },
    Check { name: "lints", run: lints },
    Check { name: "features", run: features::run },
    Check { name: "rust-version", run: rust_version::run },
    Check { name: "minimal-versions", run: minimal_versions::run },
    Check { name: "compatibility", run: compatibility::run },
    Check { name: "test", run: tests },
    Check { name: "deploy", run: deploy::run },
    Check { name: "soak", run: soak },
    Check { name: "documentation", run: documentation },
    Check { name: "pictures", run: pictures::check },
    Check { name: "package", run: package::run },
];

/// Runs the checks of those names, or all if none is named, up to the first that fails.
pub(crate) fn run(names: &[&str]) -> Outcome {
    if let Some(unknown) = names.iter().find(|name| !CHECKS.iter().any(|check| check.name == **name)) {
        let known = CHECKS.map(|check| check.name).join(", ");
        return Err(format!("there is no check `{unknown}`; there are {known}"));
    }
    let chosen = |check: &&Check| names.is_empty() || names.contains(&check.name);
    CHECKS.iter().filter(chosen).try_for_each(|check| (check.run)())
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
    test::run_on_all(Length::Long, Length::Short)
}

/// As long as it takes to see that it runs, and that nothing leaks fast.
fn soak() -> Outcome {
    soak::run(&["--minutes", "1"])
}

/// The pages of rustdoc, and the example that stands in the README; the tests run the other examples.
fn documentation() -> Outcome {
    step::run("documentation", cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings"))?;
    step::run("the example `quickstart`", &mut cargo("run --example quickstart"))
}
