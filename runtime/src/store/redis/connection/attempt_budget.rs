//! The limit on attempts of this process to connect.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use once_cell::sync::Lazy;

use crate::lock::lock;
use crate::system::{Instant, per_process};

/// The most attempts in any [`PERIOD`].
const MOST: usize = 10;
const PERIOD: Duration = Duration::from_secs(1);

per_process! {
    static BUDGETS: Lazy<Mutex<HashMap<String, Weak<AttemptBudget>>>> = Lazy::new(Mutex::default);
}

/// The attempts to connect to one address: at most ten in any second, whatever makes them fail. All limiters of this
/// process that connect to the address share it.
#[derive(Debug, Default)]
pub(crate) struct AttemptBudget {
    /// When the latest attempts began, oldest first.
    latest: Mutex<VecDeque<Instant>>,
}

impl AttemptBudget {
    pub(crate) fn shared(address: &str) -> Arc<Self> {
        let mut budgets = lock(&BUDGETS);
        if let Some(budget) = budgets.get(address).and_then(Weak::upgrade) {
            return budget;
        }
        budgets.retain(|_, budget| budget.strong_count() > 0);
        let budget = Arc::default();
        budgets.insert(address.to_owned(), Arc::downgrade(&budget));
        budget
    }

    /// Spends one attempt. If none is left, the error is the time of the next one.
    pub(crate) fn try_spend(&self, now: Instant) -> Result<(), Instant> {
        let mut latest = lock(&self.latest);
        let next = latest.front().filter(|_| latest.len() >= MOST).map(|&oldest| oldest + PERIOD);
        if let Some(next) = next.filter(|&next| next > now) {
            return Err(next);
        }
        record(&mut latest, now);
        Ok(())
    }

    /// Spends an attempt that must not wait, even if none is left.
    pub(crate) fn spend(&self, now: Instant) {
        record(&mut lock(&self.latest), now);
    }
}

fn record(latest: &mut VecDeque<Instant>, now: Instant) {
    if latest.len() >= MOST {
        latest.pop_front();
    }
    latest.push_back(now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_second_has_at_most_ten_attempts_and_none_waits_longer_than_a_second() {
        let budget = AttemptBudget::default();
        let start = Instant::now();
        let mut random = fastrand::Rng::with_seed(9);
        let mut now = start;
        let mut begun = Vec::new();
        for _ in 0..10_000 {
            now += Duration::from_millis(random.u64(0..200));
            match budget.try_spend(now) {
                Ok(()) => begun.push(now),
                Err(next) => assert!(next > now && next - begun[begun.len() - MOST] == PERIOD, "refused for no reason"),
            }
        }
        assert!(begun.windows(MOST + 1).all(|attempts| attempts[MOST] - attempts[0] >= PERIOD));
    }

    #[test]
    fn an_attempt_that_must_not_wait_counts_too() {
        let budget = AttemptBudget::default();
        let start = Instant::now();
        (0..2 * MOST).for_each(|_| budget.spend(start));
        assert_eq!(budget.try_spend(start + PERIOD / 2), Err(start + PERIOD));
        assert_eq!(budget.try_spend(start + PERIOD), Ok(()));
    }

    #[test]
    fn an_address_has_one_budget_while_anything_uses_it() {
        let first = AttemptBudget::shared("first:1");
        assert!(Arc::ptr_eq(&first, &AttemptBudget::shared("first:1")));
        assert!(!Arc::ptr_eq(&first, &AttemptBudget::shared("second:1")));
        (0..MOST).for_each(|_| assert!(first.try_spend(Instant::now()).is_ok()));
        drop(first);
        assert!(lock(&AttemptBudget::shared("first:1").latest).is_empty());
    }
}
