//! Denies calls that this process knows the store would deny.

mod denial_cache;

use std::future::Future;
use std::time::Duration;

use self::denial_cache::DenialCache;
use crate::call::{Call, Scope, TallyId};
use crate::clock::Clock;
use crate::decision::{AdmittedAt, Recount, Report};
use crate::error::BackendError;
use crate::store::{Answer, Decider, LayeredAnswer, Outcome};

/// Caches the denials of the store below while they hold.
pub(super) struct CachedDenials<S> {
    below: S,
    clock: Clock,
    /// `None` where denials are not cached.
    cache: Option<DenialCache>,
    /// Begins to read the rules in force again if they are old. Returns whether that has to be awaited before a call is
    /// decided.
    begin_refresh_if_old: Box<dyn Fn() -> bool + Send + Sync>,
}

impl<S> CachedDenials<S> {
    /// Caches denials for at most `longest`; zero turns the cache off.
    pub(super) fn new(
        below: S,
        longest: Duration,
        clock: Clock,
        begin_refresh_if_old: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { below, clock, cache: DenialCache::new(longest), begin_refresh_if_old: Box::new(begin_refresh_if_old) }
    }

    fn record(&self, call: Call<'_>, outcome: Outcome, asked_us: u64) {
        if let Some(cache) = &self.cache {
            cache.record(call, outcome, asked_us, self.clock.now_us());
        }
    }

    /// Returns the cached denial of `call`. A refundable call asks the store, because other processes may have refunded calls.
    fn find(&self, call: Call<'_>) -> Option<Outcome> {
        let cache = self.cache.as_ref().filter(|_| !call.options.refundable)?;
        cache.get(call, self.clock.now_us())
    }

    /// Lets no call be denied by rules on these subjects as they stood until now, because there may be room. A ban changes no
    /// cached denial: a policy with a ban caches none.
    fn invalidate<'a>(&self, ids: impl Iterator<Item = TallyId<'a>>) {
        if let Some(cache) = &self.cache {
            cache.invalidate(ids, self.clock.now_us());
        }
    }
}

impl<S: Decider> Decider for CachedDenials<S> {
    fn decide_at_once(&self, call: Call<'_>) -> Option<Result<LayeredAnswer, BackendError>> {
        let Some(outcome) = self.find(call) else { return self.below.decide_at_once(call) };
        // The rules of an override may end the denial.
        if (self.begin_refresh_if_old)() {
            return None;
        }
        call.policy.observed().cached_denial();
        Some(Ok(Answer::new(outcome, Report::default(), 0).into()))
    }

    async fn decide(&self, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        let asked_us = self.clock.now_us();
        let answered = self.below.decide(call).await?;
        // A request by `prefetch` says nothing about the next call.
        if call.scope == Scope::Call {
            self.record(call, answered.answer.outcome, asked_us);
        }
        Ok(answered)
    }

    fn note(&self, call: Call<'_>, outcome: Outcome, asked_us: u64) {
        self.record(call, outcome, asked_us);
        self.below.note(call, outcome, asked_us);
    }

    fn forget(&self, call: Call<'_>) {
        if let Some(cache) = &self.cache {
            cache.forget(call);
        }
        self.below.forget(call);
    }

    async fn recount(&self, counted: Call<'_>, recount: &Recount, admitted: &AdmittedAt) -> Result<bool, BackendError> {
        let recounted = self.below.recount(counted, recount, admitted).await;
        let with_room = counted.tally_ids().enumerate().filter(|(index, _)| recount.gives_back(counted, *index));
        self.invalidate(with_room.map(|(_, id)| id));
        recounted
    }

    async fn reset(&self, call: Call<'_>) -> Result<(), BackendError> {
        let reset = self.below.reset(call).await;
        self.invalidate(call.tally_ids());
        reset
    }

    fn ban(&self, call: Call<'_>, duration: Duration) -> impl Future<Output = Result<(), BackendError>> + Send {
        self.below.ban(call, duration)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tallygate_rules::Rule;

    use super::*;
    use crate::call::CallOptions;
    use crate::decision::Wait;
    use crate::policy::Policy;
    use crate::store::stub::StubStore;
    use crate::subject::Subject;

    const SECOND: Duration = Duration::from_secs(1);

    /// Denies a call, and finds out whether the layer denies another one at once after `between`.
    async fn is_cached(
        longest: Duration,
        options: CallOptions,
        between: impl AsyncFnOnce(&CachedDenials<StubStore>, Call<'_>),
    ) -> bool {
        let denied = Outcome::Denied { rule: 0, retry_after: Wait::us(30_000_000) };
        let denials = CachedDenials::new(StubStore::answering([Ok(denied)]), longest, Clock::tokio(), || false);
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, 60 * SECOND)).build().unwrap();
        let subjects = [Subject::of("s").key()];
        let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
        assert_eq!(denials.decide(call).await.unwrap().answer.outcome, denied);
        between(&denials, call).await;
        let decided = denials.decide_at_once(Call { options, ..call });
        decided.is_some_and(|decided| decided.unwrap().answer.outcome == denied)
    }

    #[tokio::test(start_paused = true)]
    async fn a_denial_holds_until_the_tallies_change_or_a_caller_doubts_it() {
        let plain = CallOptions::PLAIN;
        assert!(is_cached(SECOND, plain, async |_, _| ()).await);
        assert!(!is_cached(SECOND, plain, async |denials, call| denials.forget(call)).await);
        assert!(!is_cached(SECOND, plain, async |denials, call| denials.reset(call).await.unwrap()).await);
        let recount = async |denials: &CachedDenials<_>, call: Call<'_>| {
            assert!(denials.recount(call, &Recount::REFUND, &AdmittedAt::Once(0)).await.unwrap());
        };
        assert!(!is_cached(SECOND, plain, recount).await);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_for_some_subjects_replaces_no_cached_denial() {
        let denied = Outcome::Denied { rule: 0, retry_after: Wait::us(30_000_000) };
        let ahead = CallOptions { cost: 8, ..CallOptions::PLAIN };
        for (scope, outcome) in
            [Scope::Part(0), Scope::Rest].into_iter().flat_map(|scope| [(scope, denied), (scope, Outcome::Admitted)])
        {
            let asks = async |denials: &CachedDenials<StubStore>, call: Call<'_>| {
                denials.below.answer(outcome);
                denials.decide(Call { scope, options: ahead, ..call }).await.unwrap();
            };
            assert!(is_cached(SECOND, CallOptions::PLAIN, asks).await, "{scope:?} {outcome:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_doubt_and_an_outcome_reach_the_layers_below() {
        let denials = CachedDenials::new(StubStore::default(), SECOND, Clock::tokio(), || false);
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, 60 * SECOND)).build().unwrap();
        let subjects = [Subject::of("s").key()];
        let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
        denials.note(call, Outcome::Admitted, 0);
        denials.forget(call);
        assert_eq!(denials.below.asked(), ["note 1", "forget 1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refundable_call_asks_the_store() {
        assert!(!is_cached(SECOND, CallOptions { refundable: true, ..CallOptions::PLAIN }, async |_, _| ()).await);
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_rules_in_force_have_to_be_asked_for_no_denial_is_cached() {
        let denied = Outcome::Denied { rule: 0, retry_after: Wait::us(30_000_000) };
        let old = Arc::new(AtomicBool::new(false));
        let are_old = Arc::clone(&old);
        let begin_refresh_if_old = move || are_old.load(Ordering::Relaxed);
        let denials =
            CachedDenials::new(StubStore::answering([Ok(denied)]), SECOND, Clock::tokio(), begin_refresh_if_old);
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, 60 * SECOND)).build().unwrap();
        let subjects = [Subject::of("s").key()];
        let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
        denials.decide(call).await.unwrap();
        for are_old in [false, true] {
            old.store(are_old, Ordering::Relaxed);
            assert_eq!(denials.decide_at_once(call).is_none(), are_old);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_time_no_denial_is_cached() {
        assert!(!is_cached(Duration::ZERO, CallOptions::PLAIN, async |_, _| ()).await);
    }
}
