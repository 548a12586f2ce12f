//! The seed of a test's random choices, so that a failure can be repeated.

use std::env;

/// Names the seed; without it, every run has another.
pub const SEED_VARIABLE: &str = "TALLYGATE_TEST_SEED";

/// Returns the seed that the environment names, or else a random one.
///
/// # Panics
///
/// The environment names something that is not a number.
#[must_use]
pub fn seed() -> u64 {
    match env::var(SEED_VARIABLE) {
        Ok(seed) => seed.parse().unwrap_or_else(|_| panic!("{SEED_VARIABLE} is a number, not `{seed}`")),
        Err(_) => fastrand::u64(..),
    }
}
