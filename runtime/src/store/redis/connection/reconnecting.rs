//! Keeps one connection to a server, and repairs it in the background, one attempt at a time.

use std::future::pending;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;

use super::attempt::{ConnectTarget, ServerLocation};
use super::attempt_budget::AttemptBudget;
use super::breaker::{Breaker, LinkState};
use super::link::Link;
use super::real_time;
use crate::error::{BackendError, BackendErrorKind};
use crate::lock::lock;
use crate::observe::{Quiet, report};
use crate::system::Instant;
use crate::system::home::Driver;

/// The kinds of outages. A `ReconnectorState` holds an index into them.
const KINDS: [BackendErrorKind; 3] = [BackendErrorKind::Away, BackendErrorKind::Wrong, BackendErrorKind::Unknown];
const NO_OUTAGE: u8 = u8::MAX;

#[derive(Clone)]
pub(crate) struct Reconnector {
    shared: Arc<ReconnectorState>,
}

struct ReconnectorState {
    target: ConnectTarget,
    driver: Driver,
    budget: Arc<AttemptBudget>,
    breaker: Mutex<Breaker>,
    /// The kind of the breaker's outage, which calls read without a lock.
    outage: AtomicU8,
    /// The term in which the server was found last, or [`SEEKING`]. See [`ServerLocation::term`].
    term: AtomicU64,
    /// How many connections were made.
    connections: AtomicU64,
}

/// The term while a repair has to find out where the server is.
const SEEKING: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum LinkLoss {
    /// The server closed it, or is no longer the primary. Another server may be there in a moment.
    Closed,
    /// The server does not answer any more.
    Silent,
}

/// When a repair makes its first attempt.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    /// At once. The budget has already been charged.
    Now,
    /// When pause and budget allow it.
    Later,
}

impl Reconnector {
    /// Does not connect yet.
    pub(crate) fn new(target: ConnectTarget, driver: Driver) -> Self {
        let budget = AttemptBudget::shared(&target.location.to_string());
        let (breaker, outage, term) = (Mutex::default(), AtomicU8::new(NO_OUTAGE), AtomicU64::new(SEEKING));
        let shared = ReconnectorState { target, driver, budget, breaker, outage, term, connections: AtomicU64::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Why calls are refused, as far as this process knows; `None` if they are not.
    pub(crate) fn known_outage(&self) -> Option<BackendErrorKind> {
        let outage = usize::from(self.shared.outage.load(Ordering::Relaxed));
        KINDS.get(outage).copied()
    }

    /// When an attempt that begins now has ended at the latest.
    pub(crate) fn attempt_ends(&self) -> Instant {
        self.shared.target.ends()
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.shared.driver
    }

    pub(crate) fn location(&self) -> &ServerLocation {
        &self.shared.target.location
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Returns what to do with a call. If the connection is lost, begins a repair.
    pub(crate) fn link_state(&self) -> LinkState {
        let mut breaker = self.lock();
        self.check_link(&mut breaker);
        self.check_location(&mut breaker);
        let now = Instant::now();
        match breaker.link_state(now) {
            LinkState::Unrepaired if breaker.is_away() => self.begin(&mut breaker, Start::Later),
            LinkState::Unrepaired => {
                // Nothing has failed: the limiter is new, or the runtime of its connection is gone.
                self.shared.budget.spend(now);
                self.begin(&mut breaker, Start::Now);
            }
            known => return known,
        }
        breaker.link_state(now)
    }

    /// Replaces the connection if the server has closed it.
    fn check_link(&self, breaker: &mut Breaker) {
        if let Some(link) = breaker.link_if(Link::was_hung_up).cloned() {
            let error = BackendError::away("redis: the server closed the connection");
            self.lose_locked(breaker, &link, error, LinkLoss::Closed);
        }
    }

    /// Leaves a server that is no longer the primary, whether it answers or not.
    fn check_location(&self, breaker: &mut Breaker) {
        let term = self.shared.term.load(Ordering::Relaxed);
        if term != SEEKING && term != self.shared.target.location.term() {
            breaker.leave();
            self.shared.budget.spend(Instant::now());
            self.begin(breaker, Start::Now);
        }
    }

    /// Replaces a connection, unless it has been replaced already.
    pub(crate) fn lose(&self, link: &Link, error: BackendError, loss: LinkLoss) {
        self.lose_locked(&mut self.lock(), link, error, loss);
    }

    fn lose_locked(&self, breaker: &mut Breaker, link: &Link, error: BackendError, loss: LinkLoss) {
        if breaker.link_if(|current| current.is_same_as(link)).is_none() {
            return;
        }
        let is_first = breaker.lose(link.was_of_use());
        if loss == LinkLoss::Closed && is_first && self.shared.budget.try_spend(Instant::now()).is_ok() {
            self.begin(breaker, Start::Now);
        } else {
            breaker.open(error);
            self.begin(breaker, Start::Later);
        }
    }

    fn begin(&self, breaker: &mut Breaker, start: Start) {
        let number = breaker.next_repair();
        let (reporter, reports) = watch::channel(());
        self.shared.term.store(SEEKING, Ordering::Relaxed);
        let repair = repair(Arc::downgrade(&self.shared), number, start, reporter);
        let Some(task) = self.shared.driver.spawn(repair) else { return };
        breaker.begin(number, self.shared.target.ends(), reports, task.abort_handle());
        breaker.expect_connection();
    }

    /// Notes how an attempt ended. Returns whether to make another one.
    fn settle(&self, number: u64, outcome: Result<Link, BackendError>) -> bool {
        let mut breaker = self.lock();
        if !breaker.continues(number, Instant::now()) {
            return false;
        }
        match outcome {
            Ok(link) => {
                self.shared.connections.fetch_add(1, Ordering::Relaxed);
                report(|| tracing::debug!("connected to redis"));
                breaker.connect(link);
                false
            }
            Err(error) => {
                breaker.fail(error);
                true
            }
        }
    }

    /// Returns the reconnector; `None` if the limiter is gone.
    fn of(shared: &Weak<ReconnectorState>) -> Option<Self> {
        shared.upgrade().map(|shared| Self { shared })
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        let quiet = Quiet::begin();
        Locked { breaker: lock(&self.shared.breaker), outage: &self.shared.outage, _quiet: quiet }
    }
}

pub(crate) struct Locked<'a> {
    breaker: MutexGuard<'a, Breaker>,
    outage: &'a AtomicU8,
    _quiet: Quiet,
}

impl Deref for Locked<'_> {
    type Target = Breaker;

    fn deref(&self) -> &Breaker {
        &self.breaker
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Breaker {
        &mut self.breaker
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let kind = self.breaker.outage().map(BackendError::kind);
        let outage = kind.and_then(|kind| KINDS.iter().position(|known| *known == kind));
        let outage = outage.and_then(|outage| u8::try_from(outage).ok()).unwrap_or(NO_OUTAGE);
        self.outage.store(outage, Ordering::Relaxed);
    }
}

impl Drop for ReconnectorState {
    fn drop(&mut self) {
        self.breaker.get_mut().unwrap_or_else(PoisonError::into_inner).stop_repair();
    }
}

/// Attempts to connect until there is a connection, or until the limiter is gone. Each failure is reported.
async fn repair(shared: Weak<ReconnectorState>, number: u64, mut start: Start, reporter: watch::Sender<()>) {
    loop {
        if start == Start::Later && wait_for_attempt(&shared, number).await.is_none() {
            return;
        }
        start = Start::Later;
        let Some(target) = shared.upgrade().map(|shared| shared.target.clone()) else { return };
        let found = target.find().await;
        let term = found.as_ref().map_or_else(|_| target.location.term(), |(_, term)| *term);
        let Some(reconnector) = Reconnector::of(&shared) else { return };
        reconnector.shared.term.store(term, Ordering::Relaxed);
        drop(reconnector);
        let outcome = match found {
            Ok((address, _)) => target.connect(address, on_hang_up(shared.clone())).await,
            Err(error) => Err(error),
        };
        let Some(reconnector) = Reconnector::of(&shared) else { return };
        if !reconnector.settle(number, outcome) {
            return;
        }
        let _ = reporter.send(());
        // If a test has paused tokio's clock, tasks that never end would keep it from moving.
        if real_time::clocks_differ() {
            return;
        }
    }
}

/// Waits until pause and budget allow an attempt; `None` if the repair is over.
async fn wait_for_attempt(shared: &Weak<ReconnectorState>, number: u64) -> Option<()> {
    loop {
        let reconnector = Reconnector::of(shared)?;
        let now = Instant::now();
        let paused = reconnector.lock().pause_until.filter(|&until| until > now);
        let next = match paused {
            Some(until) => Err(until),
            None => reconnector.shared.budget.try_spend(now),
        };
        let latest = next.err().unwrap_or_else(|| reconnector.shared.target.ends());
        if !reconnector.lock().continues(number, latest) {
            return None;
        }
        drop(reconnector);
        match next {
            Ok(()) => return Some(()),
            Err(until) => _ = real_time::wait_until(until, pending::<()>()).await,
        }
    }
}

fn on_hang_up(shared: Weak<ReconnectorState>) -> impl FnOnce() + Send + 'static {
    move || {
        if let Some(reconnector) = Reconnector::of(&shared) {
            reconnector.check_link(&mut reconnector.lock());
        }
    }
}
