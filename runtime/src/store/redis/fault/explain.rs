//! Errors of the client library as errors of the backend, with the remedy, and without the values that were sent.

use std::time::Duration;

use ::redis::RedisError;

use super::Fault;
use super::said::Said;
#[cfg(feature = "admin")]
use super::table::NO_ENGINE;
use crate::error::{BackendError, BackendErrorKind};
use crate::store::redis::address::Address;
#[cfg(feature = "tls")]
use crate::store::redis::tls;

/// Explains what a server answered, or why it did not.
pub(in crate::store::redis) fn answer_error(error: &RedisError) -> BackendError {
    let (kind, text) = explain(error);
    let explained = backend_error(kind, format!("redis: {text}"), error);
    if Fault::of(error).is_refusal() { explained.into_refusal() } else { explained }
}

/// Whether the server refuses every script because it was started or built without them.
#[cfg(feature = "admin")]
pub(in crate::store::redis) fn is_without_scripts(error: &RedisError) -> bool {
    Said::of(error).is_some_and(|said| said.text().contains(NO_ENGINE))
}

/// Explains why an attempt to connect failed.
pub(in crate::store::redis) fn attempt_error(address: &Address, error: &RedisError) -> BackendError {
    let (kind, text) = explain(error);
    // Every server of the right kind can answer what it is asked first.
    let kind = if kind == BackendErrorKind::Unknown { BackendErrorKind::Wrong } else { kind };
    #[cfg(feature = "tls")]
    if let Some(advice) = tls::advice(error) {
        return backend_error(BackendErrorKind::Wrong, format!("redis at {address}: {text}{advice}"), error);
    }
    let advice = if seems_encrypted(address, error) { "; if the port is one for TLS, write `rediss://`" } else { "" };
    backend_error(kind, format!("redis at {address}: {text}{advice}"), error)
}

/// Explains that an attempt to connect took too long.
pub(in crate::store::redis) fn slow_attempt(address: &Address, longest: Duration) -> BackendError {
    let advice = if address.is_encrypted() { "; the port may not be one for TLS" } else { "" };
    BackendError::away(format!("redis at {address}: no connection within {longest:?}{advice}"))
}

fn explain(error: &RedisError) -> (BackendErrorKind, String) {
    let kind = Fault::of(error).kind();
    match Said::of(error) {
        Some(said) => (kind, format!("{said}{}", said.meaning().1)),
        None => (kind, error.to_string()),
    }
}

fn backend_error(kind: BackendErrorKind, text: String, error: &RedisError) -> BackendError {
    BackendError::with_source(kind, text, without_values(error))
}

/// Whether the server may expect TLS: it hangs up on a greeting in plain text, or answers with an alert.
fn seems_encrypted(address: &Address, error: &RedisError) -> bool {
    let is_misunderstood = matches!(Fault::of(error), Fault::Garbled | Fault::Broken) && error.is_unrecoverable_error();
    is_misunderstood && !error.is_connection_refusal() && address.is_readable()
}

/// Replaces an error that quotes what was sent.
fn without_values(error: &RedisError) -> RedisError {
    match Said::of(error) {
        Some(said) if error.detail() != Some(said.text()) => {
            RedisError::from((error.kind(), "the server refuses a command", said.to_string()))
        }
        _ => error.clone(),
    }
}
