//! The store in Redis in a build without the feature `redis`. [`NoRedis`] has no value, so the program has no code for
//! it, and the layers above need not know about the feature.

use std::future::{Future, Ready};
use std::time::Duration;

use super::answer::{LayeredAnswer, Outcome, Readiness};
use super::decider::{Decider, OverrideStore, RemoteStore};
use super::pauses::ProbeStep;
use super::redis_types::{Progress, RegistrationResult, Setup, StoredText};
use crate::call::{Call, LeaseName, ReturnedLeases, TallyId};
use crate::decision::{AdmittedAt, PauseSource, Recount};
use crate::error::{BackendError, BackendErrorKind, Error};
use crate::policy::Policy;
use crate::system::Instant;

pub(crate) use self::NoRedis as Redis;
pub(crate) use self::{NotStored as StoredDenials, NotStored as StoredPolicies};

#[derive(Debug)]
pub(crate) enum NoRedis {}

/// The type of values that are stored beside tallies.
pub(crate) type NotStored<'a> = &'a NoRedis;

type NoAnswer<T> = Ready<Result<T, BackendError>>;

pub(crate) fn random_fraction() -> f64 {
    0.0
}

/// Defines methods by the types of their arguments and answers. They are never called, because there is no value.
macro_rules! methods {
    ($($name:ident $(<$generic:tt>)? ($($argument:ty),*) -> $answer:ty;)*) => {
        $(
            pub(crate) fn $name $(<$generic>)? (&self $(, _: $argument)*) -> $answer {
                match *self {}
            }
        )*
    };
}

impl NoRedis {
    pub(crate) fn open(_: &str, _: Setup) -> Result<Self, Error> {
        Err(Error::new("`url` is not `memory://`; for a Redis server, enable the feature `redis` of tallygate"))
    }

    methods! {
        reach() -> Ready<Result<(), Error>>;
        ping() -> NoAnswer<Readiness>;
        now_us() -> u64;
        refresh_time() -> NoAnswer<()>;
        pause(&Policy, TallyId<'_>, u64, PauseSource) -> NoAnswer<(Outcome, PauseSource)>;
        probe(&Policy, TallyId<'_>, LeaseName, ProbeStep, Option<Instant>) -> NoAnswer<Outcome>;
        resume(&Policy, TallyId<'_>) -> NoAnswer<()>;
    }
}

impl Decider for NoRedis {
    async fn decide(&self, _: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        match *self {}
    }

    fn note(&self, _: Call<'_>, _: Outcome, _: u64) {}

    fn forget(&self, _: Call<'_>) {}

    async fn recount(&self, _: Call<'_>, _: &Recount, _: &AdmittedAt) -> Result<bool, BackendError> {
        match *self {}
    }

    async fn reset(&self, _: Call<'_>) -> Result<(), BackendError> {
        match *self {}
    }

    async fn ban(&self, _: Call<'_>, _: Duration) -> Result<(), BackendError> {
        match *self {}
    }
}

impl RemoteStore for NoRedis {
    fn known_outage(&self) -> Option<BackendErrorKind> {
        match *self {}
    }

    fn has_decided(&self) -> bool {
        match *self {}
    }

    fn have_clocks_differed(&self) -> bool {
        match *self {}
    }

    fn deadline_of(&self, _: &Policy) -> Duration {
        match *self {}
    }

    async fn give_back(&self, _: &Policy, _: &[ReturnedLeases]) -> Result<(), BackendError> {
        match *self {}
    }

    async fn renew_leases(&self, _: Call<'_>) -> Result<(), BackendError> {
        match *self {}
    }
}

impl OverrideStore for NoRedis {
    async fn overrides_version(&self) -> Result<Option<String>, BackendError> {
        match *self {}
    }

    async fn all_overrides(&self, _: usize) -> Result<Result<Vec<StoredText>, String>, BackendError> {
        match *self {}
    }

    async fn some_overrides(&self, _: usize) -> Result<Vec<StoredText>, BackendError> {
        match *self {}
    }

    async fn change_override(
        &self,
        _: &str,
        _: Option<&str>,
        _: Option<&str>,
        _: usize,
        _: Vec<StoredText>,
    ) -> Result<Option<bool>, BackendError> {
        match *self {}
    }

    fn override_time_us(&self) -> u64 {
        match *self {}
    }

    async fn ask_override_time(&self) -> Result<(), BackendError> {
        match *self {}
    }

    async fn wait_for<T: Send>(
        &self,
        _: &Policy,
        _: impl Future<Output = Result<T, BackendError>> + Send,
    ) -> Result<(Result<T, BackendError>, Instant), BackendError> {
        match *self {}
    }
}

impl NoRedis {
    methods! {
        denials() -> NotStored<'_>;
        add(&str, u64, &mut Vec<(String, u64)>) -> NoAnswer<()>;
        of(&str, u64) -> NoAnswer<Vec<(String, u64)>>;
        policies() -> NotStored<'_>;
        connections() -> u64;
        register<'p>(impl IntoIterator<Item = (&'p str, &'p str)>, &Progress) -> NoAnswer<RegistrationResult>;
    }
}
