//! A connection and its health.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{PushInfo, PushKind};
use tokio::sync::mpsc;

use crate::system::{Connection, Instant, spawn};

/// A connection that is closed within this time and without any answer has failed.
const A_WHILE: Duration = Duration::from_secs(1);

/// A connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Link {
    connection: Connection,
    health: Arc<Health>,
}

/// Times are in microseconds since the connection was made; 0 means never.
struct Health {
    /// Closed when the server has hung up, or when the runtime that drove the connection is gone.
    pushes: mpsc::UnboundedSender<PushInfo>,
    hung_up: Arc<AtomicBool>,
    connected: Instant,
    /// When the server answered last.
    answered_us: AtomicU64,
    /// When the first question after the last answer was asked.
    asked_us: AtomicU64,
}

/// What the server sends unasked. That shows when the server hangs up.
pub(crate) type Pushes = (mpsc::UnboundedSender<PushInfo>, mpsc::UnboundedReceiver<PushInfo>);

impl Link {
    /// Wraps a new connection that sends its pushes here. `on_hang_up` is called when the server closes the connection.
    pub(crate) fn new(
        connection: Connection,
        (sender, receiver): Pushes,
        on_hang_up: impl FnOnce() + Send + 'static,
    ) -> Self {
        let hung_up = Arc::<AtomicBool>::default();
        spawn(watch(receiver, Arc::clone(&hung_up), on_hang_up));
        let health = Health {
            pushes: sender,
            hung_up,
            connected: Instant::now(),
            answered_us: AtomicU64::default(),
            asked_us: AtomicU64::default(),
        };
        Self { connection, health: Arc::new(health) }
    }

    pub(crate) fn connection(&mut self) -> &mut MultiplexedConnection {
        &mut self.connection
    }

    /// Notes that a caller waits for an answer from now on.
    pub(crate) fn record_question(&self) {
        if self.health.asked_us.load(Ordering::Relaxed) <= self.health.answered_us.load(Ordering::Relaxed) {
            self.health.asked_us.store(self.age_us(), Ordering::Relaxed);
        }
    }

    /// Notes that the server has answered; returns whether it was the first time.
    pub(crate) fn record_answer(&self) -> bool {
        let now_us = self.age_us().max(1);
        self.health.answered_us.fetch_max(now_us, Ordering::Relaxed) == 0
    }

    /// Whether the server has answered a caller, or has kept the connection for a while.
    pub(crate) fn was_of_use(&self) -> bool {
        self.health.answered_us.load(Ordering::Relaxed) > 0 || self.health.connected.elapsed() >= A_WHILE
    }

    /// How long callers have been waiting without any answer. Valid only while a question has no answer.
    pub(crate) fn silence(&self) -> Duration {
        let asked_us = self.health.asked_us.load(Ordering::Relaxed);
        let since_us = asked_us.max(self.health.answered_us.load(Ordering::Relaxed));
        Duration::from_micros(self.age_us().saturating_sub(since_us))
    }

    /// Whether the connection is open, as far as this process knows.
    pub(crate) fn is_open(&self) -> bool {
        !self.health.pushes.is_closed()
    }

    pub(crate) fn was_hung_up(&self) -> bool {
        self.health.hung_up.load(Ordering::Relaxed)
    }

    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.health, &other.health)
    }

    fn age_us(&self) -> u64 {
        u64::try_from(self.health.connected.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Ends, which closes the channel, when the server hangs up or nothing holds the connection any more.
async fn watch(
    mut pushes: mpsc::UnboundedReceiver<PushInfo>,
    hung_up: Arc<AtomicBool>,
    on_hang_up: impl FnOnce() + Send,
) {
    while let Some(push) = pushes.recv().await {
        if push.kind == PushKind::Disconnection {
            hung_up.store(true, Ordering::Relaxed);
            drop(pushes);
            return on_hang_up();
        }
    }
}
