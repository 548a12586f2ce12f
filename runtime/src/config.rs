//! Limits from a file: the policies of a program, in TOML, read at start-up and again while it runs.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tallygate::config::Policies;
//! use tallygate::{Limiter, Rejection, rate_limit};
//!
//! #[rate_limit(name = "sms.send", key = "sms:{phone}", rule(count = 1, per = "60s"))]
//! async fn send_code(phone: &str) -> Result<(), Rejection> {
//!     Ok(())
//! }
//!
//! let text = r#"
//!     [policy."sms.send"]
//!     key = "sms:{phone}"
//!     rules = ["2 per 60s", { count = 10, per = "1d", name = "daily" }]
//! "#;
//! let policies = Policies::from_toml(text)?;
//! Limiter::installed().apply(&policies)?;
//!
//! assert!(send_code("138").await.is_ok() && send_code("138").await.is_ok());
//! assert!(send_code("138").await.is_err());
//! # Ok(())
//! # }
//! ```
//!
//! # The file
//!
//! Each policy is a table `[policy."name"]`. Without `match`, it changes a policy of the program: that of a function, by its
//! name, or one that was [built](crate::PolicyBuilder::build). With `match`, it is a policy of its own, for requests of a web
//! server: `web::limits` enforces it.
//!
//! | key | meaning |
//! | --- | --- |
//! | `rules` | a list of rules: texts like `"1 per 60s"`, the [text form](crate::Rule#text-form), or tables of the arguments that the attribute has: `count`, `per`, `algorithm`, `capacity`, `initial`, `reset_after`, `cron`, `tz`, `name`, `key`; or `limit` and `lease` for concurrent calls |
//! | `key` | the subject; that of a function is a part of the program, so the file can only repeat it |
//! | `on_outage`, `deadline`, `warn_at` | as in the attribute |
//! | `plans` | counts by name, which a `count` that is an expression [asks for](crate::Limiter::plan_count); for requests, the counts of the first rule; or counts by the names of units |
//! | `match` | the requests: `{ path = "/login", methods = ["POST"] }` |
//! | `prefetch` | with `match`, as in the attribute; without it, only `false`: no call of the function is taken ahead |
//! | `shadow` | as in the attribute; `false` enforces a function that says `shadow` |
//! | `ban`, `cost` | as in the attribute; with `match` only. By unit, the cost is `cost = { tokens = 500 }` |
//! | `longest_pause` | lets the subject of `key` be [paused](crate::PolicyBuilder::pausable), for at most that long; with `match` only |
//! | `plan` | the value of the context that names the plan of a request: `"{@plan}"`; with `match` only |
//! | `exempt_paths` | paths of `match` that are not limited: `["/health"]` |
//! | `refund_if` | the requests that do not count: `"success"`, whose response has a status below 400, or `"failure"`; with `match` only |
//! | `reject` | the response to requests that are rejected: `{ status = 403, body = "not now", content_type = "text/plain" }`; with `match` only |
//!
//! Before the policies, `values = ["user", "plan"]` lists the values that the program finds in requests, beside `ip` and the other
//! values of each request. Then a key that shows another one is a mistake.
//!
//! Before the policies, `plans = ["free", "paid"]` lists all plans. Then a policy that names another one is a mistake. As a table,
//! `[plans]` with `free = 100`, it also has their counts for every policy that gives none of its own.
//!
//! `[end]` as the last line says that the file is whole, also if it has no policies:
//! [`Limiter::watch_file`](crate::Limiter::watch_file) then refuses it as soon as that line is missing.
//!
//! Rules replace all rules on their subject, those against duplicates included; rules on subjects that the file does not
//! name stay in force, and so do the ban and the messages of a function. The checks are those of the attribute, in the same
//! words. All mistakes are reported at once, with line and column, and nothing of a mistaken file is applied.
//!
//! # What is counted already
//!
//! [`Limiter::apply`](crate::Limiter::apply) may be called again at any time. Counts change freely. Another longest
//! window or another algorithm starts new tallies: each subject may use the new `count` once more. When the old rules
//! return, their tallies are as they were.

mod change;
mod lines;
#[cfg(not(feature = "web"))]
mod no_request_limits;
mod plans;
mod policies;
mod policy_table;
#[cfg(feature = "web")]
mod request_effects;
#[cfg(feature = "web")]
mod request_limit;
#[cfg(feature = "web")]
mod request_limits;
mod rules;
mod table;

pub(crate) use self::change::PolicyChange;
#[cfg(not(feature = "web"))]
use self::no_request_limits as request_limits;
pub use self::policies::Policies;
#[cfg(feature = "web")]
pub(crate) use self::request_effects::RefundedStatus;
#[cfg(feature = "web")]
pub(crate) use self::request_limit::RequestLimit;
pub use crate::error::{ConfigError, Mistake};
