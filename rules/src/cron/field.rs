//! The fields of a cron expression and their ranges.

use std::fmt;

/// A field of a cron expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CronField {
    /// The second of the minute, 0 to 59.
    Second,
    /// The minute of the hour, 0 to 59.
    Minute,
    /// The hour of the day, 0 to 23.
    Hour,
    /// The day of the month, 1 to 31.
    DayOfMonth,
    /// The month, 1 to 12 or JAN to DEC.
    Month,
    /// The day of the week, 0 to 7 or MON to SUN; both 0 and 7 are Sunday.
    DayOfWeek,
}

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

/// Sunday as the last day of a week; [`DayOfWeek`](CronField::DayOfWeek) also accepts 0.
pub(super) const SUNDAY: i8 = 7;

impl fmt::Display for CronField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day-of-month",
            Self::Month => "month",
            Self::DayOfWeek => "day-of-week",
        })
    }
}

impl CronField {
    pub(super) const fn min(self) -> i8 {
        match self {
            Self::Second | Self::Minute | Self::Hour | Self::DayOfWeek => 0,
            Self::DayOfMonth | Self::Month => 1,
        }
    }

    pub(super) const fn max(self) -> i8 {
        match self {
            Self::Second | Self::Minute => 59,
            Self::Hour => 23,
            Self::DayOfMonth => 31,
            Self::Month => 12,
            Self::DayOfWeek => SUNDAY,
        }
    }

    /// Returns the first value of `*`. A week starts on Monday, so `*/2` is Monday, Wednesday, Friday and Sunday.
    pub(super) const fn star(self) -> i8 {
        match self {
            Self::DayOfWeek => 1,
            _ => self.min(),
        }
    }

    pub(super) const fn is_day(self) -> bool {
        matches!(self, Self::DayOfMonth | Self::DayOfWeek)
    }

    /// Returns the names of the values 1, 2, 3 and so on.
    pub(super) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &WEEKDAYS,
            _ => &[],
        }
    }

    /// Returns what to write instead of a mistaken value.
    pub(super) const fn remedy(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => "write 0 to 59, like `30`, `0-10`, `*/5` or `0,30`",
            Self::Hour => "write 0 to 23, like `6`, `9-17`, `*/2` or `6,18`",
            Self::DayOfMonth => {
                "write 1 to 31, like `1`, `1-7`, `*/2` or `1,15`, or `L`, `L-1` to `L-30`, `LW`, `1W` to `31W`"
            }
            Self::Month => "write 1 to 12 or JAN to DEC, like `1`, `JUN-AUG`, `*/3` or `1,7`",
            Self::DayOfWeek => {
                "write 0 to 7 or MON to SUN, like `5`, `MON-FRI` or `SAT,SUN`, or `FRIL`, `FRI#1` to `FRI#5`"
            }
        }
    }
}
