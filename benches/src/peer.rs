//! The peers in Redis: scripts and a module, called through the same client.

pub(crate) mod general;
pub(crate) mod keyed;
pub(crate) mod rust;

use std::sync::atomic::{AtomicU64, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, IntoConnectionInfo, ProtocolVersion};
use tallygate::{Policy, Rule};

use crate::load::Caller;
use crate::server::Server;

/// A script that the server knows, and a connection to call it on.
#[derive(Clone)]
struct Script {
    sha1: String,
    connection: MultiplexedConnection,
}

impl Script {
    async fn load(server: &Server, text: &str) -> Self {
        Self { sha1: server.ask(&["SCRIPT", "LOAD", text]), connection: connect(server).await }
    }

    fn command(&self, key: usize) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.sha1).arg(1).arg(key_of(key));
        command
    }

    /// Runs the script; it returns 0 for an admitted call.
    async fn run(&self, command: &Cmd) -> i64 {
        command.query_async(&mut self.connection.clone()).await.expect("the server answers")
    }
}

/// Connects as Tallygate does, but without any deadline.
async fn connect(server: &Server) -> MultiplexedConnection {
    let info = server.url().into_connection_info().expect("a url");
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let client = redis::Client::open(info.set_redis_settings(settings)).expect("a url");
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    client.get_multiplexed_async_connection_with_config(&config).await.expect("the server answers")
}

fn key_of(subject: usize) -> String {
    format!("peers:bench:{subject}")
}

/// Several sliding windows on one sorted set of hits.
#[derive(Clone)]
pub(crate) struct SortedSet {
    script: Script,
    /// Count and window of each rule.
    rules: Vec<[u64; 2]>,
}

impl SortedSet {
    pub(crate) async fn load(server: &Server, policy: &Policy) -> Self {
        let script = Script::load(server, include_str!("peer/sorted_set.lua")).await;
        Self { script, rules: policy.rules().iter().map(|rule| [rule.count(), window_us(rule)]).collect() }
    }
}

impl Caller for SortedSet {
    async fn call(&self, subject: usize) -> bool {
        static MEMBER: AtomicU64 = AtomicU64::new(0);
        let mut command = self.script.command(subject);
        command.arg(MEMBER.fetch_add(1, Ordering::Relaxed));
        command.arg(self.rules.iter().map(|[_, window]| window).max());
        self.rules.iter().for_each(|rule| _ = command.arg(rule));
        self.script.run(&command).await == 0
    }
}

/// One rule as a token bucket that is stored as one time.
#[derive(Clone)]
pub(crate) struct Gcra {
    script: Script,
    count: u64,
    window_us: u64,
}

impl Gcra {
    pub(crate) async fn load(server: &Server, policy: &Policy) -> Self {
        let [rule] = policy.rules() else { panic!("it knows one rule") };
        let script = Script::load(server, include_str!("peer/gcra.lua")).await;
        Self { script, count: rule.count(), window_us: window_us(rule) }
    }
}

impl Caller for Gcra {
    async fn call(&self, subject: usize) -> bool {
        let mut command = self.script.command(subject);
        command.arg(self.window_us / self.count).arg(self.window_us);
        self.script.run(&command).await == 0
    }
}

/// One rule as a counter that expires: what is written most often.
#[derive(Clone)]
pub(crate) struct FixedWindow {
    script: Script,
    count: u64,
    window_us: u64,
}

impl FixedWindow {
    pub(crate) async fn load(server: &Server, policy: &Policy) -> Self {
        let [rule] = policy.rules() else { panic!("it knows one rule") };
        let script = Script::load(server, include_str!("peer/fixed_window.lua")).await;
        Self { script, count: rule.count(), window_us: window_us(rule) }
    }
}

impl Caller for FixedWindow {
    async fn call(&self, subject: usize) -> bool {
        let mut command = self.script.command(subject);
        command.arg(self.count).arg(self.window_us / 1_000);
        self.script.run(&command).await == 0
    }
}

/// A counter of a fixed window that one trip reads and the next one raises, unless it is full.
#[derive(Clone)]
pub(crate) struct InTwoTrips {
    counter: FixedWindow,
    limit: u64,
}

impl InTwoTrips {
    pub(crate) async fn load(server: &Server, policy: &Policy) -> Self {
        let counter = FixedWindow::load(server, policy).await;
        Self { limit: counter.count, counter: FixedWindow { count: u64::MAX, ..counter } }
    }
}

impl Caller for InTwoTrips {
    async fn call(&self, subject: usize) -> bool {
        let mut read = redis::cmd("GET");
        read.arg(key_of(subject));
        let mut connection = self.counter.script.connection.clone();
        let counted: Option<u64> = read.query_async(&mut connection).await.expect("the server answers");
        counted.unwrap_or_default() < self.limit && self.counter.call(subject).await
    }
}

/// A script that does nothing: the cost of a call before any decision.
#[derive(Clone)]
pub(crate) struct Empty(Script);

impl Empty {
    pub(crate) async fn load(server: &Server) -> Self {
        Self(Script::load(server, "return 1").await)
    }
}

impl Caller for Empty {
    async fn call(&self, subject: usize) -> bool {
        self.0.run(&self.0.command(subject)).await == 1
    }
}

/// One rule by the command of the native module redis-cell: a token bucket that is stored as one time.
#[derive(Clone)]
pub(crate) struct Cell {
    connection: MultiplexedConnection,
    count: u64,
    window_s: u64,
}

impl Cell {
    /// The server has the module. The rule has a window of whole seconds.
    pub(crate) async fn connect(server: &Server, count: u64, window_s: u64) -> Self {
        Self { connection: connect(server).await, count, window_s }
    }
}

impl Caller for Cell {
    async fn call(&self, subject: usize) -> bool {
        let mut command = redis::cmd("CL.THROTTLE");
        command.arg(key_of(subject)).arg(self.count).arg(self.count).arg(self.window_s);
        let [denied, ..]: [i64; 5] = command.query_async(&mut self.connection.clone()).await.expect("it answers");
        denied == 0
    }
}

fn window_us(rule: &Rule) -> u64 {
    let window = rule.per().expect("a sliding window");
    u64::try_from(window.as_micros()).expect("a validated window")
}
