//! The connection to a server, which is kept and repaired in the background, and the meaning of its errors. This module
//! knows nothing of limits.
//!
//! A connection is one of the crate `redis`, and all callers share its socket. Its managed connections are not used: a
//! call has a deadline of milliseconds, and callers must not wait during an outage. This was measured with the crate
//! `redis` 1.8:
//!
//! * A bare `MultiplexedConnection` never recovers. By default it has no timeout for responses. With one, it does not
//!   connect again after a late response, nor after `READONLY` from a demoted primary. It stays with a server that
//!   hangs, a half-open socket or a demoted primary forever.
//! * `ConnectionManager`, by default, makes each call wait for its attempts to connect: for seconds while the server is
//!   away. The timeout for responses does not cover them. Here, a task makes one attempt at a time. Calls are refused
//!   meanwhile, and say why.
//! * Its client of sentinels asks them only when it connects. A demoted primary takes writes for seconds after that,
//!   and they are lost. Here, the sentinels are watched.
//! * Its client of clusters tries up to 16 times, and repeats a call whose reply was lost: one call was counted six
//!   times. To load a script again it needs every node, so one dead replica fails calls of other slots.

pub(super) mod address;
pub(super) mod attempt;
pub(super) mod attempt_budget;
pub(super) mod breaker;
pub(super) mod connect;
pub(super) mod diagnosis;
pub(super) mod fault;
pub(super) mod greeting;
pub(super) mod link;
pub(super) mod real_time;
pub(super) mod reconnecting;
pub(super) mod sentinel;
#[cfg(feature = "tls")]
pub(super) mod tls;
