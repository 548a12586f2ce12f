//! The partner of a policy: a server of others, which denies by a limit of its own and says in its answers when to come back.

use crate::engine::Chance;
use crate::fleet::Clock;

/// A partner.
#[derive(Clone, Debug)]
pub struct PartnerPlan {
    /// How many calls of a subject it admits in a window.
    pub count: u64,
    /// Its window, in microseconds.
    pub per_us: u64,
    /// Whether its windows begin at multiples of their length, and do not slide.
    pub is_fixed: bool,
    /// How its answers say when to come back.
    pub form: Form,
    /// Whether its answers show its clock.
    pub has_date: bool,
    /// Its clock.
    pub clock: Clock,
    /// How long a call to it and its answer each take at most, in microseconds.
    pub delay_us: u64,
    /// How many of its answers are lost.
    pub loss: f64,
    /// The longest pause that its answers can ask for, in microseconds.
    pub longest_pause_us: u64,
}

/// How an answer says when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `Retry-After` in seconds.
    Seconds,
    /// `Retry-After` as a date.
    Date,
    /// `X-RateLimit-Reset` in seconds since 1970.
    EpochSeconds,
    /// `X-RateLimit-Reset` in milliseconds since 1970.
    EpochMillis,
    /// `RateLimit` in seconds.
    RateLimit,
    /// Not at all.
    Nothing,
}

impl PartnerPlan {
    pub(super) fn draw(chance: &mut Chance, horizon_us: u64) -> Self {
        let forms = [Form::Seconds, Form::Date, Form::EpochSeconds, Form::EpochMillis, Form::RateLimit, Form::Nothing];
        let off_us = i64::try_from(chance.between(0, 7_200_000_000)).unwrap_or_default() - 3_600_000_000;
        Self {
            count: chance.spread(1, 40),
            per_us: chance.spread(500_000, (horizon_us / 3).max(1_000_000)),
            is_fixed: chance.happens(0.5),
            form: chance.pick(&forms),
            has_date: chance.happens(0.8),
            clock: Clock { gain: 0, ahead_us: off_us },
            delay_us: chance.spread(100, 500_000),
            loss: chance.pick(&[0.0, 0.0, 0.1, 0.5]),
            longest_pause_us: chance.spread(1_000_000, (2 * horizon_us).max(2_000_000)),
        }
    }
}
