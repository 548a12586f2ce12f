//! Exact, multi-rule, distributed rate limits on a function, with one attribute.
//!
//! ```
//! use tallygate::{RejectionKind, Rejection, rate_limit};
//!
//! #[rate_limit(
//!     key = "sms:{phone}",
//!     rule(count = 1, per = "60s"),
//!     rule(count = 5, per = "1h"),
//!     rule(count = 10, per = "24h")
//! )]
//! async fn send_code(phone: &str) -> Result<(), Rejection> {
//!     println!("a code for {phone}");
//!     Ok(())
//! }
//!
//! #[tokio::main]
//! async fn main() {
//!     assert!(send_code("13800000000").await.is_ok());
//!     assert!(send_code("13900000000").await.is_ok());
//!
//!     let rejection = send_code("13800000000").await.unwrap_err();
//!     assert_eq!(rejection.kind(), RejectionKind::Limited);
//!     assert_eq!(rejection.to_string(), "too many requests: at most 1 per 1m; try again in 1m");
//! }
//! ```
//!
//! Every call is decided by all its rules at once: it is admitted and counted by every one of them, or rejected and
//! counted by none. The decision is made before anything of the body runs. Windows slide: in no 60 seconds, wherever
//! they start, is a second code sent.
//!
//! [`rate_limit`] documents every argument: further algorithms, several subjects in one decision, costs, waiting, refunds,
//! bans, exemptions, shadow limits and messages.
//!
//! # Where the tallies are
//!
//! With nothing set up, they are in this process. To share them between processes, [connect](Limiter::connect) to Redis
//! and [install](Limiter::install) the limiter at start-up; each decision is then one script call in one round trip:
//!
//! ```no_run
//! # async fn start() -> Result<(), tallygate::Error> {
//! tallygate::Limiter::connect("redis://127.0.0.1/").await?.install()?;
//! # Ok(())
//! # }
//! ```
//!
//! While Redis does not decide, calls are rejected as [`RejectionKind::Unavailable`]; none is let through uncounted.
//!
//! # What a rejection says
//!
//! A limited function returns `Result<T, E>` with any `E: From<Rejection>`, and a [`Rejection`] says what to answer:
//!
//! | [`kind()`](Rejection::kind) | meaning | on the web |
//! | --- | --- | --- |
//! | [`RejectionKind::Limited`] | too many calls | 429, with [`retry_after()`](Rejection::retry_after) |
//! | [`RejectionKind::Duplicate`] | the same call again, within the time of `prevent_duplicate` | 409, likewise |
//! | [`RejectionKind::Banned`] | a call of a subject that was denied too often | 429, likewise |
//! | [`RejectionKind::Unavailable`] | Redis did not decide within the deadline, or answered with an error | 503 |
//!
//! # By hand
//!
//! What the attribute does can be done without it, where a function cannot be annotated. The same [`Policy`] can be the
//! attribute's `policy = …`.
//!
//! ```
//! use std::time::Duration;
//! use tallygate::{Decision, Limiter, Policy, Rule, Subject};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = Limiter::in_memory();
//! let policy = Policy::builder("export").rule(Rule::sliding_window(2, Duration::from_secs(3600))).build()?;
//! match limiter.check(&policy, &Subject::of("alice")).await? {
//!     Decision::Allowed(_) => println!("go on"),
//!     Decision::Denied(denial) => println!("come back in {:?}", denial.retry_after()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # In tests
//!
//! The clock of the tallies in this process is tokio's. A test that pauses it (`#[tokio::test(start_paused = true)]`,
//! with tokio's feature `test-util`) gets past a window with `tokio::time::advance` instead of sleeping.
//!
//! # Features
//!
//! | feature | by default | what it brings |
//! | --- | --- | --- |
//! | `redis` | yes | tallies in Redis, by the crate of that name |
//! | `cron` | no | rules that count from the ticks of a cron expression, with the rules of all time zones |
//! | `metrics` | no | decisions, their time and the number of tallies, by the crate of that name |
//! | `tracing-spans` | no | a span around each decision |
//!
//! # Read more
//!
//! The [`guide`] has the details: [semantics](guide::semantics), [keys](guide::keys), [callers](guide::callers) that wait
//! or take a call back, [operations](guide::operations) on Redis, [observability](guide::observability),
//! [the script](guide::script) and [limitations](guide::limitations).

#[doc(hidden)]
pub mod __private;
mod clock;
mod decision;
mod error;
pub mod guide;
mod limiter;
mod micros;
mod observe;
mod policy;
mod store;
mod subject;
mod sweeper;

pub use tallygate_macros::rate_limit;
pub use tallygate_rules::{Algorithm, Ban, Field, Role, Rule, RuleError, TokenBucket};
#[cfg(feature = "cron")]
pub use tallygate_rules::{CronField, Schedule, ScheduleError};

#[cfg(feature = "__clock")]
#[doc(hidden)]
pub use self::clock::Clock;
pub use self::decision::{Decision, Denial, FromRejection, LimitingRule, Permit, Rejection, RejectionKind, RuleStatus};
pub use self::error::{BackendError, Error, ErrorKind};
pub use self::limiter::{
    Check, DEFAULT_DEADLINE, DEFAULT_DENIAL_CACHE, DEFAULT_MAX_SUBJECTS, DEFAULT_PREFIX, Deciding, Limiter,
    LimiterBuilder,
};
pub use self::policy::{Policy, PolicyBuilder};
pub use self::subject::{Subject, SubjectBuilder, SubjectValue};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_callers_hold_can_be_passed_and_shared_between_threads() {
        fn is_shared<T: Send + Sync>() {}
        fn is_passed<T: Send>() {}
        is_shared::<(Limiter, LimiterBuilder, Policy, PolicyBuilder, Subject, Check<'_>)>();
        is_shared::<(Decision, Permit, Denial, Rejection, BackendError, Error)>();
        is_passed::<Deciding<'_>>();
    }
}
