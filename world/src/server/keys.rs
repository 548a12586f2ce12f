//! Commands about keys of any type.

use super::arguments::Arguments;
use super::flavour::Flavour;
use super::glob;
use super::keyspace::Keyspace;
use super::refusal::{Answer, Refusal, SYNTAX};
use super::reply::Reply;
use super::scan::ScanOptions;
use super::state::State;

/// The types that servers know. Most of them have no commands here.
const KINDS: [&[u8]; 6] = [b"hash", b"list", b"set", b"stream", b"string", b"zset"];

/// Removes keys: `DEL` and `UNLINK`.
pub(crate) fn del(state: &mut State, arguments: &Arguments) -> Answer {
    let removed = arguments.from(1).filter(|key| state.remove(key)).count();
    if removed > 0 {
        state.changed();
    }
    Ok(Reply::count(removed))
}

pub(crate) fn exists(state: &mut State, arguments: &Arguments) -> Answer {
    Ok(Reply::count(arguments.from(1).filter(|key| state.entry(key).is_some()).count()))
}

pub(crate) fn kind(state: &mut State, arguments: &Arguments) -> Answer {
    let kind = state.entry(arguments.word(1)).map_or("none", |entry| entry.value.kind());
    Ok(Reply::Status(kind.into()))
}

pub(crate) fn scan(state: &mut State, arguments: &Arguments) -> Answer {
    let cursor = ScanOptions::cursor(arguments, 1)?;
    let options = ScanOptions::read(arguments, 2, true)?;
    if let Some(kind) = options.kind.as_ref().filter(|kind| !KINDS.contains(&kind.as_slice()))
        && state.flavour == Flavour::Valkey9
    {
        return Err(Refusal::new(format!("ERR unknown type name '{}'", String::from_utf8_lossy(kind))));
    }
    let now_ms = state.now_ms();
    let (next, found) = state.keyspace().scan(cursor, options.count);
    let found = found.into_iter().filter(|(key, entry)| {
        let is_of_kind = options.kind.as_ref().is_none_or(|kind| kind == entry.value.kind().as_bytes());
        !entry.is_expired(now_ms) && is_of_kind && options.fits(key)
    });
    Ok(ScanOptions::answer(next, found.map(|(key, _)| Reply::text(key)).collect()))
}

pub(crate) fn keys(state: &mut State, arguments: &Arguments) -> Answer {
    let now_ms = state.now_ms();
    let pattern = arguments.word(1);
    let found = state.keyspace().iter().filter(|(key, entry)| !entry.is_expired(now_ms) && glob::matches(pattern, key));
    Ok(Reply::array(found.map(|(key, _)| Reply::text(key))))
}

pub(crate) fn dbsize(state: &mut State, _arguments: &Arguments) -> Answer {
    Ok(Reply::count(state.keyspace().len()))
}

/// Removes all keys, of every database or of one: `FLUSHALL` and `FLUSHDB`.
pub(crate) fn flush(state: &mut State, arguments: &Arguments) -> Answer {
    let is_known = arguments.len() == 1 || arguments.is(1, "sync") || arguments.is(1, "async");
    if arguments.len() > 2 || !is_known {
        return Err(SYNTAX);
    }
    if arguments.is(0, "flushdb") {
        *state.keyspace() = Keyspace::default();
    } else {
        state.databases.fill_with(Keyspace::default);
    }
    state.changed();
    Ok(Reply::OK)
}
