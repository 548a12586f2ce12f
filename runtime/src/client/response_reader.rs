//! What is heard of an answer, and how far it is believed.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use jiff::{SignedDuration, Timestamp};

use super::fields::{Doubt, FieldReader, may_speak_of_limits};
use super::heard::{Heard, HeardLimit, HeardPause};
use super::moment::AnswerClock;
use crate::observe::log;
use crate::system;

/// Reads what the answers of a server say about its limits.
///
/// It reads these fields:
///
/// | field | form |
/// | --- | --- |
/// | `Retry-After` | seconds, or a date |
/// | `retry-after-ms`, `x-ms-retry-after-ms` | milliseconds |
/// | `grpc-retry-pushback-ms` | milliseconds |
/// | `grpc-status-details-bin` | the `RetryInfo` of gRPC, with the feature `tonic` |
/// | `RateLimit`, `RateLimit-Policy` | versions 7 to 11 of their draft: `"burst";r=0;t=20` or `limit=5, remaining=0, reset=20` |
/// | `RateLimit-Limit`, `-Remaining`, `-Reset` | the draft's older versions |
/// | `X-RateLimit-Limit`, `-Remaining`, `-Reset`, and `X-Rate-Limit-…` | with a reset in any of the forms below |
/// | `x-ratelimit-remaining-tokens`, … | OpenAI's by unit, and windows in place of units: `-minute` |
/// | `anthropic-ratelimit-tokens-remaining`, … | Anthropic's by unit |
///
/// A reset is in seconds, a duration like `6m0s` or `120ms`, or a point in time: seconds or milliseconds since 1970, RFC 3339, or a
/// date of HTTP. Points in time are compared with the field `Date` of the answer, so the own clock may be off.
///
/// # When to pause
///
/// * A denial says when to come back. A denial is the status 429, `RESOURCE_EXHAUSTED` of gRPC, a 403 that says when to come back
///   or that nothing is left, as GitHub sends, or a 5xx or `UNAVAILABLE` of gRPC that says when to come back. Of several such times,
///   the longest counts. Where it says none, the longest reset of the limits that are used up counts, and else
///   [`default_pause`](Self::default_pause), or the time until [enough is left](Heard::wait_for) for such a call.
/// * A limit of [fixed windows](HeardLimit::has_fixed_windows) with nothing left lasts until its reset, whatever the status is.
/// * Any other limit with nothing left asks only for [spacing](Heard::spacing): until the reset, if that is the `t` of
///   `RateLimit: "burst";r=0;t=20`, which the current draft defines as the time until more is left. Most other resets are the time
///   until nothing is counted any more, and something is left long before.
///
/// What makes no sense is ignored, and what asks for more than the [longest pause](Self::longest_pause) is cut to it. The log warns
/// of each such field once.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, HeaderValue, StatusCode};
/// use tallygate::client::ResponseReader;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", HeaderValue::from_static("57"));
/// headers.insert("ratelimit-policy", HeaderValue::from_static(r#""mail.code.1m";q=5;w=60"#));
/// headers.insert("ratelimit", HeaderValue::from_static(r#""mail.code.1m";r=0;t=57"#));
///
/// let heard = ResponseReader::new().read(StatusCode::TOO_MANY_REQUESTS, &headers);
/// assert_eq!(heard.wait(), Some(Duration::from_secs(57)));
/// assert_eq!(heard.pause().and_then(|pause| pause.field()), Some("retry-after"));
/// assert_eq!(heard.limits()[0].limit(), Some(5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseReader {
    longest_pause: Duration,
    default_pause: Duration,
    /// `None` means that the form of a reset tells.
    fixed_windows: Option<bool>,
    forbidden_denies: bool,
}

impl ResponseReader {
    /// Returns a reader that believes pauses of up to an hour.
    #[must_use]
    pub const fn new() -> Self {
        let (longest_pause, default_pause) = (Duration::from_secs(3_600), Duration::from_secs(1));
        Self { longest_pause, default_pause, fixed_windows: None, forbidden_denies: false }
    }

    /// Sets the longest time for which an answer can stop calls: an hour by default.
    #[must_use]
    pub const fn longest_pause(self, longest: Duration) -> Self {
        Self { longest_pause: longest, ..self }
    }

    /// Sets the pause after a denial that says no time: a second by default. GitHub asks for a minute, also after a
    /// [403](Self::forbidden_denies).
    #[must_use]
    pub const fn default_pause(self, pause: Duration) -> Self {
        Self { default_pause: pause, ..self }
    }

    /// Declares whether the server counts by fixed windows, as its documentation may say. If it does, calls pause until the
    /// reset once nothing is left; if not, they are only [spaced](Heard::spacing), whatever the form of the reset is. By default, a
    /// reset that is a point in time is taken for the end of a fixed window.
    #[must_use]
    pub const fn fixed_windows(self, are_fixed: bool) -> Self {
        Self { fixed_windows: Some(are_fixed), ..self }
    }

    /// Declares whether every 403 is a denial, and not only one that says when to come back or that nothing is left. GitHub's
    /// secondary limits may answer so, and so do missing permissions, which a pause does not mend: by default, such an answer
    /// pauses nothing.
    #[must_use]
    pub const fn forbidden_denies(self, denies: bool) -> Self {
        Self { forbidden_denies: denies, ..self }
    }

    /// Reads an answer that came just now.
    #[must_use]
    pub fn read(&self, status: StatusCode, headers: &HeaderMap) -> Heard {
        self.read_when(status, headers, || SystemTime::UNIX_EPOCH + system::unix())
    }

    /// Reads an answer that came at that time. The time matters only for points in time in answers without the field `Date`.
    #[must_use]
    pub fn read_at(&self, status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Heard {
        self.read_when(status, headers, || now)
    }

    fn read_when(&self, status: StatusCode, headers: &HeaderMap, now: impl FnOnce() -> SystemTime) -> Heard {
        if !may_speak_of_limits(headers) {
            return self.heard(status, None, Vec::new());
        }
        let now = now();
        let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        let since_1970 = signed(now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
        // A time that no timestamp can hold is as good as any.
        let now = Timestamp::UNIX_EPOCH.checked_add(since_1970).unwrap_or_default();
        let longest = signed(self.longest_pause);
        let mut fields = FieldReader::new(headers, AnswerClock::new(headers, now, longest));
        let retry_after = fields.retry_after();
        let mut limits = fields.limits();
        let status = fields.status_of_grpc().unwrap_or(status);
        for limit in &mut limits {
            limit.has_fixed_windows = self.fixed_windows.unwrap_or(limit.has_fixed_windows);
            limit.resets_to_more &= self.fixed_windows != Some(false);
        }
        let has_failed_by_grpc = fields.has_failed_by_grpc();
        let doubts = fields.doubts();
        let mut heard = self.heard(status, retry_after, limits);
        heard.has_failed |= has_failed_by_grpc;
        let asks = |field| heard.pause.as_ref().is_some_and(|pause| pause.field == Some(field));
        for doubt in doubts {
            match doubt {
                Doubt::NotUnderstood(field) => log::answer_not_understood(field),
                Doubt::TooLong(field) if asks(field) => log::answer_asks_too_much(field, self.longest_pause),
                // A reset may be far away without asking for a pause.
                Doubt::TooLong(_) => {}
            }
        }
        heard
    }

    fn heard(&self, status: StatusCode, retry_after: Option<HeardPause>, limits: Vec<HeardLimit>) -> Heard {
        let is_forbidden = status == StatusCode::FORBIDDEN;
        let says_used_up = || self.forbidden_denies || limits.iter().any(|limit| limit.is_used_up(false));
        let is_denial = status == StatusCode::TOO_MANY_REQUESTS || is_forbidden && says_used_up();
        // On other answers, it means something else, such as when a job will be done.
        let may_retry = is_denial || is_forbidden || status.is_server_error();
        // Servers that round down say zero, and mean no time at all.
        let retry_after = retry_after.filter(|pause| may_retry && !pause.duration.is_zero());
        let retry_after = retry_after.map(|pause| pause.at_most(self.longest_pause));
        let has_failed = is_denial || status.is_server_error() || retry_after.is_some();
        let used_up = || limits.iter().filter(|limit| limit.is_used_up(is_denial));
        let resets = used_up().filter(|limit| limit.has_fixed_windows || is_denial && retry_after.is_none());
        let resets = resets.filter_map(|limit| limit.closed(self.longest_pause));
        let pause = retry_after.clone().into_iter().chain(resets).max_by_key(HeardPause::duration);
        let unsaid = HeardPause { duration: self.default_pause.min(self.longest_pause), field: None };
        let is_unsaid = pause.is_none() && is_denial;
        let pause = pause.or(is_unsaid.then_some(unsaid)).filter(|pause| !pause.duration.is_zero());
        Heard { pause, longest: self.longest_pause, is_denial, limits, has_failed }
    }
}

impl HeardLimit {
    /// Returns the pause until the reset. If the reset is not said, as draft 11 allows, the window of a limit with nothing left
    /// says how long it is until something is left.
    fn closed(&self, longest: Duration) -> Option<HeardPause> {
        let unsaid = || self.spacing(None).filter(|_| self.is_used_up(false));
        let duration = self.reset.or_else(unsaid)?.min(longest);
        (!duration.is_zero()).then_some(HeardPause { duration, field: Some(self.field) })
    }
}

impl Default for ResponseReader {
    fn default() -> Self {
        Self::new()
    }
}
