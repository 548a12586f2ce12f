//! The answers of the sentinels, and the primary that follows from them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use crate::error::{BackendError, BackendErrorKind};
use crate::lock::lock;
use crate::observe::{LineBudget, Quiet, report};
use crate::store::redis::connection::address::Host;
use crate::system::Instant;

/// How late an answer may be. If there is none for longer, the runtime of the watchers hangs.
const LATE: Duration = Duration::from_secs(4);

/// The answers of the sentinels. The watchers hold a weak reference.
pub(super) struct SentinelAnswers {
    votes: Mutex<Votes>,
    state: watch::Sender<Followed>,
    term: Arc<Term>,
    /// The longest time without any answer.
    longest: Duration,
    /// When a watcher last had an answer.
    latest: Mutex<Instant>,
}

/// Counts how often another primary was followed.
#[derive(Default)]
pub(super) struct Term {
    number: AtomicU64,
    host: Mutex<Option<Host>>,
    lines: LineBudget,
}

#[derive(Clone)]
enum Followed {
    /// No sentinel has answered yet.
    Waiting,
    Primary(Host, u64),
    /// No sentinel names a primary, for this reason.
    Unknown(BackendError),
}

impl SentinelAnswers {
    /// Starts without answers of this number of sentinels. Each may take the time `patience`.
    pub(super) fn new(sentinels: usize, patience: Duration, term: &Arc<Term>) -> Self {
        Self {
            votes: Mutex::new(Votes::new(sentinels)),
            state: watch::Sender::new(Followed::Waiting),
            term: Arc::clone(term),
            longest: patience + LATE,
            latest: Mutex::new(Instant::now()),
        }
    }

    /// Whether the watchers are running.
    pub(super) fn are_current(self: &Arc<Self>) -> bool {
        Arc::weak_count(self) > 0 && lock(&self.latest).elapsed() < self.longest
    }

    /// Waits until a sentinel names the primary; returns it and its term.
    pub(super) async fn primary(&self) -> Result<(Host, u64), BackendError> {
        let mut state = self.state.subscribe();
        let known = state.wait_for(|state| !matches!(state, Followed::Waiting)).await.map(|state| state.clone());
        match known {
            Ok(Followed::Primary(host, term)) => Ok((host, term)),
            Ok(Followed::Unknown(error)) => Err(error),
            Ok(Followed::Waiting) | Err(_) => Err(BackendError::away("redis: the runtime was shut down")),
        }
    }

    pub(super) fn record(&self, sentinel: usize, answer: Result<Host, BackendError>) {
        *lock(&self.latest) = Instant::now();
        let _quiet = Quiet::begin();
        match lock(&self.votes).record(sentinel, answer) {
            VoteOutcome::Follow(host) => {
                let term = self.term.of(&host);
                self.state.send_replace(Followed::Primary(host, term));
            }
            VoteOutcome::Unknown(error) => _ = self.state.send_replace(Followed::Unknown(error)),
            VoteOutcome::Same => {}
        }
    }
}

impl Term {
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Returns the term of a primary that is followed from now on.
    fn of(&self, host: &Host) -> u64 {
        let mut current = lock(&self.host);
        if current.as_ref() != Some(host) {
            let Host { name, port } = host;
            let (name, port) = (name.clone(), *port);
            let following =
                move || tracing::info!(host = &*name, port, "following the redis primary that the sentinels name");
            self.lines.report(|| report(following));
            *current = Some(host.clone());
            self.number.fetch_add(1, Ordering::Relaxed);
        }
        self.number()
    }
}

/// The answers of all sentinels, and the primary that follows from them.
///
/// The very first answer is taken. After that, a sentinel that names another primary than before has seen a failover. A
/// sentinel that answers for the first time, or again after a while, may be behind: it is followed only with a
/// majority.
pub(super) struct Votes {
    sentinels: Vec<Vote>,
    primary: Option<Host>,
}

/// The last answer of a sentinel over its connection.
#[derive(Clone)]
enum Vote {
    /// No answer yet.
    None,
    Names(Host),
    /// The sentinel does not answer, or knows no primary, for this reason.
    Failed(BackendError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VoteOutcome {
    /// Nothing new.
    Same,
    /// Follow this primary from now on.
    Follow(Host),
    /// No sentinel names a primary, for this reason.
    Unknown(BackendError),
}

impl Votes {
    pub(super) fn new(sentinels: usize) -> Self {
        Self { sentinels: vec![Vote::None; sentinels], primary: None }
    }

    pub(super) fn record(&mut self, sentinel: usize, answer: Result<Host, BackendError>) -> VoteOutcome {
        let Some(vote) = self.sentinels.get_mut(sentinel) else { return VoteOutcome::Same };
        let before = vote.clone();
        *vote = match &answer {
            Ok(host) => Vote::Names(host.clone()),
            Err(error) => Vote::Failed(error.clone()),
        };
        match answer {
            Ok(host) if self.primary.as_ref() == Some(&host) => VoteOutcome::Same,
            Ok(host) if self.is_to_be_followed(&before, &host) => {
                self.primary = Some(host.clone());
                VoteOutcome::Follow(host)
            }
            Err(error) if self.primary.is_none() => self.failure(error).map_or(VoteOutcome::Same, VoteOutcome::Unknown),
            _ => VoteOutcome::Same,
        }
    }

    /// Why no sentinel names a primary, once all have failed: a mistake at one of them, or else the latest error.
    fn failure(&self, latest: BackendError) -> Option<BackendError> {
        let failures: Option<Vec<_>> = self.sentinels.iter().map(Vote::failure).collect();
        let mistake = failures?.into_iter().find(|failure| failure.kind() == BackendErrorKind::Wrong).cloned();
        Some(mistake.unwrap_or(latest))
    }

    fn is_to_be_followed(&self, before: &Vote, host: &Host) -> bool {
        let has_changed = matches!(before, Vote::Names(named) if named != host);
        let names = |vote: &&Vote| matches!(vote, Vote::Names(named) if named == host);
        let is_named_by_most = self.sentinels.iter().filter(names).count() > self.sentinels.len() / 2;
        self.primary.is_none() || has_changed || is_named_by_most
    }
}

impl Vote {
    fn failure(&self) -> Option<&BackendError> {
        match self {
            Self::Failed(error) => Some(error),
            Self::None | Self::Names(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(port: u16) -> Host {
        Host { name: "10.0.0.1".to_owned(), port }
    }

    fn gone() -> BackendError {
        BackendError::new("redis: refused")
    }

    /// Plays these answers of three sentinels; returns the verdicts.
    fn verdicts(answers: &[(usize, Option<u16>)]) -> Vec<Option<u16>> {
        let mut votes = Votes::new(3);
        let verdict =
            |&(sentinel, port): &(usize, Option<u16>)| match votes.record(sentinel, port.map(host).ok_or_else(gone)) {
                VoteOutcome::Follow(host) => Some(host.port),
                VoteOutcome::Same | VoteOutcome::Unknown(_) => None,
            };
        answers.iter().map(verdict).collect()
    }

    #[test]
    fn the_first_answer_is_taken() {
        assert_eq!(verdicts(&[(2, Some(1)), (0, Some(1)), (1, Some(1))]), [Some(1), None, None]);
    }

    #[test]
    fn a_sentinel_that_names_another_primary_than_before_is_followed_at_once() {
        let all = [(0, Some(1)), (1, Some(1)), (2, Some(1))];
        assert_eq!(
            verdicts(&[&all[..], &[(1, Some(2)), (0, Some(2)), (2, Some(2))]].concat())[3..],
            [Some(2), None, None]
        );
        assert_eq!(verdicts(&[&all[..], &[(1, Some(2)), (1, Some(1))]].concat())[3..], [Some(2), Some(1)]);
    }

    #[test]
    fn a_sentinel_that_is_behind_is_not_followed() {
        // The sentinel was away during the failover, and comes back with an old answer.
        let answers = [(0, Some(1)), (1, Some(1)), (1, None), (0, Some(2)), (1, Some(1)), (2, Some(2))];
        assert_eq!(verdicts(&answers), [Some(1), None, None, Some(2), None, None]);
    }

    #[test]
    fn what_most_sentinels_name_is_followed_if_the_first_was_behind() {
        assert_eq!(verdicts(&[(0, Some(1)), (1, Some(2)), (2, Some(2))]), [Some(1), None, Some(2)]);
        assert_eq!(verdicts(&[(0, Some(1)), (1, Some(2)), (2, None)]), [Some(1), None, None]);
    }

    #[test]
    fn a_primary_is_unknown_once_all_sentinels_have_failed_and_none_has_named_one() {
        let mut votes = Votes::new(2);
        assert_eq!(votes.record(0, Err(gone())), VoteOutcome::Same);
        assert_eq!(votes.record(1, Err(gone())), VoteOutcome::Unknown(gone()));
        assert_eq!(votes.record(1, Ok(host(1))), VoteOutcome::Follow(host(1)));
        assert_eq!(votes.record(1, Err(gone())), VoteOutcome::Same);
    }

    #[test]
    fn a_mistake_at_one_sentinel_is_the_reason_whichever_fails_last() {
        let away = || BackendError::away("redis: no answer");
        for failures in [[gone(), away()], [away(), gone()]] {
            let mut votes = Votes::new(2);
            let verdicts: Vec<_> =
                failures.into_iter().enumerate().map(|(sentinel, error)| votes.record(sentinel, Err(error))).collect();
            assert_eq!(verdicts, [VoteOutcome::Same, VoteOutcome::Unknown(gone())]);
        }
    }
}
