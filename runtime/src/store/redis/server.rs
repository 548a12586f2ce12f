//! A server: its connection, its scripts, and what is known of its clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use ::redis::{Cmd, FromRedisValue};

use crate::call::{Call, TallyKey};
use crate::error::BackendError;
use crate::store::redis::connection::attempt::{ConnectTarget, ServerLocation, longest_attempt};
use crate::store::redis::connection::connect::Connector;
use crate::store::redis::connection::fault::{is_cross_slot, names_several_slots};
use crate::store::redis::connection::greeting::Mode;
use crate::store::redis::script::run::{NodeRole, Script, ScriptCall, ScriptKeys, run_each};
use crate::store::redis::script::wire::{self, Reply};
use crate::store::redis::script::{ScriptId, ScriptQuestion, Scripts};
use crate::store::redis::stored::{ping_key, rehearsal_key};
use crate::store::redis_types::Setup;
use crate::system::Instant;

impl Setup {
    /// Returns a command that removes a key that does not exist, so nothing changes. A replica refuses it, and so does
    /// a server that may not write. A user who may not write asks for its length.
    pub(super) fn probe(&self, key: &str) -> Cmd {
        let mut probe = ::redis::cmd(if self.looks_only { "STRLEN" } else { "UNLINK" });
        probe.arg(key);
        probe
    }
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) connector: Connector,
    pub(super) setup: Setup,
    pub(super) scripts: Arc<Scripts>,
    /// Whether one call of a script may ask about one slot only. Nodes of a cluster and some proxies require it.
    is_asked_by_slot: AtomicBool,
    /// How many microseconds the server's clock was ahead of this process's at the last answer.
    ahead_us: AtomicI64,
}

impl Server {
    pub(super) fn new(location: ServerLocation, mode: Mode, setup: &Setup) -> Self {
        let probe = setup.probe(&ping_key(&setup.prefix));
        let target = ConnectTarget { location, mode, probe, longest: longest_attempt(setup.deadline) };
        Self {
            connector: Connector::new(target, setup.deadline, setup.driver.clone()),
            setup: setup.clone(),
            scripts: Scripts::by(&setup.clock),
            is_asked_by_slot: AtomicBool::new(mode == Mode::Cluster),
            ahead_us: AtomicI64::new(0),
        }
    }

    pub(super) async fn reach(&self, deadline: Duration) -> Result<(), BackendError> {
        self.connector.connect().await?;
        self.ping(Instant::now() + deadline).await
    }

    /// Finds out whether the server can decide calls.
    pub(super) async fn ping(&self, until: Instant) -> Result<(), BackendError> {
        self.rehearse(&rehearsal_key(&self.setup.prefix), until, NodeRole::Owner).await
    }

    /// Sends several requests in one round trip. Each is decided on its own, and has an answer of its own.
    pub(super) async fn ask_each(&self, requests: &[Call<'_>], until: Instant) -> Vec<Result<Reply, BackendError>> {
        let mut replies = self.ask_together(requests, until).await;
        let is_undecided = |reply: &Result<Reply, BackendError>| matches!(reply, Ok(Reply::AskAgain));
        let undecided = requests.iter().zip(&replies).filter(|(_, reply)| is_undecided(reply));
        let undecided: Vec<_> = undecided.map(|(request, _)| *request).collect();
        if undecided.len() > 1 {
            // As it is beside a paused call. They share one more call. Boxed, as this is rare.
            let again = Box::pin(self.ask_together(&undecided, until)).await;
            let replaced = replies.iter_mut().filter(|reply| is_undecided(reply));
            replaced.zip(again).for_each(|(reply, again)| *reply = again);
        }
        replies
    }

    async fn ask_together(&self, requests: &[Call<'_>], until: Instant) -> Vec<Result<Reply, BackendError>> {
        if !self.is_asked_by_slot() {
            match self.ask(requests, until, NodeRole::Owner).await {
                Ok(replies) => return replies.into_iter().map(Ok).collect(),
                // Nothing was executed.
                Err(error) if is_cross_slot(&error) => {}
                Err(error) => return vec![Err(error); requests.len()],
            }
        }
        // Boxed because it is large.
        Box::pin(self.ask_by_slot(requests, until)).await
    }

    pub(super) fn is_asked_by_slot(&self) -> bool {
        self.is_asked_by_slot.load(Ordering::Relaxed)
    }

    /// Sends several requests in one call. Each is decided on its own, in their order.
    pub(super) async fn ask(
        &self,
        requests: &[Call<'_>],
        until: Instant,
        role: NodeRole,
    ) -> Result<Vec<Reply>, BackendError> {
        let question = ScriptQuestion::about(requests, &self.scripts, self.now_us());
        let keys = ScriptKeys::Requests(&self.setup.prefix, requests);
        let reply = self.run(question.script, keys, &question.arguments, until, role).await?;
        self.read(question.id, &reply, requests)
    }

    pub(super) fn keys<'a>(&self, request: Call<'a>) -> impl Iterator<Item = TallyKey> + Clone + use<'a, '_> {
        request.keys(&self.setup.prefix)
    }

    pub(super) fn pause_key(&self, request: Call<'_>) -> Option<TallyKey> {
        request.pause().map(|id| id.key(&self.setup.prefix))
    }

    pub(super) fn read(&self, id: ScriptId, answer: &[u8], requests: &[Call<'_>]) -> Result<Vec<Reply>, BackendError> {
        let (now_us, replies) = id.read(answer, requests)?;
        self.learn_time_us(now_us);
        Ok(replies)
    }

    /// Makes several calls in one round trip. Each has an answer of its own.
    pub(super) async fn call_each(
        &self,
        calls: &[ScriptCall<'_>],
        until: Instant,
    ) -> Result<Vec<Result<Vec<u8>, BackendError>>, BackendError> {
        self.connector.ask_each(until, async |connection| run_each(connection, calls, NodeRole::Owner).await).await
    }

    pub(super) async fn run(
        &self,
        script: &Script,
        keys: ScriptKeys<'_>,
        arguments: &[Vec<u8>],
        until: Instant,
        role: NodeRole,
    ) -> Result<Vec<u8>, BackendError> {
        let ran = async |connection: &mut _| {
            let answer = script.run(connection, role, keys, arguments).await;
            if answer.as_ref().is_err_and(names_several_slots) {
                self.is_asked_by_slot.store(true, Ordering::Relaxed);
            }
            answer
        };
        self.connector.ask(until, ran).await
    }

    /// Sends a command that calls no script.
    pub(super) async fn query<T: FromRedisValue>(
        &self,
        command: &Cmd,
        until: Instant,
        role: NodeRole,
    ) -> Result<T, BackendError> {
        self.connector.ask(until, async |connection| role.send_one(connection, command).await).await
    }

    pub(super) async fn refresh_time(&self, until: Instant) -> Result<(), BackendError> {
        // The clock of a test replaces that of the server.
        if self.setup.clock.manual_us().is_some() {
            return Ok(());
        }
        let (seconds, micros): (u64, u64) = self.query(&::redis::cmd("TIME"), until, NodeRole::Owner).await?;
        self.note_time(seconds.saturating_mul(1_000_000).saturating_add(micros));
        Ok(())
    }

    /// The server's time, estimated by this process.
    pub(super) fn now_us(&self) -> u64 {
        self.setup.clock.now_us().saturating_add_signed(self.ahead_us.load(Ordering::Relaxed))
    }

    pub(super) fn learn_time(&self, values: &[i64]) {
        if let Some(server_us) = wire::server_us(values) {
            self.learn_time_us(server_us);
        }
    }

    fn learn_time_us(&self, server_us: u64) {
        // With a manual clock, the server decides by it, so it is never ahead.
        if self.setup.clock.manual_us().is_none() {
            self.note_time(server_us);
        }
    }

    fn note_time(&self, server_us: u64) {
        let ahead_us = server_us.cast_signed().wrapping_sub(self.setup.clock.now_us().cast_signed());
        self.ahead_us.store(ahead_us, Ordering::Relaxed);
    }
}
