//! The connection to a server: one, kept and repaired in the background, and what its errors mean. Nothing here knows of
//! limits.
//!
//! A single connection is the client library's: all callers share its socket. Its managed connections do not serve, as a call
//! has a deadline of milliseconds, and an outage must cost a caller nothing. This was measured with the crate `redis` 1.8:
//!
//! * A bare `MultiplexedConnection` never recovers. It has no timeout of responses by default, and with one, a response that is
//!   late does not make it connect again, and neither does `READONLY` after a demotion. A server that hangs, a socket that is
//!   half open and a primary that was demoted keep it forever.
//! * With the default settings of `ConnectionManager`, each call waits for its attempts to connect: for seconds while the server
//!   is away. The timeout of responses does not cover them. Here, a task makes one attempt at a time; calls are refused
//!   meanwhile, and say why.
//! * Its client of sentinels asks them when it connects. A primary that was demoted takes writes for seconds after that, and
//!   they are lost. Here, the sentinels are watched.
//! * Its client of clusters tries up to 16 times and sends a call again whose reply was lost: one call was counted six times.
//!   Its reload of a script needs every node, so that one dead replica fails calls of other slots.

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
