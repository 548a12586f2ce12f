//! Commands about the client that sends them.

use super::arguments::Arguments;
use super::channels;
use super::flavour::Flavour;
use super::numbers::integer;
use super::refusal::{Answer, NO_CLUSTER, NO_INTEGER, Refusal, SYNTAX, WRONG_LOGIN};
use super::reply::{Protocol, Reply};
use super::session::Session;
use super::state::{DATABASES, State};
use super::user::DEFAULT_USER;

const NO_GREETING: Refusal = Refusal::known(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
     option can be used to authenticate the client and select the RESP protocol version at the same time",
);

pub(crate) fn ping(_state: &mut State, session: &mut Session, arguments: &Arguments) -> Answer {
    if arguments.len() > 2 {
        return Err(Refusal::arity("ping"));
    }
    Ok(match arguments.get(1) {
        word if session.only_listens() => Reply::array([Reply::text("pong"), Reply::text(word.unwrap_or_default())]),
        Some(word) => Reply::text(word),
        None => Reply::Status("PONG".into()),
    })
}

pub(crate) fn hello(state: &mut State, session: &mut Session, arguments: &Arguments) -> Answer {
    let protocol = match arguments.get(1).map(integer) {
        None => session.protocol,
        Some(None) => return Err(Refusal::known("ERR Protocol version is not an integer or out of range")),
        Some(Some(2)) => Protocol::Resp2,
        Some(Some(3)) => Protocol::Resp3,
        Some(Some(_)) => return Err(Refusal::known("NOPROTO unsupported protocol version")),
    };
    let (mut login, mut name, mut index) = (None, None, 2);
    while index < arguments.len() {
        let more = arguments.len() - 1 - index;
        if arguments.is(index, "auth") && more >= 2 {
            login = Some((arguments.text(index + 1), arguments.word(index + 2)));
            index += 3;
        } else if arguments.is(index, "setname") && more >= 1 {
            name = Some(arguments.word(index + 1).to_vec());
            index += 2;
        } else {
            let option = arguments.text(index);
            return Err(Refusal::new(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if let Some((user, password)) = login {
        log_in(state, session, &user, password)?;
    }
    if state.users.ask_for_login() && !session.has_logged_in {
        return Err(NO_GREETING);
    }
    session.protocol = protocol;
    session.name = name.unwrap_or_else(|| session.name.clone());
    Ok(greeting(state, session))
}

fn greeting(state: &State, session: &Session) -> Reply {
    let mode = match (&state.primaries, &state.cluster) {
        (Some(_), _) => "sentinel",
        (None, Some(_)) => "cluster",
        (None, None) => "standalone",
    };
    let role = if state.is_replica() { "replica" } else { "master" };
    let protocol = if session.protocol == Protocol::Resp2 { 2 } else { 3 };
    let id = i64::try_from(session.id.0).unwrap_or(i64::MAX);
    let product = state.flavour.product().to_ascii_lowercase();
    let fields = [
        ("server", Reply::text(product)),
        ("version", Reply::text(state.flavour.version())),
        ("proto", Reply::Integer(protocol)),
        ("id", Reply::Integer(id)),
        ("mode", Reply::text(mode)),
        ("role", Reply::text(role)),
        ("modules", modules(state.flavour)),
    ];
    // A sentinel has no role.
    let fields = fields.into_iter().filter(|(name, _)| *name != "role" || state.primaries.is_none());
    Reply::Map(fields.map(|(name, value)| (Reply::text(name), value)).collect())
}

/// Valkey runs scripts by a module.
fn modules(flavour: Flavour) -> Reply {
    let module = vec![
        (Reply::text("name"), Reply::text("lua")),
        (Reply::text("ver"), Reply::Integer(1)),
        (Reply::text("path"), Reply::text("lua")),
        (Reply::text("args"), Reply::Array(Vec::new())),
    ];
    Reply::array((flavour == Flavour::Valkey9).then_some(Reply::Map(module)))
}

pub(crate) fn auth(state: &mut State, session: &mut Session, arguments: &Arguments) -> Answer {
    match arguments.len() {
        2 if !state.users.ask_for_login() => Err(Refusal::known(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
             configuration is correct?",
        )),
        2 => log_in(state, session, DEFAULT_USER, arguments.word(1)),
        3 => log_in(state, session, &arguments.text(1), arguments.word(2)),
        _ => Err(SYNTAX),
    }
}

fn log_in(state: &State, session: &mut Session, user: &str, password: &[u8]) -> Answer {
    if !state.users.accept(user, password) {
        return Err(WRONG_LOGIN);
    }
    session.log_in(user);
    Ok(Reply::OK)
}

pub(crate) fn client(state: &mut State, session: &mut Session, arguments: &Arguments) -> Answer {
    let id = i64::try_from(session.id.0).unwrap_or(i64::MAX);
    match arguments.text(1).to_ascii_lowercase().as_str() {
        "setname" if !is_name(state.flavour, arguments.word(2)) => {
            Err(Refusal::known("ERR Client names cannot contain spaces, newlines or special characters."))
        }
        "setname" => {
            session.name = arguments.word(2).to_vec();
            Ok(Reply::OK)
        }
        "getname" if session.name.is_empty() => Ok(Reply::Nothing),
        "getname" => Ok(Reply::text(&session.name)),
        "setinfo" if !arguments.is(2, "lib-name") && !arguments.is(2, "lib-ver") => {
            Err(Refusal::new(format!("ERR Unrecognized option '{}'", arguments.text(2))))
        }
        "id" => Ok(Reply::Integer(id)),
        _ => Ok(Reply::OK),
    }
}

/// Whether a client may call itself so. For Valkey, a name ends at its first zero byte.
fn is_name(flavour: Flavour, name: &[u8]) -> bool {
    let end = name.iter().position(|byte| *byte == 0).filter(|_| flavour == Flavour::Valkey9);
    name[..end.unwrap_or(name.len())].iter().all(u8::is_ascii_graphic)
}

const NO_DATABASE: Refusal = Refusal::known("ERR DB index is out of range");

pub(crate) fn select(state: &mut State, session: &mut Session, arguments: &Arguments) -> Answer {
    let index = integer(arguments.word(1)).ok_or(NO_INTEGER)?;
    if state.cluster.is_some() && index != 0 && state.flavour == Flavour::Valkey9 {
        return Err(NO_DATABASE);
    }
    if state.cluster.is_some() && index != 0 {
        return Err(Refusal::known("ERR SELECT is not allowed in cluster mode"));
    }
    let database = usize::try_from(index).ok().filter(|index| *index < DATABASES);
    session.database = database.ok_or(NO_DATABASE)?;
    Ok(Reply::OK)
}

pub(crate) fn quit(_state: &mut State, session: &mut Session, _arguments: &Arguments) -> Answer {
    session.is_ending = true;
    Ok(Reply::OK)
}

pub(crate) fn reset(state: &mut State, session: &mut Session, _arguments: &Arguments) -> Answer {
    channels::leave_all(state, session);
    session.protocol = Protocol::Resp2;
    session.database = 0;
    session.name.clear();
    (session.asks, session.reads_replicas) = (false, false);
    DEFAULT_USER.clone_into(&mut session.user);
    session.has_logged_in = false;
    Ok(Reply::Status("RESET".into()))
}

pub(crate) fn asking(state: &mut State, session: &mut Session, _arguments: &Arguments) -> Answer {
    state.cluster.as_ref().ok_or(NO_CLUSTER)?;
    session.asks = true;
    Ok(Reply::OK)
}

pub(crate) fn readonly(state: &mut State, session: &mut Session, _arguments: &Arguments) -> Answer {
    read_replicas(state, session, true)
}

pub(crate) fn readwrite(state: &mut State, session: &mut Session, _arguments: &Arguments) -> Answer {
    if state.flavour == Flavour::Redis62 {
        session.reads_replicas = false;
        return Ok(Reply::OK);
    }
    read_replicas(state, session, false)
}

fn read_replicas(state: &State, session: &mut Session, may_read: bool) -> Answer {
    if state.cluster.is_none() && state.flavour < Flavour::Valkey9 {
        return Err(NO_CLUSTER);
    }
    session.reads_replicas = may_read;
    Ok(Reply::OK)
}
