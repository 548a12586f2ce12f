//! The times of a day.

use jiff::civil::Time;

use crate::cron::bits::Bits;
use crate::cron::toward::Toward;

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

    /// Returns the first time of a day in a direction.
    pub(super) fn first(&self, toward: Toward) -> Option<Time> {
        self.first_in(self.hours.first(toward)?, toward)
    }

    /// Returns the first time from `at` on, in a direction.
    pub(super) fn seek(&self, at: Time, toward: Toward) -> Option<Time> {
        let hour = at.hour();
        let minute = at.minute();
        if self.hours.has(hour) {
            if self.minutes.has(minute)
                && let Some(second) = self.seconds.since(at.second(), toward).first(toward)
            {
                return time(hour, minute, second);
            }
            if let Some(minute) = self.minutes.beyond(minute, toward).first(toward) {
                return time(hour, minute, self.seconds.first(toward)?);
            }
        }
        self.first_in(self.hours.beyond(hour, toward).first(toward)?, toward)
    }

    fn first_in(&self, hour: i8, toward: Toward) -> Option<Time> {
        time(hour, self.minutes.first(toward)?, self.seconds.first(toward)?)
    }
}

fn time(hour: i8, minute: i8, second: i8) -> Option<Time> {
    Time::new(hour, minute, second, 0).ok()
}
