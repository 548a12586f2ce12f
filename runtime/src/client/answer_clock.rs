//! The clock of a server, as far as an answer shows it.

use std::time::Duration;

use http::HeaderMap;
use http::header::{AGE, DATE};
use jiff::{SignedDuration, Timestamp};

use super::moment::{Moment, decimal, http_date};

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
