//! Locks, also of what a thread has left that has panicked: the data behind a lock is valid at any moment.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
pub(crate) fn read<T>(locked: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    locked.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T>(locked: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    locked.write().unwrap_or_else(PoisonError::into_inner)
}
