//! How much the tests play: in their short form enough to notice a mistake within seconds, in their long form as much as
//! there is time for in continuous integration.

use std::env;

/// Set to `1`, the tests run in their long form, as by `cargo xtask test --long`.
pub const LONG_VARIABLE: &str = "TALLYGATE_TEST_LONG";

/// Tells whether the tests run in their long form.
#[must_use]
pub fn is_long() -> bool {
    env::var_os(LONG_VARIABLE).is_some_and(|value| value == "1")
}

/// Returns how many cases to play, by the form in which the tests run.
#[must_use]
pub fn cases<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}
