//! Types that let shuttle choose which thread goes on, and how it explores that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

pub(crate) use shuttle::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic};

/// How many interleavings are tried in each way.
const INTERLEAVINGS: usize = 1_000;

/// How many changes of thread at the wrong moment a mistake may need to show.
const CHANGES: usize = 3;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plays a test in many interleavings of its threads: some by chance, others with few changes of thread.
pub(crate) fn explore(test: impl Fn() + Clone + Send + Sync + 'static) {
    shuttle::check_random(test.clone(), INTERLEAVINGS);
    shuttle::check_pct(test, INTERLEAVINGS, CHANGES);
}

/// Whether there is an interleaving in which a test fails.
pub(crate) fn fails(test: impl Fn() + Clone + Send + Sync + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(|| explore(test))).is_err()
}
