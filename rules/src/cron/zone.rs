//! A time zone, as a sequence of periods between clock changes.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use crate::cron::bits::SearchDirection;
use crate::cron::error::ScheduleError;
use crate::suggestion::edits_up_to;

/// A time zone of the compiled-in database, with which every process knows the same zones.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    name: String,
    rules: TimeZone,
}

impl Zone {
    pub(super) fn parse(name: &str) -> Result<Self, ScheduleError> {
        let rules = TimeZoneDatabase::bundled().get(name).ok().filter(|rules| !rules.is_unknown());
        let canonical = rules.as_ref().and_then(TimeZone::iana_name).map(str::to_owned);
        match (rules, canonical) {
            (Some(rules), Some(name)) => Ok(Self { name, rules }),
            _ => Err(ScheduleError::Zone { name: name.to_owned(), similar: similar_to(name) }),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the period that contains `second`.
    pub(super) fn period(&self, second: i64) -> Period {
        let start = self.rules.preceding(timestamp(second + 1)).next().map(|change| change.timestamp().as_second());
        let end = self.rules.following(timestamp(second)).next().map(|change| change.timestamp().as_second());
        let offset = self.rules.to_offset(timestamp(second));
        Period {
            first: start.unwrap_or(Timestamp::MIN.as_second()),
            last: end.map_or(Timestamp::MAX.as_second(), |end| end - 1),
            offset,
            offset_before: start.map_or(offset, |start| self.rules.to_offset(timestamp(start - 1))),
        }
    }

    /// Returns the periods after or before `period`, nearest first.
    pub(super) fn periods_beyond(&self, period: Period, direction: SearchDirection) -> impl Iterator<Item = Period> {
        let neighbour = move |period: &Period| {
            let second = match direction {
                SearchDirection::Earlier => period.first - 1,
                SearchDirection::Later => period.last + 1,
            };
            (timestamp(second).as_second() == second).then(|| self.period(second))
        };
        std::iter::successors(neighbour(&period), neighbour)
    }
}

/// A time between two clock changes of a zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    first: i64,
    last: i64,
    offset: Offset,
    offset_before: Offset,
}

/// How often a repeated civil time ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeated {
    TickOnce,
    TickTwice,
}

impl Period {
    /// Returns the civil time at `second` by the offset of this period, also if `second` is outside of the period.
    pub(super) fn civil(&self, second: i64) -> DateTime {
        self.offset.to_datetime(timestamp(second))
    }

    /// Returns the first and the last civil time that ticks in this period.
    ///
    /// A civil time that the clocks skip at the start of a period ticks in it. One that they repeat there ticks in the
    /// period before, and in this period again only if `repeated` says so.
    pub(super) fn civil_range(&self, repeated: Repeated) -> (DateTime, DateTime) {
        let unchanged = self.offset_before.to_datetime(timestamp(self.first));
        let first = match repeated {
            Repeated::TickOnce => unchanged,
            Repeated::TickTwice => unchanged.min(self.civil(self.first)),
        };
        (first, self.civil(self.last))
    }

    /// Returns when a civil time of this period ticks: at the period's start if the clocks skip it.
    pub(super) fn second(&self, civil: DateTime) -> Option<i64> {
        Some(self.offset.to_timestamp(civil).ok()?.as_second().max(self.first))
    }
}

/// Returns the instant of a second, or the nearest one that has a civil time.
fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(if second < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// Returns a zone of that city, or else the most similar name with at most two edits.
fn similar_to(name: &str) -> Option<String> {
    let wanted = name.replace(' ', "_").to_ascii_lowercase();
    let edits = |zone: &str| {
        let zone = zone.to_ascii_lowercase();
        if city(&zone) == city(&wanted) { Some(0) } else { edits_up_to(2, &zone, &wanted) }
    };
    let database = TimeZoneDatabase::bundled();
    let zones = database.available().map(|zone| zone.as_str().to_owned()).filter(|zone| is_place(zone));
    zones.filter_map(|zone| Some((edits(&zone)?, zone))).min().map(|(_, zone)| zone)
}

/// Returns whether a zone is named after a place. `Etc/GMT+8` must not be suggested for `GMT+8`: its sign is inverted.
fn is_place(zone: &str) -> bool {
    zone.contains('/') && !zone.starts_with("Etc/")
}

fn city(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
