//! Everything that has to pass, cheapest first.

use crate::step::{Outcome, cargo, run as step};
use crate::test::{self, Length, Servers};
use crate::{dependencies, features, layers, licences, minimal_versions, package, rust_version};

/// Runs all checks, up to the first that fails.
pub(crate) fn run() -> Outcome {
    step("formatting", &mut cargo("fmt --all --check"))?;
    layers::run()?;
    licences::run()?;
    dependencies::run()?;
    step("lints", &mut cargo("clippy --workspace --all-targets -- -D warnings"))?;
    features::run()?;
    rust_version::run()?;
    minimal_versions::run()?;
    test::run(Length::Long, Servers::All)?;
    step("documentation", cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings"))?;
    package::run()?;
    // The other example, the server, is run by its own test.
    step("the example", &mut cargo("run --example quickstart"))
}
