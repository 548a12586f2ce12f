//! Fields whose names say what they hold: `X-RateLimit-Remaining`, `x-ratelimit-reset-tokens` and the like.

use std::time::Duration;

use http::HeaderValue;

use super::{FieldReader, MOST, moments};
use crate::client::heard::HeardLimit;
use crate::client::moment::{Moment, decimal};

/// Fields of this beginning hold one limit, or, with the name of a unit behind them, one of each unit.
const BEGINNINGS: [&str; 3] = ["ratelimit", "x-ratelimit", "x-rate-limit"];

/// Fields of Anthropic's interface, which name the unit first: `anthropic-ratelimit-tokens-remaining`.
const UNIT_FIRST: &str = "anthropic-ratelimit";

/// Windows in place of units, as in `X-RateLimit-Remaining-Minute`.
const WINDOWS: [(&str, u64); 4] = [("second", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400)];

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

impl FieldReader<'_> {
    /// Adds the limits that such fields tell of.
    pub(super) fn add_limits_by_name(&mut self, limits: &mut Vec<HeardLimit>) {
        let first = limits.len();
        for (name, value) in self.headers {
            let Some(name) = FieldName::read(name.as_str()) else { continue };
            let window = WINDOWS.into_iter().find(|(window, _)| *window == name.unit);
            let unit = if window.is_some() { "" } else { name.unit };
            let window = window.map(|(_, seconds)| Duration::from_secs(seconds));
            let known = limits.iter().skip(first);
            let new = HeardLimit { window, ..HeardLimit::new(name.beginning, unit) };
            let same = { known }.position(|known| known.field == new.field && known.is_of_unit(&new));
            let index = same.map_or(limits.len(), |position| first + position);
            if same.is_none() {
                if limits.len() >= MOST {
                    continue;
                }
                limits.push(new);
            }
            if let Some(limit) = limits.get_mut(index) {
                self.fill(limit, name.content, value);
            }
        }
    }

    /// Takes what a line says. Of several lines or members, the stricter one counts.
    fn fill(&mut self, limit: &mut HeardLimit, content: Content, value: &HeaderValue) {
        let field = limit.field;
        match content {
            Content::Limit => {
                let Some(quotas) = self.understood(field, value, quotas) else { return };
                let Some((count, _)) = quotas.first().copied() else { return };
                // The windows of a limit may stand behind it: `10, 10;w=1, 50;w=60`.
                let window = quotas.iter().find(|(other, window)| *other == count && window.is_some());
                limit.limit = Some(limit.limit.map_or(count, |known| known.min(count)));
                limit.window = limit.window.or(window.and_then(|(_, window)| *window));
            }
            Content::Remaining => {
                let least = |text: &str| quotas(text)?.into_iter().min_by_key(|(count, _)| *count);
                let Some((count, window)) = self.understood(field, value, least) else { return };
                limit.remaining = Some(limit.remaining.map_or(count, |known| known.min(count)));
                limit.window = limit.window.or(window);
            }
            Content::Reset => {
                for moment in self.understood(field, value, |text| moments(text, Moment::parse)).unwrap_or_default() {
                    // In Anthropic's fields, a point in time is that at which a bucket is full.
                    let is_fixed = matches!(moment, Moment::At(_)) && field != UNIT_FIRST;
                    limit.has_fixed_windows |= is_fixed;
                    limit.reset = limit.reset.max(Some(self.until(field, moment)));
                }
            }
        }
    }
}

impl HeardLimit {
    fn is_of_unit(&self, other: &Self) -> bool {
        self.unit == other.unit && (self.window == other.window || other.window.is_none())
    }
}

/// Reads counts with their windows: `100`, `100;w=60`, or `10, 10;w=1, 50;w=60`.
pub(super) fn quotas(text: &str) -> Option<Vec<(u64, Option<Duration>)>> {
    let quota = |member: &str| {
        let mut parts = member.split(';');
        let count = decimal(parts.next()?)?.as_secs();
        let window = parts.filter_map(|part| part.trim_ascii().split_once('='));
        let window = { window }.find(|(key, _)| matches!(*key, "w" | "window")).and_then(|(_, value)| decimal(value));
        Some((count, window))
    };
    text.split(',').map(quota).collect()
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
