//! Commands about the server.

use super::arguments::Arguments;
use super::flavour::Flavour;
use super::glob;
use super::numbers::integer;
use super::refusal::{Answer, NO_INTEGER, Refusal, SYNTAX};
use super::reply::Reply;
use super::state::{Role, State};

pub(crate) fn time(state: &mut State, _arguments: &Arguments) -> Answer {
    let part = |number: u64| Reply::text(number.to_string());
    Ok(Reply::array([part(state.time_us / 1_000_000), part(state.time_us % 1_000_000)]))
}

pub(crate) fn echo(_state: &mut State, arguments: &Arguments) -> Answer {
    Ok(Reply::text(arguments.word(1)))
}

/// Answers who waits for replicas: nobody does here.
pub(crate) fn wait(state: &mut State, arguments: &Arguments) -> Answer {
    integer(arguments.word(1)).ok_or(NO_INTEGER)?;
    match integer(arguments.word(2)) {
        None => Err(Refusal::known("ERR timeout is not an integer or out of range")),
        Some(..0) => Err(Refusal::known("ERR timeout is negative")),
        Some(_) => Ok(Reply::Integer(i64::try_from(state.good_replicas).unwrap_or(i64::MAX))),
    }
}

pub(crate) fn role(state: &mut State, _arguments: &Arguments) -> Answer {
    if let Some(primaries) = &state.primaries {
        let names = Reply::array(primaries.keys().map(Reply::text));
        return Ok(Reply::array([Reply::text("sentinel"), names]));
    }
    let offset = Reply::Integer(i64::try_from(state.stream.offset).unwrap_or(i64::MAX));
    Ok(match &state.role {
        Role::Primary => Reply::array([Reply::text("master"), offset, Reply::Array(Vec::new())]),
        Role::Replica { host, port, is_connected } => {
            let link = if *is_connected { "connected" } else { "connect" };
            let offset = if *is_connected { offset } else { Reply::Integer(-1) };
            let port = Reply::Integer((*port).into());
            Reply::array([Reply::text("slave"), Reply::text(host), port, Reply::text(link), offset])
        }
    })
}

pub(crate) fn replicaof(state: &mut State, arguments: &Arguments) -> Answer {
    if state.cluster.is_some() {
        return Err(Refusal::known("ERR REPLICAOF not allowed in cluster mode."));
    }
    state.role = if arguments.is(1, "no") && arguments.is(2, "one") {
        Role::Primary
    } else {
        let port = integer(arguments.word(2)).and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or(Refusal::known("ERR Invalid master port"))?;
        Role::Replica { host: arguments.text(1), port, is_connected: false }
    };
    Ok(Reply::OK)
}

pub(crate) fn config(state: &mut State, arguments: &Arguments) -> Answer {
    match arguments.text(1).to_ascii_lowercase().as_str() {
        "get" => {
            let patterns: Vec<_> = arguments.from(2).map(<[u8]>::to_ascii_lowercase).collect();
            let is_wanted = |name: &str| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
            let wanted = state.settings.iter().filter(|(name, _)| is_wanted(name));
            Ok(Reply::Map(wanted.map(|(name, text)| (Reply::text(name), Reply::text(text))).collect()))
        }
        "set" => set(state, arguments),
        _ => Ok(Reply::OK),
    }
}

fn set(state: &mut State, arguments: &Arguments) -> Answer {
    if arguments.len() % 2 == 1 {
        return Err(SYNTAX);
    }
    for index in (2..arguments.len()).step_by(2) {
        let (name, text) = (arguments.text(index).to_ascii_lowercase(), arguments.text(index + 1));
        let is_old = state.flavour == Flavour::Redis62;
        if !state.settings.has(&name) {
            return Err(Refusal::new(if is_old {
                format!("ERR Unsupported CONFIG parameter: {name}")
            } else {
                format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'")
            }));
        }
        state.settings.set(&name, &text).map_err(|mistake| {
            Refusal::new(if is_old {
                format!("ERR Invalid argument '{text}' for CONFIG SET '{name}' - {mistake}")
            } else {
                format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {mistake}")
            })
        })?;
        if name == "requirepass" {
            state.users.set_default_password(&text);
        }
    }
    Ok(Reply::OK)
}

/// Says where a sentinel sees the primaries.
pub(crate) fn sentinel(state: &mut State, arguments: &Arguments) -> Answer {
    let primaries = state.primaries.iter().flatten();
    let place = |host: &str, port: u16| [Reply::text(host), Reply::text(port.to_string())];
    if arguments.is(1, "get-master-addr-by-name") {
        let name = arguments.text(2);
        let known = primaries.into_iter().find(|(known, _)| **known == name);
        return Ok(known.map_or(Reply::NoArray, |(_, (host, port))| Reply::array(place(host, *port))));
    }
    Ok(Reply::array(primaries.map(|(name, (host, port))| {
        let [ip, port] = place(host, *port);
        let fields = [("name", Reply::text(name)), ("ip", ip), ("port", port), ("flags", Reply::text("master"))];
        Reply::Map(fields.into_iter().map(|(name, value)| (Reply::text(name), value)).collect())
    })))
}
