//! The parts of a [Tallygate](https://docs.rs/tallygate) policy: rules, durations and their validation.
//!
//! The attribute uses this crate at compile time and the runtime uses it at run time, so both refuse the same policies
//! with the same words. The crate does no input and output.
//!
//! Most users want the `tallygate` crate, which re-exports what they need from here.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod algorithm;
mod alphabet;
mod arguments;
mod ban;
mod counted_subject;
#[cfg(feature = "cron")]
mod cron;
mod duration;
mod error;
mod filter;
mod fixed_text;
mod limits;
mod outage;
mod overriding;
mod rule;
mod suggestion;
mod template;
mod template_use;
mod text;
mod unit;
mod validate;
mod words_for_clients;

pub use self::algorithm::{Algorithm, Role, TokenBucket};
pub use self::alphabet::{are_plain, is_plain, is_printed, is_separator};
pub use self::arguments::{ArgumentSource, read_limit};
pub use self::ban::Ban;
pub use self::counted_subject::CountedSubject;
#[cfg(feature = "cron")]
pub use self::cron::{CronField, Schedule, ScheduleError};
pub use self::duration::{DurationError, format_duration, parse_duration};
pub use self::error::{Field, RuleError};
pub use self::filter::{Filter, SubnetBits};
pub use self::limits::{
    MAX_CONCURRENCY, MAX_COUNTER_COUNT, MAX_DEADLINE, MAX_DENIALS, MAX_EXACT, MAX_LEASE, MAX_LOG_ENTRIES,
    MAX_NAME_BYTES, MAX_PER, MAX_PREFETCH, MAX_REFUND_DISTANCE, MAX_RULES, MAX_SLIDING_COUNT, MAX_STANDSTILL,
    MAX_UNIT_BYTES, MIN_LEASE, MIN_PREFETCH, MIN_PREFETCH_COUNT,
};
pub use self::outage::{OnOutage, OnOutageError};
pub use self::overriding::{EffectiveRule, Replacement, RuleId, validate_override, validate_replacements};
pub use self::rule::{DUPLICATE_PER, RELEASED_LABEL, Rule};
pub use self::suggestion::{
    EMPTY_KEY, EMPTY_MESSAGE, NAME_WITH_BRACES, NO_WINDOW, did_you_mean, meant, missing_argument, must_be_fraction,
    must_be_number, must_be_text, nearest, remedy, snake_case, synonym, unknown_argument,
};
pub use self::template::{FilteredValue, Piece, Template, TemplatePart, is_blank, must_be_separated, scan};
pub use self::template_use::{RejectionField, TemplateUse, alternatives_in_message};
pub use self::text::{
    ParseRuleError, argument_meant, attribute_form, duration_meant, format_rules, in_quotes, is_bare, is_quote,
    parse_rules, read_duration, rule_meant,
};
pub use self::unit::{CALLS, check_unit};
pub use self::validate::{
    Costs, implied_by, validate, validate_ban, validate_by_subject, validate_deadline, validate_longest_pause,
    validate_prefetch, validate_warn_at,
};
pub use self::words_for_clients::{amount_in_words, counted_in_words, limit_in_words, unit_in_words};
