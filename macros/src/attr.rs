//! The attribute as it is written: its arguments, and the options that they give.

mod argument;
mod arguments;
mod ban;
mod concurrency;
mod duplicate;
mod meant;
mod options;
mod rule;
mod subject;
mod suggestion;
mod value;

pub(crate) use self::ban::BanOptions;
pub(crate) use self::concurrency::ConcurrencyOptions;
pub(crate) use self::duplicate::DuplicateOptions;
pub(crate) use self::options::Options;
pub(crate) use self::rule::RuleOptions;
pub(crate) use self::subject::SubjectOptions;
pub(crate) use self::value::{Amount, Fraction};
