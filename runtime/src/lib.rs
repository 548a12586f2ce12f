//! Exact, multi-rule, distributed rate limits on a function, with one attribute.

mod backend;
mod check;
mod clock;
mod decision;
mod error;
mod key;
mod limiter;
mod policy;
mod rejection;

#[doc(hidden)]
pub mod __private;

pub use check::{Check, Deciding};
#[cfg(feature = "__clock")]
#[doc(hidden)]
pub use clock::Clock;
pub use decision::{Decision, Denial, LimitingRule, Permit, RuleReport};
pub use error::Error;
pub use key::Subject;
pub use limiter::{DEFAULT_DEADLINE, DEFAULT_MAX_SUBJECTS, DEFAULT_PREFIX, Limiter, LimiterBuilder};
pub use policy::{Policy, PolicyBuilder};
pub use rejection::{FromRejection, Kind, Outage, Rejection};
pub use tallygate_macros::rate_limit;
pub use tallygate_rules::{Algorithm, Role, Rule, RuleError, TokenBucket};
#[cfg(feature = "cron")]
pub use tallygate_rules::{Schedule, ScheduleError};
