//! Types of shuttle, which chooses the thread that goes on, and the search for interleavings.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use shuttle::sync::RwLockWriteGuard;
pub(crate) use shuttle::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic};

/// How many interleavings each search tries.
const INTERLEAVINGS: usize = 1_000;

/// The most changes of thread at the wrong moment that a mistake may need to show.
const CHANGES: usize = 3;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn read<T>(locked: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    locked.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T>(locked: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    locked.write().unwrap_or_else(PoisonError::into_inner)
}

/// Plays a test in many interleavings of its threads: some at random, others with few changes of thread.
pub(crate) fn explore(test: impl Fn() + Clone + Send + Sync + 'static) {
    shuttle::check_random(test.clone(), INTERLEAVINGS);
    shuttle::check_pct(test, INTERLEAVINGS, CHANGES);
}

/// Whether the test fails in one of the interleavings that are tried.
pub(crate) fn fails(test: impl Fn() + Clone + Send + Sync + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(|| explore(test))).is_err()
}
