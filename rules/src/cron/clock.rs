//! The times of a day.

use jiff::civil::Time;

use super::bits::Bits;
use super::toward::Toward;

/// The times of any day that a cron expression names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) hours: Bits,
    pub(super) minutes: Bits,
    pub(super) seconds: Bits,
}

impl Clock {
    pub(super) fn is_every_hour(&self) -> bool {
        self.hours == Bits::range(0, 23)
    }

    /// The first time of a day when going `toward`.
    pub(super) fn first(&self, toward: Toward) -> Option<Time> {
        self.first_in(self.hours.first(toward)?, toward)
    }

    /// The first time at `at` or beyond it.
    pub(super) fn seek(&self, at: Time, toward: Toward) -> Option<Time> {
        let (hour, minute) = (at.hour(), at.minute());
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
