//! A point in time, in all the ways in which servers write one, and the clock of the server, as far as an answer shows it.

use std::time::Duration;

use http::HeaderMap;
use http::header::{AGE, DATE};
use jiff::civil::DateTime;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Counted from the answer.
    After(Duration),
    At(Timestamp),
}

/// From this number on, numbers are seconds since 1970 (in 2001) and no longer seconds from now (31 years).
const SECONDS_SINCE_1970: u64 = 1_000_000_000;
/// From this number on, numbers are milliseconds since 1970 (in 1973) and no longer seconds (in the year 5138).
const MILLIS_SINCE_1970: u64 = 100_000_000_000;
/// From this number on, numbers mean nothing.
const NONSENSE: u64 = 100_000_000_000_000;

impl Moment {
    /// Reads seconds like `60` or `0.5`, seconds or milliseconds since 1970, a duration like `6m0s`, `120ms`, `1d2h` or `PT1M`, a
    /// date of HTTP, or a time of RFC 3339.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        if let Some(number) = decimal(text) {
            return Self::from_number(number);
        }
        if let Some(duration) = duration(text) {
            return Some(Self::After(duration.try_into().unwrap_or_default()));
        }
        text.parse().ok().or_else(|| http_date(text)).map(Self::At)
    }

    fn from_number(number: Duration) -> Option<Self> {
        let (whole, nanos) = (number.as_secs(), i32::try_from(number.subsec_nanos()).ok()?);
        let at = |timestamp: Result<Timestamp, jiff::Error>| timestamp.ok().map(Self::At);
        match whole {
            0..SECONDS_SINCE_1970 => Some(Self::After(number)),
            SECONDS_SINCE_1970..MILLIS_SINCE_1970 => at(Timestamp::new(whole.try_into().ok()?, nanos)),
            MILLIS_SINCE_1970..NONSENSE => at(Timestamp::from_millisecond(whole.try_into().ok()?)),
            _ => None,
        }
    }
}

/// Reads a duration. A day has 24 hours.
fn duration(text: &str) -> Option<SignedDuration> {
    let in_days = || text.parse::<Span>().ok()?.to_duration(SpanRelativeTo::days_are_24_hours()).ok();
    text.parse().ok().or_else(in_days)
}

/// Reads a date of HTTP in its three formats (RFC 9110, section 5.6.7).
fn http_date(text: &str) -> Option<Timestamp> {
    const OBSOLETE: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    let text = text.trim_ascii();
    let current = rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok();
    let obsolete = |format| DateTime::strptime(format, text).ok()?.to_zoned(TimeZone::UTC).ok();
    current.or_else(|| OBSOLETE.into_iter().find_map(obsolete).map(|zoned| zoned.timestamp()))
}

/// Reads a number like `60` or `0.5`, as seconds. It has no sign and no exponent. One that is too large is the largest.
pub(super) fn decimal(text: &str) -> Option<Duration> {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.trim_ascii();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let nanos = fraction.chars().chain(std::iter::repeat('0')).take(9).collect::<String>();
    // Only one that is too large is no number now.
    Some(Duration::new(whole.parse().unwrap_or(u64::MAX), nanos.parse().ok()?))
}

/// The clock by which the points in time of an answer are read.
#[derive(Clone, Copy)]
pub(super) struct AnswerClock {
    /// When the answer was written, by the server's clock.
    answered: Option<Timestamp>,
    /// Now, by our clock.
    now: Timestamp,
    longest: SignedDuration,
}

/// No limit is reset later. A time behind it shows that one of the clocks is wrong.
const FARTHEST: SignedDuration = SignedDuration::from_hours(400 * 24);

/// By so much, a time that has just come may be rounded down, or the date of the answer up.
const ROUNDED: SignedDuration = SignedDuration::from_secs(2);

impl AnswerClock {
    pub(super) fn new(headers: &HeaderMap, now: Timestamp, longest: SignedDuration) -> Self {
        let text = |name| headers.get(name)?.to_str().ok();
        // A cache sends the date of the server, and how old the answer is.
        let age = text(AGE).and_then(decimal).and_then(|age| SignedDuration::try_from(age).ok());
        let date = text(DATE).and_then(http_date);
        let answered = date.and_then(|date| date.checked_add(age.unwrap_or_default()).ok());
        Self { answered, now, longest }
    }

    /// Returns the time until then, and whether that is longer than the longest pause. A limit may be reset long after it.
    pub(super) fn until(&self, then: Moment) -> (Duration, bool) {
        let wait = match then {
            Moment::After(wait) => SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX),
            Moment::At(then) => self.until_timestamp(then),
        };
        (wait.min(self.longest.max(FARTHEST)).try_into().unwrap_or_default(), wait > self.longest)
    }

    /// Whether a point in time was more than a day ago.
    pub(super) fn is_long_past(&self, then: Timestamp) -> bool {
        self.until_timestamp(then) < SignedDuration::from_hours(-24)
    }

    /// The server wrote the time by its own clock, so that is the one to compare it with, unless this makes no sense: a server
    /// in front of it may have added a date by another clock, by which the time has long come.
    fn until_timestamp(&self, then: Timestamp) -> SignedDuration {
        let by_ours = then.duration_since(self.now);
        let by_theirs = self.answered.map(|answered| then.duration_since(answered));
        let is_plausible = |wait: &SignedDuration| (-ROUNDED..=self.longest.max(FARTHEST)).contains(wait);
        let plausible = by_theirs.into_iter().chain([by_ours]).find(is_plausible);
        plausible.unwrap_or(by_theirs.unwrap_or(by_ours))
    }
}
