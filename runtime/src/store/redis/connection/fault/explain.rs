//! Errors of the client library as errors of the backend, with a remedy, and without the values that were sent.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use ::redis::{ErrorKind, RedisError};

#[cfg(feature = "admin")]
use super::NO_ENGINE;
use super::{Fault, ServerMessage, without_quote};
use crate::bounds::shown_word;
use crate::error::{BackendError, BackendErrorKind};
use crate::store::redis::connection::address::Address;
use crate::store::redis::connection::diagnosis::{Diagnosis, diagnose};
#[cfg(feature = "tls")]
use crate::store::redis::connection::tls;

/// Explains what the server answered, or why it did not.
pub(crate) fn answer_error(address: &Address, error: &RedisError) -> BackendError {
    let (kind, text) = explain(address, error);
    let explained = backend_error(address, kind, format!("redis: {text}"), error);
    if Fault::of(error).is_refusal() { explained.into_refusal() } else { explained }
}

/// The error of the client library that this error explains.
pub(crate) fn server_error(error: &BackendError) -> Option<&RedisError> {
    error.source()?.downcast_ref()
}

/// Whether some keys of the request have moved to another node, and some have not.
pub(crate) fn is_try_again(error: &BackendError) -> bool {
    server_error(error).is_some_and(|error| Fault::of(error) == Fault::TryAgain)
}

/// Whether a server refuses a request because its keys are in several slots. Nothing was executed.
pub(crate) fn is_cross_slot(error: &BackendError) -> bool {
    server_error(error).is_some_and(names_several_slots)
}

/// Whether the server says that keys are in several slots. Some services have words of their own in place of the code.
pub(crate) fn names_several_slots(error: &RedisError) -> bool {
    ServerMessage::of(error).is_some_and(|message| message.code == "CROSSSLOT" || message.text.contains("same slot"))
}

/// Whether the server refuses every script because it was started or built without them.
#[cfg(feature = "admin")]
pub(crate) fn is_without_scripts(error: &RedisError) -> bool {
    ServerMessage::of(error).is_some_and(|message| message.text.contains(NO_ENGINE))
}

/// Explains a failed attempt to connect. If the client library did not understand the server, its bytes are read.
pub(crate) async fn attempt_error(address: &Address, error: &RedisError) -> BackendError {
    #[cfg(feature = "tls")]
    if let Some(advice) = tls::advice(address.role, error) {
        let diagnosis = if tls::is_garbled(error) { diagnose(address).await } else { None };
        if let Some(diagnosis) = diagnosis {
            return diagnosed_error(address, &diagnosis, error);
        }
        let refused = refused_attempt(address, error, advice.text);
        return advice.setting.into_iter().fold(refused, |refused, (setting, name)| refused.naming(setting, name));
    }
    let is_misunderstood = matches!(Fault::of(error), Fault::Garbled | Fault::Broken) && !error.is_connection_refusal();
    match if is_misunderstood { diagnose(address).await } else { None } {
        Some(diagnosis) => diagnosed_error(address, &diagnosis, error),
        None if Fault::of(error) == Fault::Garbled => refused_by_server(address, error, "; check host and port"),
        None => refused_by_server(address, error, ""),
    }
}

pub(crate) async fn slow_attempt(address: &Address, longest: Duration) -> BackendError {
    let text = format!("redis at {address}: no connection within {longest:?}");
    match diagnose(address).await {
        Some(Diagnosis::Refusal(error)) => refused_by_server(address, &error, ""),
        Some(diagnosis) => match advice_of(&diagnosis, address) {
            "" => BackendError::away(text),
            advice => BackendError::new(format!("{text}{advice}")),
        },
        None => BackendError::away(text),
    }
}

/// Says which question to several servers had no answer. A mistake at one of them is kept, because it names its server.
pub(crate) fn asked_in_vain(what: impl fmt::Display, error: BackendError) -> BackendError {
    if error.kind() == BackendErrorKind::Wrong {
        return error;
    }
    let text = error.to_string();
    let reason = text.strip_prefix("redis: ").unwrap_or(&text);
    BackendError::with_source(error.kind(), format!("redis: {what}: {reason}"), error)
}

/// Explains a server by a diagnosis.
fn diagnosed_error(address: &Address, diagnosis: &Diagnosis, error: &RedisError) -> BackendError {
    match diagnosis {
        Diagnosis::Refusal(refusal) => refused_by_server(address, refusal, ""),
        diagnosis => match advice_of(diagnosis, address) {
            "" => refused_by_server(address, error, ""),
            advice => refused_attempt(address, error, advice),
        },
    }
}

fn advice_of(diagnosis: &Diagnosis, address: &Address) -> &'static str {
    match (diagnosis, address.is_encrypted()) {
        (Diagnosis::Tls, false) => "; the port is one for TLS: begin the url with `rediss`",
        (Diagnosis::Plain, true) => "; the port speaks without TLS: begin the url with `redis`",
        (Diagnosis::Http, _) => "; an HTTP server answers there: check the port",
        (Diagnosis::HangsUpOnHello, _) => {
            "; it answers `PING` and hangs up on `HELLO`, as twemproxy does: such a proxy does not pass on what calls need, so \
             connect to the server behind it"
        }
        _ => "",
    }
}

fn refused_by_server(address: &Address, error: &RedisError, advice: &str) -> BackendError {
    let (kind, text) = explain(address, error);
    // Every server of the right kind can answer the first questions.
    let kind = if kind == BackendErrorKind::Unknown { BackendErrorKind::Wrong } else { kind };
    backend_error(address, kind, format!("redis at {address}: {text}{advice}"), error)
}

/// Explains an attempt that will fail again until somebody changes something.
fn refused_attempt(address: &Address, error: &RedisError, advice: &str) -> BackendError {
    let text = format!("redis at {address}: {}{advice}", explain(address, error).1);
    backend_error(address, BackendErrorKind::Wrong, text, error)
}

fn explain(address: &Address, error: &RedisError) -> (BackendErrorKind, String) {
    let Some(message) = ServerMessage::of(error) else {
        let text = match error.kind() {
            // The client library lists what it expected, in several lines.
            ErrorKind::Parse => "what answers does not speak the protocol of Redis".to_owned(),
            _ => said(address, without_quote(&error.to_string())),
        };
        return (Fault::of(error).kind(), text);
    };
    let (fault, remedy) = message.meaning();
    let remedy = remedy.text(address);
    let semicolon = if remedy.is_empty() { "" } else { "; " };
    (fault.kind(), format!("{}{semicolon}{remedy}", said(address, &message.to_string())))
}

/// Returns a text of a server without the password, and short enough that the remedy after it is seen.
fn said(address: &Address, text: &str) -> String {
    shown_word(&address.without_password(text.to_owned())).into_owned()
}

fn backend_error(address: &Address, kind: BackendErrorKind, text: String, error: &RedisError) -> BackendError {
    BackendError::with_source(kind, text, without_values(address, error))
}

/// Replaces an error that quotes values that were sent, or that cannot be shown as it is.
fn without_values(address: &Address, error: &RedisError) -> RedisError {
    let refusal = |text: String| RedisError::from((error.kind(), "the server refuses a command", text));
    match ServerMessage::of(error) {
        Some(message) if error.detail() != Some(message.text) => refusal(said(address, &message.to_string())),
        _ => {
            let whole = error.to_string();
            let shown = said(address, without_quote(&whole));
            if shown == whole { error.clone() } else { refusal(shown) }
        }
    }
}
