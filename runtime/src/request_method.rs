//! The names of the methods of requests.

use tallygate_rules::nearest;

const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

/// Whether a limit on requests of one method is also one on those of the other: routers answer `HEAD` by the handler of `GET`.
pub(crate) fn includes(limited: &str, method: &str) -> bool {
    limited == method || limited == "GET" && method == "HEAD"
}

/// Checks that this is the name of a method. It may be one of an extension, which has a name in capitals, too.
///
/// # Errors
///
/// It is none: what to write in its place.
pub(crate) fn check(method: &str) -> Result<(), String> {
    if METHODS.contains(&method) {
        return Ok(());
    }
    match nearest(method, METHODS) {
        Some(meant) => Err(format!("unknown method `{method}`; did you mean `{meant}`?")),
        None if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') => {
            Err(format!("`{method}` is not a method; write one in capitals, like `POST`"))
        }
        None => Ok(()),
    }
}
