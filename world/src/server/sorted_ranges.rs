//! Commands about ranges of sorted sets.

use std::ops::Range;

use super::arguments::Arguments;
use super::flavour::Flavour;
use super::numbers::{float, integer};
use super::refusal::{Answer, NO_INTEGER, Refusal, SYNTAX};
use super::reply::Reply;
use super::sorted_set::{ScoreBound, SortedSet};
use super::sorted_sets::{removal, score};
use super::state::State;

const NO_BOUND: Refusal = Refusal::known("ERR min or max is not a float");

pub(crate) fn zcard(state: &mut State, arguments: &Arguments) -> Answer {
    Ok(Reply::count(state.sorted_set(arguments.word(1))?.map_or(0, |set| set.len())))
}

pub(crate) fn zscore(state: &mut State, arguments: &Arguments) -> Answer {
    let flavour = state.flavour;
    let found = state.sorted_set(arguments.word(1))?.and_then(|set| set.score(arguments.word(2)));
    Ok(found.map_or(Reply::Nothing, |found| score(flavour, found)))
}

pub(crate) fn zcount(state: &mut State, arguments: &Arguments) -> Answer {
    let (min, max) = (bound(state.flavour, arguments.word(2))?, bound(state.flavour, arguments.word(3))?);
    Ok(Reply::count(state.sorted_set(arguments.word(1))?.map_or(0, |set| set.between(min, max).len())))
}

pub(crate) fn zremrangebyscore(state: &mut State, arguments: &Arguments) -> Answer {
    let (min, max) = (bound(state.flavour, arguments.word(2))?, bound(state.flavour, arguments.word(3))?);
    remove(state, arguments, |set| set.between(min, max))
}

pub(crate) fn zremrangebyrank(state: &mut State, arguments: &Arguments) -> Answer {
    let (first, last) = ranks(arguments)?;
    remove(state, arguments, |set| range(first, last, set.len()))
}

fn remove(state: &mut State, arguments: &Arguments, find: impl FnOnce(&SortedSet) -> Range<usize>) -> Answer {
    let Some(set) = state.sorted_set(arguments.word(1))? else { return Ok(Reply::Integer(0)) };
    let found = find(set);
    let removed = found.len();
    set.remove_range(found);
    Ok(removal(state, arguments, removed))
}

/// Where the ranks or scores come from, and in which order members are listed.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Ascending,
    Descending,
}

pub(crate) fn zrange(state: &mut State, arguments: &Arguments) -> Answer {
    by_rank(state, arguments, Order::Ascending)
}

pub(crate) fn zrevrange(state: &mut State, arguments: &Arguments) -> Answer {
    by_rank(state, arguments, Order::Descending)
}

fn by_rank(state: &mut State, arguments: &Arguments, order: Order) -> Answer {
    let with_scores = match arguments.len() {
        4 => false,
        5 if arguments.is(4, "withscores") => true,
        _ => return Err(SYNTAX),
    };
    let (first, last) = ranks(arguments)?;
    let flavour = state.flavour;
    let Some(set) = state.sorted_set(arguments.word(1))? else { return Ok(Reply::Array(Vec::new())) };
    let found = range(first, last, set.len());
    let found = match order {
        Order::Ascending => found,
        Order::Descending => set.len() - found.end..set.len() - found.start,
    };
    let members = in_order(set.range(found), order);
    Ok(listed(members, with_scores, |number| score(flavour, number)))
}

pub(crate) fn zrangebyscore(state: &mut State, arguments: &Arguments) -> Answer {
    by_score(state, arguments, Order::Ascending)
}

pub(crate) fn zrevrangebyscore(state: &mut State, arguments: &Arguments) -> Answer {
    by_score(state, arguments, Order::Descending)
}

fn by_score(state: &mut State, arguments: &Arguments, order: Order) -> Answer {
    let (first, second) = (bound(state.flavour, arguments.word(2)), bound(state.flavour, arguments.word(3)));
    let (first, second) = (first?, second?);
    let (min, max) = if order == Order::Ascending { (first, second) } else { (second, first) };
    let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
    let mut index = 4;
    while index < arguments.len() {
        if arguments.is(index, "withscores") {
            with_scores = true;
            index += 1;
        } else if arguments.is(index, "limit") && index + 2 < arguments.len() {
            offset = integer(arguments.word(index + 1)).ok_or(NO_INTEGER)?;
            limit = integer(arguments.word(index + 2)).ok_or(NO_INTEGER)?;
            index += 3;
        } else {
            return Err(SYNTAX);
        }
    }
    let flavour = state.flavour;
    let Some(set) = state.sorted_set(arguments.word(1))? else { return Ok(Reply::Array(Vec::new())) };
    let members = in_order(set.range(set.between(min, max)), order);
    // Behind a negative offset there is nothing; a negative limit is none.
    let members = members.skip(usize::try_from(offset).unwrap_or(usize::MAX));
    let members = members.take(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(listed(members, with_scores, |number| score(flavour, number)))
}

type Member = (f64, Vec<u8>);

fn in_order(members: &[Member], order: Order) -> Box<dyn Iterator<Item = &Member> + '_> {
    match order {
        Order::Ascending => Box::new(members.iter()),
        Order::Descending => Box::new(members.iter().rev()),
    }
}

fn listed<'a>(members: impl Iterator<Item = &'a Member>, with_scores: bool, score: impl Fn(f64) -> Reply) -> Reply {
    if with_scores {
        Reply::Pairs(members.map(|(number, member)| (Reply::text(member), score(*number))).collect())
    } else {
        Reply::array(members.map(|(_, member)| Reply::text(member)))
    }
}

/// Reads `1`, `(1`, `-inf`.
fn bound(flavour: Flavour, text: &[u8]) -> Result<ScoreBound, Refusal> {
    let (is_exclusive, number) = text.strip_prefix(b"(").map_or((false, text), |number| (true, number));
    // As in C, nothing is 0. For Redis, a number may stand behind spaces.
    let number = if flavour < Flavour::Valkey9 { number.trim_ascii_start() } else { number };
    let score = if number.is_empty() { 0.0 } else { float(number).ok_or(NO_BOUND)? };
    Ok(ScoreBound { score, is_exclusive })
}

fn ranks(arguments: &Arguments) -> Result<(i64, i64), Refusal> {
    let rank = |index| integer(arguments.word(index)).ok_or(NO_INTEGER);
    Ok((rank(2)?, rank(3)?))
}

/// Ranks from the first to the last, of which negative ones count from the end.
fn range(first: i64, last: i64, length: usize) -> Range<usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let from_end = |rank: i64| if rank < 0 { length.saturating_add(rank) } else { rank };
    let (first, last) = (from_end(first).max(0), from_end(last).min(length - 1));
    if first > last {
        return 0..0;
    }
    usize::try_from(first).unwrap_or_default()..usize::try_from(last + 1).unwrap_or_default()
}
