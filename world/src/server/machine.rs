//! The server: its clients, what it knows, and its scripts.

use std::collections::BTreeMap;

use super::acl;
use super::arguments::Arguments;
use super::channels;
use super::cluster::Cluster;
use super::command::{Command, Run, ScriptCommand, WHILE_STALE};
use super::dispatch;
use super::flavour::Flavour;
use super::gate::{self, Caller};
use super::refusal::Answer;
use super::reply::Reply;
use super::script::Scripts;
use super::session::{Session, SessionId};
use super::slot::slot;
use super::snapshot;
use super::state::{Faults, Role, State};
use super::stream::Write;
use super::table;

/// A server. It has the time that it was told last.
#[derive(Debug)]
pub struct Server {
    state: Box<State>,
    scripts: Scripts,
    sessions: BTreeMap<SessionId, Session>,
    next_session: u64,
    /// The words of the command that runs, to be used again.
    arguments: Arguments,
}

impl Server {
    /// Returns an empty server.
    ///
    /// # Errors
    ///
    /// Lua has no memory.
    pub fn new(flavour: Flavour) -> mlua::Result<Self> {
        Ok(Self {
            state: Box::new(State::new(flavour)),
            scripts: Scripts::new(flavour)?,
            sessions: BTreeMap::new(),
            next_session: 1,
            arguments: Arguments::default(),
        })
    }

    /// Returns whose answers it gives.
    #[must_use]
    pub fn flavour(&self) -> Flavour {
        self.state.flavour
    }

    /// Sets the server's clock, in microseconds since 1970. It may go back.
    pub fn set_time_us(&mut self, time_us: u64) {
        self.state.time_us = time_us;
    }

    /// Returns the time by the server's clock, in microseconds since 1970.
    #[must_use]
    pub fn time_us(&self) -> u64 {
        self.state.time_us
    }

    /// Lets a client in.
    pub fn open(&mut self) -> SessionId {
        let id = SessionId(self.next_session);
        self.next_session += 1;
        self.sessions.insert(id, Session::new(id));
        id
    }

    /// Lets a client go.
    pub fn close(&mut self, id: SessionId) {
        if let Some(mut session) = self.sessions.remove(&id) {
            channels::leave_all(&mut self.state, &mut session);
        }
    }

    /// Tells whether the server still talks to a client.
    #[must_use]
    pub fn is_open(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| !session.is_ending)
    }

    /// Takes bytes from a client, and returns what it is answered. Commands may be cut anywhere.
    pub fn feed(&mut self, id: SessionId, bytes: &[u8]) -> Vec<u8> {
        let Some(mut session) = self.sessions.remove(&id) else { return Vec::new() };
        session.requests.arrive(bytes);
        let mut arguments = std::mem::take(&mut self.arguments);
        while !session.is_ending {
            match session.requests.next(&mut arguments) {
                Ok(false) => break,
                Ok(true) if arguments.is_empty() => {}
                Ok(true) => self.execute(&mut session, &arguments),
                Err(malformed) => {
                    session.send(&Reply::error(malformed.0));
                    session.is_ending = true;
                }
            }
        }
        self.arguments = arguments;
        self.sessions.insert(id, session);
        self.deliver();
        self.take_output(id)
    }

    /// Returns what the server has sent to a client since the last time, like messages of channels.
    pub fn take_output(&mut self, id: SessionId) -> Vec<u8> {
        self.sessions.get_mut(&id).map(|session| std::mem::take(&mut session.output)).unwrap_or_default()
    }

    /// Returns the clients that have something to take.
    #[must_use]
    pub fn with_output(&self) -> Vec<SessionId> {
        self.sessions.values().filter(|session| !session.output.is_empty()).map(|session| session.id).collect()
    }

    /// Sends a message to the subscribers of a channel.
    pub fn publish(&mut self, channel: &str, message: &str) {
        self.state.published.push((channel.as_bytes().to_vec(), message.as_bytes().to_vec()));
        self.deliver();
    }

    /// Makes the server a primary, or a replica. A promoted replica keeps what it has.
    pub fn set_role(&mut self, role: Role) {
        self.state.role = role;
    }

    /// Returns what the server is to others.
    #[must_use]
    pub fn role(&self) -> &Role {
        &self.state.role
    }

    /// Makes the server refuse commands, or answer again.
    pub fn faults_mut(&mut self) -> &mut Faults {
        &mut self.state.faults
    }

    /// Says how many replicas are close enough behind.
    pub fn set_good_replicas(&mut self, replicas: u64) {
        self.state.good_replicas = replicas;
    }

    /// Makes the server a node of a cluster, or of none.
    pub fn set_cluster(&mut self, cluster: Option<Cluster>) {
        self.state.cluster = cluster;
    }

    /// Returns what the node knows of its cluster.
    pub fn cluster_mut(&mut self) -> Option<&mut Cluster> {
        self.state.cluster.as_mut()
    }

    /// Makes the server a sentinel that sees these primaries: host and port, by name.
    pub fn watch(&mut self, primaries: BTreeMap<String, (String, u16)>) {
        self.state.primaries = Some(primaries);
    }

    /// From here on, writes are kept for replicas.
    pub fn record_writes(&mut self, is_wanted: bool) {
        self.state.stream.is_wanted = is_wanted;
    }

    /// Returns what was written since the last time.
    pub fn take_writes(&mut self) -> Vec<Write> {
        self.state.stream.take()
    }

    /// Writes what the primary has written.
    pub fn apply(&mut self, write: &Write) {
        snapshot::apply(&mut self.state, &write.0);
        self.state.stream.seal();
    }

    /// Returns all keys, as they are saved.
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        snapshot::save(&self.state)
    }

    /// Replaces all keys by those that were saved.
    pub fn load(&mut self, bytes: &[u8]) {
        snapshot::load(&mut self.state, bytes);
    }

    /// Starts again with what was saved: clients are gone, and scripts are unknown.
    pub fn restart(&mut self, saved: &[u8]) {
        for id in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.close(id);
        }
        self.scripts.forget();
        self.load(saved);
    }

    /// Takes the keys of a slot out, as they are moved to another node: at most so many.
    pub fn take_keys(&mut self, of: u16, most: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let keys: Vec<_> = self.state.databases[0].iter().map(|(key, _)| key).filter(|key| slot(key) == of).collect();
        let keys: Vec<_> = keys.into_iter().take(most).map(<[u8]>::to_vec).collect();
        for key in keys {
            if let Some(entry) = self.state.databases[0].remove(&key) {
                snapshot::write(&key, &entry, &mut bytes);
                self.state.stream.record(0, &Arguments::of([b"DEL", key.as_slice()]));
            }
        }
        self.state.stream.seal();
        bytes
    }

    /// Takes keys over from another node.
    pub fn put_keys(&mut self, bytes: &[u8]) {
        snapshot::apply(&mut self.state, bytes);
        self.state.stream.seal();
    }

    /// Removes the keys that have expired.
    pub fn sweep(&mut self) {
        for index in 0..self.state.databases.len() {
            self.state.selected = index;
            let now_ms = self.state.now_ms();
            let keys = self.state.databases[index].iter().filter(|(_, entry)| entry.is_expired(now_ms));
            let keys: Vec<_> = keys.map(|(key, _)| key.to_vec()).collect();
            for key in &keys {
                self.state.entry(key);
            }
        }
        self.state.stream.seal();
    }

    fn execute(&mut self, session: &mut Session, arguments: &Arguments) {
        self.state.selected = session.database;
        let is_asking = arguments.is(0, "asking");
        let reply = self.answer(session, arguments).unwrap_or_else(Reply::from);
        session.send(&reply);
        // It holds for one command.
        session.asks &= is_asking;
        self.state.stream.seal();
    }

    fn answer(&mut self, session: &mut Session, arguments: &Arguments) -> Answer {
        gate::greet(&self.state, session, arguments)?;
        let command = table::find_complete(&self.state, arguments)?;
        let is_too_stale = self.is_too_stale_for(command, arguments);
        gate::admit(&mut self.state, session, command, arguments, is_too_stale)?;
        if self.state.flavour == Flavour::Redis62 && !is_cluster_off(&self.state, command) {
            command.check_subcommand(Flavour::Redis62, arguments)?;
        }
        self.run(session, command, arguments)
    }

    /// Whether a replica without its primary does not answer. Newer ones first look for the script.
    fn is_too_stale_for(&self, command: &Command, arguments: &Arguments) -> bool {
        if !self.state.is_stale() || command.has(WHILE_STALE) {
            return false;
        }
        let is_old = self.state.flavour == Flavour::Redis62;
        match command.run {
            Run::Script(ScriptCommand::EvalSha) => is_old || self.scripts.know(arguments.word(1)),
            _ => !is_old || command.name != "ping",
        }
    }

    fn run(&mut self, session: &mut Session, command: &Command, arguments: &Arguments) -> Answer {
        match command.run {
            Run::Data(run) => Ok(dispatch::run(&mut self.state, arguments, run)),
            Run::Client(run) => run(&mut self.state, session, arguments),
            Run::Script(run) => self.scripts.run(run, &mut self.state, Caller::of(session), arguments),
            Run::Users => acl::acl(&mut self.state, session, arguments),
        }
    }

    /// Hands messages to the subscribers of their channels.
    fn deliver(&mut self) {
        for (channel, message) in std::mem::take(&mut self.state.published) {
            let message = channels::message(&channel, &message);
            let subscribers = self.sessions.values_mut().filter(|session| session.channels.contains(&channel));
            subscribers.for_each(|session| session.send(&message));
        }
    }
}

/// Whether the server first says that it is no part of a cluster.
fn is_cluster_off(state: &State, command: &Command) -> bool {
    command.name == "cluster" && state.cluster.is_none()
}

#[cfg(test)]
mod tests;
