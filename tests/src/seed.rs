//! Where the randomness of a test begins, so that a failure can be had again.

use std::env;

/// Names the seed to begin with; without it every run begins with another.
pub const SEED_VARIABLE: &str = "TALLYGATE_TEST_SEED";

/// Returns the seed that the environment names, or else a random one.
///
/// # Panics
///
/// When the environment names something that is no number.
#[must_use]
pub fn seed() -> u64 {
    match env::var(SEED_VARIABLE) {
        Ok(seed) => seed.parse().unwrap_or_else(|_| panic!("{SEED_VARIABLE} is a number, not `{seed}`")),
        Err(_) => fastrand::u64(..),
    }
}
