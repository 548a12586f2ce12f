//! Other limiters in this process with a limit for each key, as their documentation sets them up.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::SystemTime;

use governor::{DefaultKeyedRateLimiter, Quota};
use ratelimit::Ratelimiter;
use throttlecrab::{AdaptiveStore, RateLimiter};

/// So many in an hour, or in a second, that every call is admitted.
const PLENTY: u32 = 1_000_000_000;
const HOUR_SECONDS: i64 = 3_600;

/// A token bucket for each key, in a map that threads share.
pub(crate) struct KeyedGovernor(DefaultKeyedRateLimiter<String>);

impl KeyedGovernor {
    pub(crate) fn new(quota: Quota) -> Self {
        Self(DefaultKeyedRateLimiter::keyed(quota))
    }

    pub(crate) fn admits(&self, key: &String) -> bool {
        self.0.check_key(key).is_ok()
    }
}

/// GCRA for each key. Threads would need a lock around it.
pub(crate) struct KeyedThrottlecrab(RefCell<RateLimiter<AdaptiveStore>>);

impl KeyedThrottlecrab {
    /// Has room for so many keys.
    pub(crate) fn new(keys: usize) -> Self {
        Self(RefCell::new(RateLimiter::new(AdaptiveStore::with_capacity(keys))))
    }

    pub(crate) fn admits(&self, key: &str) -> bool {
        let mut limiter = self.0.borrow_mut();
        limiter.rate_limit(key, PLENTY.into(), PLENTY.into(), HOUR_SECONDS, 1, SystemTime::now()).expect("it decides").0
    }
}

/// A token bucket for each key. The library has none with keys, so these are in a map of the program, which threads could
/// only read.
pub(crate) struct KeyedRatelimit(HashMap<String, Ratelimiter>);

impl KeyedRatelimit {
    pub(crate) fn new(keys: &[String]) -> Self {
        let builder = || Ratelimiter::builder(PLENTY.into()).initial_available(PLENTY.into());
        let bucket = |key: &String| (key.clone(), builder().build().expect("a valid bucket"));
        Self(keys.iter().map(bucket).collect())
    }

    pub(crate) fn admits(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|bucket| bucket.try_wait().is_ok())
    }
}
