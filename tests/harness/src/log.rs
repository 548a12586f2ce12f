//! The log of the code under test.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::subscriber::{DefaultGuard, NoSubscriber};
use tracing::{Dispatch, Level};

/// While there is one subscriber only, `tracing` asks the one of the thread that logs a line first whether it is interested, and
/// remembers the answer for all threads. With a second subscriber, it asks all of them.
static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));

/// Everything that this thread logs, as text.
#[derive(Clone, Default)]
pub struct Log {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Log {
    /// Listens to this thread until the guard is dropped.
    #[must_use]
    pub fn listen() -> (Self, DefaultGuard) {
        LazyLock::force(&ANOTHER);
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// Returns the lines that were logged so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let bytes = self.bytes.lock().expect("no panic under the lock");
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.lock().expect("no panic under the lock").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
