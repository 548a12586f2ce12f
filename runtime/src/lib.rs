//! Exact, multi-rule, distributed rate limits on a function, with one attribute.
//!
//! ```
//! use tallygate::{Rejection, RejectionKind, rate_limit};
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
//! * **Exact.** Windows slide: no interval of 60 seconds contains two codes for one phone.
//! * **All or nothing.** All rules decide a call together. It is admitted and counted by every rule, or rejected and
//!   counted by none.
//! * **First.** The decision is made before the body of the function runs.
//!
//! [`rate_limit`] documents every argument of the attribute: other algorithms, several subjects in one decision, costs,
//! waiting, refunds, bans, exemptions, shadow limits and messages.
//!
//! # Storage
//!
//! By default, the counts are in the memory of this process. To share them between processes, [connect](Limiter::connect)
//! to Redis and [install](Limiter::install) the limiter at start-up. Each decision is then one script call in one round
//! trip.
//!
//! ```no_run
//! use tallygate::Limiter;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), tallygate::Error> {
//!     Limiter::connect("redis://127.0.0.1/").await?.install()?;
//!     // Serve: all limited functions of the process now share their counts with the other processes.
//!     Ok(())
//! }
//! ```
//!
//! While Redis is unavailable, calls are rejected as [`RejectionKind::Unavailable`], and no call is admitted without being
//! counted. [`OnOutage`] lets this process decide instead, or admit them.
//!
//! # Rejections
//!
//! A limited function returns `Result<T, E>` with any `E: From<Rejection>`, or [another type](FromRejection). The
//! [`Rejection`] has everything that a response needs:
//!
//! | [`kind()`](Rejection::kind) | meaning | HTTP |
//! | --- | --- | --- |
//! | [`RejectionKind::Limited`] | too many calls | 429, with [`retry_after()`](Rejection::retry_after) |
//! | [`RejectionKind::Concurrency`] | too many concurrent calls | 429, likewise |
//! | [`RejectionKind::Duplicate`] | the same call again, within the window of `prevent_duplicate` | 409, likewise |
//! | [`RejectionKind::Banned`] | the subject was denied too often | 429, likewise |
//! | [`RejectionKind::Paused`] | the other side accepts no calls for now | 503, likewise |
//! | [`RejectionKind::Unavailable`] | the call was not decided: Redis did not answer within the deadline, or answered with an error; or the program made a mistake | 503; 500 for a mistake in the program |
//! | [`RejectionKind::Unidentified`] | the call lacks a value of its context that others have, such as a user | 401 |
//!
//! `retry_after()` is `None` where waiting does not help. A response then has no `Retry-After`.
//!
//! # Without the attribute
//!
//! Build a [`Policy`] and [check](Limiter::check) each call. Functions can use the same policy with `policy = …`.
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
//!     Decision::Allowed(_permit) => println!("exporting"),
//!     Decision::Denied(denial) => println!("{denial}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A [`Check`] has more options, and it administers its subject: [peek](Check::peek), [reset](Check::reset),
//! [ban](Check::ban), [unban](Check::unban). [`Limiter::policy`] finds the policy of a limited function by its name.
//!
//! # Tests
//!
//! In memory, limits use tokio's clock. A test that pauses it (`#[tokio::test(start_paused = true)]`, with tokio's
//! feature `test-util`) moves it past a window with `tokio::time::advance`, without sleeping. The module `testing` has
//! a clock that a test sets to any time, for rules with `cron` and for limits in Redis.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `redis` | yes | counts in Redis |
//! | `tls` | no | encrypted connections to Redis: `rediss://` |
//! | `cron` | no | rules that start counting afresh at the ticks of a cron expression, in any time zone |
//! | `config` | no | the module `config`: limits from a file, also while the program runs |
//! | `metrics` | no | decisions, their duration and the number of tallies, through the crate `metrics` |
//! | `tracing-spans` | no | a `tracing` span around each decision |
//! | `web` | no | the module `web`: clients of requests, and responses to rejected ones |
//! | `axum`, `actix`, `tonic` | no | the module `web` for these frameworks |
//! | `utoipa` | no | the responses of limited handlers in documents of OpenAPI |
//! | `client` | no | the module `client`: calls to other servers, paced and heard |
//! | `client-reqwest` | no | the same as a middleware of reqwest |
//! | `simulation` | no | the module `simulation`: what a policy would have decided on a trace of calls |
//! | `admin` | no | the module `admin`: the policies of a fleet and their subjects, for tools of operators; with `web`, `web::AdminRoutes` |
//! | `testing` | no | the module `testing`: a clock that tests set, and a limiter for each test |
//!
//! # More
//!
//! The [`guide`] answers each question on a page of its own. Begin with [the attribute](guide::attribute) and
//! [which algorithm to choose](guide::algorithms).

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        feature = "actix",
        feature = "admin",
        feature = "axum",
        feature = "client",
        feature = "client-reqwest",
        feature = "config",
        feature = "cron",
        feature = "metrics",
        feature = "redis",
        feature = "simulation",
        feature = "testing",
        feature = "tls",
        feature = "tonic",
        feature = "tracing-spans",
        feature = "utoipa",
        feature = "web",
    )),
    allow(dead_code, unreachable_pub, unused_imports, reason = "what only one feature uses has no `cfg` of its own")
)]

#[doc(hidden)]
pub mod __private;
mod address;
#[cfg(feature = "admin")]
pub mod admin;
mod algorithm;
mod bounds;
mod call;
#[cfg(feature = "client")]
pub mod client;
mod clock;
#[cfg(feature = "config")]
pub mod config;
pub mod context;
mod decision;
mod error;
#[cfg(any(feature = "client", feature = "web"))]
mod field_text;
pub mod guide;
#[cfg(feature = "web")]
mod held;
mod limiter;
mod lock;
mod media_type;
mod micros;
mod observe;
mod policy;
mod population;
#[cfg(feature = "web")]
mod request_pattern;
#[cfg(feature = "simulation")]
pub mod simulation;
mod sleepers;
mod store;
mod subject;
mod sync;
mod system;
#[cfg(feature = "testing")]
pub mod testing;
mod wait;
#[cfg(feature = "web")]
pub mod web;

pub use tallygate_macros::rate_limit;
pub use tallygate_rules::{
    Algorithm, Ban, DurationError, Field, OnOutage, OnOutageError, ParseRuleError, Role, Rule, RuleError, RuleId,
    TokenBucket, format_rules, parse_rules,
};
#[cfg(feature = "cron")]
pub use tallygate_rules::{CronField, Schedule, ScheduleError};

pub use self::decision::{
    DecidedBy, Decision, Denial, FromRejection, HoldPermit, LimitingRule, Meter, PauseStatus, Permit, Rejection,
    RejectionKind, RuleStatus, Warning, meter,
};
pub use self::error::{BackendError, BackendErrorKind, Error, ErrorKind, NamedSetting, Setting};
#[cfg(feature = "config")]
pub use self::limiter::{Applied, FileWatch};
pub use self::limiter::{
    Check, DEFAULT_DEADLINE, DEFAULT_DENIAL_CACHE, DEFAULT_MAX_SUBJECTS, DEFAULT_MAX_WAITING, DEFAULT_PREFIX, Deciding,
    DeniedSubject, Limiter, LimiterBuilder, Override, OverrideBuilder,
};
pub use self::policy::{PlanCounts, Policy, PolicyBuilder};
pub use self::store::Readiness;
#[cfg(feature = "tls")]
pub use self::store::Tls;
pub use self::subject::{Subject, SubjectBuilder, SubjectValue};
pub use self::system::under_way::UnderWay;
#[cfg(tallygate_world)]
#[doc(hidden)]
pub use self::system::world as __world;

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_shared<T: Send + Sync>() {}

    #[test]
    fn values_of_callers_can_be_sent_to_and_shared_with_other_threads() {
        fn assert_sent<T: Send>() {}
        assert_shared::<(Limiter, LimiterBuilder, Policy, PolicyBuilder, Subject, SubjectBuilder<'_>, Check<'_>)>();
        assert_shared::<(Decision, Permit, Meter, Denial, Rejection, RuleStatus, Warning<'_>, PauseStatus)>();
        assert_shared::<(BackendError, Error, RuleError, ParseRuleError, DurationError, OnOutageError)>();
        assert_shared::<(Override, OverrideBuilder<'_>, DeniedSubject, Readiness, UnderWay, context::Context)>();
        assert_sent::<Deciding<'_>>();
    }

    #[test]
    #[cfg(all(feature = "admin", feature = "config"))]
    fn values_of_operators_can_be_sent_to_and_shared_with_other_threads() {
        use crate::admin::{BanPage, Bans, Registered, Rendering, ServerReport, Subjects, Tallies, TallyPage};
        assert_shared::<(BanPage, Bans<'_>, Registered, Rendering<'_>, ServerReport, Subjects, Tallies<'_>, TallyPage)>(
        );
        assert_shared::<(config::Policies, config::ConfigError, Applied, FileWatch)>();
    }

    #[test]
    #[cfg(all(feature = "client", feature = "simulation", feature = "testing", feature = "web"))]
    fn values_of_services_and_tests_can_be_sent_to_and_shared_with_other_threads() {
        assert_shared::<(web::Layer, web::Limit, web::Limits, web::AdminRoutes, web::Decisions, web::ClientIpSource)>();
        assert_shared::<(client::Pace, client::PaceError, client::Meters, client::Heard, client::ResponseReader)>();
        assert_shared::<(simulation::Simulation, simulation::Comparison, simulation::TraceError, testing::ManualClock)>(
        );
    }

    #[tokio::test]
    async fn debug_output_is_short_and_shows_no_subject() {
        const PHONE: &str = "13800000000";
        fn assert_short(value: &impl std::fmt::Debug) {
            let text = format!("{value:?}");
            assert!(text.len() <= 160 && !text.contains(PHONE) && !text.contains('\n'), "{text}");
        }
        let limiter = Limiter::builder().secret(PHONE).build_in_memory().unwrap();
        let hour = std::time::Duration::from_secs(3_600);
        let rules = [Rule::sliding_window(1, hour).named("hourly"), Rule::sliding_window(10, 24 * hour)];
        let policy = Policy::builder("sms.send").rules(rules).ban(Ban::new(20, hour, 24 * hour)).build().unwrap();
        let phone = Subject::of(PHONE);
        let check = || limiter.check(&policy, &phone).refundable().report();

        let decision = check().await.unwrap();
        assert_short(&(&limiter, check(), check().into_future()));
        assert_short(&(&phone, &decision));
        assert_short(&decision.report()[0]);
        assert_short(&policy);
        let mut permit = decision.into_result().unwrap();
        let denial = check().await.unwrap().into_result().unwrap_err();
        assert_short(&permit);
        assert_short(&permit.meter("calls"));
        assert_short(&denial);
        assert_short(&Rejection::from(denial).with_message(PHONE));
    }
}
