//! The ticks of schedules, on calendars and clocks worked out by hand.

mod changes;
mod laws;
mod mistakes;
mod syntax;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::{SECOND_US, Schedule};

fn schedule(expression: &str, zone: &str) -> Schedule {
    Schedule::parse(expression, zone).unwrap()
}

fn time_zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

/// Microseconds of an instant written with its offset, like `2024-03-31T03:00:00+02:00`.
fn us(text: &str) -> u64 {
    let instant: Timestamp = text.parse().unwrap();
    u64::try_from(instant.as_microsecond()).unwrap()
}

/// The civil time in a zone, with its offset from UTC.
fn shown(us: u64, zone: &str) -> String {
    let second = i64::try_from(us / SECOND_US).unwrap();
    let instant = Timestamp::from_second(second).unwrap();
    instant.to_zoned(time_zone(zone)).strftime("%F %T %:z").to_string()
}

/// The ticks after `us`, earliest first.
fn ticks(schedule: &Schedule, us: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(schedule.next_tick(us), |&tick| schedule.next_tick(tick))
}

/// The ticks up to `us`, latest first.
fn ticks_back(schedule: &Schedule, us: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(schedule.last_tick(us), |&tick| schedule.last_tick(tick - 1))
}
