//! A store for tests of the layers before it: it gives prepared answers, and records its requests.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use super::answer::{Answer, LayeredAnswer, Outcome};
use super::decider::{Decider, RemoteStore};
use crate::call::{Call, ReturnedLeases};
use crate::decision::{AdmittedAt, Recount, Report};
use crate::error::{BackendError, BackendErrorKind};
use crate::lock::lock;
use crate::policy::Policy;

/// A store that admits all calls, unless other answers are prepared.
#[derive(Default)]
pub(crate) struct StubStore {
    pub(crate) outage: Option<BackendErrorKind>,
    pub(crate) has_decided: bool,
    /// Never answers a call.
    pub(crate) is_silent: bool,
    pub(crate) answers: Mutex<VecDeque<Result<Outcome, BackendError>>>,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl StubStore {
    /// Answers the next calls and resets with `answers`.
    pub(crate) fn answering(answers: impl IntoIterator<Item = Result<Outcome, BackendError>>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() }
    }

    pub(crate) fn answer(&self, outcome: Outcome) {
        lock(&self.answers).push_back(Ok(outcome));
    }

    /// Returns the requests since the last time.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.asked))
    }

    fn note_asked(&self, asked: impl Into<String>) {
        lock(&self.asked).push(asked.into());
    }
}

impl Decider for StubStore {
    async fn decide(&self, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        self.note_asked(format!("decide {}", call.options.cost));
        if self.is_silent {
            pending::<()>().await;
        }
        let answer = lock(&self.answers).pop_front().unwrap_or(Ok(Outcome::Admitted));
        answer.map(|outcome| Answer::new(outcome, Report::default(), 0).into())
    }

    fn note(&self, call: Call<'_>, _: Outcome, _: u64) {
        self.note_asked(format!("note {}", call.options.cost));
    }

    fn forget(&self, call: Call<'_>) {
        self.note_asked(format!("forget {}", call.options.cost));
    }

    async fn recount(&self, counted: Call<'_>, recount: &Recount, _: &AdmittedAt) -> Result<bool, BackendError> {
        let used = counted.groups().first().and_then(|group| recount.used_of(group)).unwrap_or(counted.options.cost);
        self.note_asked(format!("recount {} as {used}", counted.options.cost));
        Ok(true)
    }

    async fn reset(&self, _: Call<'_>) -> Result<(), BackendError> {
        self.note_asked("reset");
        lock(&self.answers).pop_front().map_or(Ok(()), |answered| answered.map(drop))
    }

    async fn ban(&self, _: Call<'_>, _: Duration) -> Result<(), BackendError> {
        self.note_asked("ban");
        Ok(())
    }
}

impl RemoteStore for StubStore {
    fn known_outage(&self) -> Option<BackendErrorKind> {
        self.outage
    }

    fn has_decided(&self) -> bool {
        self.has_decided
    }

    fn have_clocks_differed(&self) -> bool {
        false
    }

    fn deadline_of(&self, _: &Policy) -> Duration {
        Duration::from_millis(250)
    }

    async fn give_back(&self, _: &Policy, _: &[ReturnedLeases]) -> Result<(), BackendError> {
        self.note_asked("give back");
        Ok(())
    }

    async fn renew_leases(&self, _: Call<'_>) -> Result<(), BackendError> {
        self.note_asked("renew");
        Ok(())
    }
}
