//! The ticks of the axes, with their labels.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;

const DAY: u64 = 86_400;

/// The steps between two ticks of the time axis, in seconds. Longer steps are multiples of the last one.
const STEPS: [u64; 20] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, DAY, 2 * DAY, 7 * DAY];

/// The most ticks of the time axis.
const MOST_TIMES: u64 = 8;

/// The most ticks of the axis of calls, besides 0.
const MOST_CALLS: u64 = 4;

/// Returns the ticks between two times in seconds since 1970, with their labels: the date at midnight, else the time.
pub(super) fn times(from: u64, to: u64) -> Vec<(u64, String)> {
    let span = to.saturating_sub(from);
    let longest = STEPS[STEPS.len() - 1];
    let step = STEPS.into_iter().find(|step| span / step < MOST_TIMES);
    let step = step.unwrap_or_else(|| longest * span.div_ceil(longest * MOST_TIMES));
    let first = from.div_ceil(step) * step;
    (first..=to).step_by(usize::try_from(step).unwrap_or(usize::MAX)).map(|at| (at, text(at, step))).collect()
}

fn text(at: u64, step: u64) -> String {
    let Ok(time) = Timestamp::try_from(SystemTime::UNIX_EPOCH + Duration::from_secs(at)) else { return String::new() };
    let format = match at % DAY {
        0 => "%Y-%m-%d",
        _ if step < 60 => "%H:%M:%S",
        _ => "%H:%M",
    };
    time.to_zoned(TimeZone::UTC).strftime(format).to_string()
}

/// Returns the ticks of the axis of calls: 0, and the multiples of a step like 1, 20 or 500 up to `most`.
pub(super) fn calls(most: u64) -> Vec<u64> {
    let mut steps = (0..19).flat_map(|zeros| [1, 2, 5].map(|digit| digit * 10_u64.pow(zeros)));
    let step = steps.find(|step| most / step <= MOST_CALLS).unwrap_or(most);
    (0..=most).step_by(usize::try_from(step.max(1)).unwrap_or(usize::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(from: u64, to: u64) -> Vec<(u64, String)> {
        let midnight = 1_800_000_000 - 1_800_000_000 % DAY;
        times(midnight + from, midnight + to).into_iter().map(|(at, text)| (at - midnight, text)).collect()
    }

    #[test]
    fn ticks_stand_at_round_times_up_to_the_end() {
        let at = |at, text: &str| (at, text.to_owned());
        assert_eq!(shown(7, 9), [at(7, "00:00:07"), at(8, "00:00:08"), at(9, "00:00:09")]);
        assert_eq!(
            shown(3_500, 10_900),
            [at(3_600, "01:00"), at(5_400, "01:30"), at(7_200, "02:00"), at(9_000, "02:30"), at(10_800, "03:00")]
        );
        assert_eq!(
            shown(80_000, 180_000),
            [
                at(86_400, "2027-01-16"),
                at(108_000, "06:00"),
                at(129_600, "12:00"),
                at(151_200, "18:00"),
                at(172_800, "2027-01-17")
            ]
        );
        for span in [0, 1, 100, 5_000, DAY, 400 * DAY, 4_000 * DAY] {
            let ticks = shown(1, 1 + span);
            assert!(ticks.len() <= 9 && ticks.iter().all(|(at, _)| (1..=1 + span).contains(at)), "{span}: {ticks:?}");
        }
    }

    #[test]
    fn calls_have_few_ticks_with_round_numbers() {
        assert_eq!(calls(1), [0, 1]);
        assert_eq!(calls(4), [0, 1, 2, 3, 4]);
        assert_eq!(calls(9), [0, 2, 4, 6, 8]);
        assert_eq!(calls(1_234), [0, 500, 1_000]);
        assert_eq!(calls(0), [0]);
    }
}
