//! How far apart the ticks of a schedule are.

use super::Schedule;

const SECOND_US: u64 = 1_000_000;
const MINUTE_US: u64 = 60 * SECOND_US;
const HOUR_US: u64 = 60 * MINUTE_US;
const DAY_US: u64 = 24 * HOUR_US;

impl Schedule {
    /// Returns a time in microseconds that lies between any two ticks at least.
    pub(crate) fn shortest_gap_us(&self) -> u64 {
        let clock = self.pattern.clock();
        match () {
            () if !self.has_steady_clock() || !clock.seconds.is_single() => SECOND_US,
            () if !clock.minutes.is_single() => MINUTE_US,
            () if !clock.hours.is_single() => HOUR_US,
            () => DAY_US,
        }
    }

    /// Returns a time in microseconds that lies between two ticks at most, if it is known.
    pub(crate) fn longest_gap_us(&self) -> Option<u64> {
        let clock = self.pattern.clock();
        let gap = match () {
            () if !clock.is_every_hour() => DAY_US,
            () if !clock.is_every_minute() => HOUR_US,
            () => MINUTE_US,
        };
        (self.has_steady_clock() && self.pattern.is_every_day()).then_some(gap)
    }

    /// Whether clocks are never changed in the zone.
    fn has_steady_clock(&self) -> bool {
        self.zone() == "UTC"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let mut tick = schedule.next_tick(951_000_000_000_000).unwrap();
            for _ in 0..5_000 {
                let next = schedule.next_tick(tick).unwrap();
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
}
