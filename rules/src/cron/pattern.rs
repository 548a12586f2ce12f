//! The civil times that match a cron expression, without a time zone.

use jiff::civil::{Date, DateTime, Time};

use crate::cron::bits::{Bits, SearchDirection};
use crate::cron::day::{DaysOfMonth, DaysOfWeek, Month, TimesOfDay};
use crate::cron::error::ScheduleError;
use crate::cron::field::CronField;
use crate::cron::syntax::parse_list;

const MACROS: [(&str, &str); 7] = [
    ("@yearly", "0 0 0 1 1 *"),
    ("@annually", "0 0 0 1 1 *"),
    ("@monthly", "0 0 0 1 * *"),
    ("@weekly", "0 0 0 * * 0"),
    ("@daily", "0 0 0 * * *"),
    ("@midnight", "0 0 0 * * *"),
    ("@hourly", "0 0 * * * *"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pattern {
    clock: TimesOfDay,
    days_of_month: DaysOfMonth,
    months: Bits,
    days_of_week: DaysOfWeek,
}

impl Pattern {
    pub(super) fn parse(expression: &str) -> Result<Self, ScheduleError> {
        let expression = expand(expression)?;
        let fields: Vec<&str> = expression.split_whitespace().collect();
        let &[second, minute, hour, day_of_month, month, day_of_week] = fields.as_slice() else {
            return Err(ScheduleError::Fields { expression: expression.to_owned(), found: fields.len() });
        };
        let pattern = Self {
            clock: TimesOfDay {
                seconds: parse_list(CronField::Second, second)?,
                minutes: parse_list(CronField::Minute, minute)?,
                hours: parse_list(CronField::Hour, hour)?,
            },
            days_of_month: DaysOfMonth::parse(day_of_month)?,
            months: parse_list(CronField::Month, month)?,
            days_of_week: DaysOfWeek::parse(day_of_week)?,
        };
        if pattern.ever_ticks() { Ok(pattern) } else { Err(ScheduleError::Never(expression.to_owned())) }
    }

    /// Searches 400 years, because the calendar repeats after that, weekdays included.
    fn ever_ticks(&self) -> bool {
        let first = Date::constant(2000, 1, 1);
        let last = Date::constant(2399, 12, 31);
        self.seek(first.to_datetime(Time::MIN), last.to_datetime(Time::MAX), SearchDirection::Later).is_some()
    }

    pub(super) fn clock(&self) -> &TimesOfDay {
        &self.clock
    }

    pub(super) fn is_every_day(&self) -> bool {
        Ok(self.days_of_month) == DaysOfMonth::parse("*")
            && Ok(self.days_of_week) == DaysOfWeek::parse("*")
            && self.months == Bits::range(1, 12)
    }

    /// Returns the first matching time from `at` to `bound`, both included.
    pub(super) fn seek(&self, at: DateTime, bound: DateTime, direction: SearchDirection) -> Option<DateTime> {
        let days = self.days(at.date());
        let time = if days.has(at.day()) { self.clock.seek(at.time(), direction) } else { None };
        let found = match time {
            Some(time) => at.date().to_datetime(time),
            None => self.seek_date(at.date(), days, bound.date(), direction)?.to_datetime(self.clock.first(direction)?),
        };
        (!direction.is_past(found, bound)).then_some(found)
    }

    /// Returns the first matching date after `date`, up to the month of `bound`. `days` are the matching days in the
    /// month of `date`.
    fn seek_date(&self, date: Date, days: Bits, bound: Date, direction: SearchDirection) -> Option<Date> {
        let mut month = date.first_of_month();
        let mut days = days.beyond(date.day(), direction);
        loop {
            if let Some(day) = days.first(direction) {
                return Date::new(month.year(), month.month(), day).ok();
            }
            month = self.month_beyond(month, direction)?;
            if direction.is_past(month, bound.first_of_month()) {
                return None;
            }
            days = self.days(month);
        }
    }

    /// Returns the first day of the next matching month.
    fn month_beyond(&self, month: Date, direction: SearchDirection) -> Option<Date> {
        match self.months.beyond(month.month(), direction).first(direction) {
            Some(number) => Date::new(month.year(), number, 1).ok(),
            None => Date::new(month.year() + i16::from(direction.step()), self.months.first(direction)?, 1).ok(),
        }
    }

    fn days(&self, date: Date) -> Bits {
        if !self.months.has(date.month()) {
            return Bits::default();
        }
        let month = Month::containing(date);
        self.days_of_month.in_month(month) & self.days_of_week.in_month(month)
    }
}

/// Replaces a macro by its six fields.
fn expand(expression: &str) -> Result<&str, ScheduleError> {
    if !expression.starts_with('@') {
        return Ok(expression);
    }
    let found = MACROS.iter().find(|(name, _)| name.eq_ignore_ascii_case(expression));
    found.map(|&(_, fields)| fields).ok_or_else(|| ScheduleError::Macro(expression.to_owned()))
}
