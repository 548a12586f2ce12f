//! Waiting for admission: callers of one subject stand in line, and only the first of the line asks.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::check::Check;
use crate::key::Key;
use crate::{Decision, Outage};

/// How long a caller is ready to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Within(Duration),
    Endless,
}

impl Patience {
    /// The latest time to be told an answer, if there is one.
    fn deadline(self) -> Option<Instant> {
        match self {
            Self::Within(patience) => Instant::now().checked_add(patience),
            Self::Endless => None,
        }
    }
}

/// The lines of this process, by the key of the tally that they wait for. A line without callers is not in here.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<HashMap<Key, Line, RandomState>>);

#[derive(Debug, Default)]
struct Line {
    /// Whoever holds it is the first of the line; it is handed on in the order of coming.
    turn: Arc<tokio::sync::Mutex<()>>,
    callers: usize,
}

impl Lines {
    fn has(&self, key: &Key) -> bool {
        self.lock().contains_key(key)
    }

    fn join(&self, key: &Key) -> Place<'_> {
        let mut lines = self.lock();
        let line = lines.entry(*key).or_default();
        line.callers += 1;
        Place { lines: self, key: *key, turn: Arc::clone(&line.turn) }
    }

    fn leave(&self, key: &Key) {
        let mut lines = self.lock();
        let Some(line) = lines.get_mut(key) else { return };
        line.callers -= 1;
        if line.callers == 0 {
            lines.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Line, RandomState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller's place in a line. Dropping it leaves the line.
struct Place<'a> {
    lines: &'a Lines,
    key: Key,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Place<'_> {
    /// Returns once the caller is the first of the line, or without a turn at the deadline.
    async fn turn(&self, deadline: Option<Instant>) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match deadline {
            Some(deadline) => timeout_at(deadline, self.turn.lock()).await.ok(),
            None => Some(self.turn.lock().await),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.lines.leave(&self.key);
    }
}

/// Asks until the call is admitted, or cannot be by the deadline.
pub(crate) async fn admission(check: &Check<'_>, patience: Patience) -> Result<Decision, Outage> {
    if Handle::try_current().is_err() {
        return Err(Outage::new("waiting for admission needs a tokio runtime"));
    }
    let (deadline, lines, key) = (patience.deadline(), check.limiter().lines(), &check.first_key()?);
    let mut ask_at = None;
    // Who finds no line asks at once, beside all others that find none.
    if !lines.has(key) {
        match ask(check, deadline).await? {
            ControlFlow::Break(decision) => return Ok(decision),
            ControlFlow::Continue(time) => ask_at = Some(time),
        }
    }
    let place = lines.join(key);
    let Some(_turn) = place.turn(deadline).await else { return check.ask().await };
    loop {
        if let Some(time) = ask_at {
            sleep_until(time).await;
        }
        match ask(check, deadline).await? {
            ControlFlow::Break(decision) => return Ok(decision),
            ControlFlow::Continue(time) => ask_at = Some(time),
        }
    }
}

/// Asks for the decision to return, or for when it is worth asking again.
async fn ask(check: &Check<'_>, deadline: Option<Instant>) -> Result<ControlFlow<Decision, Instant>, Outage> {
    // A denial that is slept out is told to nobody, and counts towards no ban.
    if let Some(look) = check.look()
        && let Some(time) = worth_asking_at(&look.ask().await?, deadline)
    {
        return Ok(ControlFlow::Continue(time));
    }
    let decision = check.ask().await?;
    Ok(worth_asking_at(&decision, deadline).map_or(ControlFlow::Break(decision), ControlFlow::Continue))
}

/// When a denied call may be admitted, if that is by the deadline.
fn worth_asking_at(decision: &Decision, deadline: Option<Instant>) -> Option<Instant> {
    let Decision::Denied(denial) = decision else { return None };
    let time = Instant::now().checked_add(denial.retry_after()?)?;
    deadline.is_none_or(|deadline| time <= deadline).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limiter, Policy, Rule, Subject};

    #[tokio::test(start_paused = true)]
    async fn a_line_is_gone_with_its_last_caller_however_it_leaves() {
        let limiter = Limiter::in_memory();
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(10))).build().unwrap();
        let subject = Subject::of("s");
        let lines = || limiter.lines().lock().values().map(|line| line.callers).collect::<Vec<_>>();
        let second = Duration::from_secs(1);

        assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed());
        assert_eq!(lines(), [0_usize; 0], "who is admitted at once stands in no line");
        for leaves_first in [0, 1] {
            let call = || {
                let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject.clone());
                tokio::spawn(async move { limiter.check(&policy, &subject).wait(20 * second).await.map(drop) })
            };
            // One sleeps, and one stands behind it.
            let mut waiting = vec![call(), call()];
            tokio::time::sleep(second).await;
            assert_eq!(lines(), [2]);
            for (leaves, left) in [(leaves_first, &[1][..]), (0, &[])] {
                let waiting = waiting.remove(leaves);
                waiting.abort();
                assert!(waiting.await.unwrap_err().is_cancelled());
                assert_eq!(lines(), left);
            }
        }
        assert!(limiter.check(&policy, &subject).wait(10 * second).await.unwrap().is_allowed());
        assert_eq!(lines(), [0_usize; 0]);
    }
}
