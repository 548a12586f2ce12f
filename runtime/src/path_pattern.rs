//! The paths of requests, as settings name them.

/// A path, or all paths that begin alike: `/login`, `/api/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathPattern {
    Whole(String),
    /// With the slash at its end.
    Start(String),
}

impl PathPattern {
    /// Reads a path. One that ends in `/*` stands for all that begin like it.
    ///
    /// # Errors
    ///
    /// No request has such a path.
    pub(crate) fn parse(path: &str) -> Result<Self, String> {
        check(path)?;
        Ok(match path.strip_suffix('*') {
            Some(start) => Self::Start(start.to_owned()),
            None => Self::Whole(path.to_owned()),
        })
    }

    /// Whether a path is among them.
    pub(crate) fn contains(&self, path: &str) -> bool {
        match self {
            Self::Whole(whole) => path == whole,
            Self::Start(start) => path.starts_with(start),
        }
    }

    /// Whether each path of the other is among them.
    #[cfg(feature = "config")]
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(own), Self::Whole(other)) => own == other,
            (Self::Whole(_), Self::Start(_)) => false,
            (Self::Start(start), Self::Whole(other) | Self::Start(other)) => other.starts_with(start),
        }
    }
}

/// A path that no request has would never match, and nobody would know.
fn check(path: &str) -> Result<(), String> {
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
