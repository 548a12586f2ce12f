//! Expansions, shown to whoever wants to see what became of a function.

use std::env;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use proc_macro2::TokenStream;
use quote::quote;

/// The environment variable that asks for it.
const VARIABLE: &str = "TALLYGATE_MACROS_DEBUG";

/// Whether an expansion has named the variable. The compiler runs once for each crate.
static NAMED: AtomicBool = AtomicBool::new(false);

/// Names the variable in one expansion of a crate, so that who sets it has the crate compiled anew and sees them all.
pub(crate) fn named() -> Option<TokenStream> {
    // The tests are about expansions that are the same each time.
    let first = !cfg!(test) && !NAMED.swap(true, Ordering::Relaxed);
    first.then(|| {
        quote!(
            const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!(#VARIABLE);
        )
    })
}

/// Writes an expansion to the compiler's standard error, if asked to.
pub(crate) fn show(expansion: &TokenStream) {
    if env::var_os(VARIABLE).is_some_and(|value| !value.is_empty() && value != "0") {
        let tokens = expansion.to_string();
        eprintln!("{}", formatted(&tokens).unwrap_or(tokens));
    }
}

/// Formats by `rustfmt`, where there is one: whoever debugs has it, and nobody else pays for a formatter.
fn formatted(tokens: &str) -> Option<String> {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = rustfmt.spawn().ok()?;
    // Dropped at once, which is the end of the input.
    running.stdin.take()?.write_all(tokens.as_bytes()).ok()?;
    let output = running.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.is_empty()).then_some(text)
}
