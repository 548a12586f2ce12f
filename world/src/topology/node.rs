//! A server on the net: its connections, its clock, its disk and its faults.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::plant::Plant;
use crate::engine;
use crate::fleet::Clock;
use crate::history::{self, Event, History};
use crate::net::{self, ConnectionId, Listener, Party};
use crate::server::{Faults, Flavour, OVERRUN, Server, SessionId, Write};

/// The port of all servers.
pub(super) const PORT: u16 = 6379;

/// How long a server takes for what arrives at once.
const SERVICE_US: u64 = 15;

/// Takes writes on.
pub(super) type Sink = Rc<dyn Fn(Vec<Write>)>;

/// A server that listens.
pub struct Node {
    number: u32,
    history: History,
    plant: Plant,
    state: RefCell<State>,
    /// What takes its writes to its replica.
    sink: RefCell<Option<Sink>>,
}

struct State {
    server: Server,
    sessions: BTreeMap<ConnectionId, SessionId>,
    phase: Phase,
    clock: Clock,
    /// 0, or the number of the line of its own that it writes since another server has taken its place.
    branch: u32,
    branches: u32,
}

enum Phase {
    Running,
    /// What has arrived waits.
    Hung(Vec<(ConnectionId, Vec<u8>)>),
    Down,
}

impl Node {
    pub(super) fn start(number: u32, plant: &Plant, history: &History) -> Option<Rc<Self>> {
        let state = State {
            server: Server::new(Flavour::Redis70).ok()?,
            sessions: BTreeMap::new(),
            phase: Phase::Running,
            clock: Clock::default(),
            branch: 0,
            branches: 0,
        };
        let node = Rc::new(Self {
            number,
            history: history.clone(),
            plant: plant.clone(),
            state: RefCell::new(state),
            sink: RefCell::default(),
        });
        node.listen();
        Some(node)
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn party(&self) -> Party {
        Party::Server(self.number)
    }

    fn listen(self: &Rc<Self>) {
        net::listen(self.party(), &host(self.number), PORT, Rc::clone(self) as _);
    }

    /// Lets it answer nothing.
    pub(super) fn hang(&self) {
        let mut state = self.state.borrow_mut();
        if matches!(state.phase, Phase::Running) {
            state.phase = Phase::Hung(Vec::new());
        }
    }

    /// Lets it go on with all that has arrived meanwhile.
    pub(super) fn resume(&self) {
        let mut state = self.state.borrow_mut();
        if !matches!(state.phase, Phase::Hung(_)) {
            return;
        }
        if let Phase::Hung(waiting) = std::mem::replace(&mut state.phase, Phase::Running) {
            drop(state);
            for (connection, bytes) in waiting {
                self.receive(connection, &bytes);
            }
        }
    }

    /// Ends it; returns whether it was running.
    pub(super) fn crash(&self, is_quiet: bool) -> bool {
        let mut state = self.state.borrow_mut();
        if matches!(state.phase, Phase::Down) {
            return false;
        }
        state.phase = Phase::Down;
        state.sessions.clear();
        drop(state);
        net::vanish(self.party(), is_quiet);
        true
    }

    /// Starts it again with what it had on disk; returns whether that is less than it had.
    pub(super) fn restart(self: &Rc<Self>, lost_us: u64) -> bool {
        let mut state = self.state.borrow_mut();
        let is_lost = lost_us > 0;
        let saved = if is_lost { Vec::new() } else { state.server.save() };
        state.server.restart(&saved);
        let _ = state.server.take_writes();
        state.phase = Phase::Running;
        drop(state);
        self.listen();
        is_lost
    }

    /// Whether it answers.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state.borrow().phase, Phase::Running)
    }

    /// How far its clock was set.
    pub(super) fn ahead_us(&self) -> i64 {
        self.state.borrow().clock.ahead_us
    }

    /// Writes a line of its own from here on, which no other server has.
    pub(super) fn begin_branch(&self) {
        let mut state = self.state.borrow_mut();
        state.branches += 1;
        state.branch = 100 * state.branches + self.number;
    }

    /// Writes the line of all again.
    pub(super) fn end_branch(&self) {
        self.state.borrow_mut().branch = 0;
    }

    /// Works on the server at its time. What that writes reaches the replica, too.
    pub(super) fn with_server<T>(&self, work: impl FnOnce(&mut Server) -> T) -> T {
        let mut state = self.state.borrow_mut();
        state.read_clock();
        let done = work(&mut state.server);
        let writes = state.server.take_writes();
        drop(state);
        self.forward(writes);
        done
    }

    /// Hands all that it writes to a replica, or to nobody.
    pub(super) fn set_sink(&self, sink: Option<Sink>) {
        self.state.borrow_mut().server.record_writes(sink.is_some());
        drop(self.sink.replace(sink));
    }

    fn forward(&self, writes: Vec<Write>) {
        let sink = self.sink.borrow().clone();
        if let Some(sink) = sink.filter(|_| !writes.is_empty()) {
            sink(writes);
        }
    }

    /// Sends a message to the subscribers of a channel.
    pub(super) fn publish(&self, channel: &str, message: &str) {
        let mut state = self.state.borrow_mut();
        state.server.publish(channel, message);
        let told = state.server.with_output();
        let sessions: Vec<_> = state.sessions.iter().filter(|(_, session)| told.contains(session)).collect();
        let sessions: Vec<_> = sessions.into_iter().map(|(connection, session)| (*connection, *session)).collect();
        let messages: Vec<_> =
            sessions.into_iter().map(|(to, session)| (to, state.server.take_output(session))).collect();
        drop(state);
        for (connection, message) in messages {
            net::reply(connection, message);
        }
    }

    /// Closes the connections of all clients.
    pub(super) fn hang_up(self: &Rc<Self>) {
        let mut state = self.state.borrow_mut();
        for session in std::mem::take(&mut state.sessions).into_values() {
            state.server.close(session);
        }
        drop(state);
        net::vanish(self.party(), false);
        self.listen();
    }

    /// Sets its clock.
    pub(super) fn step_clock(&self, us: i64) {
        self.state.borrow_mut().clock.ahead_us += us;
    }

    /// Changes what makes it refuse commands.
    pub(super) fn change_faults(&self, change: impl FnOnce(&mut Faults)) {
        change(self.state.borrow_mut().server.faults_mut());
    }

    /// Lets it forget all scripts.
    pub(super) fn flush_scripts(&self) {
        let mut state = self.state.borrow_mut();
        let session = state.server.open();
        let _ = state.server.feed(session, b"SCRIPT FLUSH\r\n");
        state.server.close(session);
    }

    /// Puts bytes in front of its tallies, which then live for longer than that; returns their keys.
    pub(super) fn forge(&self, bytes: [u8; 3], for_us: u64) -> Vec<String> {
        let ttl_ms = (for_us / 1_000 + 1_000).to_string();
        let mut keys = self.keys();
        keys.retain(|key| {
            let answer = self.ask(&[b"GET", key.as_bytes()]);
            // Leases are no text.
            let Some(value) = text(&answer).filter(|_| !key.contains(":!")) else { return false };
            self.ask(&[b"SET", key.as_bytes(), &[&bytes[..], value].concat(), b"PX", ttl_ms.as_bytes()]) == b"+OK\r\n"
        });
        self.history.note(Event::Forged { keys: keys.clone() });
        keys
    }

    /// Removes keys.
    pub(super) fn remove(&self, keys: &[String]) {
        for key in keys {
            let _ = self.ask(&[b"DEL", key.as_bytes()]);
        }
    }

    /// Asks as a client of its own.
    fn ask(&self, words: &[&[u8]]) -> Vec<u8> {
        let mut command = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            command.extend([format!("${}\r\n", word.len()).as_bytes(), word, b"\r\n"].concat());
        }
        self.with_server(|server| {
            let session = server.open();
            let answer = server.feed(session, &command);
            server.close(session);
            answer
        })
    }

    /// The keys that it has.
    pub(super) fn keys(&self) -> Vec<String> {
        let mut state = self.state.borrow_mut();
        state.read_clock();
        let session = state.server.open();
        let found = state.server.feed(session, b"KEYS *\r\n");
        state.server.close(session);
        let found = String::from_utf8_lossy(&found).into_owned();
        found.split("\r\n").filter(|word| word.contains(':') && !word.starts_with('-')).map(str::to_owned).collect()
    }
}

impl State {
    fn read_clock(&mut self) {
        let now_us = self.clock.unix_us(engine::now_us());
        self.server.set_time_us(now_us);
    }

    /// What the clock would show had nobody set it.
    fn steady_us(&self) -> u64 {
        Clock { ahead_us: 0, ..self.clock }.unix_us(engine::now_us())
    }
}

impl Listener for Node {
    fn open(&self, connection: ConnectionId) -> bool {
        let mut state = self.state.borrow_mut();
        let session = state.server.open();
        state.sessions.insert(connection, session);
        true
    }

    fn receive(&self, connection: ConnectionId, bytes: &[u8]) {
        let mut state = self.state.borrow_mut();
        if let Phase::Hung(waiting) = &mut state.phase {
            waiting.push((connection, bytes.to_vec()));
            return;
        }
        let Some(&session) = state.sessions.get(&connection) else { return };
        state.read_clock();
        let answer = state.server.feed(session, &self.plant.change(bytes));
        let writes = state.server.take_writes();
        let (steady_us, server, branch) = (state.steady_us(), self.number, state.branch);
        drop(state);
        self.forward(writes);
        if answer.windows(OVERRUN.len()).any(|words| words == OVERRUN.as_bytes()) {
            self.history.note(Event::Overrun { server });
        }
        for deed in history::deeds(bytes, &answer) {
            self.history.note(Event::Done { server, branch, steady_us, deed });
        }
        if !answer.is_empty() {
            engine::after(SERVICE_US, move || net::reply(connection, answer));
        }
    }

    fn close(&self, connection: ConnectionId) {
        let mut state = self.state.borrow_mut();
        if let Some(session) = state.sessions.remove(&connection) {
            state.server.close(session);
        }
    }
}

/// The text in an answer, if it is one.
fn text(answer: &[u8]) -> Option<&[u8]> {
    let begin = answer.iter().position(|byte| *byte == b'\n')? + 1;
    answer.strip_prefix(b"$").and(answer.get(begin..)?.strip_suffix(b"\r\n"))
}

/// Whether a server reaches another one, and both answer.
pub(super) fn reaches(one: &Node, other: &Node) -> bool {
    one.is_running() && other.is_running() && !net::link(one.party(), other.party()).is_silent
}

/// The host of a server.
pub(super) fn host(number: u32) -> String {
    format!("redis-{number}")
}
