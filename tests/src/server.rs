//! A real Redis server of its own for each test.

use std::env;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue};
use rustix::process::{Pid, Signal, kill_process};
use tallygate::{Limiter, LimiterBuilder};
use tempfile::TempDir;

/// Names the server binary to test against; without it, `redis-server` of the `PATH`.
pub const BINARY_VARIABLE: &str = "TALLYGATE_TEST_SERVER";

/// Below the range from which systems take the ports of outgoing connections.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
const START_TIMEOUT: Duration = Duration::from_secs(20);

static BINARY: LazyLock<String> = LazyLock::new(|| env::var(BINARY_VARIABLE).unwrap_or_else(|_| "redis-server".into()));

/// Redis 7 wants `DEBUG` to be asked for; Redis 6 does not know the question.
static DEBUG_OPTION: LazyLock<&'static [&'static str]> = LazyLock::new(|| {
    let output = Command::new(&*BINARY).arg("--version").output();
    let output = output.unwrap_or_else(|error| panic!("cannot run `{}`: {error}; {REMEDY}", *BINARY));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let major = text.split_once("v=").and_then(|(_, version)| version.split('.').next()?.parse::<u32>().ok());
    let major = major.unwrap_or_else(|| panic!("`{} --version` tells no version: {text}", *BINARY));
    if major >= 7 { &["--enable-debug-command", "yes"] } else { &[] }
});

const REMEDY: &str = "run `cargo xtask test`, or name a server binary in TALLYGATE_TEST_SERVER";

/// A server process on a free port of 127.0.0.1, in a temporary folder. It is killed when dropped.
pub struct Server {
    process: Process,
    port: u16,
    options: Vec<String>,
    folder: TempDir,
}

/// Kills the process when dropped, so that no path out of a test leaves one behind.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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
        let options: Vec<_> = options.iter().map(|&option| option.to_owned()).collect();
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Another process may be faster to take a free port, but not each time.
        let started = (0..10).find_map(|_| {
            let port = free_port();
            launch(port, &options, &folder).map(|process| (process, port))
        });
        let (process, port) = started.unwrap_or_else(|| panic!("`{}` ends at once, with {options:?}", *BINARY));
        Self { process, port, options, folder }
    }

    /// Starts a server on a port that was found to be [free](free_port).
    #[must_use]
    pub fn start_on(port: u16) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let process = launch(port, &[], &folder).expect("the port is still free");
        Self { process, port, options: Vec::new(), folder }
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL to connect to, without any password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns a limiter that keeps its tallies here, and waits for a busy machine.
    pub async fn limiter(&self) -> Limiter {
        patient().connect(&self.url()).await.expect("the server answers")
    }

    /// Returns a connection for the test's own commands.
    #[must_use]
    pub fn connection(&self) -> Connection {
        connect(&self.url()).expect("the server answers")
    }

    /// Sends one command, written as in `redis-cli`, and returns its answer.
    #[allow(clippy::must_use_candidate, reason = "some commands are sent for what they do")]
    pub fn ask<T: FromRedisValue>(&self, command: &str) -> T {
        ask(&mut self.connection(), command)
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
        self.process.0.kill().expect("the process is ours");
        self.process.0.wait().expect("the process ends");
    }

    /// Starts the server again, empty, on the same port.
    pub fn restart(&mut self) {
        self.process = launch(self.port, &self.options, &self.folder).expect("the port is still free");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.0), signal).expect("the process is ours");
    }
}

/// Returns a free port.
#[must_use]
pub fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(PORTS);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Starts a limiter that waits for a busy machine: nothing but a test of the deadline is about the deadline. It caches
/// no denials: these tests are about what the server decides, and some of them set its clock.
pub fn patient() -> LimiterBuilder {
    Limiter::builder().deadline(Duration::from_secs(30)).denial_cache(Duration::ZERO)
}

/// Sends one command, written as in `redis-cli`, and returns its answer.
pub fn ask<T: FromRedisValue>(connection: &mut Connection, command: &str) -> T {
    let mut words = command.split_whitespace();
    let mut asked = redis::cmd(words.next().expect("a command"));
    words.for_each(|word| _ = asked.arg(word));
    asked.query(connection).unwrap_or_else(|error| panic!("{command}: {error}"))
}

/// Returns the server's own time in microseconds since 1970.
pub fn now_us(connection: &mut Connection) -> u64 {
    let (seconds, micros): (u64, u64) = ask(connection, "TIME");
    seconds * 1_000_000 + micros
}

/// Returns the process once it answers, or `None` when it ended instead.
fn launch(port: u16, options: &[String], folder: &TempDir) -> Option<Process> {
    let child = Command::new(&*BINARY)
        .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning"])
        .args(["--port", &port.to_string()])
        .args(*DEBUG_OPTION)
        .args(options)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run `{}`: {error}; {REMEDY}", *BINARY));
    let mut process = Process(child);
    let started = Instant::now();
    while started.elapsed() < START_TIMEOUT {
        if process.0.try_wait().expect("the process is ours").is_some() {
            return None;
        }
        if answers(port, process.0.id(), options) {
            return Some(process);
        }
        sleep(Duration::from_millis(2));
    }
    panic!("`{}` does not answer on port {port} after {START_TIMEOUT:?}", *BINARY);
}

/// Whether that very process answers on the port, and not another test's.
fn answers(port: u16, pid: u32, options: &[String]) -> bool {
    let password = options.iter().skip_while(|option| *option != "--requirepass").nth(1);
    let login = password.map(|password| format!(":{password}@")).unwrap_or_default();
    let info = connect(&format!("redis://{login}127.0.0.1:{port}/"))
        .and_then(|mut connection| redis::cmd("INFO").arg("server").query::<String>(&mut connection));
    info.is_ok_and(|info| info.lines().any(|line| line == format!("process_id:{pid}")))
}

fn connect(url: &str) -> redis::RedisResult<Connection> {
    redis::Client::open(url)?.get_connection_with_timeout(Duration::from_secs(5))
}

/// Returns the key of a subject's tally, whatever its layout.
///
/// # Panics
///
/// There is none, or more than one.
#[must_use]
pub fn key_of(connection: &mut Connection, policy: &str, subject: &str) -> String {
    let mut keys: Vec<String> = ask(connection, &format!("KEYS tallygate:{policy}/*:{subject}"));
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys.remove(0)
}
