//! A simulated world, as seen by the limiters in it.
//!
//! The world implements [`Process`] for the processes of its fleet, and polls their code by [`in_process`]. Outside of
//! all processes, a limiter uses the real system.

#[cfg(feature = "redis")]
mod connection;
mod process;
mod tasks;
mod time;

pub use self::process::{Connecting, InProcess, Process, Sleeping, Stream, in_process};

/// The items that a limiter takes from its process.
pub(super) mod inside {
    #[cfg(feature = "redis")]
    pub(crate) use super::connection::{DrivenConnection as Connection, TcpStream, open};
    pub(crate) use super::process::{PerProcess, RandomState, per_process};
    #[cfg(feature = "redis")]
    pub(crate) use super::process::{RandomState as StdRandomState, random_fraction, random_number, shuffle};
    #[cfg(feature = "config")]
    pub(crate) use super::tasks::beside_tasks;
    pub(crate) use super::tasks::{Handle, NoOwnRuntime as OwnRuntime, is_own_thread};
    #[cfg(feature = "redis")]
    pub(crate) use super::tasks::{JoinSet, spawn};
    pub(crate) use super::time::{Instant, Instant as TokioInstant, sleep, sleep_apart, sleep_until, unix};
    #[cfg(feature = "redis")]
    pub(crate) use super::time::{clocks_differ, timeout, timeout_at};
}

#[cfg(test)]
mod tests;
