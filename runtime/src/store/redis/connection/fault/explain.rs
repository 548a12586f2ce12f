//! Errors of the client library as errors of the backend, with the remedy, and without the values that were sent.

use std::time::Duration;

use ::redis::{ErrorKind, RedisError};

use super::Fault;
use super::said::Said;
#[cfg(feature = "admin")]
use super::table::NO_ENGINE;
use crate::error::{BackendError, BackendErrorKind};
use crate::store::redis::connection::address::Address;
use crate::store::redis::connection::look::{Seen, look};
#[cfg(feature = "tls")]
use crate::store::redis::connection::tls;

/// Explains what the server there answered, or why it did not.
pub(crate) fn answer_error(address: &Address, error: &RedisError) -> BackendError {
    let (kind, text) = explain(address, error);
    let explained = backend_error(kind, format!("redis: {text}"), error);
    if Fault::of(error).is_refusal() { explained.into_refusal() } else { explained }
}

/// Whether the server refuses every script because it was started or built without them.
#[cfg(feature = "admin")]
pub(crate) fn is_without_scripts(error: &RedisError) -> bool {
    Said::of(error).is_some_and(|said| said.text().contains(NO_ENGINE))
}

/// Explains why an attempt to connect failed. Where the client library did not understand the server, its bytes are looked at.
pub(crate) async fn attempt_error(address: &Address, error: &RedisError) -> BackendError {
    #[cfg(feature = "tls")]
    if let Some(advice) = tls::advice(address.role(), error) {
        let seen = if tls::is_garbled(error) { look(address).await } else { None };
        if let Some(seen) = seen {
            return seen_error(address, &seen, error);
        }
        let refused = refused_attempt(address, error, advice.text);
        return advice.setting.into_iter().fold(refused, |refused, (setting, name)| refused.naming(setting, name));
    }
    let is_misunderstood = matches!(Fault::of(error), Fault::Garbled | Fault::Broken) && !error.is_connection_refusal();
    match if is_misunderstood { look(address).await } else { None } {
        Some(seen) => seen_error(address, &seen, error),
        None if Fault::of(error) == Fault::Garbled => server_error(address, error, "; check host and port"),
        None => server_error(address, error, ""),
    }
}

/// Explains that an attempt to connect took too long.
pub(crate) async fn slow_attempt(address: &Address, longest: Duration) -> BackendError {
    let text = format!("redis at {address}: no connection within {longest:?}");
    match look(address).await {
        Some(Seen::Refusal(error)) => server_error(address, &error, ""),
        Some(seen) => match advice_of(&seen, address) {
            "" => BackendError::away(text),
            advice => BackendError::new(format!("{text}{advice}")),
        },
        None => BackendError::away(text),
    }
}

/// Explains a server by what its bytes show.
fn seen_error(address: &Address, seen: &Seen, error: &RedisError) -> BackendError {
    match seen {
        Seen::Refusal(refusal) => server_error(address, refusal, ""),
        seen => match advice_of(seen, address) {
            "" => server_error(address, error, ""),
            advice => refused_attempt(address, error, advice),
        },
    }
}

fn advice_of(seen: &Seen, address: &Address) -> &'static str {
    match (seen, address.is_encrypted()) {
        (Seen::Tls, false) => "; the port is one for TLS: begin the url with `rediss`",
        (Seen::Plain, true) => "; the port speaks without TLS: begin the url with `redis`",
        (Seen::Http, _) => "; an HTTP server answers there: check the port",
        _ => "",
    }
}

fn server_error(address: &Address, error: &RedisError, advice: &str) -> BackendError {
    let (kind, text) = explain(address, error);
    // Every server of the right kind can answer what it is asked first.
    let kind = if kind == BackendErrorKind::Unknown { BackendErrorKind::Wrong } else { kind };
    backend_error(kind, format!("redis at {address}: {text}{advice}"), error)
}

/// An attempt that fails as long as nobody changes something.
fn refused_attempt(address: &Address, error: &RedisError, advice: &str) -> BackendError {
    let text = format!("redis at {address}: {}{advice}", explain(address, error).1);
    backend_error(BackendErrorKind::Wrong, text, error)
}

fn explain(address: &Address, error: &RedisError) -> (BackendErrorKind, String) {
    let Some(said) = Said::of(error) else {
        let text = match error.kind() {
            // The client library lists what it would have expected, on several lines.
            ErrorKind::Parse => "what answers does not speak the protocol of Redis".to_owned(),
            _ => error.to_string(),
        };
        return (Fault::of(error).kind(), text);
    };
    let (fault, remedy) = said.meaning();
    let remedy = remedy.text(address);
    let semicolon = if remedy.is_empty() { "" } else { "; " };
    (fault.kind(), format!("{said}{semicolon}{remedy}"))
}

fn backend_error(kind: BackendErrorKind, text: String, error: &RedisError) -> BackendError {
    BackendError::with_source(kind, text, without_values(error))
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
