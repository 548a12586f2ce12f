//! How a server process is started.

use std::env;
use std::fmt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Connection, RedisResult};
use rustix::process::Pid;

/// Names the server binary to test against; without it, `redis-server` of the `PATH`.
pub const BINARY_VARIABLE: &str = "TALLYGATE_TEST_SERVER";

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

/// Whether the server can encrypt connections. Those that cannot do not miss a certificate.
static HAS_TLS: LazyLock<bool> = LazyLock::new(|| {
    let output = Command::new(&*BINARY).args(["--port", "0", "--tls-port", "1"]).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run `{}`: {error}; {REMEDY}", *BINARY));
    String::from_utf8_lossy(&output.stdout).contains("tls-cert-file")
});

const REMEDY: &str = "run `cargo xtask test`, or name a server binary in TALLYGATE_TEST_SERVER";

/// What a server process is started with.
pub(crate) struct Launch {
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

/// A server process. It is killed when dropped, so that no path out of a test leaves one behind.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Process {
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    pub(crate) fn id(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Launch {
    /// A process with these arguments.
    pub(crate) fn new(arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { arguments, environment: Vec::new() }
    }

    /// A server that keeps everything in memory.
    pub(crate) fn in_memory(options: &[&str]) -> Self {
        let host = ["--bind", "127.0.0.1", "--loglevel", "warning"];
        let in_memory = ["--save", "", "--appendonly", "no"];
        // A replica need not wait for others.
        let at_once = ["--repl-diskless-sync-delay", "0"];
        Self::new(&[&host[..], &in_memory, &at_once, *DEBUG_OPTION, options].concat())
    }

    /// Sets variables of the environment.
    pub(crate) fn with_environment(self, environment: Vec<(&'static str, String)>) -> Self {
        Self { environment, ..self }
    }

    /// Returns the process once it answers, or `None` when it ended instead.
    pub(crate) fn start(&self, port: u16, folder: &Path) -> Option<Process> {
        let child = Command::new(&*BINARY)
            .args(&self.arguments)
            .args(["--port", &port.to_string()])
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(folder)
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
            if self.answers(port, process.0.id()) {
                return Some(process);
            }
            sleep(Duration::from_millis(2));
        }
        panic!("`{}` does not answer on port {port} after {START_TIMEOUT:?}", *BINARY);
    }

    /// Whether that very process answers on the port, and not another test's.
    fn answers(&self, port: u16, process: u32) -> bool {
        let info = self
            .log_in(port)
            .and_then(|mut connection| redis::cmd("INFO").arg("server").query::<String>(&mut connection));
        info.is_ok_and(|info| info.lines().any(|line| line == format!("process_id:{process}")))
    }

    /// Connects to the process on that port.
    pub(crate) fn log_in(&self, port: u16) -> RedisResult<Connection> {
        let password = self.arguments.iter().skip_while(|option| *option != "--requirepass").nth(1);
        let login = password.map(|password| format!(":{password}@")).unwrap_or_default();
        let client = redis::Client::open(format!("redis://{login}127.0.0.1:{port}/"))?;
        let connect = || client.get_connection_with_timeout(Duration::from_secs(5));
        // A signal ends a blocking read that has a timeout. Nothing was asked yet.
        let is_signal = |error: &redis::RedisError| error.is_io_error() && error.to_string().contains("Interrupted");
        connect().or_else(|error| if is_signal(&error) { connect() } else { Err(error) })
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}={value} ")?;
        }
        write!(f, "{} {}", *BINARY, self.arguments.join(" "))
    }
}

/// Whether the server under test was built with TLS.
#[must_use]
pub fn has_tls() -> bool {
    *HAS_TLS
}
