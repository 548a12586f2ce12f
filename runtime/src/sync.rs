//! What threads share where shuttle tries their interleavings: the types of std, and those of shuttle in its tests.

#[cfg(all(test, tallygate_shuttle))]
pub(crate) mod interleaved;

#[cfg(not(all(test, tallygate_shuttle)))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic};

#[cfg(all(test, tallygate_shuttle))]
pub(crate) use self::interleaved::{Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic, lock};
#[cfg(not(all(test, tallygate_shuttle)))]
pub(crate) use crate::lock::lock;
