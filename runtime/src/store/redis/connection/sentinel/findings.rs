//! What is found out about a primary by asking its sentinels.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::naming::{Naming, Verdict};
use crate::error::BackendError;
use crate::store::redis::connection::address::Host;

/// How late news may be. After a longer time without any, the runtime of those who ask stands still.
const LATE: Duration = Duration::from_secs(4);

/// What those who ask the sentinels find out. They hold it weakly.
pub(super) struct Findings {
    naming: Mutex<Naming>,
    state: watch::Sender<State>,
    term: Arc<Term>,
    /// The longest time without any news.
    longest: Duration,
    /// When one of them has last found out something.
    latest: Mutex<Instant>,
}

/// How often another primary was followed.
#[derive(Default)]
pub(super) struct Term {
    number: AtomicU64,
    host: Mutex<Option<Host>>,
}

/// Which primary to follow.
#[derive(Clone)]
enum State {
    /// No sentinel has answered yet.
    Waiting,
    Primary(Host, u64),
    /// No sentinel names a primary, for this reason.
    Unknown(BackendError),
}

impl Findings {
    /// Nothing is known yet of what so many sentinels say, each of which may take that long.
    pub(super) fn new(sentinels: usize, patience: Duration, term: &Arc<Term>) -> Self {
        Self {
            naming: Mutex::new(Naming::new(sentinels)),
            state: watch::Sender::new(State::Waiting),
            term: Arc::clone(term),
            longest: patience + LATE,
            latest: Mutex::new(Instant::now()),
        }
    }

    /// Whether anybody is asking.
    pub(super) fn are_current(self: &Arc<Self>) -> bool {
        Arc::weak_count(self) > 0 && lock(&self.latest).elapsed() < self.longest
    }

    /// Returns the primary and its term, once a sentinel has named it.
    pub(super) async fn primary(&self) -> Result<(Host, u64), BackendError> {
        let mut state = self.state.subscribe();
        let known = state.wait_for(|state| !matches!(state, State::Waiting)).await.map(|state| state.clone());
        match known {
            Ok(State::Primary(host, term)) => Ok((host, term)),
            Ok(State::Unknown(error)) => Err(error),
            Ok(State::Waiting) | Err(_) => Err(BackendError::away("redis: the runtime was shut down")),
        }
    }

    /// Records what a sentinel answers.
    pub(super) fn hear(&self, sentinel: usize, answer: Result<Host, BackendError>) {
        *lock(&self.latest) = Instant::now();
        match lock(&self.naming).hear(sentinel, answer) {
            Verdict::Follow(host) => {
                let term = self.term.of(&host);
                self.state.send_replace(State::Primary(host, term));
            }
            Verdict::Unknown(error) => _ = self.state.send_replace(State::Unknown(error)),
            Verdict::Same => {}
        }
    }
}

impl Term {
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// The term of a primary that is followed from now on.
    fn of(&self, host: &Host) -> u64 {
        let mut current = lock(&self.host);
        if current.as_ref() != Some(host) {
            let Host { name, port } = host;
            tracing::info!(host = name, port, "following the redis primary that the sentinels name");
            *current = Some(host.clone());
            self.number.fetch_add(1, Ordering::Relaxed);
        }
        self.number()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
