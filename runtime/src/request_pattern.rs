//! Patterns of paths and methods in settings.

mod path;

use tallygate_rules::nearest;

pub(crate) use self::path::{PathReading, RequestPath};
use self::path::{as_seen, resolved, without_end};

const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

/// A single path, like `/login`, or all paths with a common start, like `/api/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathPattern {
    Whole(PatternText),
    /// The common start, with the slash at its end.
    Start(PatternText),
}

/// The text of a pattern, which is compared with each reading of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PatternText {
    seen: String,
    resolved: String,
}

impl PathPattern {
    /// Reads a pattern. It may be percent-encoded where a path may be.
    ///
    /// # Errors
    ///
    /// The pattern can match no path.
    pub(crate) fn parse(path: &str) -> Result<Self, String> {
        check_path(path)?;
        Ok(match path.strip_suffix('*') {
            Some(start) => Self::Start(PatternText::new(start)),
            None => Self::Whole(PatternText::new(path)),
        })
    }

    /// Whether the pattern matches this reading of a path.
    pub(crate) fn contains(&self, reading: PathReading<'_>) -> bool {
        match (self, reading) {
            (Self::Whole(whole), PathReading::Seen(path)) => path == whole.seen,
            (Self::Whole(whole), PathReading::Other(path)) => without_end(path) == without_end(&whole.resolved),
            (Self::Start(start), PathReading::Seen(path)) => path.starts_with(&start.seen),
            (Self::Start(start), PathReading::Other(path)) => path.starts_with(&start.resolved),
        }
    }

    pub(crate) fn contains_all(&self) -> bool {
        matches!(self, Self::Start(start) if start.seen == "/")
    }

    /// Whether the pattern matches every path that the other pattern matches.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(own), Self::Whole(other)) => own == other,
            (Self::Whole(_), Self::Start(_)) => false,
            (Self::Start(start), Self::Whole(other) | Self::Start(other)) => {
                other.seen.starts_with(&start.seen) && other.resolved.starts_with(&start.resolved)
            }
        }
    }
}

impl PatternText {
    fn new(text: &str) -> Self {
        Self { seen: as_seen(text), resolved: resolved(text) }
    }
}

/// Refuses white space at the end of a path, which is a slip: it would match paths that end in `%20`. So are control
/// characters.
fn check_blanks(path: &str) -> Result<(), String> {
    let end = path.trim_end_matches('/');
    if end.trim_end() != end || path.contains(char::is_control) {
        return Err(format!(
            "the path `{}` has white space at its end or a control character; remove it, or write it encoded, like `%20`, if it is \
             meant",
            path.escape_debug()
        ));
    }
    Ok(())
}

/// Refuses a pattern that can match no path: its limit would silently not be enforced.
fn check_path(path: &str) -> Result<(), String> {
    let start = path.strip_suffix("/*").unwrap_or(path);
    if !path.starts_with('/') {
        return Err(format!("the path `{path}` must start with `/`, like `/login`"));
    }
    check_blanks(start)?;
    if start.contains(['*', '?', '#', '{', '}']) {
        return Err(format!(
            "the path `{path}` is not a path; write one like `/login`, or `/users/*` for all that \
             begin with `/users/`"
        ));
    }
    Ok(())
}

/// Whether each reading of a path matches one of these patterns. A path with `..` may leave any folder, as several servers in a
/// row may each read it in their own way.
pub(crate) fn surely_contain(patterns: &[PathPattern], path: &RequestPath<'_>) -> bool {
    let is_contained = |reading| patterns.iter().any(|pattern| pattern.contains(reading));
    patterns.iter().any(PathPattern::contains_all) || !path.has_parents() && path.readings().all(is_contained)
}

#[derive(Clone, Copy)]
pub(crate) struct RequestMethod<'m> {
    pub(crate) name: &'m str,
    /// Whether it is a preflight request of a browser, which is not limited unless the method is listed.
    pub(crate) is_left_out: bool,
}

impl RequestMethod<'_> {
    /// Whether a limit on these methods limits the request; `None` means all methods.
    pub(crate) fn is_limited(self, methods: Option<&[String]>) -> bool {
        match methods {
            Some(methods) => methods.iter().any(|limited| method_includes(limited, self.name)),
            None => !self.is_left_out,
        }
    }
}

/// Whether a limit on `limited` also limits `method`. `GET` includes `HEAD`, because routers answer both with one
/// handler. Case makes no difference, because a handler of any method also answers `post`.
pub(crate) fn method_includes(limited: &str, method: &str) -> bool {
    limited.eq_ignore_ascii_case(method) || limited == "GET" && method.eq_ignore_ascii_case("HEAD")
}

/// Returns the method as keys show it. A client can invent methods, which must not have a tally each.
pub(crate) fn shown_method(method: &str) -> &'static str {
    METHODS.into_iter().find(|known| method_includes(known, method)).unwrap_or("other")
}

/// Checks that this is the name of a method. Extensions define other methods, whose names are also in capitals.
///
/// # Errors
///
/// It is no method. The text says what to write instead.
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

    fn may_match(pattern: &str, path: &str) -> bool {
        let pattern = self::pattern(pattern);
        RequestPath::read(path, path).readings().any(|reading| pattern.contains(reading))
    }

    fn surely_matches(pattern: &str, path: &str) -> bool {
        surely_contain(&[self::pattern(pattern)], &RequestPath::read(path, path))
    }

    #[test]
    fn a_star_behind_a_slash_stands_for_all_paths_that_begin_alike() {
        for path in ["/api/", "/api/users/7"] {
            assert!(may_match("/api/*", path) && surely_matches("/api/*", path), "{path}");
        }
        assert!(!may_match("/api/*", "/api") && !may_match("/api/*", "/apis/7"));
        for path in ["/", "", "*", "//", "/../..", "example.com:443"] {
            assert!(may_match("/*", path) && surely_matches("/*", path), "{path}");
        }
    }

    #[test]
    fn a_pattern_may_match_each_path_by_which_some_server_finds_the_same() {
        let login = [
            "/login",
            "/%6Cogin",
            "/%6cogin",
            "//login",
            "/login/",
            "/login//",
            "/./login",
            "/a/../login",
            "/a/%2e%2E/login",
            "/a/..;x/login",
            "/%2Flogin",
            "/login%2f",
            "\\login",
            "/a\\..\\login",
            "/a/%5C../../login",
        ];
        for path in login {
            assert!(may_match("/login", path), "{path}");
            assert_eq!(surely_matches("/login", path), path == "/login", "{path}");
        }
        for path in ["/Login", "/%256Cogin", "/login;x", "/login%00", "/login/7", "/logi%C0%AF", "/login%"] {
            assert!(!may_match("/login", path), "{path}");
        }
    }

    #[test]
    fn servers_may_differ_in_slashes_dots_and_empty_segments_independently() {
        for path in [
            "/x%2Fy/..\\login",
            "/x%5Cy/..%2Flogin",
            "/x%2Fy\\..%5C..\\login",
            "/x//../../login",
            "/login/%2e%2e/..",
            "/login/..;/..",
            "/login/..;/%2e%2e",
            "/a/..%3Bx/login",
        ] {
            assert!(may_match("/login", path) && !surely_matches("/login", path), "{path}");
        }
        assert!(may_match("/api/login", "/api//../login") && may_match("/login", "/api//../login"));
        for path in [
            "/assets/x%2Fy/..\\..\\api",
            "/assets/x%2Fy/../../api",
            "/assets//x/../../../api",
            "/assets/a%2Fb/../x%2F..%2F..%2Fapi",
        ] {
            assert!(may_match("/api", path) && !surely_matches("/assets/*", path), "{path}");
        }
    }

    #[test]
    fn the_readings_of_a_path_are_few_however_strange_it_is() {
        let path = "/a%2Fb//c\\d%5C..;x/%2e%2e\\..%2F..;/..//.%2e/e%5C..\\f".repeat(20);
        let readings = RequestPath::read(&path, &path).readings().count();
        assert!(readings > 20 && readings < 120, "{readings}");
        for (path, readings) in [("/a/b", 2), ("/a%20b", 2), ("/a/../b", 3), ("/.well-known/x", 2)] {
            assert_eq!(RequestPath::read(path, path).readings().count(), readings, "{path}");
        }
    }

    #[test]
    fn a_path_that_leaves_a_folder_and_one_that_enters_it_may_be_in_it() {
        for path in
            ["/assets/../api", "/api/../assets/a", "/assets/..%2Fapi", "/assets/%2e%2e/api", "/api/..%5Cassets/a"]
        {
            assert!(may_match("/assets/*", path) && !surely_matches("/assets/*", path), "{path}");
        }
        assert!(surely_matches("/assets/*", "/assets/a%20b%C3%A9.css") && surely_matches("/assets/*", "/assets/./a"));
        assert!(surely_matches("/assets/*", "/assets/%61.css"));
        assert!(!surely_matches("/assets/*", "/%61ssets/a.css"));
    }

    #[test]
    fn a_path_with_a_parent_is_sure_to_be_in_no_folder_but_the_root() {
        for path in [
            "/assets/x%2Fy\\z/..%2F..\\../api",
            "/assets/a/../b",
            "/assets/a/b%5C..",
            "/assets/a/%2E./b",
            "/assets/a%2f.%2e;x%2Fb",
            "/assets/a/..%3bx",
            "/assets\\..\\assets",
            "..",
        ] {
            assert!(!surely_matches("/assets/*", path) && surely_matches("/*", path), "{path}");
        }
        for path in ["/assets/...", "/assets/..a%20", "/assets/a..%20", "/assets/.%2Fb", "/assets/%252e%252e/b"] {
            assert!(surely_matches("/assets/*", path), "{path}");
        }
    }

    #[test]
    fn a_pattern_may_be_written_as_a_client_sends_it_or_as_people_read_it() {
        for pattern in ["/café au lait", "/caf%c3%A9%20au%20lait"] {
            assert!(surely_matches(pattern, "/caf%C3%a9%20au%20lait"), "{pattern}");
        }
        assert!(
            surely_matches("/docs/", "/docs/") && may_match("/docs/", "/docs") && !surely_matches("/docs/", "/docs")
        );
        assert!(surely_matches("/100%25", "/100%25") && surely_matches("/100%", "/100%25"));
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
        for path in ["/login ", "/login\t", "/login\u{a0}", "/lo\ngin", "/login /*", "/\u{0}"] {
            assert!(mistake(path).contains("write it encoded, like `%20`, if it is meant"), "{path:?}");
        }
        assert!(pattern("/login%20") != pattern("/login") && surely_matches("/login%20", "/login%20"));
    }

    #[test]
    fn methods_that_reach_one_handler_are_shown_as_one() {
        for (method, shown) in [("GET", "GET"), ("HEAD", "GET"), ("pOst", "POST"), ("FOO", "other"), ("", "other")] {
            assert_eq!(shown_method(method), shown);
        }
        assert!(method_includes("POST", "post") && method_includes("GET", "head") && !method_includes("HEAD", "GET"));
    }

    #[test]
    fn a_pattern_covers_those_that_are_as_narrow() {
        assert!(pattern("/*").covers(&pattern("/api/*")) && pattern("/api/*").covers(&pattern("/api/users")));
        assert!(!pattern("/api/*").covers(&pattern("/*")) && !pattern("/api").covers(&pattern("/api/*")));
    }
}
