//! How much can be decided.

use std::fmt;

use crate::error::BackendError;

/// Whose calls can be decided, as [`Limiter::ping`](crate::Limiter::ping) has found out: those of all subjects, or in a cluster
/// of which masters are away, those of some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    ready: u16,
    all: u16,
    error: Option<BackendError>,
}

impl Readiness {
    /// All of a server.
    pub(crate) const COMPLETE: Self = Self { ready: 1, all: 1, error: None };

    /// So many slots of all that there are. If none is ready, the error is why.
    pub(crate) fn of_slots(ready: u16, all: u16, error: Option<BackendError>) -> Result<Self, BackendError> {
        match error {
            Some(error) if ready == 0 => Err(error),
            error => Ok(Self { ready, all, error }),
        }
    }

    /// Returns whether calls of all subjects can be decided.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ready == self.all
    }

    /// Returns the share of the subjects whose calls can be decided: 1.0 is all of them.
    #[must_use]
    pub fn share(&self) -> f64 {
        f64::from(self.ready) / f64::from(self.all)
    }

    /// Returns why the calls of the others cannot be decided; `None` if there are none.
    #[must_use]
    pub fn error(&self) -> Option<&BackendError> {
        self.error.as_ref()
    }
}

/// Like `calls of 67 % of the subjects can be decided`.
impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_complete() {
            return f.write_str("all calls can be decided");
        }
        // Rounded down: not all of them.
        let percent = u32::from(self.ready) * 100 / u32::from(self.all.max(1));
        write!(f, "calls of {percent} % of the subjects can be decided")?;
        self.error.iter().try_for_each(|error| write!(f, ": {error}"))
    }
}
