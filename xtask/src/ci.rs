//! Everything that has to pass, cheapest first.

use std::time::Instant;

use crate::step::{Outcome, cargo, run as step};
use crate::{dependencies, layers, licences, package, test};

/// Runs all checks, up to the first that fails.
pub(crate) fn run() -> Outcome {
    let started = Instant::now();
    step("formatting", &mut cargo("fmt --all --check"))?;
    layers::run()?;
    licences::run()?;
    dependencies::run()?;
    step("lints", &mut cargo("clippy --workspace --all-targets -- -D warnings"))?;
    // What is async for the sake of Redis stays so without it.
    let lean = "clippy -p tallygate --no-default-features --all-targets -- -D warnings";
    let lean = format!("{lean} -A clippy::unused_async -A clippy::unused_self");
    step("lints without default features", &mut cargo(&lean))?;
    test::run_with_all_servers()?;
    step("documentation", cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings"))?;
    package::run()?;
    // The other example, the server, is run by its own test.
    step("the example", &mut cargo("run --example quickstart"))?;
    println!("\n=== all of it: {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}
