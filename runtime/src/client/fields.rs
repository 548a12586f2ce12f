//! The fields of an answer that speak of limits.

mod by_name;
mod grpc;
mod structured;

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

pub(super) use self::grpc::GRPC_STATUS;
use super::heard::{HeardLimit, HeardPause};
use super::moment::{AnswerClock, Moment, decimal};

/// The most limits that are read of one answer.
const MOST: usize = 32;

/// The fields that say when to come back.
const RETRY_FIELDS: [&str; 4] = ["retry-after", "retry-after-ms", "x-ms-retry-after-ms", PUSHBACK];
/// Milliseconds, by gRPC's design of retries (A6).
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// The beginnings of the names of all fields that are read, but for those that only say when an answer was written.
const BEGINNINGS: [&str; 7] =
    ["retry-after", "x-ms-retry-after", "grpc-", "ratelimit", "x-ratelimit", "x-rate-limit", "anthropic-ratelimit"];

/// Whether an answer may say something about limits or about how its call of gRPC ended. Most answers say nothing, so no more of
/// them is read.
pub(super) fn may_speak_of_limits(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| BEGINNINGS.iter().any(|beginning| name.as_str().starts_with(beginning)))
}

/// Reads the fields of an answer, and notes which of them it cannot believe.
pub(super) struct FieldReader<'a> {
    headers: &'a HeaderMap,
    clock: AnswerClock,
    doubts: Vec<Doubt>,
}

/// A field that is not taken at its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    NotUnderstood(&'static str),
    /// It asks for more than the longest pause.
    TooLong(&'static str),
}

impl<'a> FieldReader<'a> {
    pub(super) fn new(headers: &'a HeaderMap, clock: AnswerClock) -> Self {
        Self { headers, clock, doubts: Vec::new() }
    }

    /// Returns the longest time after which the answer says to come back.
    pub(super) fn retry_after(&mut self) -> Option<HeardPause> {
        #[cfg(feature = "tonic")]
        let mut longest = self.retry_info();
        #[cfg(not(feature = "tonic"))]
        let mut longest: Option<HeardPause> = None;
        for field in RETRY_FIELDS {
            let clock = self.clock;
            let parse = |text: &str| if field.ends_with("-ms") { millis(text) } else { retry_moment(text, clock) };
            // A negative one only says not to retry.
            let is_said = |value: &&HeaderValue| field != PUSHBACK || !value.as_bytes().starts_with(b"-");
            for value in self.headers.get_all(field).iter().filter(is_said) {
                for moment in self.members(field, value, |text| listed(text, parse)) {
                    let duration = self.until(field, moment);
                    if longest.as_ref().is_none_or(|longest| duration > longest.duration) {
                        longest = Some(HeardPause { duration, field: Some(field) });
                    }
                }
            }
        }
        longest
    }

    /// Returns the limits of which the answer says something.
    pub(super) fn limits(&mut self) -> Vec<HeardLimit> {
        let quotas = self.quotas();
        let mut limits = self.structured_limits(&quotas);
        limits.extend(self.limits_by_name(MOST.saturating_sub(limits.len())));
        for limit in &mut limits {
            limit.take_window(&quotas);
        }
        limits
    }

    /// Returns the fields that are not taken at their word.
    pub(super) fn doubts(self) -> Vec<Doubt> {
        self.doubts
    }

    /// Returns the members of a line. One that is not understood leaves the others.
    fn members<T>(
        &mut self,
        field: &'static str,
        value: &HeaderValue,
        read: impl FnOnce(&str) -> Vec<Option<T>>,
    ) -> Vec<T> {
        let members = value.to_str().map(read).unwrap_or_default();
        if members.is_empty() || members.iter().any(Option::is_none) {
            self.doubt(Doubt::NotUnderstood(field));
        }
        members.into_iter().flatten().collect()
    }

    fn until(&mut self, field: &'static str, moment: Moment) -> Duration {
        let (wait, is_too_long) = self.clock.until(moment);
        if is_too_long {
            self.doubt(Doubt::TooLong(field));
        }
        wait
    }

    fn doubt(&mut self, doubt: Doubt) {
        if !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
        }
    }
}

fn millis(text: &str) -> Option<Moment> {
    let millis = decimal(text)?;
    Some(Moment::After(millis / 1_000))
}

/// Reads a time of `Retry-After`. A number is most often one of seconds, so that it is no point in time that was long ago, and no
/// number is too large to wait for.
fn retry_moment(text: &str, clock: AnswerClock) -> Option<Moment> {
    let number = decimal(text).map(Moment::After);
    match Moment::parse(text) {
        Some(Moment::At(then)) if clock.is_long_past(then) => number.or(Some(Moment::At(then))),
        moment => moment.or(number),
    }
}

/// Reads the members of a line: one, or several behind each other, as a proxy joins lines. A date has a comma within it. `None`
/// stands for a member that is not understood.
fn listed<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Vec<Option<T>> {
    let mut parts = text.split(',').peekable();
    let mut members = Vec::new();
    while let Some(part) = parts.next() {
        let dated = |next: &&str| read(&format!("{part},{next}"));
        match read(part) {
            None if part.trim_ascii().is_empty() => {}
            None => {
                let member = parts.peek().and_then(dated);
                if member.is_some() {
                    parts.next();
                }
                members.push(member);
            }
            member => members.push(member),
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn an_answer_is_read_if_it_has_any_field_that_says_something() {
        let may_speak = |name: &'static str| {
            may_speak_of_limits(&HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("1"))]))
        };
        let by_name = [
            "ratelimit-limit",
            "x-ratelimit-reset-tokens",
            "x-rate-limit-remaining",
            "anthropic-ratelimit-tokens-limit",
        ];
        let others = [GRPC_STATUS, "grpc-status-details-bin", "ratelimit", "ratelimit-policy"];
        for name in RETRY_FIELDS.into_iter().chain(by_name).chain(others) {
            assert!(may_speak(name), "{name}");
        }
        assert!(!may_speak("date") && !may_speak("content-length") && !may_speak("x-request-id"));
    }
}
