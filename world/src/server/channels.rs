//! Commands about channels.

use super::arguments::Arguments;
use super::refusal::Answer;
use super::reply::Reply;
use super::session::Session;
use super::state::State;

pub(crate) fn publish(state: &mut State, arguments: &Arguments) -> Answer {
    let (channel, message) = (arguments.word(1), arguments.word(2));
    let subscribers = state.subscribers.get(channel).copied().unwrap_or(0);
    if subscribers > 0 {
        state.published.push((channel.to_vec(), message.to_vec()));
    }
    Ok(Reply::count(subscribers))
}

pub(crate) fn subscribe(state: &mut State, session: &mut Session, arguments: &Arguments) -> Answer {
    each(session, arguments.from(1).map(<[u8]>::to_vec), "subscribe", |session, channel| {
        if session.channels.insert(channel.to_vec()) {
            *state.subscribers.entry(channel.to_vec()).or_default() += 1;
        }
    })
}

pub(crate) fn unsubscribe(state: &mut State, session: &mut Session, arguments: &Arguments) -> Answer {
    let named: Vec<_> = arguments.from(1).map(<[u8]>::to_vec).collect();
    let channels = if named.is_empty() { session.channels.iter().cloned().collect() } else { named };
    if channels.is_empty() {
        return Ok(Reply::Push(vec![Reply::text("unsubscribe"), Reply::Nothing, Reply::Integer(0)]));
    }
    each(session, channels.into_iter(), "unsubscribe", |session, channel| leave(state, session, channel))
}

/// Ends all subscriptions of a client.
pub(crate) fn leave_all(state: &mut State, session: &mut Session) {
    for channel in std::mem::take(&mut session.channels) {
        forget(state, &channel);
    }
}

fn leave(state: &mut State, session: &mut Session, channel: &[u8]) {
    if session.channels.remove(channel) {
        forget(state, channel);
    }
}

fn forget(state: &mut State, channel: &[u8]) {
    if let Some(subscribers) = state.subscribers.get_mut(channel) {
        *subscribers -= 1;
        if *subscribers == 0 {
            state.subscribers.remove(channel);
        }
    }
}

/// Answers once for each channel; the last answer is returned.
fn each(
    session: &mut Session,
    channels: impl Iterator<Item = Vec<u8>>,
    verb: &str,
    mut change: impl FnMut(&mut Session, &[u8]),
) -> Answer {
    let mut last = None;
    for channel in channels {
        if let Some(reply) = last.take() {
            session.send(&reply);
        }
        change(session, &channel);
        last = Some(Reply::Push(vec![Reply::text(verb), Reply::Text(channel), Reply::count(session.channels.len())]));
    }
    Ok(last.unwrap_or(Reply::Nothing))
}

/// A message as a subscriber gets it.
pub(crate) fn message(channel: &[u8], message: &[u8]) -> Reply {
    Reply::Push(vec![Reply::text("message"), Reply::text(channel), Reply::text(message)])
}
