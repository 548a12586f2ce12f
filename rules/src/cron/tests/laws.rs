//! What holds for every schedule at every instant.

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Span};

use super::*;

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

/// A generator of pseudo-random numbers: splitmix64.
struct Random(u64);

impl Random {
    fn between(&mut self, start: u64, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        start + (mixed ^ mixed >> 31) % (end - start)
    }
}

#[test]
fn every_instant_lies_between_its_last_tick_and_its_next() {
    let expressions = [
        "* * * * * *",
        "0 * * * * *",
        "*/7 3/11 * * * *",
        "@hourly",
        "0 30 2 * * *",
        "15,45 0-59/13 1-3 * * *",
        "@daily",
        "0 0 6 * * MON-FRI",
        "0 15 2 L * *",
        "0 0 0 15W,LW * ?",
        "0 45 1 ? 4,10 SUN#1",
        "59 59 23 ? * FRIL",
        "@yearly",
        "0 0 12 29 2 *",
    ];
    let mut random = Random(1);
    for zone in ZONES {
        for expression in expressions {
            let schedule = schedule(expression, zone);
            for _ in 0..100 {
                check_laws(&schedule, random.between(us("1980-01-01T00:00:00Z"), us("2100-01-01T00:00:00Z")));
            }
        }
    }
}

#[track_caller]
fn check_laws(schedule: &Schedule, at: u64) {
    let (last, next) = (schedule.last_tick(at).unwrap(), schedule.next_tick(at).unwrap());
    assert!(last <= at && at < next, "{schedule}: {last} <= {at} < {next}");
    assert_eq!(schedule.next_tick(last), Some(next), "{schedule} at {at}");
    assert_eq!(schedule.last_tick(next - 1), Some(last), "{schedule} at {at}");
    assert_eq!(schedule.next_tick(last - 1), Some(last), "{schedule} at {at}");
    assert_eq!((schedule.last_tick(last), schedule.last_tick(next)), (Some(last), Some(next)), "{schedule} at {at}");
}

/// An expression beside the same in plain words.
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

/// Nights in which the clocks are changed, and an ordinary one.
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
fn the_ticks_of_a_night_are_those_that_a_watcher_of_the_clocks_counts() {
    for (zone, start) in NIGHTS {
        let end = us(start) + 5 * 3600 * MICROS;
        let looks = watch(zone, us(start), end);
        for (repeats, plains) in [(true, &EVERY_HOUR[..]), (false, &SOME_HOURS[..])] {
            for &(expression, plain) in plains {
                let schedule = schedule(expression, zone);
                let seen = looks.iter().filter(|look| look.is_tick(repeats, plain));
                let seen: Vec<u64> = seen.map(|look| look.second * MICROS).collect();
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

/// What the clocks show at a second, what they skipped since the second before, and whether they showed it already.
struct Look {
    second: u64,
    shown: DateTime,
    skipped: Vec<DateTime>,
    again: bool,
}

impl Look {
    fn is_tick(&self, repeats: bool, plain: fn(DateTime) -> bool) -> bool {
        self.skipped.iter().copied().any(plain) || plain(self.shown) && (repeats || !self.again)
    }
}

/// Looks at the clocks every second after the start.
fn watch(zone: &str, start: u64, end: u64) -> Vec<Look> {
    let zone = time_zone(zone);
    let shown = |second: u64| zone.to_datetime(Timestamp::from_second(i64::try_from(second).unwrap()).unwrap());
    let second_later = |at: &DateTime| at.checked_add(SignedDuration::from_secs(1)).ok();
    let mut before = shown(start / MICROS);
    let mut latest = before;
    let mut looks = Vec::new();
    for second in start / MICROS + 1..end / MICROS {
        let shown = shown(second);
        let new = std::iter::successors(second_later(&before), second_later);
        looks.push(Look { second, shown, skipped: new.take_while(|&at| at < shown).collect(), again: shown <= latest });
        latest = latest.max(shown);
        before = shown;
    }
    looks
}

/// The days of an expression beside the same in plain words.
type PlainDay = (&'static str, fn(Date) -> bool);

#[test]
fn the_days_of_a_century_are_those_of_the_calendar() {
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
