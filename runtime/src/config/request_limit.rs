//! A policy of the file for requests of a web server.

use crate::context::ContextKey;
use crate::error::Place;
use crate::policy::Policy;
use crate::request_pattern::{PathPattern, method_includes};

/// A policy of the file for requests of a web server.
#[derive(Debug)]
pub(crate) struct RequestLimit {
    pub(crate) policy: Policy,
    pub(crate) key: ContextKey,
    /// Other subjects of the policy, by their labels.
    pub(crate) subjects: Vec<(String, ContextKey)>,
    pub(crate) is_shadow: bool,
    pub(super) requests: Requests,
}

/// The requests that a policy limits.
#[derive(Debug)]
pub(super) struct Requests {
    /// Of any path, if there is none.
    pub(super) paths: Vec<PathPattern>,
    /// `None` is all but `OPTIONS`.
    pub(super) methods: Option<Vec<String>>,
    pub(super) place: Place,
}

impl RequestLimit {
    /// Whether it limits requests of that method and path.
    pub(crate) fn is_for(&self, method: &str, path: &str) -> bool {
        let Requests { paths, methods, .. } = &self.requests;
        let is_of_methods = match methods {
            Some(methods) => methods.iter().any(|limited| method_includes(limited, method)),
            None => method != "OPTIONS",
        };
        is_of_methods && (paths.is_empty() || paths.iter().any(|pattern| pattern.contains(path)))
    }
}

impl Requests {
    /// Whether they include all the others.
    pub(super) fn cover(&self, others: &Self) -> bool {
        let cover_methods = match (&self.methods, &others.methods) {
            (None, None) => true,
            (None, Some(others)) => others.iter().all(|method| method != "OPTIONS"),
            (Some(_), None) => false,
            (Some(own), Some(others)) => {
                let is_covered = |other: &String| own.iter().any(|own| method_includes(own, other));
                others.iter().all(is_covered)
            }
        };
        let is_covered = |other: &PathPattern| self.paths.iter().any(|own| own.covers(other));
        cover_methods && (self.paths.is_empty() || !others.paths.is_empty() && others.paths.iter().all(is_covered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(paths: &[&str], methods: Option<&[&str]>) -> Requests {
        Requests {
            paths: paths.iter().map(|path| PathPattern::parse(path).unwrap()).collect(),
            methods: methods.map(|methods| methods.iter().map(|method| (*method).to_owned()).collect()),
            place: Place { line: 1, column: 1 },
        }
    }

    #[test]
    fn requests_cover_others_of_no_more_paths_and_methods() {
        let all = requests(&[], None);
        let api = requests(&["/api/*"], None);
        let login = requests(&["/api/login", "/api/signup"], Some(&["POST"]));
        assert!(all.cover(&api) && all.cover(&login) && api.cover(&login) && login.cover(&login));
        assert!(!api.cover(&all) && !login.cover(&api) && !login.cover(&all));
        assert!(!all.cover(&requests(&["/api/login"], Some(&["OPTIONS"]))));
        let (get, head) = (requests(&[], Some(&["GET"])), requests(&[], Some(&["HEAD"])));
        assert!(get.cover(&head) && !head.cover(&get));
        assert!(!api.cover(&requests(&["/api/login", "/"], None)));
    }
}
