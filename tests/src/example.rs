//! The examples of the workspace, for tests that run them.

use std::env;

use escargot::{CargoBuild, CargoRun};

/// What cargo tells a test of its own package. The scripts of some packages are run again when it differs.
const OF_THE_TEST: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Builds an example: another build may have left an old one in its place. With the features of the whole workspace, as the
/// tests are built by `cargo xtask test`, nothing is compiled twice.
pub fn built(name: &str) -> CargoRun {
    let build = CargoBuild::new().arg("--workspace").example(name).current_release();
    let variables = env::vars_os().filter_map(|(variable, _)| variable.into_string().ok());
    let of_the_test = variables.filter(|variable| OF_THE_TEST.iter().any(|prefix| variable.starts_with(prefix)));
    of_the_test.fold(build, CargoBuild::env_remove).run().expect("the example builds")
}
