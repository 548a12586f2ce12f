//! The partner of a policy: a server of others, which denies by a limit of its own and says in its answers when to come back.

use http::StatusCode;

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
    /// Whether it is called by the layer for clients, and not by hand.
    pub has_layer: bool,
}

/// How an answer says when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `Retry-After` in seconds.
    Seconds,
    /// `retry-after-ms`.
    Millis,
    /// `Retry-After` as a date.
    Date,
    /// `X-RateLimit-Reset` in seconds.
    ResetSeconds,
    /// `X-RateLimit-Reset` in seconds since 1970.
    EpochSeconds,
    /// `X-RateLimit-Reset` in milliseconds since 1970.
    EpochMillis,
    /// `X-RateLimit-Reset` in seconds since 1970, with the status 403, as GitHub denies.
    GitHub,
    /// `x-ratelimit-reset-requests` as a duration, as OpenAI says it by unit.
    ByUnit,
    /// `RateLimit` of the current draft, in seconds.
    RateLimit,
    /// `RateLimit` of an older draft: `limit=5, remaining=0, reset=20`.
    RateLimitMembers,
    /// `RateLimit-Reset` of the oldest drafts, in seconds.
    RateLimitFields,
    /// Not at all.
    Nothing,
}

impl Form {
    const ALL: [Self; 12] = [
        Self::Seconds,
        Self::Millis,
        Self::Date,
        Self::ResetSeconds,
        Self::EpochSeconds,
        Self::EpochMillis,
        Self::GitHub,
        Self::ByUnit,
        Self::RateLimit,
        Self::RateLimitMembers,
        Self::RateLimitFields,
        Self::Nothing,
    ];

    /// The status of its denials.
    pub(crate) fn denial(self) -> StatusCode {
        if self == Self::GitHub { StatusCode::FORBIDDEN } else { StatusCode::TOO_MANY_REQUESTS }
    }

    /// Whether only denials say when to come back.
    pub(crate) fn is_of_denials(self) -> bool {
        matches!(self, Self::Seconds | Self::Millis | Self::Date | Self::Nothing)
    }

    /// Whether it names a point in time, by the partner's clock.
    pub(crate) fn is_point_in_time(self) -> bool {
        matches!(self, Self::Date | Self::EpochSeconds | Self::EpochMillis | Self::GitHub)
    }
}

impl PartnerPlan {
    pub(super) fn draw(chance: &mut Chance, horizon_us: u64) -> Self {
        let off_us = i64::try_from(chance.between(0, 7_200_000_000)).unwrap_or_default() - 3_600_000_000;
        Self {
            count: chance.spread(1, 40),
            per_us: chance.spread(500_000, (horizon_us / 3).max(1_000_000)),
            is_fixed: chance.happens(0.5),
            form: chance.pick(&Form::ALL),
            has_date: chance.happens(0.8),
            clock: Clock { gain: 0, ahead_us: off_us },
            delay_us: chance.spread(100, 500_000),
            loss: chance.pick(&[0.0, 0.0, 0.1, 0.5]),
            longest_pause_us: chance.spread(1_000_000, (2 * horizon_us).max(2_000_000)),
            has_layer: chance.happens(0.6),
        }
    }
}
