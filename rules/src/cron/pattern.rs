//! The civil times that match a cron expression, without a time zone: days by their date and by their weekday, and times of a day.

use jiff::civil::{Date, DateTime, Time};

use crate::cron::bits::{Bits, SearchDirection};
use crate::cron::error::ScheduleError;
use crate::cron::field::CronField;
use crate::cron::syntax::{entries, parse_entry, parse_list, parse_number, parse_value, unknown};

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

const DAYS_A_WEEK: i8 = 7;
const SUNDAY: i8 = 0;
const SATURDAY: i8 = 6;

/// The length of a month, and the weekday of its first day (Sunday is 0).
#[derive(Clone, Copy, Debug)]
struct Month {
    length: i8,
    starts_on: i8,
}

impl Month {
    fn containing(date: Date) -> Self {
        Self { length: date.days_in_month(), starts_on: date.first_of_month().weekday().to_sunday_zero_offset() }
    }

    fn weekday(self, day: i8) -> i8 {
        (self.starts_on + day - 1) % DAYS_A_WEEK
    }

    /// Returns the day of this month from Monday to Friday that is nearest to `day`.
    fn workday_nearest_to(self, day: i8) -> i8 {
        match self.weekday(day) {
            SATURDAY if day == 1 => day + 2,
            SATURDAY => day - 1,
            SUNDAY if day == self.length => day - 2,
            SUNDAY => day + 1,
            _ => day,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct DaysOfMonth {
    dates: Bits,
    /// Days counted back from the last one: 0 for `L`, 3 for `L-3`.
    before_last: Bits,
    /// 15 for `15W`.
    workdays: Bits,
    /// `LW`
    last_workday: bool,
}

impl DaysOfMonth {
    pub(super) fn parse(text: &str) -> Result<Self, ScheduleError> {
        entries(CronField::DayOfMonth, text)?.try_fold(Self::default(), Self::with)
    }

    fn with(mut self, entry: &str) -> Result<Self, ScheduleError> {
        if let Some(rest) = entry.strip_prefix(['L', 'l']) {
            self.add_last(rest).ok_or_else(|| unknown(CronField::DayOfMonth, entry))?;
        } else if let Some(day) = entry.strip_suffix(['W', 'w']) {
            let day = parse_value(CronField::DayOfMonth, day).map_err(|_| unknown(CronField::DayOfMonth, entry))?;
            self.workdays = self.workdays | Bits::one(day);
        } else {
            self.dates = self.dates | parse_entry(CronField::DayOfMonth, entry)?;
        }
        Ok(self)
    }

    fn add_last(&mut self, rest: &str) -> Option<()> {
        if rest.eq_ignore_ascii_case("W") {
            self.last_workday = true;
        } else if rest.is_empty() {
            self.before_last = self.before_last | Bits::one(0);
        } else {
            let days = parse_number(rest.strip_prefix('-')?).filter(|days| (1..=30).contains(days))?;
            self.before_last = self.before_last | Bits::one(days);
        }
        Some(())
    }

    fn in_month(&self, month: Month) -> Bits {
        let dates = Bits::range(1, month.length);
        let from_end = self.before_last.iter().map(|days| month.length - days).filter(|&day| day >= 1);
        let last = self.last_workday.then_some(month.length);
        let workdays = (self.workdays & dates).iter().chain(last).map(|day| month.workday_nearest_to(day));
        self.dates & dates | from_end.collect() | workdays.collect()
    }
}

/// Sunday is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct DaysOfWeek {
    every: Bits,
    /// 5 for `FRIL`.
    last: Bits,
    /// 12 for `FRI#2`: the weekday, and seven more for each week before.
    nth: Bits,
}

impl DaysOfWeek {
    pub(super) fn parse(text: &str) -> Result<Self, ScheduleError> {
        entries(CronField::DayOfWeek, text)?.try_fold(Self::default(), Self::with)
    }

    fn with(mut self, entry: &str) -> Result<Self, ScheduleError> {
        if let Some(day) = entry.strip_suffix(['L', 'l']) {
            self.last = self.last | Bits::one(parse_weekday(day, entry)?);
        } else if let Some((day, nth)) = entry.split_once('#') {
            let nth: Option<i8> = parse_number(nth).filter(|nth| (1..=5).contains(nth));
            let nth = nth.ok_or_else(|| unknown(CronField::DayOfWeek, entry))?;
            self.nth = self.nth | Bits::one(parse_weekday(day, entry)? + DAYS_A_WEEK * (nth - 1));
        } else {
            let days = parse_entry(CronField::DayOfWeek, entry)?;
            self.every = self.every | days.iter().map(|day| day % DAYS_A_WEEK).collect();
        }
        Ok(self)
    }

    fn in_month(&self, month: Month) -> Bits {
        (1..=month.length).filter(|&day| self.has(day, month)).collect()
    }

    fn has(&self, day: i8, month: Month) -> bool {
        let weekday = month.weekday(day);
        let weeks_before = (day - 1) / DAYS_A_WEEK;
        self.every.has(weekday)
            || self.nth.has(weekday + DAYS_A_WEEK * weeks_before)
            || self.last.has(weekday) && day + DAYS_A_WEEK > month.length
    }
}

fn parse_weekday(day: &str, entry: &str) -> Result<i8, ScheduleError> {
    let day = parse_value(CronField::DayOfWeek, day).map_err(|_| unknown(CronField::DayOfWeek, entry))?;
    Ok(day % DAYS_A_WEEK)
}

/// The times of day that match a cron expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TimesOfDay {
    pub(super) hours: Bits,
    pub(super) minutes: Bits,
    pub(super) seconds: Bits,
}

impl TimesOfDay {
    pub(super) fn is_every_hour(&self) -> bool {
        self.hours == Bits::range(0, 23)
    }

    pub(super) fn is_every_minute(&self) -> bool {
        self.minutes == Bits::range(0, 59)
    }

    pub(super) fn first(&self, direction: SearchDirection) -> Option<Time> {
        self.first_in(self.hours.first(direction)?, direction)
    }

    /// Returns the first time from `at` on, in a direction.
    pub(super) fn seek(&self, at: Time, direction: SearchDirection) -> Option<Time> {
        let hour = at.hour();
        let minute = at.minute();
        if self.hours.has(hour) {
            if self.minutes.has(minute)
                && let Some(second) = self.seconds.since(at.second(), direction).first(direction)
            {
                return time(hour, minute, second);
            }
            if let Some(minute) = self.minutes.beyond(minute, direction).first(direction) {
                return time(hour, minute, self.seconds.first(direction)?);
            }
        }
        self.first_in(self.hours.beyond(hour, direction).first(direction)?, direction)
    }

    fn first_in(&self, hour: i8, direction: SearchDirection) -> Option<Time> {
        time(hour, self.minutes.first(direction)?, self.seconds.first(direction)?)
    }
}

fn time(hour: i8, minute: i8, second: i8) -> Option<Time> {
    Time::new(hour, minute, second, 0).ok()
}
