//! A Redis server for a measurement.

use std::cell::RefCell;
use std::env;
use std::ffi::OsStr;
use std::net::TcpListener;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue, Value};
use tempfile::TempDir;

const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Nodes of a cluster take another port, which is 10,000 higher.
const NODE_PORTS: Range<u16> = 10_000..20_000;

/// A server process on a free port, which keeps everything in memory. It is killed when dropped.
pub(crate) struct Server {
    _process: Process,
    port: u16,
    connection: RefCell<Connection>,
    _folder: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::launch(Command::new(binary()), &[])
    }

    /// Starts a server that knows the commands of a module.
    pub(crate) fn with_module(module: &Path) -> Self {
        let module = module.canonicalize().unwrap_or_else(|error| panic!("no module {}: {error}", module.display()));
        Self::launch(Command::new(binary()), &["--loadmodule".as_ref(), module.as_os_str()])
    }

    /// Starts a node that is not part of any cluster yet.
    pub(crate) fn node(options: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command.args(["--cluster-enabled", "yes"]).args(options);
        Self::launch_on(free_port_in(NODE_PORTS), command, &[], new_folder())
    }

    /// Runs a command that starts a server, with more of the server's options.
    pub(crate) fn launch(command: Command, options: &[&OsStr]) -> Self {
        Self::launch_in(command, options, new_folder())
    }

    /// Runs it in that folder.
    pub(crate) fn launch_in(command: Command, options: &[&OsStr], folder: TempDir) -> Self {
        Self::launch_on(free_port(), command, options, folder)
    }

    fn launch_on(port: u16, mut command: Command, options: &[&OsStr], folder: TempDir) -> Self {
        let child = command
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()])
            .args(options)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("cannot run {command:?}: {error}; `cargo xtask servers` finds or installs a server")
            });
        let process = Process(child);
        Self { connection: RefCell::new(connect(port)), _process: process, port, _folder: folder }
    }

    pub(crate) fn url(&self) -> String {
        url(self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether it is a replica that has everything of its primary.
    pub(crate) fn follows(&self) -> bool {
        self.ask::<String>(&["INFO", "replication"]).contains("master_link_status:up")
    }

    /// Returns whether it has become a primary. Each check uses a new connection: sentinels close all connections of a
    /// server that they promote.
    pub(crate) fn is_primary(&self) -> bool {
        let asked = redis::Client::open(self.url()).and_then(|client| client.get_connection());
        let info =
            asked.and_then(|mut connection| redis::cmd("INFO").arg("replication").query::<String>(&mut connection));
        info.is_ok_and(|info| info.contains("role:master"))
    }

    /// Returns the microseconds of processor time that the server has taken since it began.
    pub(crate) fn processor_us(&self) -> f64 {
        let info: String = self.ask(&["INFO", "cpu"]);
        let seconds = |name| field(&info, name, '\r').and_then(|text| text.parse::<f64>().ok()).expect("a known field");
        (seconds("used_cpu_sys:") + seconds("used_cpu_user:")) * 1e6
    }

    pub(crate) fn version(&self) -> String {
        format!("Redis {}", self.redis_version())
    }

    /// Returns the first two numbers of the version of Redis that it is compatible with.
    pub(crate) fn release(&self) -> (u64, u64) {
        let version = self.redis_version();
        let mut numbers = version.split('.').map(|number| number.parse().expect("a number"));
        (numbers.next().expect("a number"), numbers.next().expect("a number"))
    }

    fn redis_version(&self) -> String {
        let info: String = self.ask(&["INFO", "server"]);
        field(&info, "redis_version:", '\r').expect("a server tells its version").to_owned()
    }

    /// Sends one command and returns its answer.
    pub(crate) fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| _ = command.arg(word));
        command.query(&mut *self.connection.borrow_mut()).expect("the server knows the command")
    }

    /// Forgets all keys.
    pub(crate) fn clear(&self) {
        self.ask::<()>(&["FLUSHALL"]);
    }

    /// Resets what [`script_us`](Self::script_us) returns.
    pub(crate) fn forget_statistics(&self) {
        self.ask::<()>(&["CONFIG", "RESETSTAT"]);
    }

    /// Returns how many commands the server received, except those that ask for statistics.
    pub(crate) fn commands(&self) -> f64 {
        let info: String = self.ask(&["INFO", "commandstats"]);
        let counted =
            info.lines().filter(|line| !line.starts_with("cmdstat_config") && !line.starts_with("cmdstat_info"));
        counted.filter_map(|line| field(line, ":calls=", ',')?.parse::<f64>().ok()).sum()
    }

    /// Returns how many calls of scripts the server received.
    pub(crate) fn scripts(&self) -> f64 {
        let info: String = self.ask(&["INFO", "commandstats"]);
        let calls = info.lines().filter(|line| line.starts_with("cmdstat_eval"));
        calls.filter_map(|line| field(line, ":calls=", ',')?.parse::<f64>().ok()).sum()
    }

    /// Returns the microseconds of all script calls.
    pub(crate) fn script_us(&self) -> f64 {
        let info: String = self.ask(&["INFO", "commandstats"]);
        let line = info.lines().find(|line| line.starts_with("cmdstat_evalsha:")).expect("scripts were called");
        field(line, ",usec=", ',').expect("a known field").parse().expect("a number")
    }

    /// Logs all commands, with the time that each takes.
    pub(crate) fn log_all_commands(&self) {
        self.ask::<()>(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
        self.ask::<()>(&["CONFIG", "SET", "slowlog-max-len", "100000"]);
    }

    pub(crate) fn forget_logged_commands(&self) {
        self.ask::<()>(&["SLOWLOG", "RESET"]);
    }

    /// Returns the calls of scripts in that log: how many keys each has, and how many microseconds it took.
    pub(crate) fn logged_scripts(&self) -> Vec<(usize, f64)> {
        type Entry = (u64, u64, u32, Vec<Vec<u8>>, Value, Value);
        let log: Vec<Entry> = self.ask(&["SLOWLOG", "GET", "-1"]);
        let scripts = log.iter().filter(|entry| entry.3.first().is_some_and(|name| name.starts_with(b"EVAL")));
        scripts.map(|entry| (keys(&entry.3).expect("a number of keys"), entry.2.into())).collect()
    }

    /// Returns the server's time, in microseconds since 1970.
    pub(crate) fn now_us(&self) -> u64 {
        let [seconds, micros]: [u64; 2] = self.ask(&["TIME"]);
        seconds * 1_000_000 + micros
    }

    /// Sets the value of a key, and keeps its time to live.
    pub(crate) fn set(&self, key: &str, value: &[u8]) {
        let mut command = redis::cmd("SET");
        command.arg(key).arg(value).arg("KEEPTTL");
        command.query::<()>(&mut *self.connection.borrow_mut()).expect("the server stores it");
    }
}

/// The server to measure on.
pub(crate) fn binary() -> String {
    env::var("TALLYGATE_TEST_SERVER").unwrap_or_else(|_| "redis-server".to_owned())
}

/// Kills the process when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}/")
}

/// Connects as soon as the server answers.
fn connect(port: u16) -> Connection {
    let client = redis::Client::open(url(port)).expect("a url");
    let started = Instant::now();
    loop {
        match client.get_connection_with_timeout(START_TIMEOUT) {
            Ok(connection) => return connection,
            Err(error) => assert!(started.elapsed() < START_TIMEOUT, "no answer on port {port}: {error}"),
        }
        sleep(Duration::from_millis(2));
    }
}

/// Returns the value of a field.
fn field<'a>(text: &'a str, name: &str, end: char) -> Option<&'a str> {
    text.split_once(name)?.1.split(end).next()
}

/// Returns how many keys a call of a script has.
fn keys(words: &[Vec<u8>]) -> Option<usize> {
    str::from_utf8(words.get(2)?).ok()?.parse().ok()
}

/// Waits until that holds.
pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < START_TIMEOUT, "the servers do not get there");
        sleep(Duration::from_millis(1));
    }
}

fn new_folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

fn free_port_in(range: Range<u16>) -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(|| fastrand::u16(range.clone())).find(is_free).expect("a free port")
}
