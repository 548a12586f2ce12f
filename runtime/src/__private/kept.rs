//! A call that is prepared where a function is called, and decided in the future that the function returns.

use super::entering::Entering;
use super::extras::Extras;
use crate::decision::Rejection;
use crate::limiter::Limiter;
use crate::policy::Policy;
use crate::subject::Subject;

/// A call that owns what it is made of, and takes little room in the future that decides it. It has no subject, `()`, if
/// that is rendered in the future.
#[derive(Debug)]
pub struct Kept<S = Subject>(Option<Parts<S>>);

#[derive(Debug)]
struct Parts<S> {
    policy: Result<Policy, &'static Rejection>,
    subject: S,
    /// Boxed, as most calls have none.
    extras: Option<Box<Extras<'static>>>,
}

impl<S> Kept<S> {
    /// Stands for a call that is not limited.
    #[must_use]
    pub const fn skipped() -> Self {
        Self(None)
    }

    pub(super) fn new(policy: Result<Policy, &'static Rejection>, subject: S, extras: Option<Extras<'static>>) -> Self {
        Self(Some(Parts { policy, subject, extras: extras.map(Box::new) }))
    }
}

impl Kept {
    /// Decides the call. It is taken, so that a future owns it in whichever way it captures.
    pub fn enter(self) -> Entering {
        let Some(Parts { policy, subject, extras }) = self.0 else { return Entering::skipped() };
        Extras::enter(extras.as_deref(), policy.as_ref().map_err(|refused| *refused), &subject)
    }
}

impl Kept<()> {
    /// Decides the call for these subjects, which are rendered only now: the main one, and the others by their labels.
    pub fn enter_with<const N: usize>(
        self,
        subjects: impl FnOnce(&Limiter) -> (Subject, [(&'static str, Subject); N]),
    ) -> Entering {
        let Some(Parts { policy, mut extras, .. }) = self.0 else { return Entering::skipped() };
        let (subject, others) = subjects(Extras::limiter(extras.as_deref()));
        if let Some(extras) = &mut extras {
            extras.others = others.into();
        }
        Kept(Some(Parts { policy, subject, extras })).enter()
    }
}
