//! The seed of a test's random choices, so that a failure can be repeated.

use std::env;

/// The variable with the seed. Without it, every run has another seed.
pub const SEED_VARIABLE: &str = "TALLYGATE_TEST_SEED";

/// Returns the seed of the environment, or else a random one.
///
/// # Panics
///
/// The environment has something that is not a number.
#[must_use]
pub fn seed() -> u64 {
    match env::var(SEED_VARIABLE) {
        Ok(seed) => seed.parse().unwrap_or_else(|_| panic!("{SEED_VARIABLE} is a number, not `{seed}`")),
        Err(_) => fastrand::u64(..),
    }
}
