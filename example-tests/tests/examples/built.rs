//! The examples, built as they are now: another build may have left old ones in their place.

use std::env;

use escargot::{CargoBuild, CargoRun};

/// What cargo tells a test of its own package. The scripts of some packages are run again when it differs.
const OF_THE_TEST: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Builds an example that runs to its end.
pub(crate) fn program(name: &str) -> CargoRun {
    run(cargo().example(name))
}

/// Builds a service by the name of its package.
pub(crate) fn service(name: &str) -> CargoRun {
    // Beside an example, so that what the tests have built is not built again with other features.
    run(cargo().bin(name).args(["--example", "quickstart"]))
}

/// With the features of the whole workspace and their profile, as the tests are built by `cargo xtask test`, nothing is compiled twice.
fn cargo() -> CargoBuild {
    let build = CargoBuild::new().args(["--workspace", "--profile", "test"]);
    let variables = env::vars_os().filter_map(|(variable, _)| variable.into_string().ok());
    let of_the_test = variables.filter(|variable| OF_THE_TEST.iter().any(|prefix| variable.starts_with(prefix)));
    of_the_test.fold(build, CargoBuild::env_remove)
}

fn run(build: CargoBuild) -> CargoRun {
    build.run().expect("the example builds")
}
