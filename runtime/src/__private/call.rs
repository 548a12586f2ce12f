//! Calls of annotated functions with more than a policy and a subject.

use std::borrow::Cow;
use std::time::Duration;

use super::admission::{Admission, Admitted};
use super::values::{Texts, Values, subject};
use crate::call::{CallOptions, WaitLimit};
use crate::limiter::{Check, Limiter};
use crate::observe::log;
use crate::policy::Policy;
use crate::subject::Subject;

/// One call, if the attribute has more than rules and a key.
#[derive(Debug)]
pub struct LimitedCall<'a> {
    policy: Cow<'a, Policy>,
    subject: Subject,
    settings: Option<CallSettings<'a>>,
}

/// A call that is prepared when a function is called, and decided in the future that the function returns.
///
/// The call owns all its parts, and takes little room in that future. Its subject is `()` if the future renders the
/// subject. `None` stands for a call that is not limited.
#[derive(Debug)]
pub struct DeferredCall<S = Subject>(Option<Deferred<S>>);

#[derive(Debug)]
struct Deferred<S> {
    policy: Policy,
    subject: S,
    /// Most calls have no settings, so they are boxed.
    settings: Option<Box<CallSettings<'static>>>,
}

/// The parts that most calls do not have: a limiter of their own, other subjects, options.
#[derive(Debug)]
pub(super) struct CallSettings<'a> {
    /// The limiter that the user named.
    limiter: Option<Cow<'a, Limiter>>,
    /// The other subjects with their labels.
    others: Vec<(&'static str, Subject)>,
    options: CallOptions,
    /// What the call costs in units: in the first one, and in others.
    first_cost: Option<(&'static str, u64)>,
    other_costs: Vec<(&'static str, u64)>,
}

/// Returns the limiter that the user named.
///
/// The limiter is the element of an array, because the compiler then underlines it alone when its type is wrong.
#[inline]
pub fn limiter([named]: [&Limiter; 1]) -> &Limiter {
    named
}

/// Returns the limiter that is installed now.
#[inline]
pub fn installed() -> &'static Limiter {
    Limiter::installed()
}

/// Starts a call by a policy that the user named.
///
/// The policy is the element of an array, because the compiler then underlines it alone when its type is wrong.
#[inline]
#[track_caller]
pub fn call([policy]: [&Policy; 1], key: Texts, values: impl Values) -> LimitedCall<'_> {
    LimitedCall::new(policy, subject(key, values))
}

impl<'a> LimitedCall<'a> {
    #[inline]
    pub(super) fn new(policy: &'a Policy, subject: Subject) -> Self {
        Self { policy: Cow::Borrowed(policy), subject, settings: None }
    }

    /// Chooses the limiter.
    #[inline]
    pub fn limiter(&mut self, limiter: &'a Limiter) -> &mut Self {
        self.settings().limiter = Some(Cow::Borrowed(limiter));
        self
    }

    /// Sets the counts of the rules.
    pub fn counts<const N: usize>(&mut self, counts: [u64; N]) -> &mut Self {
        self.policy = Cow::Owned(self.policy.with_counts(counts));
        self
    }

    /// Adds another subject.
    #[track_caller]
    pub fn subject(&mut self, label: &'static str, key: Texts, values: impl Values) -> &mut Self {
        self.settings().others.push((label, subject(key, values)));
        self
    }

    /// Sets the cost.
    ///
    /// The cost is the element of an array, because the compiler then underlines it alone when its type is wrong.
    #[inline]
    pub fn cost(&mut self, [cost]: [u64; 1]) -> &mut Self {
        self.settings().options.cost = cost;
        self
    }

    /// Sets the cost to at least 1. It may depend on the client, who must not get free calls by that.
    #[inline]
    pub fn cost_or_one(&mut self, [cost]: [u64; 1]) -> &mut Self {
        self.cost([cost.max(1)])
    }

    /// Sets the cost in a unit.
    ///
    /// The cost is the element of an array, because the compiler then underlines it alone when its type is wrong.
    pub fn cost_of(&mut self, unit: &'static str, [cost]: [u64; 1]) -> &mut Self {
        let settings = self.settings();
        // Most calls name one unit, for which nothing is allocated.
        match &mut settings.first_cost {
            Some(_) => settings.other_costs.push((unit, cost)),
            first => *first = Some((unit, cost)),
        }
        self
    }

    /// Lets the call wait for at most this time.
    #[inline]
    pub fn wait(&mut self, limit: Duration) -> &mut Self {
        self.settings().options.wait = Some(WaitLimit::Within(limit));
        self
    }

    /// Asks for a permit that can be refunded.
    #[inline]
    pub fn refundable(&mut self) -> &mut Self {
        self.settings().options.refundable = true;
        self
    }

    /// Reports a policy that cannot be paused although the function says pauses.
    pub fn pausing(&mut self) -> &mut Self {
        if self.policy.longest_pause().is_none() {
            log::pauses_not_kept(self.policy.name());
        }
        self
    }

    /// Lets the call run even if it is denied.
    #[inline]
    pub fn shadow(&mut self) -> &mut Self {
        self.settings().options.shadow = true;
        self
    }

    /// Decides the call.
    pub fn enter(&self) -> Admission {
        Admission::begin(check(&self.policy, &self.subject, self.settings.as_ref()))
    }

    /// Decides the call of a function that is not async.
    #[allow(clippy::missing_errors_doc, reason = "only what the attribute writes calls it")]
    pub fn blocking_enter(&self) -> Admitted {
        check(&self.policy, &self.subject, self.settings.as_ref()).blocking_admit().map(Some)
    }

    /// Returns the call for a future, which decides it later.
    #[must_use]
    pub fn defer(&self) -> DeferredCall {
        self.defer_with(self.subject.clone())
    }

    /// Returns the call for a future, which also renders its subjects.
    #[must_use]
    pub fn defer_without_subject(&self) -> DeferredCall<()> {
        self.defer_with(())
    }

    fn defer_with<S>(&self, subject: S) -> DeferredCall<S> {
        let settings = self.settings.as_ref().map(|settings| Box::new(settings.to_owned()));
        DeferredCall(Some(Deferred { policy: self.policy.clone().into_owned(), subject, settings }))
    }

    /// Returns the check of the call, which owns all that it needs.
    pub fn check(&self) -> Check<'static> {
        check(&self.policy, &self.subject, self.settings.as_ref()).into_owned()
    }

    #[inline]
    fn settings(&mut self) -> &mut CallSettings<'a> {
        self.settings.get_or_insert(CallSettings {
            limiter: None,
            others: Vec::new(),
            options: CallOptions::PLAIN,
            first_cost: None,
            other_costs: Vec::new(),
        })
    }
}

impl<S> DeferredCall<S> {
    /// Stands for a call that is not limited.
    #[must_use]
    pub const fn skipped() -> Self {
        Self(None)
    }
}

impl DeferredCall {
    /// Decides the call. It takes the call by value, so that a future owns it however it captures.
    pub fn enter(self) -> Admission {
        let Some(Deferred { policy, subject, settings }) = self.0 else { return Admission::skipped() };
        Admission::begin(check(&policy, &subject, settings.as_deref()))
    }
}

impl DeferredCall<()> {
    /// Renders the subjects only now, and decides the call. The other subjects have their labels.
    pub fn enter_with<const N: usize>(
        self,
        subjects: impl FnOnce(&Limiter) -> (Subject, [(&'static str, Subject); N]),
    ) -> Admission {
        let Some(Deferred { policy, mut settings, .. }) = self.0 else { return Admission::skipped() };
        let (subject, others) = subjects(limiter_of(settings.as_deref()));
        if let Some(settings) = &mut settings {
            settings.others = others.into();
        }
        DeferredCall(Some(Deferred { policy, subject, settings })).enter()
    }
}

impl CallSettings<'_> {
    fn limiter(&self) -> &Limiter {
        self.limiter.as_deref().unwrap_or_else(|| Limiter::installed())
    }

    fn check<'c>(&'c self, policy: &'c Policy, subject: &'c Subject) -> Check<'c> {
        let mut check = Check::new(self.limiter(), policy, subject, self.options);
        check.set_cost(self.options.cost);
        self.others.iter().for_each(|(label, subject)| check.insert_subject(label, subject));
        if let Some((unit, cost)) = self.first_cost {
            check.insert_cost(unit, cost);
            self.other_costs.iter().for_each(|(unit, cost)| check.insert_cost(unit, *cost));
        }
        check
    }

    fn to_owned(&self) -> CallSettings<'static> {
        let limiter = self.limiter.as_deref().cloned().map(Cow::Owned);
        let (others, other_costs) = (self.others.clone(), self.other_costs.clone());
        CallSettings { limiter, others, options: self.options, first_cost: self.first_cost, other_costs }
    }
}

#[inline]
pub(super) fn check<'c>(policy: &'c Policy, subject: &'c Subject, settings: Option<&'c CallSettings<'_>>) -> Check<'c> {
    match settings {
        None => Limiter::installed().check(policy, subject),
        Some(settings) => settings.check(policy, subject),
    }
}

#[inline]
fn limiter_of<'c>(settings: Option<&'c CallSettings<'_>>) -> &'c Limiter {
    settings.map_or_else(|| Limiter::installed(), CallSettings::limiter)
}
