//! A client, as its server knows it.

use std::collections::BTreeSet;

use super::reply::{Protocol, Reply};
use super::request::Requests;
use super::user::DEFAULT_USER;

/// Names one client of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) u64);

/// What a server knows of a client.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) protocol: Protocol,
    pub(crate) user: String,
    pub(crate) has_logged_in: bool,
    pub(crate) name: Vec<u8>,
    pub(crate) database: usize,
    /// Whether the next command may use a slot that is on its way here.
    pub(crate) asks: bool,
    /// Whether a replica may answer.
    pub(crate) reads_replicas: bool,
    pub(crate) channels: BTreeSet<Vec<u8>>,
    pub(crate) requests: Requests,
    pub(crate) output: Vec<u8>,
    /// Whether the server hangs up once the client has the output.
    pub(crate) is_ending: bool,
}

impl Session {
    pub(crate) fn new(id: SessionId) -> Self {
        Self {
            id,
            protocol: Protocol::default(),
            user: DEFAULT_USER.to_owned(),
            has_logged_in: false,
            name: Vec::new(),
            database: 0,
            asks: false,
            reads_replicas: false,
            channels: BTreeSet::new(),
            requests: Requests::default(),
            output: Vec::new(),
            is_ending: false,
        }
    }

    /// Appends to what the client gets.
    pub(crate) fn send(&mut self, reply: &Reply) {
        reply.encode(self.protocol, &mut self.output);
    }

    /// Whether it may only send what has to do with channels.
    pub(crate) fn only_listens(&self) -> bool {
        self.protocol == Protocol::Resp2 && !self.channels.is_empty()
    }

    pub(crate) fn log_in(&mut self, user: &str) {
        user.clone_into(&mut self.user);
        self.has_logged_in = true;
    }
}
