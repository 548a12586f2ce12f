//! How a command on keys runs, whoever calls it.

use super::arguments::Arguments;
use super::refusal::Answer;
use super::reply::Reply;
use super::state::State;

/// Runs a command, and records what it has changed.
pub(crate) fn run(state: &mut State, arguments: &Arguments, command: fn(&mut State, &Arguments) -> Answer) -> Reply {
    let before = state.changes;
    let reply = command(state, arguments).unwrap_or_else(Reply::from);
    if state.changes != before {
        let rewritten = state.rewritten.take();
        state.stream.record(state.selected, rewritten.as_ref().unwrap_or(arguments));
    }
    reply
}
