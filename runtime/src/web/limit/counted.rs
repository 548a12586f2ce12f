//! The checks of the limits around a request, so that a limit that stands around it twice counts it once.

use std::sync::Arc;

use super::effects::Limited;
use crate::limiter::Check;
use crate::observe::{ReportedOnce, log};
use crate::web::parts::Parts;

/// The checks of the limits around a request. They go along with the request.
#[derive(Clone, Default)]
pub(in crate::web) struct CountedChecks(Arc<Vec<CountedCheck>>);

#[derive(Clone)]
struct CountedCheck {
    path: String,
    check: Check<'static>,
}

impl CountedChecks {
    /// Leaves out checks that the same limit has made of this request. Returns the rest, and what to store in it.
    pub(in crate::web) fn count(limited: Limited, parts: &Parts<'_>) -> (Limited, Self) {
        let Self(before) = parts.extension(Self::clone).unwrap_or_default();
        let is_counted = |check: &Check<'static>| {
            before.iter().any(|before| before.is_about(parts.path()) && before.check.is_alike(check))
        };
        let (twice, left): (Vec<_>, Vec<_>) = limited.0.into_iter().partition(|(check, _)| is_counted(check));
        if let Some((check, _)) = twice.first() {
            static REPORTED: ReportedOnce = ReportedOnce::new();
            if REPORTED.is_first() {
                log::limited_twice(check.policy_name());
            }
        }
        let path = parts.path();
        let counted = left.iter().map(|(check, _)| CountedCheck { path: path.to_owned(), check: check.clone() });
        let all = before.iter().cloned().chain(counted).collect();
        (Limited(left), Self(Arc::new(all)))
    }
}

impl CountedCheck {
    /// Whether a request with this path is the one that was counted: a nested router sees the end of its path. Other
    /// requests may have come with it, as the parts of a batch.
    fn is_about(&self, path: &str) -> bool {
        path == "/" || self.path.ends_with(path)
    }
}
