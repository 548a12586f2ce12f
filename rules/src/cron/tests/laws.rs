//! Laws that hold for every schedule at every instant.

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Span};
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::cron::zone::Repeated;
use crate::cron::{DAY_US, HOUR_US, MINUTE_US};

const ZONES: [&str; 8] = [
    "UTC",
    "Asia/Shanghai",
    "Asia/Kathmandu",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "Africa/Casablanca",
];

const DAYS_OF_MONTH: [&str; 7] = ["L", "L-2", "LW", "15W", "31W", "1W,15", "?"];
const DAYS_OF_WEEK: [&str; 6] = ["MON-FRI", "FRIL", "SUN#1", "TUE#5", "0", "?"];

/// A list of one or two entries, or `*`.
fn field(values: std::ops::RangeInclusive<u8>) -> impl Strategy<Value = String> {
    let last = *values.end();
    let value = values.clone();
    let range = (values.clone(), values.clone()).prop_map(|(one, other)| (one.min(other), one.max(other)));
    prop_oneof![
        2 => Just("*".to_owned()),
        3 => value.prop_map(|value| value.to_string()),
        1 => range.clone().prop_map(|(from, to)| format!("{from}-{to}")),
        1 => (range, 1..=last.max(2)).prop_map(|((from, to), step)| format!("{from}-{to}/{step}")),
        1 => (values.clone(), 1..=last.max(2)).prop_map(|(from, step)| format!("{from}/{step}")),
        1 => (values.clone(), values).prop_map(|(one, other)| format!("{one},{other}")),
    ]
}

fn days() -> impl Strategy<Value = (String, String)> {
    prop_oneof![
        4 => (field(1..=31), Just("*".to_owned())),
        2 => (select(&DAYS_OF_MONTH).prop_map(str::to_owned), Just("*".to_owned())),
        2 => (Just("*".to_owned()), select(&DAYS_OF_WEEK).prop_map(str::to_owned)),
        1 => (Just("*".to_owned()), field(0..=7)),
    ]
}

/// A schedule that ticks.
fn any_schedule() -> impl Strategy<Value = Schedule> {
    let clock = (field(0..=59), field(0..=59), field(0..=23));
    let fields = (clock, days(), field(1..=12), select(&ZONES));
    fields.prop_filter_map("it never ticks", |((second, minute, hour), (date, weekday), month, zone)| {
        Schedule::parse(&format!("{second} {minute} {hour} {date} {month} {weekday}"), zone).ok()
    })
}

proptest! {
    #[test]
    fn every_instant_lies_between_its_last_tick_and_its_next(
        schedule in any_schedule(),
        at in us("1990-01-01T00:00:00Z")..us("2100-01-01T00:00:00Z"),
    ) {
        check_laws(&schedule, at);
    }
}

#[track_caller]
fn check_laws(schedule: &Schedule, at: u64) {
    let last = schedule.last_tick_us(at).unwrap();
    let next = schedule.next_tick_us(at).unwrap();
    assert!(last <= at && at < next, "{schedule}: {last} <= {at} < {next}");
    assert_eq!(schedule.next_tick_us(last), Some(next), "{schedule} at {at}");
    assert_eq!(schedule.last_tick_us(next - 1), Some(last), "{schedule} at {at}");
    assert_eq!(schedule.next_tick_us(last - 1), Some(last), "{schedule} at {at}");
    assert_eq!(schedule.last_tick_us(last), Some(last), "{schedule} at {at}");
    assert_eq!(schedule.last_tick_us(next), Some(next), "{schedule} at {at}");
}

/// An expression, and its condition in Rust.
type Plain = (&'static str, fn(DateTime) -> bool);

const EVERY_HOUR: [Plain; 4] = [
    ("* * * * * *", |_| true),
    ("0 * * * * *", |at| at.second() == 0),
    ("30 7/20 * * * *", |at| at.second() == 30 && [7, 27, 47].contains(&at.minute())),
    ("0 */15 * * * SUN", |at| at.second() == 0 && at.minute() % 15 == 0 && at.weekday().to_monday_one_offset() == 7),
];

const SOME_HOURS: [Plain; 6] = [
    ("0 30 2 * * *", |at| (at.hour(), at.minute(), at.second()) == (2, 30, 0)),
    ("5 15,45 0-3 * * *", |at| at.hour() <= 3 && [15, 45].contains(&at.minute()) && at.second() == 5),
    ("0 */10 */2 * * *", |at| at.hour() % 2 == 0 && at.minute() % 10 == 0 && at.second() == 0),
    ("@daily", |at| (at.hour(), at.minute(), at.second()) == (0, 0, 0)),
    ("*/20 59 1,23 L * *", |at| {
        at.day() == at.days_in_month() && [1, 23].contains(&at.hour()) && at.minute() == 59 && at.second() % 20 == 0
    }),
    ("0 0 1,2 ? * SUN", |at| {
        at.weekday().to_monday_one_offset() == 7 && [1, 2].contains(&at.hour()) && at.minute() == 0 && at.second() == 0
    }),
];

/// Nights with a clock change, and one without.
const NIGHTS: [(&str, &str); 9] = [
    ("Europe/Berlin", "2024-03-30T22:30:00Z"),
    ("Europe/Berlin", "2024-10-26T21:30:00Z"),
    ("Australia/Lord_Howe", "2024-10-05T13:00:00Z"),
    ("Australia/Lord_Howe", "2024-04-06T12:30:00Z"),
    ("America/New_York", "2024-11-03T03:30:00Z"),
    ("America/Havana", "2024-03-10T03:30:00Z"),
    ("America/Havana", "2024-11-03T03:30:00Z"),
    ("Pacific/Apia", "2011-12-30T08:30:00Z"),
    ("Asia/Kathmandu", "2024-02-29T17:45:00Z"),
];

#[test]
fn the_ticks_of_a_night_match_the_clocks_at_every_second() {
    for (zone, start) in NIGHTS {
        let end = us(start) + 5 * 3600 * SECOND_US;
        let moments = watch(zone, us(start), end);
        for (repeated, plains) in [(Repeated::TickTwice, &EVERY_HOUR[..]), (Repeated::TickOnce, &SOME_HOURS[..])] {
            for &(expression, plain) in plains {
                let schedule = schedule(expression, zone);
                let seen = moments.iter().filter(|moment| moment.is_tick(repeated, plain));
                let seen: Vec<u64> = seen.map(|moment| moment.second * SECOND_US).collect();
                assert_eq!(
                    ticks(&schedule, us(start)).take_while(|&tick| tick < end).collect::<Vec<_>>(),
                    seen,
                    "{schedule}"
                );
                let mut back: Vec<u64> = ticks_back(&schedule, end - 1).take_while(|&tick| tick > us(start)).collect();
                back.reverse();
                assert_eq!(back, seen, "{schedule} backwards");
            }
        }
    }
}

/// A second with its civil time, the civil times that were skipped before it, and whether its civil time is repeated.
struct Moment {
    second: u64,
    shown: DateTime,
    skipped: Vec<DateTime>,
    repeated: bool,
}

impl Moment {
    fn is_tick(&self, repeated: Repeated, plain: fn(DateTime) -> bool) -> bool {
        self.skipped.iter().copied().any(plain)
            || plain(self.shown) && (repeated == Repeated::TickTwice || !self.repeated)
    }
}

/// Returns every second between two instants.
fn watch(zone: &str, start: u64, end: u64) -> Vec<Moment> {
    let zone = time_zone(zone);
    let shown = |second: u64| zone.to_datetime(Timestamp::from_second(i64::try_from(second).unwrap()).unwrap());
    let second_later = |at: &DateTime| at.checked_add(SignedDuration::from_secs(1)).ok();
    let mut before = shown(start / SECOND_US);
    let mut latest = before;
    let mut moments = Vec::new();
    for second in start / SECOND_US + 1..end / SECOND_US {
        let shown = shown(second);
        let new = std::iter::successors(second_later(&before), second_later);
        moments.push(Moment {
            second,
            shown,
            skipped: new.take_while(|&at| at < shown).collect(),
            repeated: shown <= latest,
        });
        latest = latest.max(shown);
        before = shown;
    }
    moments
}

/// An expression, and the condition on its days in Rust.
type PlainDay = (&'static str, fn(Date) -> bool);

#[test]
fn the_days_of_a_century_match_the_calendar() {
    let plains: [PlainDay; 6] = [
        ("0 0 0 13 * FRI", |day| day.day() == 13 && weekday(day) == 5),
        ("0 0 0 L-2 */2 *", |day| day.day() == day.days_in_month() - 2 && day.month() % 2 == 1),
        ("0 0 0 ? * TUEL", |day| weekday(day) == 2 && day.day() > day.days_in_month() - 7),
        ("0 0 0 ? * SUN#5", |day| weekday(day) == 7 && day.day() > 28),
        ("0 0 0 LW * *", |day| is_last_workday(day)),
        ("0 0 0 1W * *", |day| day.day() <= 3 && weekday(day) <= 5 && (day.day() == 1 || weekday(day) == 1)),
    ];
    for (expression, plain) in plains {
        let schedule = schedule(expression, "UTC");
        let century = Date::constant(2000, 1, 1).series(Span::new().days(1)).take(36_525);
        let days: Vec<Date> = century.filter(|&day| plain(day)).collect();
        assert!(days.len() > 100, "{expression}");
        for (day, tick) in days.into_iter().zip(ticks(&schedule, us("1999-12-31T23:59:59Z"))) {
            assert_eq!(shown(tick, "UTC"), format!("{day} 00:00:00 +00:00"), "{expression}");
        }
    }
}

fn weekday(day: Date) -> i8 {
    day.weekday().to_monday_one_offset()
}

fn is_last_workday(day: Date) -> bool {
    let left = day.days_in_month() - day.day();
    weekday(day) <= 5 && (left == 0 || weekday(day) == 5 && left <= 2)
}

#[test]
fn ticks_are_as_far_apart_as_is_said() {
    let day = Some(DAY_US);
    for (expression, shortest, longest) in [
        ("@daily", DAY_US, day),
        ("0 30 6 * * *", DAY_US, day),
        ("0 0 6,18 * * *", HOUR_US, day),
        ("@hourly", HOUR_US, Some(HOUR_US)),
        ("30 10,40 * * * *", MINUTE_US, Some(HOUR_US)),
        ("0 * * * * *", MINUTE_US, Some(MINUTE_US)),
        ("0,59 * * * * *", SECOND_US, Some(MINUTE_US)),
        ("0,30 0 6 * * *", SECOND_US, day),
        ("@weekly", DAY_US, None),
        ("@monthly", DAY_US, None),
        ("0 0 0 31 * *", DAY_US, None),
        ("0 0 0 * 1-11 *", DAY_US, None),
        ("0 0 0 ? * ?", DAY_US, day),
    ] {
        let schedule = Schedule::parse(expression, "UTC").unwrap();
        assert_eq!((schedule.shortest_gap_us(), schedule.longest_gap_us()), (shortest, longest), "{expression}");
        let mut tick = schedule.next_tick_us(951_000_000_000_000).unwrap();
        for _ in 0..5_000 {
            let next = schedule.next_tick_us(tick).unwrap();
            assert!((shortest..=longest.unwrap_or(u64::MAX)).contains(&(next - tick)), "{expression}");
            tick = next;
        }
    }
}

#[test]
fn where_clocks_are_changed_little_is_known() {
    let schedule = Schedule::parse("@daily", "Europe/Berlin").unwrap();
    assert_eq!((schedule.shortest_gap_us(), schedule.longest_gap_us()), (SECOND_US, None));
}
