//! Statics of which each process has its own.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use super::process::current;

/// The value of a static in each process. Values are few and small, and are never freed.
pub(crate) struct PerProcess<T: 'static> {
    make: fn() -> T,
    values: Mutex<BTreeMap<Option<u64>, &'static T>>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new(make: fn() -> T) -> Self {
        Self { make, values: Mutex::new(BTreeMap::new()) }
    }
}

impl<T> Deref for PerProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let process = current().map(|process| process.id());
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.entry(process).or_insert_with(|| Box::leak(Box::new((self.make)())))
    }
}

/// Declares a static of which each process has its own.
macro_rules! per_process {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $value:expr;) => {
        $(#[$attribute])*
        $visibility static $name: $crate::system::PerProcess<$type> = $crate::system::PerProcess::new(|| $value);
    };
}
pub(crate) use per_process;
