//! A server that decides nothing, for answers that no real one can be made to give.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server on 127.0.0.1 that greets its clients, and answers whatever else they ask with one error. It ends when dropped.
pub struct Fake {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<Answers>,
    asked: Mutex<HashMap<String, usize>>,
    accepted: AtomicUsize,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

/// What the server says.
#[derive(Clone, Default)]
struct Answers {
    /// The error to a greeting, if it does not greet, like `OOM command not allowed`.
    greeting: Option<String>,
    /// To everything else, if it answers at all, as it is sent.
    others: Option<String>,
    /// To commands of these names, as it is sent.
    named: HashMap<String, String>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Fake {
    /// Starts a server that never answers.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::<Shared>::default();
        shared.answers.lock().expect("no panic under the lock").greeting = Some(String::new());
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Self { address, shared, listening }
    }

    /// Greets, and answers everything else with this error.
    pub fn answer_with(&self, error: &str) {
        self.reply_with(&line(error));
    }

    /// Greets, and admits every call that asks about one window: the answer is the entry of a log.
    pub fn admit(&self) {
        let entry = "\0".repeat(tallygate_lua::ENTRY_BYTES);
        self.reply_with(&format!("${}\r\n{entry}\r\n", entry.len()));
    }

    /// Greets, and answers everything else with these bytes.
    pub fn reply_with(&self, bytes: &str) {
        self.set(Answers { others: Some(bytes.to_owned()), ..Answers::default() });
    }

    /// Answers commands of that name, in upper case, with these bytes.
    pub fn reply_to(&self, command: &str, bytes: &str) {
        let mut answers = self.shared.answers.lock().expect("no panic under the lock");
        answers.named.insert(command.to_owned(), bytes.to_owned());
    }

    /// Returns how many commands of that name were sent.
    #[must_use]
    pub fn asked(&self, command: &str) -> usize {
        self.shared.asked.lock().expect("no panic under the lock").get(command).copied().unwrap_or_default()
    }

    /// Answers a greeting with this error.
    pub fn greet_with(&self, error: &str) {
        self.set(Answers { greeting: Some(error.to_owned()), ..Answers::default() });
    }

    /// Returns host and port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Returns how many connections were accepted so far.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// Returns how many connections were open at once, at most.
    #[must_use]
    pub fn most_open(&self) -> usize {
        self.shared.most_open.load(Ordering::Relaxed)
    }

    fn set(&self, answers: Answers) {
        *self.shared.answers.lock().expect("no panic under the lock") = answers;
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        let open = shared.open.fetch_add(1, Ordering::Relaxed) + 1;
        shared.most_open.fetch_max(open, Ordering::Relaxed);
        tokio::spawn(async move {
            serve(client, &shared).await;
            shared.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

async fn serve(client: TcpStream, shared: &Shared) {
    let mut client = BufReader::new(client);
    while let Some(command) = read_command(&mut client).await {
        let answers = shared.answers.lock().expect("no panic under the lock").clone();
        let command = command.to_ascii_uppercase();
        *shared.asked.lock().expect("no panic under the lock").entry(command.clone()).or_default() += 1;
        let answer = match command.as_str() {
            "HELLO" => answers.greeting.map_or("%1\r\n+proto\r\n:3\r\n".to_owned(), |error| line(&error)),
            "CLIENT" => "+OK\r\n".to_owned(),
            other => answers.named.get(other).cloned().or(answers.others).unwrap_or_default(),
        };
        if client.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// An error as it is sent; nothing for an empty one.
fn line(error: &str) -> String {
    if error.is_empty() { String::new() } else { format!("-{error}\r\n") }
}

/// Reads a command, and returns its name; `None` when the client is gone.
async fn read_command(client: &mut BufReader<TcpStream>) -> Option<String> {
    let words = read_number(client).await?;
    let mut name = None;
    for _ in 0..words {
        let mut word = vec![0; read_number(client).await? + 2];
        client.read_exact(&mut word).await.ok()?;
        name.get_or_insert_with(|| String::from_utf8_lossy(&word).trim().to_owned());
    }
    name
}

/// Reads a line that is a number behind `*` or `$`.
async fn read_number(client: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut line = String::new();
    client.read_line(&mut line).await.ok()?;
    line.trim().get(1..)?.parse().ok()
}
