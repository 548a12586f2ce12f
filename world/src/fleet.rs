//! The processes of the fleet: each runs real limiters, and has a clock, chance and connections of its own.

mod clock;

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tallygate::__world::{Connecting, Process, Sleeping, Stream, in_process};
use tokio::task::AbortHandle;

pub use self::clock::Clock;
use crate::engine::{self, Chance};
use crate::net::{self, Party};

/// No two processes of a program have the same number, whichever world they are in.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// A process that was started.
pub struct Member {
    id: u64,
    party: Party,
    clock: Clock,
    chance: Mutex<Chance>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    phase: Phase,
    tasks: Vec<AbortHandle>,
    /// How long it was paused before now, in microseconds.
    paused_us: u64,
}

#[derive(Default)]
enum Phase {
    #[default]
    Running,
    Paused {
        since_us: u64,
        waiting: Vec<Waker>,
    },
    Gone,
}

impl Member {
    /// Starts a process.
    #[must_use]
    pub fn start(seed: u64, number: u32, clock: Clock) -> Arc<Self> {
        let id = STARTED.fetch_add(1, Ordering::Relaxed);
        let chance = Chance::new(seed, &format!("process {number} at {}", engine::now_us()));
        let state = Mutex::default();
        Arc::new(Self { id, party: Party::Process(number), clock, chance: Mutex::new(chance), state })
    }

    /// Runs a future in this process, as a task of its own.
    pub fn spawn(self: &Arc<Self>, future: impl Future<Output = ()> + Send + 'static) {
        let task = tokio::spawn(in_process(Arc::clone(self) as _, future));
        self.spawned(task.abort_handle());
    }

    /// Stops all tasks where they are.
    pub fn pause(&self) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Running) {
            state.phase = Phase::Paused { since_us: engine::now_us(), waiting: Vec::new() };
        }
    }

    /// Lets all tasks go on.
    pub fn resume(&self) {
        let mut state = self.state();
        let Phase::Paused { since_us, .. } = state.phase else { return };
        let Phase::Paused { waiting, .. } = mem::take(&mut state.phase) else { return };
        state.paused_us += engine::now_us() - since_us;
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Ends the process: its streams first, then all that runs in it.
    pub fn kill(&self) {
        net::cut(self.party);
        let tasks = {
            let mut state = self.state();
            state.phase = Phase::Gone;
            mem::take(&mut state.tasks)
        };
        tasks.iter().for_each(AbortHandle::abort);
    }

    /// Whether it was not killed.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !matches!(self.state().phase, Phase::Gone)
    }

    /// What its clock has counted since the world began, in microseconds.
    #[must_use]
    pub fn local_us(&self) -> u64 {
        self.clock.local_us(engine::now_us())
    }

    /// How long it was paused until now, in microseconds.
    #[must_use]
    pub fn paused_us(&self) -> u64 {
        let state = self.state();
        let now_us = match state.phase {
            Phase::Paused { since_us, .. } => engine::now_us() - since_us,
            Phase::Running | Phase::Gone => 0,
        };
        state.paused_us + now_us
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process for Member {
    fn id(&self) -> u64 {
        self.id
    }

    fn now(&self) -> Instant {
        clock::instant(self.local_us())
    }

    fn unix(&self) -> Duration {
        self.clock.unix(engine::now_us())
    }

    fn sleep_until(&self, until: Instant) -> Sleeping {
        Box::pin(engine::sleep_until(self.clock.virtual_us(until)))
    }

    fn random(&self) -> u64 {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner).number()
    }

    fn connect(&self, host: &str, port: u16) -> Connecting {
        let attempt = net::connect(self.party, host.to_owned(), port);
        Box::pin(async move { attempt.await.map(|stream| Box::new(stream) as Box<dyn Stream>) })
    }

    fn poll_running(&self, context: &mut Context<'_>) -> Poll<()> {
        if !engine::count_step() {
            return Poll::Pending;
        }
        match &mut self.state().phase {
            Phase::Running => Poll::Ready(()),
            Phase::Paused { waiting, .. } => {
                waiting.push(context.waker().clone());
                Poll::Pending
            }
            Phase::Gone => Poll::Pending,
        }
    }

    fn spawned(&self, task: AbortHandle) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Gone) {
            drop(state);
            task.abort();
            return;
        }
        if state.tasks.len() == state.tasks.capacity() {
            state.tasks.retain(|task| !task.is_finished());
        }
        state.tasks.push(task);
    }
}

/// A wait in the clock of a process.
#[must_use]
pub fn sleeping(member: &Member, us: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let until = clock::instant(member.local_us() + us);
    member.sleep_until(until)
}
