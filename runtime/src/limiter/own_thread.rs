//! The thread of a limiter, which runs requests of plain functions, as these cannot await.
//!
//! It has a runtime of its own, because the calling thread may belong to a runtime. While the calling thread is
//! blocked, so are the tasks that only it drives: a connection, the refresh of overrides, a caller in a queue.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tracing::Instrument as _;

use super::core::Core;
use crate::context;
use crate::error::BackendError;
use crate::policy::Policy;
use crate::system::under_way::TaskKind;
use crate::system::{OwnRuntime, is_own_thread};

impl Core {
    /// Runs a future on the thread of the limiter, with the context and the span of the caller, and waits for its
    /// output for a limited time.
    ///
    /// # Errors
    ///
    /// There is no output in time, the future panics, or the thread cannot be started, or is the calling one.
    pub(super) fn run_on_thread<T: Send + 'static>(
        &self,
        kind: TaskKind,
        future: impl Future<Output = T> + Send + 'static,
        patience: Option<Duration>,
    ) -> Result<T, BackendError> {
        self.runtimes.check_process()?;
        let runtime = self.thread()?;
        let (sender, output) = mpsc::sync_channel(1);
        let task = async move { drop(sender.send(future.await)) };
        let task = self.runtimes.counted(kind, context::carry(task).in_current_span());
        let task = runtime.spawn(Box::pin(task));
        let output = match patience {
            Some(patience) => output.recv_timeout(patience),
            None => output.recv().map_err(RecvTimeoutError::from),
        };
        output.map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                task.abort();
                BackendError::away("the thread of the limiter is kept from its work; do not block in `on_warning`")
            }
            RecvTimeoutError::Disconnected => {
                BackendError::new("a panic has ended the call on the thread of the limiter")
            }
        })
    }

    /// Runs a correction of a plain function on the thread of the limiter, and waits for its result as long as for an answer of
    /// the store.
    pub(super) fn correct_on_thread<T: Send + 'static>(
        &self,
        policy: &Policy,
        correction: impl Future<Output = Result<T, BackendError>> + Send + 'static,
    ) -> Result<T, BackendError> {
        self.run_on_thread(TaskKind::Correction, correction, self.patience(policy)).unwrap_or_else(Err)
    }

    fn thread(&self) -> Result<&OwnRuntime, BackendError> {
        if is_own_thread() {
            let message = "a plain function cannot be decided on the thread of a limiter; within `on_warning`, send it to \
                           another thread";
            return Err(BackendError::misuse(message));
        }
        let failed = |error| BackendError::new(format!("the limiter could not start a thread: {error}"));
        self.runtimes.thread().map_err(failed)
    }
}

#[cfg(test)]
#[cfg(not(tallygate_world))]
#[cfg(feature = "redis")]
mod tests {
    use tallygate_rules::Rule;
    use tokio::runtime::Builder;

    use super::*;
    use crate::error::BackendErrorKind;
    use crate::limiter::Limiter;
    use crate::subject::Subject;

    #[test]
    fn a_process_that_was_forked_off_is_told_so_at_once() {
        // The server was not asked.
        let limiter = Limiter::builder().connect_lazy("redis://127.0.0.1:1/").unwrap();
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
        let subject = Subject::everyone();
        limiter.core.runtimes.fork();
        let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
        let home = runtime();
        home.block_on(async { limiter.core.runtimes.side() });
        let plain = limiter.check(&policy, &subject).blocking_decide().unwrap_err();
        let other = runtime().block_on(async { limiter.check(&policy, &subject).await.unwrap_err() });
        let pinged = runtime().block_on(async { limiter.ping().await.unwrap_err() });
        for error in [plain, other, pinged] {
            assert_eq!(error.kind(), BackendErrorKind::Misuse);
            assert!(error.to_string().contains("build the limiter after the fork"), "{error}");
        }
    }
}
