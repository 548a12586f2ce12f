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
    pub(crate) fn new(path: String) -> Self {
        match path.strip_suffix('*') {
            Some(start) if start.ends_with('/') => Self::Start(start.to_owned()),
            _ => Self::Whole(path),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(path: &str) -> PathPattern {
        PathPattern::new(path.to_owned())
    }

    #[test]
    fn a_star_behind_a_slash_stands_for_all_paths_that_begin_alike() {
        assert!(pattern("/api/*").contains("/api/") && pattern("/api/*").contains("/api/users/7"));
        assert!(!pattern("/api/*").contains("/api") && !pattern("/api/*").contains("/apis/7"));
        assert!(pattern("/*").contains("/"));
        assert!(pattern("/api*").contains("/api*") && !pattern("/api*").contains("/apis"));
    }

    #[cfg(feature = "config")]
    #[test]
    fn a_pattern_covers_those_that_are_as_narrow() {
        assert!(pattern("/*").covers(&pattern("/api/*")) && pattern("/api/*").covers(&pattern("/api/users")));
        assert!(!pattern("/api/*").covers(&pattern("/*")) && !pattern("/api").covers(&pattern("/api/*")));
    }
}
