//! The ticks of a cron expression in a time zone.

mod bits;
mod error;
mod field;
mod pattern;
mod syntax;
#[cfg(test)]
mod tests;
mod zone;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use self::error::ScheduleError;
pub use self::field::CronField;

use jiff::Timestamp;
use jiff::civil::DateTime;

use self::bits::SearchDirection;
use self::pattern::Pattern;
use self::zone::{Period, Repeated, Zone};

const SECOND_US: u64 = 1_000_000;
const MINUTE_US: u64 = 60 * SECOND_US;
const HOUR_US: u64 = 60 * MINUTE_US;
const DAY_US: u64 = 24 * HOUR_US;

/// The ticks of a cron expression in a time zone.
///
/// # The expression
///
/// The expression has six fields, as in Spring: second, minute, hour, day of the month, month, day of the week.
///
/// | syntax | fields | meaning |
/// | --- | --- | --- |
/// | `*` | all | every value |
/// | `?` | days | the same as `*` |
/// | `5`, `1-5`, `1,15`, `1-5,10` | all | values, ranges and lists of them |
/// | `*/5`, `10-40/5`, `10/5` | all | every fifth value: of all, of a range, from 10 to the end |
/// | `JAN` to `DEC`, `MON` to `SUN` | month, week | names, in upper or lower case; Sunday is also 0 or 7 |
/// | `L`, `L-3` | day of the month | the last day, the third day before the last |
/// | `LW`, `15W` | day of the month | the last day from Monday to Friday, the one nearest to the 15th within the month |
/// | `FRIL`, `5L` | day of the week | the last Friday of the month |
/// | `FRI#2`, `5#2` | day of the week | the second Friday of the month |
///
/// A macro is an expression, too: `@yearly` (or `@annually`), `@monthly`, `@weekly`, `@daily` (or `@midnight`),
/// `@hourly`.
///
/// A day must match the day of the month *and* the day of the week: `0 0 0 13 * FRI` is Friday the 13th. A range does
/// not wrap around: write `FRI-7,0-MON` instead of `FRI-MON`. A month without the requested day (a fifth Friday, a
/// 31st) has no such tick.
///
/// # Clock changes
///
/// Every civil time that matches the expression is a tick, also one that the clocks skip or repeat:
///
/// * A time that the clocks skip ticks when they skip it. In Berlin, `0 30 2 * * *` ticks at 03:00 in the night when
///   summer time begins. Several ticks at the same moment are one.
/// * A time that the clocks repeat ticks once, the first time. If the expression matches every hour (`*`, `*/1`,
///   `0-23`), it ticks both times, so that a schedule of every minute has no gap of an hour.
///
/// The time zones are compiled in, with the clock changes that were known when this crate was built.
///
/// # Differences from Spring
///
/// The syntax is Spring's. The ticks are those of Spring's `CronExpression` except in these cases, because here a tick
/// starts a new window of a limit. A missing tick would make the window twice as long, and an additional tick would
/// admit twice the count.
///
/// | case | Spring | here |
/// | --- | --- | --- |
/// | `31W`, and the 31st is the last day of the month and a Sunday; likewise `28W`, `29W`, `30W` | no tick in that month | the Friday before: every month that has the day has a tick |
/// | the clocks skip the time: `0 30 2 * * *` in Berlin on 31 March 2024 | no tick on that day | at 03:00: every day has a tick |
/// | the clocks skip the time of one hour of many: `0 30 * * * *` in the same night | no tick for 02:30 | at 03:00, as above |
/// | the clocks skip a whole day: `0 0 6 * * *` in Apia on 30 December 2011 | no tick for that day | when the next day begins, as above |
/// | the clocks repeat the time: `0 30 2 * * *` in Berlin on 27 October 2024 | twice | once, at the first 02:30: a daily limit admits its count once a day |
/// | the clocks repeat midnight: `0 0 0 * * *` in Havana on 3 November 2024 | once, at the second midnight | once, at the first midnight, as above |
/// | the clocks repeat the time and the expression matches every hour: `0 */30 * * * *` | both times | both times: half an hour stays half an hour |
///
/// # Text and equality
///
/// [`Display`](fmt::Display) writes `"0 0 6 * * *" Asia/Shanghai`, as in a rule's [text form](crate::Rule#text-form).
///
/// Two schedules are equal if their expressions have the same meaning and their zones the same name: `@daily` equals
/// `0 0 0 * * ?`.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
///
/// use tallygate_rules::Schedule;
///
/// let every_morning = Schedule::parse("0 0 6 * * *", "Asia/Shanghai")?;
/// let noon = UNIX_EPOCH + Duration::from_secs(1_719_806_400); // 2024-07-01 12:00 in Shanghai
/// let hour = Duration::from_secs(3_600);
/// assert_eq!(every_morning.last_tick(noon), Some(noon - 6 * hour));
/// assert_eq!(every_morning.next_tick(noon), Some(noon + 18 * hour));
/// # Ok::<(), tallygate_rules::ScheduleError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    expression: String,
    pattern: Pattern,
    zone: Zone,
}

impl Schedule {
    /// Reads an expression of six fields, or a macro, and the IANA name of a time zone, like `UTC`.
    ///
    /// # Errors
    ///
    /// Returns a [`ScheduleError`] if the expression is mistaken, if it never ticks (30 February; checked for all days
    /// of the calendar, which repeats every 400 years), or if the time zone does not exist.
    pub fn parse(expression: &str, zone: &str) -> Result<Self, ScheduleError> {
        let fields: Vec<&str> = expression.split_whitespace().collect();
        let expression = fields.join(" ");
        let pattern = Pattern::parse(&expression)?;
        Ok(Self { expression, pattern, zone: Zone::parse(zone)? })
    }

    /// Returns the expression as it was written, with single spaces between its fields.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns the name of the time zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        self.zone.name()
    }

    /// Returns the last tick at or before that time; `None` before the first tick since 1970.
    #[must_use]
    pub fn last_tick(&self, time: SystemTime) -> Option<SystemTime> {
        time_of(self.last_tick_us(since_1970_us(time)?)?)
    }

    /// Returns the first tick after that time, and since 1970; `None` after the year 9999.
    #[must_use]
    pub fn next_tick(&self, time: SystemTime) -> Option<SystemTime> {
        let next_us = match since_1970_us(time) {
            Some(us) => self.next_tick_us(us),
            None => self.last_tick_us(0).or_else(|| self.next_tick_us(0)),
        };
        time_of(next_us?)
    }

    /// Returns the [last tick](Self::last_tick), with both times in microseconds since 1970, as decisions have them.
    #[doc(hidden)]
    #[must_use]
    pub fn last_tick_us(&self, us: u64) -> Option<u64> {
        self.seek((us / SECOND_US).min(last_second()), SearchDirection::Earlier)
    }

    /// Returns the [next tick](Self::next_tick), with both times in microseconds since 1970, as decisions have them.
    #[doc(hidden)]
    #[must_use]
    pub fn next_tick_us(&self, us: u64) -> Option<u64> {
        let second = us / SECOND_US;
        if second < last_second() { self.seek(second, SearchDirection::Later) } else { None }
    }

    /// Returns the last tick up to `second`, or the first tick after it.
    fn seek(&self, second: u64, direction: SearchDirection) -> Option<u64> {
        let second = i64::try_from(second).ok()?;
        let period = self.zone.period(second);
        let at = period.civil(match direction {
            SearchDirection::Earlier => second,
            SearchDirection::Later => second + 1,
        });
        let found = self.seek_in(period, Some(at), direction).or_else(|| {
            self.zone.periods_beyond(period, direction).find_map(|next| self.seek_in(next, None, direction))
        });
        u64::try_from(found?).ok()?.checked_mul(SECOND_US)
    }

    /// Returns the first tick of a period in a direction, from `at` on if the period contains it.
    fn seek_in(&self, period: Period, at: Option<DateTime>, direction: SearchDirection) -> Option<i64> {
        let repeated = if self.pattern.clock().is_every_hour() { Repeated::TickTwice } else { Repeated::TickOnce };
        let (first, last) = period.civil_range(repeated);
        let (start, bound) = direction.order(first, last);
        let at = at.filter(|&at| direction.is_past(at, start)).unwrap_or(start);
        period.second(self.pattern.seek(at, bound, direction)?)
    }

    /// Returns a lower bound of the time between two ticks.
    pub(crate) fn shortest_gap_us(&self) -> u64 {
        let clock = self.pattern.clock();
        match () {
            () if !self.has_steady_clock() || !clock.seconds.is_single() => SECOND_US,
            () if !clock.minutes.is_single() => MINUTE_US,
            () if !clock.hours.is_single() => HOUR_US,
            () => DAY_US,
        }
    }

    /// Returns an upper bound of the time between two ticks, if it is known.
    pub(crate) fn longest_gap_us(&self) -> Option<u64> {
        let clock = self.pattern.clock();
        let gap = match () {
            () if !clock.is_every_hour() => DAY_US,
            () if !clock.is_every_minute() => HOUR_US,
            () => MINUTE_US,
        };
        (self.has_steady_clock() && self.pattern.is_every_day()).then_some(gap)
    }

    /// Whether the clocks of the zone never change.
    fn has_steady_clock(&self) -> bool {
        self.zone() == "UTC"
    }
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.zone() == other.zone()
    }
}

impl Eq for Schedule {}

impl Hash for Schedule {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pattern.hash(state);
        self.zone().hash(state);
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" {}", self.expression, self.zone())
    }
}

/// Returns the whole microseconds since 1970; `None` before. Ticks are at whole seconds, so nothing is lost.
fn since_1970_us(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

fn time_of(us: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_micros(us))
}

/// Returns the last second that has a civil time, in the year 9999.
fn last_second() -> u64 {
    Timestamp::MAX.as_second().unsigned_abs()
}
