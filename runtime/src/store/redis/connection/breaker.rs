//! The state of a connection. It decides what to do with a call: send it, let it wait, or refuse it at once.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::link::Link;
use crate::error::BackendError;
use crate::observe::{LineBudget, report};
use crate::system::{Instant, random_fraction};

/// The first pause between two attempts. It doubles with each further failure, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How late a repair may be on a busy machine. If it is later, its runtime stands still.
const LATE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Breaker {
    phase: Phase,
    repair: Option<Repair>,
    repairs: u64,
    /// How many attempts and connections have failed since the last answer.
    failures: u32,
    pub(crate) pause_until: Option<Instant>,
    /// Whether the log says that the server is away.
    is_reported: bool,
    /// Limits the lines in the log: a server may come and go at each attempt.
    lines: LineBudget,
}

#[derive(Default)]
enum Phase {
    /// The limiter is new, or the runtime of its connection is gone.
    #[default]
    Unknown,
    /// There is no connection, and the server is not known to be away. Calls wait for the repair.
    Connecting,
    Connected(Link),
    /// The server is away. Calls are refused at once while the repair goes on.
    Away(BackendError),
}

struct Repair {
    number: u64,
    begun: Instant,
    /// When its next attempt has ended at the latest.
    due: Instant,
    /// Changes after each failed attempt. Closed when the task ends.
    reports: Reports,
    task: AbortHandle,
}

/// Tells calls that wait for a connection when an attempt has ended.
pub(crate) type Reports = watch::Receiver<()>;

/// What to do with a call.
pub(crate) enum LinkState {
    /// Send the call.
    Connected(Link),
    /// Wait for the next report.
    Connecting(Reports),
    /// Refuse the call.
    Away(BackendError),
    /// Begin a repair first.
    Unrepaired,
}

impl Breaker {
    pub(crate) fn is_away(&self) -> bool {
        self.outage().is_some()
    }

    /// Returns why calls are refused; `None` if they are not.
    pub(crate) fn outage(&self) -> Option<&BackendError> {
        match &self.phase {
            Phase::Away(error) => Some(error),
            _ => None,
        }
    }

    pub(crate) fn link_state(&mut self, now: Instant) -> LinkState {
        if matches!(&self.phase, Phase::Connected(link) if !link.is_open()) {
            self.phase = Phase::Unknown;
        }
        match (&self.phase, self.repair.as_ref().filter(|repair| repair.is_alive(now))) {
            (Phase::Connected(link), _) => LinkState::Connected(link.clone()),
            (Phase::Away(error), Some(_)) => LinkState::Away(error.clone()),
            (Phase::Connecting, Some(repair)) => LinkState::Connecting(repair.reports.clone()),
            (Phase::Unknown | Phase::Connecting | Phase::Away(_), _) => LinkState::Unrepaired,
        }
    }

    /// Returns the connection if there is one that satisfies the condition.
    pub(crate) fn link_if(&self, is_wanted: impl FnOnce(&Link) -> bool) -> Option<&Link> {
        match &self.phase {
            Phase::Connected(link) if is_wanted(link) => Some(link),
            _ => None,
        }
    }

    /// Lets calls wait for the repair, unless the server is known to be away.
    pub(crate) fn expect_connection(&mut self) {
        if !self.is_away() {
            self.phase = Phase::Connecting;
        }
    }

    /// Returns the number of a new repair.
    pub(crate) fn next_repair(&mut self) -> u64 {
        self.repairs += 1;
        self.repairs
    }

    /// Notes that a repair has begun. Its first attempt ends at `until` at the latest.
    pub(crate) fn begin(&mut self, number: u64, until: Instant, reports: Reports, task: AbortHandle) {
        self.stop_repair();
        self.repair = Some(Repair { number, begun: Instant::now(), due: until + LATE, reports, task });
    }

    /// Returns whether this repair goes on, and notes when its next attempt ends at the latest.
    pub(crate) fn continues(&mut self, number: u64, until: Instant) -> bool {
        let repair = self.repair.as_mut().filter(|repair| repair.number == number);
        repair.map(|repair| repair.due = until + LATE).is_some()
    }

    pub(crate) fn stop_repair(&mut self) {
        if let Some(repair) = self.repair.take() {
            repair.task.abort();
        }
    }

    /// Forgets the server, because it is at another address now.
    pub(crate) fn leave(&mut self) {
        self.phase = Phase::Unknown;
        self.failures = 0;
        self.pause_until = None;
    }

    /// Refuses calls if they have waited for a connection for this time.
    pub(crate) fn open_if_slow(&mut self, patience: Duration, error: BackendError) {
        let is_slow = self.repair.as_ref().is_some_and(|repair| repair.begun.elapsed() >= patience);
        if is_slow && matches!(self.phase, Phase::Connecting) {
            self.open(error);
        }
    }

    pub(crate) fn connect(&mut self, link: Link) {
        self.phase = Phase::Connected(link);
        self.repair = None;
    }

    /// Notes a failed attempt.
    pub(crate) fn fail(&mut self, error: BackendError) {
        self.pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.open(error);
    }

    /// Notes that a connection is lost. Returns whether to connect again at once: a single loss is no outage. There is
    /// a pause from the second connection on that was of no use.
    pub(crate) fn lose(&mut self, was_of_use: bool) -> bool {
        self.phase = Phase::Unknown;
        if was_of_use {
            return true;
        }
        if self.failures > 0 {
            self.pause(self.failures - 1);
        }
        self.failures = self.failures.saturating_add(1);
        self.failures == 1
    }

    pub(crate) fn open(&mut self, error: BackendError) {
        if !self.is_reported {
            self.is_reported = true;
            let error = error.clone();
            let away = move || tracing::warn!(%error, "redis is away; calls go by `on_outage` until it is back");
            self.lines.report(|| report(away));
        }
        self.phase = Phase::Away(error);
    }

    /// Notes that a connection has brought its first answer.
    pub(crate) fn recover(&mut self) {
        self.failures = 0;
        self.pause_until = None;
        if self.is_reported {
            self.is_reported = false;
            self.lines.report(|| report(|| tracing::info!("redis is back")));
        }
    }

    /// Begins a pause that doubles with every failure. It is partly random, so that processes that failed together do
    /// not return together.
    fn pause(&mut self, failures: u32) {
        let whole = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE);
        self.pause_until = Some(Instant::now() + whole.mul_f64(0.5 + random_fraction() / 2.0));
    }
}

impl Repair {
    /// Whether the task exists and is not stuck.
    fn is_alive(&self, now: Instant) -> bool {
        self.reports.has_changed().is_ok() && now <= self.due
    }
}
