//! What is checked before a command runs, in the order in which servers check it.

use super::arguments::Arguments;
use super::cluster::{Route, SlotKeys};
use super::command::{
    BEFORE_LOGIN, Command, GROWS, Run, USES_CHANNELS, WHILE_BUSY, WHILE_LISTENING, WHILE_LOADING, WRITES,
};
use super::flavour::Flavour;
use super::refusal::{NO_LOGIN, OUT_OF_MEMORY, READ_ONLY, Refusal, STALE, TOO_FEW_REPLICAS};
use super::session::Session;
use super::slot::slot;
use super::state::State;
use super::table;

/// Who sends a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    pub(crate) user: String,
    /// Whether it may use a slot that is on its way here.
    pub(crate) asks: bool,
    /// Whether a replica may answer.
    pub(crate) reads_replicas: bool,
}

/// What a user may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forbidden {
    Command,
    Key,
    Channel,
}

impl Caller {
    pub(crate) fn of(session: &Session) -> Self {
        Self { user: session.user.clone(), asks: session.asks, reads_replicas: session.reads_replicas }
    }
}

/// Finds out whether a client has to log in before it hears which commands there are.
pub(crate) fn greet(state: &State, session: &Session, arguments: &Arguments) -> Result<(), Refusal> {
    if state.flavour < Flavour::Valkey9 || !state.users.ask_for_login() || session.has_logged_in {
        return Ok(());
    }
    let is_open = table::find(arguments.word(0)).is_some_and(|command| command.has(BEFORE_LOGIN));
    if is_open { Ok(()) } else { Err(NO_LOGIN) }
}

/// Finds out whether a client may send a command now.
pub(crate) fn admit(
    state: &mut State,
    session: &Session,
    command: &Command,
    arguments: &Arguments,
    is_too_stale: bool,
) -> Result<(), Refusal> {
    if !command.has(BEFORE_LOGIN) {
        if state.users.ask_for_login() && !session.has_logged_in {
            return Err(NO_LOGIN);
        }
        if let Some(forbidden) = forbidden(state, &session.user, command, arguments) {
            return Err(no_permission(state.flavour, &session.user, command, arguments, forbidden));
        }
    }
    if state.cluster.is_some() {
        route(state, &Caller::of(session), command, arguments)?;
    }
    check_health(state, session, command, is_too_stale)
}

/// Finds out whether the server is able to run a command.
fn check_health(state: &State, session: &Session, command: &Command, is_too_stale: bool) -> Result<(), Refusal> {
    let flavour = state.flavour;
    if command.has(GROWS) && state.is_out_of_memory() {
        return Err(OUT_OF_MEMORY);
    }
    let is_ping = command.name == "ping";
    if state.faults.cannot_save && (command.has(WRITES) || is_ping) {
        return Err(Refusal::cannot_save(flavour));
    }
    if command.has(WRITES) && state.has_too_few_replicas() {
        return Err(TOO_FEW_REPLICAS);
    }
    if command.has(WRITES) && state.is_replica() && !state.settings.may_replicas_write {
        return Err(READ_ONLY);
    }
    if session.only_listens() && !command.has(WHILE_LISTENING) {
        let kinds = if flavour == Flavour::Redis62 { "(P)" } else { "(P|S)" };
        return Err(Refusal::new(format!(
            "ERR Can't execute '{}': only {kinds}SUBSCRIBE / {kinds}UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
             context",
            command.name
        )));
    }
    if is_too_stale {
        return Err(STALE);
    }
    if state.faults.is_loading && !command.has(WHILE_LOADING) {
        return Err(Refusal::loading(flavour));
    }
    let may_end_script = matches!(command.run, Run::Script(_)) && command.name == "script";
    if state.faults.is_busy && !command.has(WHILE_BUSY) && !may_end_script {
        return Err(Refusal::busy(flavour));
    }
    Ok(())
}

/// Returns what a user may not do of what a command does.
pub(crate) fn forbidden(state: &State, user: &str, command: &Command, arguments: &Arguments) -> Option<Forbidden> {
    let Some(user) = state.users.get(user) else { return Some(Forbidden::Command) };
    if !user.may_run(command.name, arguments.word(1), |category| command.is_in(category)) {
        return Some(Forbidden::Command);
    }
    let (keys, access) = command.keys(arguments);
    if !keys.into_iter().all(|index| user.may_use_key(arguments.word(index), access)) {
        return Some(Forbidden::Key);
    }
    let last = if command.name == "publish" { 2 } else { arguments.len() };
    let channels = if command.has(USES_CHANNELS) { 1..last } else { 0..0 };
    (!channels.into_iter().all(|index| user.may_use_channel(arguments.word(index)))).then_some(Forbidden::Channel)
}

/// What a user may not do, as the server says it.
pub(crate) fn no_permission(
    flavour: Flavour,
    user: &str,
    command: &Command,
    arguments: &Arguments,
    forbidden: Forbidden,
) -> Refusal {
    let text = match (flavour, forbidden) {
        (Flavour::Redis62, Forbidden::Command) => {
            format!("this user has no permissions to run the '{}' command or its subcommand", command.name)
        }
        (Flavour::Redis70, Forbidden::Command) => {
            format!("this user has no permissions to run the '{}' command", command.full_name(arguments))
        }
        (Flavour::Valkey9, _) => lack(user, command, arguments, forbidden),
        (_, Forbidden::Key) => "this user has no permissions to access one of the keys used as arguments".to_owned(),
        (_, Forbidden::Channel) => {
            "this user has no permissions to access one of the channels used as arguments".to_owned()
        }
    };
    Refusal::new(format!("NOPERM {text}"))
}

/// What a user may not do, in the words of Valkey.
pub(crate) fn lack(user: &str, command: &Command, arguments: &Arguments, forbidden: Forbidden) -> String {
    match forbidden {
        Forbidden::Command => {
            format!("User {user} has no permissions to run the '{}' command", command.full_name(arguments))
        }
        Forbidden::Key => "No permissions to access a key".to_owned(),
        Forbidden::Channel => "No permissions to access a channel".to_owned(),
    }
}

/// Finds out whether this node of a cluster answers a command.
pub(crate) fn route(
    state: &mut State,
    caller: &Caller,
    command: &Command,
    arguments: &Arguments,
) -> Result<(), Refusal> {
    const CROSS_SLOT: Refusal = Refusal::known("CROSSSLOT Keys in request don't hash to the same slot");
    let (places, _) = command.keys(arguments);
    let first = arguments.word(places.start);
    let mut keys = SlotKeys { slot: slot(first), are_several: false, existing: 0, missing: 0 };
    if places.is_empty() {
        return Ok(());
    }
    let is_moving = state.cluster.as_ref().is_some_and(|cluster| cluster.is_moving(keys.slot));
    for key in places.map(|index| arguments.word(index)) {
        if slot(key) != keys.slot {
            return Err(CROSS_SLOT);
        }
        keys.are_several |= key != first;
        if is_moving {
            let is_here = state.entry(key).is_some();
            keys.existing += usize::from(is_here);
            keys.missing += usize::from(!is_here);
        }
    }
    let may_read_here = caller.reads_replicas && !command.has(WRITES);
    let Some(cluster) = &state.cluster else { return Ok(()) };
    match cluster.route(state.flavour, keys, caller.asks, may_read_here) {
        Route::Here => Ok(()),
        Route::Refused(refusal) => Err(refusal),
    }
}
