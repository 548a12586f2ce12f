//! Fields whose names say what they hold: `X-RateLimit-Remaining`, `x-ratelimit-reset-tokens` and the like.

use std::cmp::Reverse;
use std::time::Duration;

use http::HeaderValue;

use super::{FieldReader, listed};
use crate::client::heard::HeardLimit;
use crate::client::moment::{Moment, decimal};

/// Fields of this beginning hold one limit, or, with the name of a unit behind them, one of each unit.
const BEGINNINGS: [&str; 3] = ["ratelimit", "x-ratelimit", "x-rate-limit"];

/// Fields of Anthropic's interface, which name the unit first: `anthropic-ratelimit-tokens-remaining`.
const UNIT_FIRST: &str = "anthropic-ratelimit";

/// Windows in place of units, as in `X-RateLimit-Remaining-Minute`. Those of the calendar count as long as the longest.
const WINDOWS: [(&str, u64); 6] =
    [("second", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400), ("month", 31 * 86_400), ("year", 366 * 86_400)];

/// What the name of a field says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldName<'a> {
    beginning: &'static str,
    content: Content,
    unit: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Limit,
    Remaining,
    Reset,
}

impl<'a> FieldName<'a> {
    fn read(name: &'a str) -> Option<Self> {
        if let Some(rest) = behind(name, UNIT_FIRST) {
            let (unit, content) = rest.rsplit_once('-')?;
            return Some(Self { beginning: UNIT_FIRST, content: Content::read(content)?, unit });
        }
        let (beginning, rest) =
            BEGINNINGS.into_iter().find_map(|beginning| Some((beginning, behind(name, beginning)?)))?;
        // What Discord adds for those whose clock is off.
        let rest = if rest == "reset-after" { "reset" } else { rest };
        let (content, unit) = rest.split_once('-').unwrap_or((rest, ""));
        Some(Self { beginning, content: Content::read(content)?, unit })
    }

    fn is_of_same_limit(&self, other: &Self) -> bool {
        (self.beginning, self.unit) == (other.beginning, other.unit)
    }
}

fn behind<'a>(name: &'a str, beginning: &str) -> Option<&'a str> {
    name.strip_prefix(beginning)?.strip_prefix('-')
}

impl Content {
    fn read(name: &str) -> Option<Self> {
        match name {
            "limit" => Some(Self::Limit),
            "remaining" => Some(Self::Remaining),
            "reset" => Some(Self::Reset),
            _ => None,
        }
    }
}

/// What the lines of one limit say. The order of lines and members does not matter.
#[derive(Default)]
struct LimitLines {
    limits: Vec<WindowedCount>,
    remaining: Vec<WindowedCount>,
    resets: Vec<Moment>,
}

impl FieldReader<'_> {
    /// Returns the limits that such fields tell of, at most so many.
    pub(super) fn limits_by_name(&mut self, most: usize) -> Vec<HeardLimit> {
        let mut limits: Vec<(FieldName<'_>, LimitLines)> = Vec::new();
        for (name, value) in self.headers {
            let Some(name) = FieldName::read(name.as_str()) else { continue };
            let has_room = limits.len() < most;
            match limits.iter_mut().find(|(known, _)| known.is_of_same_limit(&name)) {
                Some((_, lines)) => self.read_line(lines, &name, value),
                None if has_room => {
                    let mut lines = LimitLines::default();
                    self.read_line(&mut lines, &name, value);
                    limits.push((name, lines));
                }
                None => {}
            }
        }
        limits.into_iter().map(|(name, lines)| self.limit_of_lines(&name, lines)).collect()
    }

    fn read_line(&mut self, lines: &mut LimitLines, name: &FieldName<'_>, value: &HeaderValue) {
        let field = name.beginning;
        match name.content {
            Content::Limit => lines.limits.extend(self.members(field, value, counts)),
            Content::Remaining => lines.remaining.extend(self.members(field, value, counts)),
            Content::Reset => lines.resets.extend(self.members(field, value, |text| listed(text, Moment::parse))),
        }
    }

    fn limit_of_lines(&mut self, name: &FieldName<'_>, lines: LimitLines) -> HeardLimit {
        let window = WINDOWS.into_iter().find(|(window, _)| *window == name.unit);
        let limit = strictest_limit(&lines.limits);
        let remaining = strictest(lines.remaining);
        let written_window = [limit, remaining].into_iter().flatten().find_map(|count| count.window);
        // In Anthropic's fields, a point in time is that at which a bucket is full.
        let is_end = |reset: &Moment| matches!(reset, Moment::At(_)) && name.beginning != UNIT_FIRST;
        HeardLimit {
            limit: limit.map(|limit| limit.count),
            remaining: remaining.map(|remaining| remaining.count),
            window: window.map(|(_, seconds)| Duration::from_secs(seconds)).or(written_window),
            has_fixed_windows: lines.resets.iter().any(is_end),
            reset: lines.resets.into_iter().map(|reset| self.until(name.beginning, reset)).max(),
            ..HeardLimit::new(name.beginning, if window.is_some() { "" } else { name.unit })
        }
    }
}

/// Returns the limit among `10, 10;w=1, 50;w=60`: the members behind it describe the windows of the server.
fn strictest_limit(members: &[WindowedCount]) -> Option<WindowedCount> {
    let plain = members.iter().filter(|member| member.window.is_none()).copied();
    let Some(WindowedCount { count, .. }) = strictest(plain) else { return strictest(members.iter().copied()) };
    let window = members.iter().filter(|member| member.count == count).filter_map(|member| member.window).max();
    Some(WindowedCount { count, window })
}

/// Returns the least count. Of equal ones, the longest window counts.
fn strictest(counts: impl IntoIterator<Item = WindowedCount>) -> Option<WindowedCount> {
    counts.into_iter().min_by_key(|member| (member.count, Reverse(member.window)))
}

/// A count and, if it is said, its window.
#[derive(Clone, Copy)]
pub(super) struct WindowedCount {
    pub(super) count: u64,
    pub(super) window: Option<Duration>,
}

/// Reads counts with their windows: `100`, `100;w=60`, or `10, 10;w=1, 50;w=60`.
pub(super) fn counts(text: &str) -> Vec<Option<WindowedCount>> {
    let count = |member: &str| {
        let mut parts = member.split(';');
        let count = decimal(parts.next()?)?.as_secs();
        let mut parameters = parts.filter_map(|part| part.trim_ascii().split_once('='));
        let window = parameters.find(|(key, _)| matches!(*key, "w" | "window")).and_then(|(_, value)| decimal(value));
        Some(WindowedCount { count, window })
    };
    listed(text, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_field_says_what_it_holds() {
        let read = |name| FieldName::read(name).map(|read| (read.beginning, read.content, read.unit));
        assert_eq!(read("ratelimit-limit"), Some(("ratelimit", Content::Limit, "")));
        assert_eq!(read("x-ratelimit-remaining-tokens"), Some(("x-ratelimit", Content::Remaining, "tokens")));
        assert_eq!(read("x-rate-limit-reset"), Some(("x-rate-limit", Content::Reset, "")));
        assert_eq!(read("x-ratelimit-reset-after"), Some(("x-ratelimit", Content::Reset, "")));
        let tokens = Some((UNIT_FIRST, Content::Reset, "input-tokens"));
        assert_eq!(read("anthropic-ratelimit-input-tokens-reset"), tokens);
        for other in
            ["ratelimit", "ratelimit-policy", "x-ratelimit-used", "x-ratelimit-", "anthropic-ratelimit-reset", "x"]
        {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
