//! What stands in for the store in Redis where this crate is built without the feature `redis`.
//!
//! [`Redis`] has no value, so a compiled program has no trace of it, and the layers above need not know of the feature.

use std::future::{Future, Ready};
use std::time::Duration;

use super::answer::Answer;
use super::readiness::Readiness;
use super::setup::Setup;
use super::stored::{Progress, RegistrationResult, StoredOverride};
use crate::call::{Call, LeaseChange, TallyId};
use crate::decision::AdmittedAt;
use crate::error::{BackendError, BackendErrorKind, Error};
use crate::policy::Policy;

/// Tallies in Redis, of which there are none.
#[derive(Debug)]
pub(crate) enum Redis {}

/// What would be the answer of Redis.
type Answered<T> = Ready<Result<T, BackendError>>;

pub(crate) fn have_clocks_differed() -> bool {
    false
}

pub(crate) fn random_fraction() -> f64 {
    0.0
}

impl Redis {
    pub(crate) fn open(_: &str, _: Setup) -> Result<Self, Error> {
        Err(Error::new("`url` is not `memory://`; for a Redis server, enable the feature `redis` of tallygate"))
    }

    pub(crate) fn reach(&self) -> Ready<Result<(), Error>> {
        match *self {}
    }

    pub(crate) fn ping(&self) -> Answered<Readiness> {
        match *self {}
    }

    pub(crate) fn known_outage(&self) -> Option<BackendErrorKind> {
        match *self {}
    }

    pub(crate) fn now_us(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn refresh_time(&self) -> Answered<()> {
        match *self {}
    }

    pub(crate) fn within_deadline<T>(
        &self,
        _: &Policy,
        _: impl Future<Output = Result<T, BackendError>>,
    ) -> Answered<T> {
        match *self {}
    }

    pub(crate) fn decide(&self, _: Call<'_>) -> Answered<Answer> {
        match *self {}
    }

    pub(crate) fn has_decided(&self) -> bool {
        match *self {}
    }

    pub(crate) fn refund(&self, _: Call<'_>, _: u64, _: &AdmittedAt) -> Answered<bool> {
        match *self {}
    }

    pub(crate) fn change_leases(&self, _: Call<'_>, _: LeaseChange) -> Answered<()> {
        match *self {}
    }

    pub(crate) fn ban(&self, _: TallyId<'_>, _: u64) -> Answered<()> {
        match *self {}
    }

    pub(crate) fn reset(&self, _: Call<'_>) -> Answered<()> {
        match *self {}
    }

    pub(crate) fn deadline_of(&self, _: &Policy) -> Duration {
        match *self {}
    }
}

/// What is stored beside tallies.
impl Redis {
    pub(crate) fn denials(&self, _: &str) -> &Self {
        self
    }

    pub(crate) fn add(&self, _: &str, _: u64, _: &mut Vec<(String, u64)>) -> Answered<()> {
        match *self {}
    }

    pub(crate) fn of(&self, _: &str, _: u64) -> Answered<Vec<(String, u64)>> {
        match *self {}
    }

    pub(crate) fn overrides(&self, _: &str) -> &Self {
        self
    }

    pub(crate) fn version(&self) -> Answered<Option<String>> {
        match *self {}
    }

    pub(crate) fn all(&self, _: usize) -> Answered<Option<Vec<StoredOverride>>> {
        match *self {}
    }

    pub(crate) fn at_least(&self, _: usize) -> Answered<Vec<StoredOverride>> {
        match *self {}
    }

    pub(crate) fn change(
        &self,
        _: &str,
        _: Option<&str>,
        _: usize,
        _: impl IntoIterator<Item = StoredOverride>,
    ) -> Answered<Option<bool>> {
        match *self {}
    }

    pub(crate) fn policies(&self, _: &str) -> &Self {
        self
    }

    pub(crate) fn connections(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn register<'p>(
        &self,
        _: impl IntoIterator<Item = (&'p str, &'p str)>,
        _: &Progress,
    ) -> Answered<RegistrationResult> {
        match *self {}
    }
}
