//! The paths and the methods of requests, as settings name them.

use tallygate_rules::nearest;

const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

/// One path, like `/login`, or all paths with a common start, like `/api/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathPattern {
    Whole(String),
    /// The common start, with the slash at its end.
    Start(String),
}

impl PathPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// The pattern can match no path.
    pub(crate) fn parse(path: &str) -> Result<Self, String> {
        check_path(path)?;
        Ok(match path.strip_suffix('*') {
            Some(start) => Self::Start(start.to_owned()),
            None => Self::Whole(path.to_owned()),
        })
    }

    /// Returns whether the pattern matches a path.
    pub(crate) fn contains(&self, path: &str) -> bool {
        match self {
            Self::Whole(whole) => path == whole,
            Self::Start(start) => path.starts_with(start),
        }
    }

    /// Returns whether the pattern matches every path that the other matches.
    #[cfg(feature = "config")]
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(own), Self::Whole(other)) => own == other,
            (Self::Whole(_), Self::Start(_)) => false,
            (Self::Start(start), Self::Whole(other) | Self::Start(other)) => other.starts_with(start),
        }
    }
}

/// Refuses a pattern that can match no path: the limit would silently not be enforced.
fn check_path(path: &str) -> Result<(), String> {
    let start = path.strip_suffix("/*").unwrap_or(path);
    if !path.starts_with('/') {
        return Err(format!("the path `{path}` must start with `/`, like `/login`"));
    }
    if start.contains(['*', '?', '#', '{', '}']) {
        return Err(format!(
            "the path `{path}` is not a path; write one like `/login`, or `/users/*` for all that \
             begin with `/users/`"
        ));
    }
    Ok(())
}

/// Returns whether a limit on `limited` also limits `method`. `GET` includes `HEAD`, as routers answer both by one handler.
pub(crate) fn method_includes(limited: &str, method: &str) -> bool {
    limited == method || limited == "GET" && method == "HEAD"
}

/// Checks that this is the name of a method. Extensions define other methods, whose names are in capitals, too.
///
/// # Errors
///
/// It is not. The text says what to write instead.
pub(crate) fn check_method(method: &str) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(path: &str) -> PathPattern {
        PathPattern::parse(path).unwrap()
    }

    #[test]
    fn a_star_behind_a_slash_stands_for_all_paths_that_begin_alike() {
        assert!(pattern("/api/*").contains("/api/") && pattern("/api/*").contains("/api/users/7"));
        assert!(!pattern("/api/*").contains("/api") && !pattern("/api/*").contains("/apis/7"));
        assert!(pattern("/*").contains("/"));
    }

    #[test]
    fn a_path_that_no_request_has_is_refused() {
        let mistake = |path: &str| PathPattern::parse(path).unwrap_err();
        for path in ["", "health", "*", "https://example.com/"] {
            assert_eq!(mistake(path), format!("the path `{path}` must start with `/`, like `/login`"));
        }
        for path in ["/api*", "/*/users", "/users/{id}", "/login?next=/", "/login#top", "/api/**"] {
            assert!(mistake(path).starts_with(&format!("the path `{path}` is not a path; write one like")), "{path}");
        }
    }

    #[cfg(feature = "config")]
    #[test]
    fn a_pattern_covers_those_that_are_as_narrow() {
        assert!(pattern("/*").covers(&pattern("/api/*")) && pattern("/api/*").covers(&pattern("/api/users")));
        assert!(!pattern("/api/*").covers(&pattern("/*")) && !pattern("/api").covers(&pattern("/api/*")));
    }
}
