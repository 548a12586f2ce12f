//! Commands about when keys expire.

use super::arguments::Arguments;
use super::flavour::Flavour;
use super::numbers::integer;
use super::refusal::{Answer, NO_INTEGER, Refusal};
use super::reply::Reply;
use super::state::State;

/// How a command says when a key expires.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    millis_each: i64,
    is_relative: bool,
}

pub(crate) fn expire(state: &mut State, arguments: &Arguments) -> Answer {
    set(state, arguments, Form { name: "expire", millis_each: 1000, is_relative: true })
}

pub(crate) fn pexpire(state: &mut State, arguments: &Arguments) -> Answer {
    set(state, arguments, Form { name: "pexpire", millis_each: 1, is_relative: true })
}

pub(crate) fn expireat(state: &mut State, arguments: &Arguments) -> Answer {
    set(state, arguments, Form { name: "expireat", millis_each: 1000, is_relative: false })
}

pub(crate) fn pexpireat(state: &mut State, arguments: &Arguments) -> Answer {
    set(state, arguments, Form { name: "pexpireat", millis_each: 1, is_relative: false })
}

fn set(state: &mut State, arguments: &Arguments, form: Form) -> Answer {
    if state.flavour == Flavour::Redis62 && arguments.len() > 3 {
        return Err(Refusal::arity(form.name));
    }
    let conditions = Conditions::read(arguments)?;
    let key = arguments.word(1);
    let number = integer(arguments.word(2)).ok_or(NO_INTEGER)?;
    let now_ms = state.now_ms();
    let base = if form.is_relative { now_ms } else { 0 };
    let at = number.checked_mul(form.millis_each).and_then(|millis| millis.checked_add(base));
    let at = at.ok_or_else(|| Refusal::expire_time(state.flavour, form.name))?;
    let obeys = state.obeys;
    let Some(entry) = state.entry(key) else { return Ok(Reply::Integer(0)) };
    if !conditions.allow(entry.expires_ms, at) {
        return Ok(Reply::Integer(0));
    }
    entry.expires_ms = Some(at);
    state.changed();
    if at <= now_ms && !obeys {
        state.keyspace().remove(key);
        state.rewrite(|| Arguments::of([b"DEL", key]));
    } else {
        state.rewrite(|| Arguments::of([b"PEXPIREAT", key, at.to_string().as_bytes()]));
    }
    Ok(Reply::Integer(1))
}

/// When a time may replace another one.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "the options of the command")]
struct Conditions {
    only_new: bool,
    only_old: bool,
    only_later: bool,
    only_earlier: bool,
}

impl Conditions {
    fn read(arguments: &Arguments) -> Result<Self, Refusal> {
        let mut conditions = Self::default();
        for index in 3..arguments.len() {
            match arguments.text(index).to_ascii_lowercase().as_str() {
                "nx" => conditions.only_new = true,
                "xx" => conditions.only_old = true,
                "gt" => conditions.only_later = true,
                "lt" => conditions.only_earlier = true,
                _ => return Err(Refusal::new(format!("ERR Unsupported option {}", arguments.text(index)))),
            }
        }
        let others = conditions.only_old || conditions.only_later || conditions.only_earlier;
        if conditions.only_new && others {
            return Err(Refusal::known("ERR NX and XX, GT or LT options at the same time are not compatible"));
        }
        if conditions.only_later && conditions.only_earlier {
            return Err(Refusal::known("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// A key that does not expire does so later than any other.
    fn allow(&self, old: Option<i64>, new: i64) -> bool {
        !(self.only_new && old.is_some()
            || self.only_old && old.is_none()
            || self.only_later && old.is_none_or(|old| new <= old)
            || self.only_earlier && old.is_some_and(|old| new >= old))
    }
}

pub(crate) fn persist(state: &mut State, arguments: &Arguments) -> Answer {
    let expiry = state.entry(arguments.word(1)).and_then(|entry| entry.expires_ms.take());
    if expiry.is_some() {
        state.changed();
    }
    Ok(Reply::flag(expiry.is_some()))
}

pub(crate) fn pttl(state: &mut State, arguments: &Arguments) -> Answer {
    Ok(Reply::Integer(remaining(state, arguments, |millis| millis)))
}

pub(crate) fn ttl(state: &mut State, arguments: &Arguments) -> Answer {
    Ok(Reply::Integer(remaining(state, arguments, |millis| (millis + 500) / 1000)))
}

/// Returns how long a key is there: -2 for none, -1 for ever.
fn remaining(state: &mut State, arguments: &Arguments, in_units: impl Fn(i64) -> i64) -> i64 {
    let now_ms = state.now_ms();
    match state.entry(arguments.word(1)).map(|entry| entry.expires_ms) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => in_units((at - now_ms).max(0)),
    }
}
