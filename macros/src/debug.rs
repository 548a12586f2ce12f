//! Prints expansions for debugging.

use std::env;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use proc_macro2::TokenStream;
use quote::quote;

const VARIABLE: &str = "TALLYGATE_MACROS_DEBUG";

/// Whether an expansion already tracks the variable. The compiler runs once for each crate.
static TRACKED: AtomicBool = AtomicBool::new(false);

/// Reads the variable in the first expansion of a crate, so that a changed value compiles the crate again.
pub(crate) fn track_variable() -> Option<TokenStream> {
    // The tests compare expansions, so all of them must be alike.
    let first = !cfg!(test) && !TRACKED.swap(true, Ordering::Relaxed);
    first.then(|| {
        quote!(
            const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!(#VARIABLE);
        )
    })
}

/// Prints an expansion to the compiler's standard error, if the variable is set.
pub(crate) fn print(expansion: &TokenStream) {
    if env::var_os(VARIABLE).is_some_and(|value| !value.is_empty() && value != "0") {
        let tokens = expansion.to_string();
        eprintln!("{}", formatted(&tokens).unwrap_or(tokens));
    }
}

/// Formats with `rustfmt`, if it is installed: a dependency for that would slow down every build.
fn formatted(tokens: &str) -> Option<String> {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = rustfmt.spawn().ok()?;
    // Dropping stdin ends the input.
    running.stdin.take()?.write_all(tokens.as_bytes()).ok()?;
    let output = running.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.is_empty()).then_some(text)
}
