//! The ticks of a cron expression in a time zone.

mod bits;
mod clock;
mod day;
mod error;
mod field;
mod pattern;
#[cfg(test)]
mod tests;
mod toward;
mod zone;

use std::fmt;

pub use error::ScheduleError;
pub use field::CronField;

use jiff::Timestamp;
use jiff::civil::DateTime;
use pattern::Pattern;
use toward::Toward;
use zone::{Period, Zone};

const MICROS: u64 = 1_000_000;

/// The ticks of a cron expression in a time zone.
///
/// # The expression
///
/// Six fields, as in Spring: second, minute, hour, day of the month, month, day of the week.
///
/// | syntax | where | meaning |
/// | --- | --- | --- |
/// | `*` | all | every value |
/// | `?` | days | the same as `*` |
/// | `5`, `1-5`, `1,15`, `1-5,10` | all | values, ranges and lists of them |
/// | `*/5`, `10-40/5`, `10/5` | all | every fifth value: of all, of a range, from 10 to the end |
/// | `JAN` to `DEC`, `MON` to `SUN` | month, week | names, in any case; Sunday is also 0 or 7 |
/// | `L`, `L-3` | day of the month | the last day, the third before it |
/// | `LW`, `15W` | day of the month | the last day from Monday to Friday, the one of this month nearest to the 15th |
/// | `FRIL`, `5L` | day of the week | the last Friday of the month |
/// | `FRI#2`, `5#2` | day of the week | the second Friday of the month |
///
/// Or a macro: `@yearly` (or `@annually`), `@monthly`, `@weekly`, `@daily` (or `@midnight`), `@hourly`.
///
/// A day must match the day of the month *and* the day of the week: `0 0 0 13 * FRI` is Friday the 13th. A range does not
/// wrap around: `FRI-MON` is `FRI-7,0-MON`. A month without the day that is asked for (a fifth Friday, a 31st, a day 30
/// before its last) has no such tick. Spring's nearest weekday may leave the month at its end; here it does not.
///
/// # When the clocks change
///
/// Every civil time that the expression names is a tick, whatever happens to the clocks:
///
/// * What they skip ticks when they have skipped it. In Berlin `0 30 2 * * *` ticks in the night of spring at the moment
///   that is 03:00. Ticks that fall on the same moment are one.
/// * What they repeat ticks once, the first time. If however the expression names every hour (`*`, `*/1`, `0-23`), it ticks
///   both times, so that what ticks every minute does not stand still for an hour.
///
/// The rules of the zones are compiled in. They cover the changes that were known when this crate was built.
///
/// # Equality
///
/// Two schedules are equal if their expressions mean the same and their zones have the same name, so `@daily` equals
/// `0 0 0 * * ?`.
///
/// # Examples
///
/// ```
/// use tallygate_rules::Schedule;
///
/// let every_morning = Schedule::parse("0 0 6 * * *", "Asia/Shanghai")?;
/// let noon = 1_719_806_400_000_000; // 2024-07-01 12:00 in Shanghai
/// assert_eq!(every_morning.last_tick(noon), Some(noon - 6 * 3_600_000_000));
/// assert_eq!(every_morning.next_tick(noon), Some(noon + 18 * 3_600_000_000));
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
    /// Returns a [`ScheduleError`] if the expression is mistaken, if it can never tick (30 February; all days of the
    /// calendar, which repeats itself every 400 years, are checked), or if there is no such time zone.
    pub fn parse(expression: &str, zone: &str) -> Result<Self, ScheduleError> {
        let pattern = Pattern::parse(expression)?;
        Ok(Self { expression: expression.trim().to_owned(), pattern, zone: Zone::parse(zone)? })
    }

    /// Returns the expression as it was written.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns the name of the time zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        self.zone.name()
    }

    /// Returns the last tick at or before `us`, both in microseconds since 1970.
    ///
    /// There is none before the first tick since 1970.
    #[must_use]
    pub fn last_tick(&self, us: u64) -> Option<u64> {
        self.seek((us / MICROS).min(last_second()), Toward::Earlier)
    }

    /// Returns the first tick after `us`, both in microseconds since 1970.
    ///
    /// There is none after the year 9999.
    #[must_use]
    pub fn next_tick(&self, us: u64) -> Option<u64> {
        let second = us / MICROS;
        if second < last_second() { self.seek(second, Toward::Later) } else { None }
    }

    /// The first tick up to `second`, or after it.
    fn seek(&self, second: u64, toward: Toward) -> Option<u64> {
        let second = i64::try_from(second).ok()?;
        let period = self.zone.period(second);
        let at = period.civil(match toward {
            Toward::Earlier => second,
            Toward::Later => second + 1,
        });
        let found = self
            .seek_in(period, Some(at), toward)
            .or_else(|| self.zone.periods_beyond(period, toward).find_map(|next| self.seek_in(next, None, toward)));
        u64::try_from(found?).ok()?.checked_mul(MICROS)
    }

    /// The first tick of one period, from `at` on if that lies in it.
    fn seek_in(&self, period: Period, at: Option<DateTime>, toward: Toward) -> Option<i64> {
        let (first, last) = period.civil_range(self.pattern.is_every_hour());
        let (start, bound) = toward.order(first, last);
        let at = at.filter(|&at| toward.is_past(at, start)).unwrap_or(start);
        period.second(self.pattern.seek(at, bound, toward)?)
    }
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.zone() == other.zone()
    }
}

impl Eq for Schedule {}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` in {}", self.expression, self.zone())
    }
}

/// The last second of which the civil time is known, in the year 9999.
fn last_second() -> u64 {
    Timestamp::MAX.as_second().unsigned_abs()
}
