//! For tools of operators: the policies of a fleet, and the subjects that they count.
//!
//! Each process lists its policies in Redis, unless [that is turned off](crate::LimiterBuilder::registry). A tool reads the
//! list, and needs no copy of the rules:
//!
//! ```no_run
//! use tallygate::Limiter;
//!
//! # async fn peek() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = Limiter::builder().registry(false).connect("redis://127.0.0.1/").await?;
//! let registered = limiter.registered_policies().await?;
//! for policy in registered.policies() {
//!     println!("{} {} {}", policy.name(), policy.key().unwrap_or("?"), policy.rules_text());
//! }
//!
//! let registered = registered.find("sms.send").ok_or("no process has used it for a week")?;
//! let policy = registered.policy()?;
//! let subjects = registered.render(&limiter).value("13800000000").build()?;
//! let decision = subjects.check(&limiter, &policy).peek().report().await?;
//! for rule in decision.report() {
//!     println!("{}: {} left", rule.position(), rule.remaining());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The check does everything that any other check does: it [resets](crate::Check::reset), [bans](crate::Check::ban) and
//! [unbans](crate::Check::unban). [`Limiter::tallies`](crate::Limiter::tallies) finds the subjects that have a tally, and
//! [`Limiter::bans`](crate::Limiter::bans) those that are banned.
//!
//! [`Limiter::inspect`](crate::Limiter::inspect) finds problems of the servers.
//!
//! Reading the list needs the permissions `+hlen +hscan` on the server, and finding subjects `+scan +dbsize` on each
//! server: see [production](crate::guide::production#a-user-of-its-own).

#[doc(hidden)]
pub mod __shared;
mod bans;
#[cfg(feature = "config")]
mod file_check;
mod finding;
mod registered;
mod registered_policy;
mod rendering;
mod server_report;
mod tallies;
mod template;
mod whole_subject;

pub use self::bans::{BanPage, BannedSubject, Bans};
pub use self::finding::{Finding, Level};
pub use self::registered::{Registered, Unreadable};
pub use self::registered_policy::{RegisteredPolicy, RegisteredSubject};
pub use self::rendering::Rendering;
pub use self::server_report::ServerReport;
pub use self::tallies::{Tallies, TallyPage};
pub use self::template::{Placeholder, Subjects};
