//! The bodies of changes.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};
use tallygate_rules::read_duration;

use super::error::AdminError;
use crate::admin::__shared::{check_ban_duration, check_pause_length, remedy};

/// Reads for how long to ban; `None` is the duration of the policy's ban.
pub(super) fn ban(body: &[u8]) -> Result<Option<Duration>, AdminError> {
    let members = members(body, ["duration"], r#"{"duration":"10m"}"#)?;
    let Some(duration) = duration(&members, "duration", "10m")? else { return Ok(None) };
    check_ban_duration(duration, "duration", "DELETE").map_err(AdminError::refused)?;
    Ok(Some(duration))
}

/// Reads for how long to pause, which is at most the longest pause of the policy.
pub(super) fn pause(body: &[u8], longest: Duration) -> Result<Duration, AdminError> {
    const LIKE: &str = r#"{"duration":"30s"}"#;
    let members = members(body, ["duration"], LIKE)?;
    let length = duration(&members, "duration", "30s")?
        .ok_or_else(|| AdminError::refused(format!("`duration` is missing; write it like `{LIKE}`")))?;
    check_pause_length(length, longest, "duration", "DELETE").map_err(AdminError::refused)?;
    Ok(length)
}

/// An override, as a body says it.
pub(super) struct NewOverride {
    /// `None` if they stay as they are.
    pub(super) rules: Option<String>,
    /// Whether the policy is in shadow, if it says so.
    pub(super) shadow: Option<bool>,
    /// How long it holds, if a member of its own gives it.
    pub(super) holds: Option<Duration>,
}

pub(super) fn new_override(body: &[u8]) -> Result<NewOverride, AdminError> {
    const LIKE: &str = r#"{"rules":"100 per 1h","for":"2h"}"#;
    let members = members(body, ["rules", "shadow", "for"], LIKE)?;
    let rules = text(&members, "rules", "100 per 1h")?.map(str::to_owned);
    let shadow = flag(&members, "shadow")?;
    if rules.is_none() && shadow.is_none() {
        let message = format!("`rules` is missing; write it like `{LIKE}`, or `{{\"shadow\":true}}`");
        return Err(AdminError::refused(message));
    }
    Ok(NewOverride { rules, shadow, holds: duration(&members, "for", "2h")? })
}

/// Reads an object with some of these members. An empty body has none.
fn members<const N: usize>(body: &[u8], known: [&str; N], like: &str) -> Result<Map<String, Value>, AdminError> {
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    let read = serde_json::from_slice(body);
    match read
        .map_err(|error| AdminError::malformed(format!("the body is no JSON: {error}; write it like `{like}`")))?
    {
        Value::Object(members) => match members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(AdminError::refused(format!("`{name}` is unknown{}", remedy("member", name, known)))),
            None => match MemberNames::twice(body) {
                Some(name) => Err(AdminError::refused(format!("`{name}` is given twice; give it once"))),
                None => Ok(members),
            },
        },
        _ => Err(AdminError::malformed(format!("the body is no object; write it like `{like}`"))),
    }
}

/// The names of the members of an object, each as often as it is there. A [`Value`] keeps only the last of equal ones.
struct MemberNames(Vec<String>);

impl MemberNames {
    /// Returns the first name that an object has twice.
    fn twice(object: &[u8]) -> Option<String> {
        let Self(names) = serde_json::from_slice(object).ok()?;
        let mut known = BTreeSet::new();
        names.into_iter().find(|name| !known.insert(name.clone()))
    }
}

impl<'de> Deserialize<'de> for MemberNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = MemberNames;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<MemberNames, M::Error> {
        let mut names = Vec::new();
        while let Some((name, IgnoredAny)) = members.next_entry()? {
            names.push(name);
        }
        Ok(MemberNames(names))
    }
}

fn duration(members: &Map<String, Value>, name: &str, like: &str) -> Result<Option<Duration>, AdminError> {
    let read = text(members, name, like)?.map(|text| read_duration(name, text));
    read.transpose().map_err(AdminError::refused)
}

fn flag(members: &Map<String, Value>, name: &str) -> Result<Option<bool>, AdminError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(AdminError::refused(format!("`{name}` must be `true` or `false`"))),
    }
}

fn text<'m>(members: &'m Map<String, Value>, name: &str, like: &str) -> Result<Option<&'m str>, AdminError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(AdminError::refused(format!("`{name}` must be a text, like \"{like}\""))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_given_twice_is_refused_however_it_is_written() {
        for (body, twice) in [
            (r#"{"duration":"1m","duration":"1h"}"#, "duration"),
            (r#"{"duration":null,"duration":"1h"}"#, "duration"),
            (r#"{"duration":"1h","dur\u0061tion":"1h"}"#, "duration"),
        ] {
            let Err(AdminError::Refused { status, detail }) = ban(body.as_bytes()) else { panic!("{body}") };
            assert_eq!((status.as_u16(), detail), (422, format!("`{twice}` is given twice; give it once")));
        }
        assert!(matches!(
            new_override(br#"{"rules":"1 per 1h","shadow":true,"rules":"2 per 1h"}"#),
            Err(AdminError::Refused { .. })
        ));
        assert_eq!(ban(br#" {"duration":"1h"} "#).ok(), Some(Some(Duration::from_secs(3_600))));
        assert_eq!(ban(b" ").ok(), Some(None));
    }
}
