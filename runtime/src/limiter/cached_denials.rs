//! Denies calls of which this process knows that the store would deny them.

mod denial_cache;

use std::time::Duration;

use self::denial_cache::DenialCache;
use crate::call::Call;
use crate::clock::Clock;
use crate::store::Outcome;

/// The denials that a store has answered with, as long as they hold.
pub(super) struct CachedDenials {
    clock: Clock,
    /// `None` where denials are not cached.
    cache: Option<DenialCache>,
}

impl CachedDenials {
    /// Caches denials for at most that long; zero turns it off.
    pub(super) fn new(longest: Duration, clock: Clock) -> Self {
        Self { clock, cache: DenialCache::new(longest) }
    }

    /// Returns what a cached denial says of such a call. A refundable call asks the store: it depends on refunds of other
    /// processes.
    pub(super) fn find(&self, call: Call<'_>) -> Option<Outcome> {
        let cache = self.cache.as_ref().filter(|_| !call.options.refundable)?;
        cache.get(call, self.clock.now_us())
    }

    /// Records the outcome of a call that was sent at `asked_us`.
    pub(super) fn record(&self, call: Call<'_>, outcome: Outcome, asked_us: u64) {
        if let Some(cache) = &self.cache {
            cache.record(call, outcome, asked_us, self.clock.now_us());
        }
    }

    /// Removes the denials of such a call, as its tallies were changed. Answers that are still on the way are not cached either.
    pub(super) fn invalidate(&self, call: Call<'_>) {
        if let Some(cache) = &self.cache {
            cache.invalidate(call, self.clock.now_us());
        }
    }

    /// Lets the next such call ask the store, because the caller doubts a cached denial.
    pub(super) fn forget(&self, call: Call<'_>) {
        if let Some(cache) = &self.cache {
            cache.forget(call);
        }
    }
}

#[cfg(test)]
mod tests {
    use tallygate_rules::Rule;

    use super::*;
    use crate::call::CallOptions;
    use crate::decision::Wait;
    use crate::policy::Policy;
    use crate::subject::Subject;

    const SECOND: Duration = Duration::from_secs(1);

    fn with_denied_call(longest: Duration, work: impl FnOnce(&CachedDenials, Call<'_>)) {
        let denials = CachedDenials::new(longest, Clock::tokio());
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, 60 * SECOND)).build().unwrap();
        let subjects = [Subject::of("s").key()];
        let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
        denials.record(call, Outcome::Denied { rule: 0, retry_after: Wait::us(30_000_000) }, denials.clock.now_us());
        work(&denials, call);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refundable_call_asks_the_store() {
        with_denied_call(SECOND, |denials, call| {
            assert!(denials.find(call).is_some());
            assert!(denials.find(Call { options: CallOptions { refundable: true, ..call.options }, ..call }).is_none());
        });
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_tallies_were_changed_asks_the_store() {
        let changes: [fn(&CachedDenials, Call<'_>); 2] = [CachedDenials::invalidate, CachedDenials::forget];
        for change in changes {
            with_denied_call(SECOND, |denials, call| {
                change(denials, call);
                assert!(denials.find(call).is_none());
            });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_time_no_denial_is_cached() {
        with_denied_call(Duration::ZERO, |denials, call| assert!(denials.find(call).is_none()));
    }
}
