//! Commands that change sorted sets.

use super::arguments::Arguments;
use super::flavour::Flavour;
use super::keyspace::Value;
use super::numbers::{float, precise};
use super::refusal::{Answer, NO_FLOAT, Refusal, SYNTAX};
use super::reply::Reply;
use super::sorted_set::SortedSet;
use super::state::State;

/// A score as the server writes it.
pub(crate) fn score(flavour: Flavour, score: f64) -> Reply {
    Reply::Float(precise(flavour, score))
}

/// What `ZADD` is asked for.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "the options of the command")]
struct AddOptions {
    only_new: bool,
    only_old: bool,
    only_greater: bool,
    only_less: bool,
    counts_changes: bool,
    adds_up: bool,
}

impl AddOptions {
    /// Reads the options, and returns where the scores begin.
    fn read(arguments: &Arguments) -> (Self, usize) {
        let mut options = Self::default();
        for index in 2..arguments.len() {
            match arguments.text(index).to_ascii_lowercase().as_str() {
                "nx" => options.only_new = true,
                "xx" => options.only_old = true,
                "gt" => options.only_greater = true,
                "lt" => options.only_less = true,
                "ch" => options.counts_changes = true,
                "incr" => options.adds_up = true,
                _ => return (options, index),
            }
        }
        (options, arguments.len())
    }

    fn check(&self, words: usize) -> Result<(), Refusal> {
        if words == 0 || !words.is_multiple_of(2) {
            return Err(SYNTAX);
        }
        if self.only_new && self.only_old {
            return Err(Refusal::known("ERR XX and NX options at the same time are not compatible"));
        }
        let compares = u8::from(self.only_greater) + u8::from(self.only_less) + u8::from(self.only_new);
        if compares > 1 {
            return Err(Refusal::known("ERR GT, LT, and/or NX options at the same time are not compatible"));
        }
        if self.adds_up && words > 2 {
            return Err(Refusal::known("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// The score that a member gets, or `None` if it stays as it is.
    fn next(&self, old: Option<f64>, given: f64) -> Result<Option<f64>, Refusal> {
        let Some(old) = old else { return Ok((!self.only_old).then_some(given)) };
        if self.only_new {
            return Ok(None);
        }
        let next = if self.adds_up { old + given } else { given };
        if next.is_nan() {
            return Err(Refusal::known("ERR resulting score is not a number (NaN)"));
        }
        let is_wrong = self.only_greater && next <= old || self.only_less && next >= old;
        Ok((!is_wrong).then_some(next))
    }
}

pub(crate) fn zadd(state: &mut State, arguments: &Arguments) -> Answer {
    let (options, first) = AddOptions::read(arguments);
    add(state, arguments, &options, first)
}

pub(crate) fn zincrby(state: &mut State, arguments: &Arguments) -> Answer {
    add(state, arguments, &AddOptions { adds_up: true, ..AddOptions::default() }, 2)
}

fn add(state: &mut State, arguments: &Arguments, options: &AddOptions, first: usize) -> Answer {
    options.check(arguments.len() - first)?;
    let pairs = (first..arguments.len()).step_by(2);
    let pairs = pairs.map(|index| Ok((float(arguments.word(index)).ok_or(NO_FLOAT)?, arguments.word(index + 1))));
    let pairs: Vec<_> = pairs.collect::<Result<_, Refusal>>()?;
    let (flavour, key) = (state.flavour, arguments.word(1));
    if state.sorted_set(key)?.is_none() {
        if options.only_old {
            return Ok(if options.adds_up { Reply::Nothing } else { Reply::Integer(0) });
        }
        state.put(key, Value::SortedSet(SortedSet::default()), None);
    }
    let Some(set) = state.sorted_set(key)? else { return Ok(Reply::Nothing) };
    let (mut added, mut updated, mut result) = (0, 0, None);
    for (given, member) in pairs {
        let old = set.score(member);
        result = options.next(old, given)?;
        let Some(next) = result else { continue };
        set.set(member, next);
        added += usize::from(old.is_none());
        updated += usize::from(old.is_some_and(|old| old.to_bits() != next.to_bits()));
    }
    if added + updated > 0 {
        state.changed();
    }
    Ok(if options.adds_up {
        result.map_or(Reply::Nothing, |result| score(flavour, result))
    } else {
        Reply::count(if options.counts_changes { added + updated } else { added })
    })
}

pub(crate) fn zrem(state: &mut State, arguments: &Arguments) -> Answer {
    let Some(set) = state.sorted_set(arguments.word(1))? else { return Ok(Reply::Integer(0)) };
    let removed = arguments.from(2).filter(|member| set.remove(member)).count();
    Ok(removal(state, arguments, removed))
}

/// Ends a removal: an empty set goes.
pub(crate) fn removal(state: &mut State, arguments: &Arguments, removed: usize) -> Reply {
    let key = arguments.word(1);
    if state.sorted_set(key).is_ok_and(|set| set.is_some_and(|set| set.len() == 0)) {
        state.remove(key);
    }
    if removed > 0 {
        state.changed();
    }
    Reply::count(removed)
}
