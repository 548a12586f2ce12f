//! The connection to a server: one, kept and repaired in the background, and what its errors mean. Nothing here knows of
//! limits.
//!
//! A single connection is the client library's: it shares one socket between all callers, whoever gives up. Its managed
//! connections do not serve, as a call has a deadline of milliseconds, and an outage must cost a caller nothing:
//!
//! * A bare connection never recovers, and an answer that is late does not make it connect again: a server that stands
//!   still, a socket that is half open and a primary that was demoted keep it forever.
//! * Its manager lets each call wait for the attempts to connect, which takes seconds with a server away and is bounded by
//!   no timeout of answers. Here, one attempt is made at a time, by a task; calls are refused meanwhile, and know why.
//! * Its clients of sentinels and of clusters ask who serves while a call waits, and their reload of a script needs every
//!   node, so that one dead replica fails calls of other slots.

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
