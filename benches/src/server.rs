//! A Redis server of the measurement's own.

use std::cell::RefCell;
use std::env;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue};
use tempfile::TempDir;

const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A server process on a free port, which keeps everything in memory. It is killed when dropped.
pub(crate) struct Server {
    _process: Process,
    port: u16,
    connection: RefCell<Connection>,
    _folder: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        let binary = env::var("TALLYGATE_TEST_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = free_port();
        let child = Command::new(&binary)
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("cannot run `{binary}`: {error}; `cargo xtask servers` finds or installs it")
            });
        let process = Process(child);
        Self { connection: RefCell::new(connect(port)), _process: process, port, _folder: folder }
    }

    pub(crate) fn url(&self) -> String {
        url(self.port)
    }

    pub(crate) fn version(&self) -> String {
        let info: String = self.ask(&["INFO", "server"]);
        format!("Redis {}", field(&info, "redis_version:", '\r').expect("a server tells its version"))
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

    /// Starts to count anew what [`script_us`](Self::script_us) tells.
    pub(crate) fn forget_statistics(&self) {
        self.ask::<()>(&["CONFIG", "RESETSTAT"]);
    }

    /// Returns how many commands the server was sent, but for those that ask for statistics.
    pub(crate) fn commands(&self) -> f64 {
        let info: String = self.ask(&["INFO", "commandstats"]);
        let counted =
            info.lines().filter(|line| !line.starts_with("cmdstat_config") && !line.starts_with("cmdstat_info"));
        counted.filter_map(|line| field(line, ":calls=", ',')?.parse::<f64>().ok()).sum()
    }

    /// Returns the microseconds that calls of scripts took the server in all.
    pub(crate) fn script_us(&self) -> f64 {
        let info: String = self.ask(&["INFO", "commandstats"]);
        let line = info.lines().find(|line| line.starts_with("cmdstat_evalsha:")).expect("scripts were called");
        field(line, ",usec=", ',').expect("a known field").parse().expect("a number")
    }
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

/// Returns what stands between a field's name and the end of its value.
fn field<'a>(text: &'a str, name: &str, end: char) -> Option<&'a str> {
    text.split_once(name)?.1.split(end).next()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}
