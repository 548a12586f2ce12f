//! The ticks of schedules on calendars and clocks that were worked out by hand.

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
    std::iter::successors(schedule.next_tick_us(us), |&tick| schedule.next_tick_us(tick))
}

/// The ticks up to `us`, latest first.
fn ticks_back(schedule: &Schedule, us: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(schedule.last_tick_us(us), |&tick| schedule.last_tick_us(tick - 1))
}

#[track_caller]
fn assert_ticks(expression: &str, zone: &str, from: &str, expected: &[&str]) {
    let schedule = schedule(expression, zone);
    let found: Vec<u64> = ticks(&schedule, us(from)).take(expected.len()).collect();
    assert_eq!(found.iter().map(|&tick| shown(tick, zone)).collect::<Vec<_>>(), expected, "{schedule}");
    let mut back: Vec<u64> = ticks_back(&schedule, found[found.len() - 1]).take(expected.len()).collect();
    back.reverse();
    assert_eq!(back, found, "{schedule} backwards");
}

#[test]
fn a_zone_without_clock_changes_is_an_offset() {
    let shanghai = ["2024-07-01 06:00:00 +08:00", "2024-07-02 06:00:00 +08:00"];
    assert_ticks("0 0 6 * * *", "Asia/Shanghai", "2024-06-30T22:00:00+08:00", &shanghai);
    let kathmandu = ["2024-07-01 00:00:00 +05:45", "2024-07-02 00:00:00 +05:45"];
    assert_ticks("@daily", "Asia/Kathmandu", "2024-06-30T18:14:59Z", &kathmandu);
    assert_eq!(
        schedule("@daily", "Asia/Kathmandu").next_tick_us(us("2024-06-30T18:14:59Z")),
        Some(us("2024-06-30T18:15:00Z"))
    );
}

#[test]
fn a_time_that_the_clocks_skip_ticks_when_they_skip_it() {
    let berlin = ["2024-03-30 02:30:00 +01:00", "2024-03-31 03:00:00 +02:00", "2024-04-01 02:30:00 +02:00"];
    assert_ticks("0 30 2 * * *", "Europe/Berlin", "2024-03-29T12:00:00Z", &berlin);
    let new_york = ["2024-03-09 02:00:00 -05:00", "2024-03-10 03:00:00 -04:00", "2024-03-11 02:00:00 -04:00"];
    assert_ticks("0 0 2 * * *", "America/New_York", "2024-03-08T12:00:00Z", &new_york);
    let lord_howe = ["2024-10-05 02:15:00 +10:30", "2024-10-06 02:30:00 +11:00", "2024-10-07 02:15:00 +11:00"];
    assert_ticks("0 15 2 * * *", "Australia/Lord_Howe", "2024-10-04T12:00:00Z", &lord_howe);
}

#[test]
fn several_ticks_at_the_same_moment_are_one() {
    let berlin = [
        "2024-03-31 01:40:00 +01:00",
        "2024-03-31 03:00:00 +02:00",
        "2024-03-31 03:20:00 +02:00",
        "2024-03-31 03:40:00 +02:00",
    ];
    assert_ticks("0 */20 1-3 * * *", "Europe/Berlin", "2024-03-31T01:20:00+01:00", &berlin);
    assert_ticks("0 */20 * * * *", "Europe/Berlin", "2024-03-31T01:20:00+01:00", &berlin);
}

#[test]
fn a_time_after_the_skipped_ones_ticks_as_usual() {
    let berlin = ["2024-03-31 03:00:00 +02:00", "2024-03-31 03:30:00 +02:00", "2024-04-01 02:30:00 +02:00"];
    assert_ticks("0 30 2,3 * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", &berlin);
    let hourly = ["2024-03-31 01:30:00 +01:00", "2024-03-31 03:00:00 +02:00", "2024-03-31 03:30:00 +02:00"];
    assert_ticks("0 30 * * * *", "Europe/Berlin", "2024-03-31T00:00:00Z", &hourly);
}

#[test]
fn a_time_that_the_clocks_repeat_ticks_the_first_time_only() {
    let berlin = ["2024-10-26 02:30:00 +02:00", "2024-10-27 02:30:00 +02:00", "2024-10-28 02:30:00 +01:00"];
    assert_ticks("0 30 2 * * *", "Europe/Berlin", "2024-10-25T12:00:00Z", &berlin);
    let new_york = ["2024-11-03 01:59:59 -04:00", "2024-11-04 01:59:59 -05:00"];
    assert_ticks("59 59 1 * * *", "America/New_York", "2024-11-02T12:00:00Z", &new_york);
    let lord_howe = ["2024-04-07 01:45:00 +11:00", "2024-04-07 02:45:00 +10:30", "2024-04-08 01:45:00 +10:30"];
    assert_ticks("0 45 1,2 * * *", "Australia/Lord_Howe", "2024-04-06T18:00:00+11:00", &lord_howe);
}

#[test]
fn in_the_repeated_hour_the_last_tick_is_the_one_of_the_first_time() {
    let berlin = schedule("0 30 2 * * *", "Europe/Berlin");
    let first = us("2024-10-27T02:30:00+02:00");
    for at in ["2024-10-27T02:30:00+02:00", "2024-10-27T02:10:00+01:00", "2024-10-27T02:50:00+01:00"] {
        assert_eq!(berlin.last_tick_us(us(at)), Some(first));
        assert_eq!(berlin.next_tick_us(us(at)), Some(us("2024-10-28T02:30:00+01:00")));
    }
}

#[test]
fn an_expression_that_matches_every_hour_ticks_both_times() {
    let berlin = [
        "2024-10-27 02:00:00 +02:00",
        "2024-10-27 02:30:00 +02:00",
        "2024-10-27 02:00:00 +01:00",
        "2024-10-27 02:30:00 +01:00",
        "2024-10-27 03:00:00 +01:00",
    ];
    for expression in ["0 */30 * * * *", "0 0,30 */1 * * *", "0 0,30 0-23 * * *"] {
        assert_ticks(expression, "Europe/Berlin", "2024-10-27T01:30:00+02:00", &berlin);
    }
    let lord_howe = [
        "2024-04-07 01:15:00 +11:00",
        "2024-04-07 01:45:00 +11:00",
        "2024-04-07 01:45:00 +10:30",
        "2024-04-07 02:15:00 +10:30",
    ];
    assert_ticks("0 15/30 * * * *", "Australia/Lord_Howe", "2024-04-07T01:00:00+11:00", &lord_howe);
}

#[test]
fn a_schedule_of_every_minute_has_no_gap() {
    for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "America/Santiago"] {
        let minutely = schedule("0 * * * * *", zone);
        for change in time_zone(zone).following("2024-01-01T00:00:00Z".parse().unwrap()).take(2) {
            let change = us(&change.timestamp().to_string());
            for minute in 0..240 {
                let tick = change - 7200 * SECOND_US + minute * 60 * SECOND_US;
                assert_eq!(minutely.next_tick_us(tick), Some(tick + 60 * SECOND_US), "{zone} {}", shown(tick, zone));
            }
        }
    }
}

#[test]
fn midnight_ticks_once_even_if_the_clocks_change_then() {
    // Havana skips the hour after midnight in spring, and repeats it in autumn.
    let spring = ["2024-03-09 00:00:00 -05:00", "2024-03-10 01:00:00 -04:00", "2024-03-11 00:00:00 -04:00"];
    assert_ticks("@daily", "America/Havana", "2024-03-08T12:00:00Z", &spring);
    let autumn = ["2024-11-03 00:00:00 -04:00", "2024-11-04 00:00:00 -05:00"];
    assert_ticks("@daily", "America/Havana", "2024-11-02T12:00:00Z", &autumn);
    // Santiago repeats the last hour of a Saturday.
    let santiago = ["2024-04-06 23:30:00 -03:00", "2024-04-07 23:30:00 -04:00"];
    assert_ticks("0 30 23 * * *", "America/Santiago", "2024-04-06T12:00:00Z", &santiago);
}

#[test]
fn the_times_of_a_skipped_day_tick_when_the_next_day_begins() {
    // Samoa went from 29 to 31 December 2011.
    let apia = ["2011-12-29 06:00:00 -10:00", "2011-12-31 00:00:00 +14:00", "2011-12-31 06:00:00 +14:00"];
    assert_ticks("0 0 6 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", &apia);
}

#[test]
fn clock_changes_are_known_for_future_years() {
    let berlin = ["2061-03-27 03:00:00 +02:00", "2061-03-28 02:30:00 +02:00"];
    assert_ticks("0 30 2 * * *", "Europe/Berlin", "2061-03-26T12:00:00Z", &berlin);
}
