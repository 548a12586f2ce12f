//! All keys as the commands that write them: what is saved, and what a replica begins with.

use super::arguments::Arguments;
use super::command::Run;
use super::dispatch;
use super::keyspace::{Entry, Keyspace, Value};
use super::numbers::seventeen_digits;
use super::request::Requests;
use super::state::State;
use super::table;

/// Returns the commands that write all keys.
pub(crate) fn save(state: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, keys) in state.databases.iter().enumerate().filter(|(_, keys)| keys.len() > 0) {
        Arguments::of([b"SELECT", index.to_string().as_bytes()]).encode(&mut bytes);
        keys.iter().for_each(|(key, entry)| write(key, entry, &mut bytes));
    }
    bytes
}

/// Appends the commands that write a key.
pub(crate) fn write(key: &[u8], entry: &Entry, bytes: &mut Vec<u8>) {
    let command = match &entry.value {
        Value::Text(text) => Arguments::of([b"SET", key, text]),
        Value::Hash(fields) => {
            let mut command = Arguments::of([b"HSET", key]);
            fields.iter().flat_map(|(field, text)| [field, text]).for_each(|word| command.push(word));
            command
        }
        Value::SortedSet(set) => {
            let mut command = Arguments::of([b"ZADD", key]);
            for (score, member) in set.range(0..set.len()) {
                command.push(seventeen_digits(*score).as_bytes());
                command.push(member);
            }
            command
        }
    };
    command.encode(bytes);
    if let Some(at) = entry.expires_ms {
        Arguments::of([b"PEXPIREAT", key, at.to_string().as_bytes()]).encode(bytes);
    }
}

/// Replaces all keys by those of a snapshot.
pub(crate) fn load(state: &mut State, bytes: &[u8]) {
    state.databases.fill_with(Keyspace::default);
    apply(state, bytes);
}

/// Does what these commands say, whatever this server may refuse its clients.
pub(crate) fn apply(state: &mut State, bytes: &[u8]) {
    let (mut requests, mut arguments, selected) = (Requests::default(), Arguments::default(), state.selected);
    state.obeys = true;
    requests.arrive(bytes);
    while requests.next(&mut arguments).is_ok_and(|is_whole| is_whole) {
        if arguments.is(0, "select") {
            state.selected = arguments.text(1).parse().unwrap_or(0).min(state.databases.len() - 1);
        } else if let Some(Run::Data(run)) = table::find(arguments.word(0)).map(|command| command.run) {
            dispatch::run(state, &arguments, run);
        }
    }
    state.obeys = false;
    state.selected = selected;
}
