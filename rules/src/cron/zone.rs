//! A time zone, as the sequence of periods between the changes of its clocks.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

use super::error::ScheduleError;
use super::toward::Toward;

/// A time zone of the database that is compiled in, so that every process knows the same ones.
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

    /// The period that `second` lies in.
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

    /// The periods after or before `period`, one after the other.
    pub(super) fn periods_beyond(&self, period: Period, toward: Toward) -> impl Iterator<Item = Period> {
        let neighbour = move |period: &Period| {
            let second = match toward {
                Toward::Earlier => period.first - 1,
                Toward::Later => period.last + 1,
            };
            (timestamp(second).as_second() == second).then(|| self.period(second))
        };
        std::iter::successors(neighbour(&period), neighbour)
    }
}

/// A stretch of time in which the clocks of a zone are not changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    first: i64,
    last: i64,
    offset: Offset,
    offset_before: Offset,
}

impl Period {
    /// What the clocks of this period show at `second`, even if that lies outside.
    pub(super) fn civil(&self, second: i64) -> DateTime {
        self.offset.to_datetime(timestamp(second))
    }

    /// The civil times that belong to this period, as the first and the last.
    ///
    /// Those skipped at its start belong to it. Those repeated at its start belong to the period before, and to this one
    /// only if `repeats`.
    pub(super) fn civil_range(&self, repeats: bool) -> (DateTime, DateTime) {
        let unchanged = self.offset_before.to_datetime(timestamp(self.first));
        let first = if repeats { unchanged.min(self.civil(self.first)) } else { unchanged };
        (first, self.civil(self.last))
    }

    /// When a civil time of this period happens: skipped ones happen as the period starts.
    pub(super) fn second(&self, civil: DateTime) -> Option<i64> {
        Some(self.offset.to_timestamp(civil).ok()?.as_second().max(self.first))
    }
}

/// The instant of a second, or the nearest one that has a civil time.
fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(if second < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// A zone of the same city, or the one whose name takes the fewest edits, at most two.
fn similar_to(name: &str) -> Option<String> {
    let wanted = name.replace(' ', "_").to_ascii_lowercase();
    let edits = |zone: &str| {
        let zone = zone.to_ascii_lowercase();
        if city(&zone) == city(&wanted) { 0 } else { strsim::osa_distance(&zone, &wanted) }
    };
    let database = TimeZoneDatabase::bundled();
    let zones = database.available().map(|zone| zone.as_str().to_owned()).filter(|zone| is_place(zone));
    let nearest = zones.map(|zone| (edits(&zone), zone)).min();
    nearest.filter(|&(edits, _)| edits <= 2).map(|(_, zone)| zone)
}

/// Whether a zone is named after a place. `Etc/GMT+8` is not, and no answer to `GMT+8`: its sign is the other way round.
fn is_place(zone: &str) -> bool {
    zone.contains('/') && !zone.starts_with("Etc/")
}

fn city(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
