//! Expansions are silent under the strictest lints that a user may deny.

#![deny(warnings, future_incompatible, let_underscore, nonstandard_style, rust_2018_idioms, rust_2024_compatibility)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(
    missing_debug_implementations,
    missing_docs,
    redundant_lifetimes,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    unreachable_pub,
    unsafe_code,
    unused,
    unused_import_braces,
    unused_lifetimes,
    unused_qualifications,
    unused_results,
    variant_size_differences
)]

pub mod expansions;
pub mod shapes;
