//! Errors of the client library as errors of the backend.

use ::redis::{ErrorKind, RedisError};

use crate::error::BackendError;

/// Stands in an answer before the values that were sent.
const QUOTED: &str = ", with args beginning with";

/// Explains what went wrong without the values that were sent: neither subjects nor passwords are among it.
pub(super) fn backend_error(error: &RedisError) -> BackendError {
    let error = without_values(error);
    let advice = match error.kind() {
        ErrorKind::AuthenticationFailed => "; check user and password in the url",
        _ if error.code() == Some("NOAUTH") => "; put user and password into the url",
        _ => "",
    };
    BackendError::with_source(format!("redis: {error}{advice}"), error)
}

/// A server answers a command that it does not know, or that was renamed, with what was sent: keys, and of a greeting
/// the password.
fn without_values(error: &RedisError) -> RedisError {
    match error.detail().and_then(|detail| detail.split_once(QUOTED)) {
        Some((detail, _)) => RedisError::from((error.kind(), "the server refuses a command", detail.to_owned())),
        None => error.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn an_error_keeps_its_source_but_for_the_values_that_the_server_quotes() {
        for quote in ["unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 's3cret' ", ""] {
            let error = ::redis::make_extension_error("ERR".into(), Some(quote.into()));
            let error = backend_error(&error);
            let source = error.source().unwrap();
            assert!(source.is::<RedisError>());
            for text in [error.to_string(), format!("{error:?}"), source.to_string(), format!("{source:?}")] {
                assert!(!text.contains("s3cret"), "{text}");
                assert!(text.contains("HELLO") || quote.is_empty(), "{text}");
            }
        }
    }
}
