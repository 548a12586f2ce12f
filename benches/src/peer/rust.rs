//! Other Rust libraries, each set up as its documentation does it, for a limit of so many calls in a second.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use governor::{DefaultDirectRateLimiter, Quota};
use limitador::limit::Limit;
use ratelimit::Ratelimiter;
use throttlecrab::PeriodicStore;
use trypema::hybrid::HybridRateLimiterProvider;
use trypema::local::LocalRateLimiterProvider;
use trypema::redis::{ConnectionManager, RedisKey, RedisRateLimiterProvider};
use trypema::{BucketSize, RateLimit, RateLimitDecision, RateLimiterBuilder, TrypemaError, WindowSize};

use super::key_of;
use crate::load::Caller;
use crate::server::Server;

/// A token bucket in this process, as one time that is compared and swapped.
#[derive(Clone)]
pub(crate) struct Governor(Arc<DefaultDirectRateLimiter>);

impl Governor {
    pub(crate) fn new(count: u32) -> Self {
        let quota = Quota::per_second(NonZeroU32::new(count).expect("a count"));
        Self(Arc::new(DefaultDirectRateLimiter::direct(quota)))
    }
}

impl Caller for Governor {
    async fn call(&self, _: usize) -> bool {
        self.0.check().is_ok()
    }
}

/// A fixed window in this process.
#[derive(Clone)]
pub(crate) struct Limitador(Arc<limitador::RateLimiter>);

impl Limitador {
    pub(crate) fn new(count: u32) -> Self {
        let limiter = limitador::RateLimiter::new(1);
        limiter.add_limit(Limit::new("bench", count.into(), 1, vec![], vec![]));
        Self(Arc::new(limiter))
    }
}

impl Caller for Limitador {
    async fn call(&self, _: usize) -> bool {
        let decision = self.0.check_rate_limited_and_update(&"bench".into(), &limitador::limit::Context::default(), 1);
        !decision.expect("it decides").limited
    }
}

/// A token bucket in this process.
#[derive(Clone)]
pub(crate) struct Bucket(Arc<Ratelimiter>);

impl Bucket {
    pub(crate) fn new(count: u32) -> Self {
        let builder = Ratelimiter::builder(count.into()).max_tokens(count.into()).initial_available(count.into());
        Self(Arc::new(builder.build().expect("a valid bucket")))
    }
}

impl Caller for Bucket {
    async fn call(&self, _: usize) -> bool {
        self.0.try_wait().is_ok()
    }
}

/// GCRA in this process.
#[derive(Clone)]
pub(crate) struct Throttlecrab {
    limiter: Arc<Mutex<throttlecrab::RateLimiter<PeriodicStore>>>,
    count: i64,
}

impl Throttlecrab {
    pub(crate) fn new(count: u32) -> Self {
        let limiter = Arc::new(Mutex::new(throttlecrab::RateLimiter::new(PeriodicStore::new())));
        Self { limiter, count: count.into() }
    }
}

impl Caller for Throttlecrab {
    async fn call(&self, subject: usize) -> bool {
        let mut limiter = self.limiter.lock().expect("nobody panics with it");
        let (key, now) = (key_of(subject), SystemTime::now());
        limiter.rate_limit(&key, self.count, self.count, 1, 1, now).expect("it decides").0
    }
}

/// The windows of trypema: a second, in buckets of ten milliseconds.
fn windows<B: RateLimiterBuilder>(builder: B) -> Arc<B::Provider> {
    let builder = builder.window_size(WindowSize::seconds_or_panic(1));
    builder.bucket_size(BucketSize::milliseconds_or_panic(10)).build().expect("valid settings")
}

fn is_allowed(decision: &RateLimitDecision) -> bool {
    matches!(decision, RateLimitDecision::Allowed)
}

/// A sliding window in buckets, in this process.
#[derive(Clone)]
pub(crate) struct TrypemaLocal {
    provider: Arc<LocalRateLimiterProvider>,
    rate: RateLimit,
}

impl TrypemaLocal {
    pub(crate) fn new(count: u32) -> Self {
        let provider = windows(LocalRateLimiterProvider::builder());
        Self { provider, rate: RateLimit::per_second_or_panic(count.into()) }
    }
}

impl Caller for TrypemaLocal {
    async fn call(&self, subject: usize) -> bool {
        is_allowed(&self.provider.absolute().inc(&key_of(subject), &self.rate, 1))
    }
}

/// trypema on Redis, by one script for each call.
#[derive(Clone)]
pub(crate) struct TrypemaRedis {
    provider: Arc<RedisRateLimiterProvider>,
    rate: RateLimit,
}

impl TrypemaRedis {
    pub(crate) async fn connect(server: &Server, count: u32) -> Self {
        let provider = windows(RedisRateLimiterProvider::builder(manager(server).await));
        Self { provider, rate: RateLimit::per_second_or_panic(count.into()) }
    }
}

impl Caller for TrypemaRedis {
    async fn call(&self, _: usize) -> bool {
        decided(self.provider.absolute().inc(&key(), &self.rate, 1).await)
    }
}

/// trypema in this process, which tells Redis what it has admitted every ten milliseconds.
#[derive(Clone)]
pub(crate) struct TrypemaHybrid {
    provider: Arc<HybridRateLimiterProvider>,
    rate: RateLimit,
}

impl TrypemaHybrid {
    pub(crate) async fn connect(server: &Server, count: u32) -> Self {
        let provider = windows(HybridRateLimiterProvider::builder(manager(server).await));
        Self { provider, rate: RateLimit::per_second_or_panic(count.into()) }
    }
}

impl Caller for TrypemaHybrid {
    async fn call(&self, _: usize) -> bool {
        decided(self.provider.absolute().inc(&key(), &self.rate, 1).await)
    }
}

async fn manager(server: &Server) -> ConnectionManager {
    let client = redis::Client::open(server.url()).expect("a url");
    client.get_connection_manager().await.expect("the server answers")
}

fn key() -> RedisKey {
    RedisKey::try_from("bench").expect("a valid key")
}

fn decided(decision: Result<RateLimitDecision, TrypemaError>) -> bool {
    is_allowed(&decision.expect("the server answers"))
}
