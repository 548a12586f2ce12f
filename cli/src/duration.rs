//! Durations, as people and scripts read them.

use std::time::Duration;

pub(crate) use tallygate::admin::__shared::json::ms;
use tallygate_rules::{duration_meant, parse_duration};

/// Reads the duration of an option. The error lacks the name of the option, which clap adds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|mistake| match duration_meant(text) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("it {mistake}"),
    })
}

/// Returns a time to wait in at most two units, rounded up: `41s`, `1h 5m`.
pub(crate) fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    let (great, small, unit, within) = match seconds {
        0..60 => return format!("{seconds}s"),
        60..3_600 => ("m", "s", 60, 1),
        3_600..86_400 => ("h", "m", 3_600, 60),
        _ => ("d", "h", 86_400, 3_600),
    };
    let total = seconds.div_ceil(within);
    let (whole, rest) = (total / (unit / within), total % (unit / within));
    if rest == 0 { format!("{whole}{great}") } else { format!("{whole}{great} {rest}{small}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_rounded_up_to_what_is_shown() {
        let texts = [0.001, 59.5, 61.0, 3_601.0, 90_001.0].map(|seconds| shown(Duration::from_secs_f64(seconds)));
        assert_eq!(texts, ["1s", "1m", "1m 1s", "1h 1m", "1d 2h"]);
    }

    #[test]
    fn a_duration_that_cannot_be_read_says_how_to_write_one() {
        let mistake =
            "it has the unknown unit `x`; write a whole number and one of `ms`, `s`, `m`, `h`, `d`, like \"60s\"";
        assert_eq!(parse("2x"), Err(mistake.to_owned()));
        assert_eq!(parse("2 hours"), Err("did you mean `2h`?".to_owned()));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7_200)));
    }
}
