//! What a [Tallygate](https://docs.rs/tallygate) policy is: rules, durations and their validation.
//!
//! The attribute uses this crate while compiling and the runtime uses it while running, so a policy that one of them
//! refuses is refused by the other with the same words. It is pure: no input, no output, and without the feature
//! `cron` no dependencies.
//!
//! Most users want the `tallygate` crate, which re-exports what they need from here.

mod alphabet;
mod ban;
mod bucket;
#[cfg(feature = "cron")]
mod cron;
mod duration;
mod error;
mod nearest;
mod overriding;
mod rule;
mod validate;

pub use alphabet::{is_plain, is_printed};
pub use ban::{Ban, MAX_DENIALS};
pub use bucket::TokenBucket;
#[cfg(feature = "cron")]
pub use cron::{CronField, Schedule, ScheduleError};
pub use duration::{DurationError, format_duration, parse_duration};
pub use error::{Field, RuleError};
pub use nearest::nearest;
pub use overriding::validate_override;
pub use rule::{Algorithm, DUPLICATE_PER, Role, Rule};
pub use validate::{
    MAX_COUNTER_COUNT, MAX_EXACT, MAX_PER, MAX_RULES, MAX_SLIDING_COUNT, implied_by, validate, validate_by_subject,
};
