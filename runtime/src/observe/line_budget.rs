//! A bound on the lines of the log.

use std::sync::Mutex;
use std::time::Duration;

use super::terms::TARGET;
use super::voice::report;
use crate::lock::lock;
use crate::system::TokioInstant;

/// The most lines of one budget in a minute.
const MOST_LINES: u32 = 32;
const MINUTE: Duration = Duration::from_secs(60);

/// A limit on the lines of the log in a minute, for events that others may cause as often as they like. Further events
/// are left out, and the log says so once.
#[derive(Debug, Default)]
pub(crate) struct LineBudget(Mutex<SpentLines>);

#[derive(Debug, Default)]
struct SpentLines {
    since: Option<TokioInstant>,
    lines: u32,
}

impl LineBudget {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(SpentLines { since: None, lines: 0 }))
    }

    /// Reports an event if a line is left for it.
    pub(crate) fn report(&self, report: impl FnOnce()) {
        match self.spend() {
            0..MOST_LINES => report(),
            MOST_LINES => lines_left_out(),
            _ => {}
        }
    }

    /// Spends a line; returns how many were spent before.
    fn spend(&self) -> u32 {
        let now = TokioInstant::now();
        let mut spent = lock(&self.0);
        if spent.since.is_none_or(|since| now.saturating_duration_since(since) >= MINUTE) {
            *spent = SpentLines { since: Some(now), lines: 0 };
        }
        let before = spent.lines;
        spent.lines = before.saturating_add(1);
        before
    }
}

/// Reports that events are left out.
fn lines_left_out() {
    report(|| {
        tracing::warn!(target: TARGET, "there is more of this kind to report than the log gets in a minute; the rest is left out");
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_minute_has_a_bounded_number_of_lines() {
        let budget = LineBudget::default();
        let reported = || (0..10_000).filter(|_| budget.spend() < MOST_LINES).count();
        assert_eq!((reported(), reported()), (32, 0));
        tokio::time::advance(MINUTE).await;
        assert_eq!(reported(), 32);
    }
}
