//! Types that threads share: those of std, or those of shuttle in tests that explore interleavings.

#[cfg(all(test, tallygate_shuttle))]
pub(crate) mod interleaved;

#[cfg(not(all(test, tallygate_shuttle)))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic};

#[cfg(all(test, tallygate_shuttle))]
pub(crate) use self::interleaved::{Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic, lock, read, write};
#[cfg(not(all(test, tallygate_shuttle)))]
pub(crate) use crate::lock::{lock, read, write};
