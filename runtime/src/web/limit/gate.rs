//! What a service asks before each request.

use std::borrow::Cow;

use crate::context::{self, Context, ContextKey};
use crate::decision::{Decision, Permit, Rejection};
use crate::limiter::{Check, Limiter};
use crate::policy::Policy;
use crate::store::CallOptions;
use crate::web::layer::Layer;
use crate::web::parts::Parts;

/// What a service asks before each request.
pub(in crate::web) trait Gate: Send + Sync {
    /// Returns the check of a request in the current context; `None` if the request is not limited.
    fn check(&self, parts: &Parts<'_>) -> Option<RequestCheck>;

    /// Gives a context to requests that have none.
    fn layer(&self) -> &Layer;
}

/// A policy, and the keys of its subjects.
pub(in crate::web) struct Guard<'a> {
    pub(in crate::web) policy: &'a Policy,
    pub(in crate::web) key: &'a ContextKey,
    /// Other subjects of the policy, by their labels.
    pub(in crate::web) subjects: &'a [(String, ContextKey)],
    /// `None` is the installed one.
    pub(in crate::web) limiter: Option<&'a Limiter>,
    pub(in crate::web) is_shadow: bool,
}

/// The check of a request.
pub(in crate::web) struct RequestCheck {
    check: Check<'static>,
    policy: Policy,
    is_shadow: bool,
}

impl Guard<'_> {
    /// Returns the check of a request in the current context.
    pub(in crate::web) fn check(&self, parts: &Parts<'_>) -> RequestCheck {
        let limiter = self.limiter.map_or_else(|| Cow::Borrowed(Limiter::installed()), |own| Cow::Owned(own.clone()));
        let mut context = self.request_values(parts);
        let check = context::enter(&mut context, || {
            let subject = self.key.subject(limiter.secret());
            let options = CallOptions { shadow: self.is_shadow, ..CallOptions::PLAIN };
            let others: Vec<_> =
                self.subjects.iter().map(|(label, key)| (label, key.subject(limiter.secret()))).collect();
            let check = Check::owned(limiter, self.policy.clone(), &subject, options);
            others.iter().fold(check, |check, (label, subject)| check.subject(label, subject))
        });
        RequestCheck { check, policy: self.policy.clone(), is_shadow: self.is_shadow }
    }

    /// The values of the request that the keys show, as far as the context does not have them.
    fn request_values(&self, parts: &Parts<'_>) -> Context {
        let around = Context::current().unwrap_or_default();
        let names = self.subjects.iter().flat_map(|(_, key)| key.names()).chain(self.key.names());
        names.fold(Context::new(), |context, name| match name {
            _ if around.get(name).is_some() => context,
            "method" => context.with("method", parts.method()),
            "path" => context.with("path", parts.path()),
            "route" => context.with("route", parts.route().unwrap_or_default()),
            _ => context,
        })
    }
}

impl RequestCheck {
    /// Awaits the decision, if the request is limited. The permit is to be held until the response was sent.
    pub(in crate::web) async fn admit(check: Option<Self>) -> Result<Option<Permit>, Rejection> {
        let Some(Self { check, policy, is_shadow }) = check else { return Ok(None) };
        match check.await {
            Ok(Decision::Allowed(permit)) => Ok(Some(permit)),
            _ if is_shadow => Ok(None),
            Ok(Decision::Denied(denial)) => Err(denial.into()),
            Err(error) => Err(Rejection::unavailable(policy.name(), error)),
        }
    }
}
