//! The harness of the tests on the web: servers on sockets of their own, clients of both versions of HTTP, and what a
//! response says of its limits, read by parsers that have nothing to do with the library.

#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on panics"
)]

mod answer;
mod client;
mod raw;
pub mod server;

pub use self::answer::{Answer, LimitItem, PolicyItem, Problem};
pub use self::client::{Client, Http};
pub use self::raw::ask;

/// Every snippet of the README is compiled and run. They stand here, as some are about web servers.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The Chinese one has the same code, with other comments and texts.
#[cfg(doctest)]
#[doc = include_str!("../../README.zh-CN.md")]
pub struct ReadmeInChinese;

/// And those for people who come from Spring.
#[cfg(doctest)]
#[doc = include_str!("../../docs/from-spring.md")]
pub struct FromSpring;

/// Every snippet of the page about web servers, too.
#[cfg(doctest)]
#[doc = include_str!("../../runtime/guide/web.md")]
pub struct Web;

/// And those of the page about language models.
#[cfg(doctest)]
#[doc = include_str!("../../runtime/guide/gateway.md")]
pub struct Gateway;

/// And those of the page about calls to others.
#[cfg(doctest)]
#[doc = include_str!("../../runtime/guide/client.md")]
pub struct Calls;

/// And those of the page about limits from a file.
#[cfg(doctest)]
#[doc = include_str!("../../runtime/guide/configuration.md")]
pub struct Configuration;

/// And those of the page about monitoring.
#[cfg(doctest)]
#[doc = include_str!("../../docs/monitoring.md")]
pub struct Monitoring;
