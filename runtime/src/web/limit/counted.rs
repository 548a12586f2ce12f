//! The checks of the limits around a request, so that a limit that stands around it twice counts it once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// Whether a check further in was left out because of it. It stands for one: a handler may send several requests on with
    /// what came with its own.
    is_used: Arc<AtomicBool>,
}

impl CountedChecks {
    /// Leaves out checks that the same limit has made of this request. Returns the rest, and what to store in it.
    pub(in crate::web) fn count(limited: Limited, parts: &Parts<'_>) -> (Limited, Self) {
        let Self(before) = parts.extension(Self::clone).unwrap_or_default();
        let path = parts.path();
        let mut all = before.to_vec();
        let mut left = Vec::with_capacity(limited.0.len());
        for (check, effects) in limited.0 {
            if let Some(standing) = before.iter().find(|before| before.stands_for(path, &check)) {
                report_twice(&check);
                // It stands for the next one further in, too.
                all.push(CountedCheck::new(path, standing.check.clone()));
            } else {
                all.push(CountedCheck::new(path, check.clone()));
                left.push((check, effects));
            }
        }
        (Limited(left), Self(Arc::new(all)))
    }
}

impl CountedCheck {
    fn new(path: &str, check: Check<'static>) -> Self {
        Self { path: path.to_owned(), check, is_used: Arc::default() }
    }

    /// Whether it has decided what this check would decide, once. In shadow it has denied nothing.
    fn stands_for(&self, path: &str, check: &Check<'static>) -> bool {
        self.is_about(path)
            && self.check.is_alike(check)
            && (!self.check.is_shadow() || check.is_shadow())
            && !self.is_used.swap(true, Ordering::Relaxed)
    }

    /// Whether a request with this path is the one that was counted: a nested router sees the end of its path. Other
    /// requests may have come with it, as the parts of a batch.
    fn is_about(&self, path: &str) -> bool {
        path == "/" || self.path.ends_with(path)
    }
}

fn report_twice(check: &Check<'_>) {
    static REPORTED: ReportedOnce = ReportedOnce::new();
    if REPORTED.is_first() {
        log::limited_twice(check.policy_name());
    }
}
