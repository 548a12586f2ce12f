//! Commands about hashes.

use super::arguments::Arguments;
use super::hash_value::HashValue;
use super::keyspace::Value;
use super::refusal::{Answer, Refusal};
use super::reply::Reply;
use super::scan::ScanOptions;
use super::state::State;

pub(crate) fn hget(state: &mut State, arguments: &Arguments) -> Answer {
    let fields = state.hash(arguments.word(1))?;
    Ok(text_of(fields.and_then(|fields| fields.get(arguments.word(2)))))
}

pub(crate) fn hmget(state: &mut State, arguments: &Arguments) -> Answer {
    let fields = state.hash(arguments.word(1))?;
    let text = |field| text_of(fields.as_ref().and_then(|fields| fields.get(field)));
    Ok(Reply::array(arguments.from(2).map(text)))
}

fn text_of(text: Option<&[u8]>) -> Reply {
    text.map_or(Reply::Nothing, Reply::text)
}

pub(crate) fn hexists(state: &mut State, arguments: &Arguments) -> Answer {
    let fields = state.hash(arguments.word(1))?;
    Ok(Reply::flag(fields.is_some_and(|fields| fields.get(arguments.word(2)).is_some())))
}

pub(crate) fn hlen(state: &mut State, arguments: &Arguments) -> Answer {
    Ok(Reply::count(state.hash(arguments.word(1))?.map_or(0, |fields| fields.len())))
}

pub(crate) fn hgetall(state: &mut State, arguments: &Arguments) -> Answer {
    let Some(fields) = state.hash(arguments.word(1))? else { return Ok(Reply::Map(Vec::new())) };
    Ok(Reply::Map(fields.iter().map(|(field, text)| (Reply::text(field), Reply::text(text))).collect()))
}

pub(crate) fn hkeys(state: &mut State, arguments: &Arguments) -> Answer {
    let Some(fields) = state.hash(arguments.word(1))? else { return Ok(Reply::Array(Vec::new())) };
    Ok(Reply::array(fields.iter().map(|(field, _)| Reply::text(field))))
}

pub(crate) fn hset(state: &mut State, arguments: &Arguments) -> Answer {
    if arguments.len() % 2 == 1 {
        return Err(Refusal::arity("hset"));
    }
    let key = arguments.word(1);
    if state.hash(key)?.is_none() {
        state.put(key, Value::Hash(HashValue::default()), None);
    }
    let Some(fields) = state.hash(key)? else { return Ok(Reply::Integer(0)) };
    let pairs = (2..arguments.len()).step_by(2);
    let new = pairs.filter(|&index| fields.set(arguments.word(index), arguments.word(index + 1))).count();
    state.changed();
    Ok(Reply::count(new))
}

pub(crate) fn hdel(state: &mut State, arguments: &Arguments) -> Answer {
    let key = arguments.word(1);
    let Some(fields) = state.hash(key)? else { return Ok(Reply::Integer(0)) };
    let removed = arguments.from(2).filter(|field| fields.remove(field)).count();
    if fields.len() == 0 {
        state.remove(key);
    }
    if removed > 0 {
        state.changed();
    }
    Ok(Reply::count(removed))
}

pub(crate) fn hscan(state: &mut State, arguments: &Arguments) -> Answer {
    let cursor = ScanOptions::cursor(arguments, 2)?;
    let Some(fields) = state.hash(arguments.word(1))? else {
        return Ok(ScanOptions::answer(0, Vec::new()));
    };
    let options = ScanOptions::read(arguments, 3, false)?;
    let (next, found) = fields.scan(cursor, options.count);
    let found = found.into_iter().filter(|(field, _)| options.fits(field));
    let items = found.flat_map(|(field, text)| [Reply::text(field), Reply::text(text)]).collect();
    Ok(ScanOptions::answer(next, items))
}
