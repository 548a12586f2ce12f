//! A connection, and what is known of its health.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use ::redis::aio::MultiplexedConnection;
use ::redis::{PushInfo, PushKind};
use tokio::sync::mpsc;

/// A connection. Clones share it.
#[derive(Clone)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    health: Arc<Health>,
}

struct Health {
    /// Closed when the server has hung up, or when the runtime that drove the connection is gone.
    pushes: mpsc::UnboundedSender<PushInfo>,
    hung_up: Arc<AtomicBool>,
    connected: Instant,
    /// When the server answered last, in microseconds since then; 0 if it has not answered yet.
    answered_us: AtomicU64,
}

/// Receives what the server sends on its own, and learns by that when it hangs up.
pub(super) struct Pushes {
    sender: mpsc::UnboundedSender<PushInfo>,
    receiver: mpsc::UnboundedReceiver<PushInfo>,
}

impl Pushes {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver }
    }

    pub(super) fn sender(&self) -> mpsc::UnboundedSender<PushInfo> {
        self.sender.clone()
    }
}

impl Link {
    /// Returns a connection that was made a moment ago and sends its pushes here.
    pub(super) fn new(connection: MultiplexedConnection, pushes: Pushes) -> Self {
        let Pushes { sender, receiver } = pushes;
        let hung_up = Arc::<AtomicBool>::default();
        tokio::spawn(watch(receiver, Arc::clone(&hung_up)));
        let health = Health { pushes: sender, hung_up, connected: Instant::now(), answered_us: AtomicU64::default() };
        Self { connection, health: Arc::new(health) }
    }

    pub(super) fn connection(&mut self) -> &mut MultiplexedConnection {
        &mut self.connection
    }

    /// Records that the server has answered; returns whether it was for the first time.
    pub(super) fn record_answer(&self) -> bool {
        let now_us = self.age_us(Instant::now()).max(1);
        self.health.answered_us.fetch_max(now_us, Ordering::Relaxed) == 0
    }

    /// Whether the server has answered a command since it greeted.
    pub(super) fn has_answered(&self) -> bool {
        self.health.answered_us.load(Ordering::Relaxed) > 0
    }

    /// Whether no answer has come since then.
    pub(super) fn is_silent_since(&self, asked: Instant) -> bool {
        self.health.answered_us.load(Ordering::Relaxed) <= self.age_us(asked)
    }

    /// Whether the connection is open, as far as this process knows.
    pub(super) fn is_open(&self) -> bool {
        !self.health.pushes.is_closed()
    }

    /// Whether the server has closed the connection.
    pub(super) fn was_hung_up(&self) -> bool {
        self.health.hung_up.load(Ordering::Relaxed)
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.health, &other.health)
    }

    fn age_us(&self, at: Instant) -> u64 {
        let age = at.saturating_duration_since(self.health.connected);
        u64::try_from(age.as_micros()).unwrap_or(u64::MAX)
    }
}

/// Ends, and by that closes the channel, when the server hangs up or nothing holds the connection any more.
async fn watch(mut pushes: mpsc::UnboundedReceiver<PushInfo>, hung_up: Arc<AtomicBool>) {
    while let Some(push) = pushes.recv().await {
        if push.kind == PushKind::Disconnection {
            hung_up.store(true, Ordering::Relaxed);
            return;
        }
    }
}
