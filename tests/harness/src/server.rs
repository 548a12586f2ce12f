//! A real Redis server of its own for each test.

use std::fs;
use std::net::TcpListener;
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use redis::{Connection, FromRedisValue, RedisResult, Value};
use rustix::process::{Signal, kill_process};
use tallygate::{Error, Limiter, LimiterBuilder, OnOutage};
use tempfile::TempDir;

use crate::launch::{Launch, Process};

/// Below the range from which systems take the ports of outgoing connections.
const PORTS: Range<u16> = 20_000..32_000;
/// A node of a cluster also takes the port that is [`BUS`] higher.
const NODE_PORTS: Range<u16> = 10_000..20_000;
const BUS: u16 = 10_000;

/// A server process on a free port of 127.0.0.1, in a temporary folder. It is killed when dropped.
pub struct Server {
    process: Process,
    port: u16,
    launch: Launch,
    folder: TempDir,
}

impl Server {
    /// Starts a server that keeps everything in memory.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more options, written as on its command line.
    #[must_use]
    pub fn start_with(options: &[&str]) -> Self {
        Self::start_in(new_folder(), PORTS, Launch::in_memory(options))
    }

    /// Starts a server on a port that was found to be [free](free_port).
    #[must_use]
    pub fn start_on(port: u16) -> Self {
        let (folder, launch) = (new_folder(), Launch::in_memory(&[]));
        let process = launch.start(port, folder.path()).expect("the port is still free");
        Self { process, port, launch, folder }
    }

    /// Starts a server with disabled scripts, or returns `None` if this server always has them, as before Valkey 9.1.
    #[must_use]
    pub fn start_without_scripts() -> Option<Self> {
        let modules = Self::start().try_ask::<Value>("MODULE LIST").ok()?;
        let has_module = format!("{modules:?}").contains("lua");
        has_module.then(|| {
            let server = Self::start_with(&["--enable-module-command", "yes"]);
            server.ask::<()>("MODULE UNLOAD lua");
            server
        })
    }

    /// Starts a server that has as many clients as it may have. They are returned, too.
    #[must_use]
    pub fn start_full() -> (Self, [Connection; 2]) {
        let server = Self::start();
        let mut clients = [server.connection(), server.connection()];
        // The bound comes last: the client that saw the server start may still be counted.
        ask::<()>(&mut clients[0], "CONFIG SET maxclients 2");
        (server, clients)
    }

    /// Starts a server with variables of the environment.
    #[must_use]
    pub fn start_in_environment(environment: Vec<(&'static str, String)>) -> Self {
        Self::start_in(new_folder(), PORTS, Launch::in_memory(&[]).with_environment(environment))
    }

    /// Starts a node that is not part of any cluster yet.
    #[must_use]
    pub fn start_node(options: &[&str]) -> Self {
        let cluster = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
        Self::start_in(folder_in_memory(), NODE_PORTS, Launch::in_memory(&[&cluster, options].concat()))
    }

    /// Starts a sentinel with the lines of a configuration file, and more options, written as on its command line.
    #[must_use]
    pub fn start_sentinel(lines: &[String], options: &[&str]) -> Self {
        const FILE: &str = "sentinel.conf";
        let folder = new_folder();
        fs::write(folder.path().join(FILE), lines.join("\n")).expect("the folder can be written to");
        let arguments = [&[FILE, "--sentinel", "--bind", "127.0.0.1", "--loglevel", "warning"], options].concat();
        Self::start_in(folder, PORTS, Launch::new(&arguments))
    }

    fn start_in(folder: TempDir, ports: Range<u16>, launch: Launch) -> Self {
        // Another process may be faster to take a free port, but not each time.
        let started = (0..10).find_map(|_| {
            let port = free_port_in(ports.clone());
            launch.start(port, folder.path()).map(|process| (process, port))
        });
        let (process, port) = started.unwrap_or_else(|| panic!("it ends at once: {launch}"));
        Self { process, port, launch, folder }
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder in which the server runs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the URL to connect to, without any password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns a limiter that keeps its tallies here, and waits for a busy machine.
    pub async fn limiter(&self) -> Limiter {
        connected(&patient(), &self.url()).await
    }

    /// Returns a connection for the test's own commands.
    #[must_use]
    pub fn connection(&self) -> Connection {
        self.launch.log_in(self.port).expect("the server answers")
    }

    /// Sends one command, written as in `redis-cli`, and returns its answer.
    #[allow(clippy::must_use_candidate, reason = "some commands are sent for what they do")]
    pub fn ask<T: FromRedisValue>(&self, command: &str) -> T {
        ask(&mut self.connection(), command)
    }

    /// Sends one command, as [`ask`](Self::ask) does.
    ///
    /// # Errors
    ///
    /// The server refuses the command or the connection.
    pub fn try_ask<T: FromRedisValue>(&self, command: &str) -> RedisResult<T> {
        try_ask(&mut self.launch.log_in(self.port)?, command)
    }

    /// Returns how many calls of a command the server has executed.
    #[must_use]
    pub fn calls(&self, command: &str) -> usize {
        let stats: String = self.ask("INFO commandstats");
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or(0)
    }

    /// Stops the process where it stands: connections stay open, without answers.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets the process go on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills the process, as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts the server again, empty, on the same port. A node of a cluster is still part of it.
    pub fn restart(&mut self) {
        self.process = self.launch.start(self.port, self.folder.path()).expect("the port is still free");
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.process.id(), signal).expect("the process is ours");
    }
}

/// Returns a free port.
#[must_use]
pub fn free_port() -> u16 {
    free_port_in(PORTS)
}

/// Takes each port once, so that nobody answers for a server that a test has killed.
fn free_port_in(ports: Range<u16>) -> u16 {
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| AtomicU16::new(fastrand::u16(0..BUS)));
    let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let has_bus = ports == NODE_PORTS;
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = ports.start + next % (ports.end - ports.start);
        if is_free(port) && (!has_bus || is_free(port + BUS)) {
            return port;
        }
    }
}

/// The errors of servers and sentinels that take too long.
const LATE: [&str; 3] = ["no connection within", "no answer within", "nobody says where"];

/// Starts a limiter that waits for a busy machine: nothing but a test of the deadline is about the deadline. It caches
/// no denials: these tests are about what the server decides, and some of them set its clock. It lists no policies: many
/// tests count keys and commands.
pub fn patient() -> LimiterBuilder {
    Limiter::builder().deadline(Duration::from_secs(30)).denial_cache(Duration::ZERO).registry(false)
}

/// Connects to servers that are there. On a busy machine, an attempt may take longer than the library allows: then there is
/// another one.
pub async fn connected(builder: &LimiterBuilder, url: &str) -> Limiter {
    in_time(builder, url).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns why no connection can be made to servers that are there. A busy machine is not the reason.
pub async fn refused(builder: &LimiterBuilder, url: &str) -> Error {
    in_time(builder, url).await.expect_err("no connection can be made")
}

async fn in_time(builder: &LimiterBuilder, url: &str) -> Result<Limiter, Error> {
    for _ in 0..30 {
        let connected = builder.clone().connect(url).await;
        let is_late = |error: &Error| LATE.iter().any(|late| error.to_string().contains(late));
        if !connected.as_ref().is_err_and(is_late) {
            return connected;
        }
    }
    panic!("nobody answers at {url}")
}

/// Returns a limiter whose server is away, so that this process decides.
pub fn away(set: impl FnOnce(LimiterBuilder) -> LimiterBuilder) -> Limiter {
    let builder = set(patient().on_outage(OnOutage::Local));
    // No server uses the first port.
    builder.connect_lazy("redis://127.0.0.1:1/").expect("the settings are sound")
}

/// Sends one command, written as in `redis-cli`, and returns its answer.
pub fn ask<T: FromRedisValue>(connection: &mut Connection, command: &str) -> T {
    try_ask(connection, command).unwrap_or_else(|error| panic!("{command}: {error}"))
}

fn try_ask<T: FromRedisValue>(connection: &mut Connection, command: &str) -> RedisResult<T> {
    let mut words = command.split_whitespace();
    let mut asked = redis::cmd(words.next().expect("a command"));
    words.for_each(|word| _ = asked.arg(word));
    asked.query(connection)
}

/// Returns the server's own time in microseconds since 1970.
pub fn now_us(connection: &mut Connection) -> u64 {
    let (seconds, micros): (u64, u64) = ask(connection, "TIME");
    seconds * 1_000_000 + micros
}

fn new_folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A node that votes does not answer until its state of the cluster is on the disk, and a disk may be slow.
fn folder_in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| new_folder())
}

/// Returns the keys of a subject's tallies, whatever their layout.
pub fn keys_of(connection: &mut Connection, policy: &str, subject: &str) -> Vec<String> {
    ask(connection, &format!("KEYS tallygate:{policy}/*:{subject}"))
}

/// Returns the key of a subject's tally, whatever its layout.
///
/// # Panics
///
/// There is none, or more than one.
#[must_use]
pub fn key_of(connection: &mut Connection, policy: &str, subject: &str) -> String {
    let mut keys = keys_of(connection, policy, subject);
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys.remove(0)
}
