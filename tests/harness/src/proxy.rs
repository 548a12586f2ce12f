//! A proxy in front of a server, for failures that a server does not produce on request: it hangs up, falls silent, or
//! loses replies.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// What the proxy does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pass,
    /// Both ends see the connection close.
    Close,
    /// Both ends see it open, and nothing arrives any more.
    Swallow,
    /// Requests pass, replies are lost.
    LoseReplies,
    /// Requests pass, and the next reply closes the connection instead of passing.
    CloseAtReply,
    /// The greeting passes; the first script closes the connection before the server sees it.
    CloseAtScript,
    /// The first script closes the connection, and the server sees it later.
    HoldScript,
    /// Requests pass, and the replies later.
    HoldReplies,
}

/// A proxy on 127.0.0.1, which ends when dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

/// The state that the connections share.
struct Shared {
    /// The server's.
    port: AtomicU16,
    accepted: AtomicU64,
    /// The mode of the open connections, which is also the first mode of the next one.
    modes: Mutex<watch::Sender<Mode>>,
    /// How many scripts and replies were held back so far.
    held: AtomicU64,
    /// Notified when they are delivered.
    delivered: Notify,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Proxy {
    /// Starts a proxy in front of the server on that port.
    pub async fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let modes = Mutex::new(watch::Sender::new(Mode::Pass));
        let (accepted, held) = (AtomicU64::new(0), AtomicU64::new(0));
        let shared = Shared { port: AtomicU16::new(port), accepted, modes, held, delivered: Notify::new() };
        let shared = Arc::new(shared);
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Self { address, shared, listening }
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the URL to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Returns how many connections were accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Acquire)
    }

    /// Connects later clients to the server on that port; the open connections keep theirs.
    pub fn point_to(&self, port: u16) {
        self.shared.port.store(port, Ordering::Relaxed);
    }

    /// Closes the open connections; later ones pass.
    pub fn cut(&self) {
        self.switch(Mode::Close, Mode::Pass);
    }

    /// Silences the open connections in both directions without closing them; later ones pass.
    pub fn swallow(&self) {
        self.switch(Mode::Swallow, Mode::Pass);
    }

    /// Loses every reply to the open connections; later ones pass.
    pub fn lose_replies(&self) {
        self.switch(Mode::LoseReplies, Mode::Pass);
    }

    /// Closes the open connections when the server has executed what they ask next; later ones pass.
    pub fn cut_replies(&self) {
        self.switch(Mode::CloseAtReply, Mode::Pass);
    }

    /// Closes every connection, open or later, at its first script.
    pub fn close_at_scripts(&self) {
        self.switch(Mode::CloseAtScript, Mode::CloseAtScript);
    }

    /// Holds the next script of each open connection back, and closes the connection; later ones pass.
    pub fn hold_script(&self) {
        self.switch(Mode::HoldScript, Mode::Pass);
    }

    /// Holds the replies to the open connections back; later ones pass.
    pub fn hold_replies(&self) {
        self.switch(Mode::HoldReplies, Mode::Pass);
    }

    /// Returns how many scripts and replies were held back so far.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.shared.held.load(Ordering::Acquire)
    }

    /// Delivers what was held back. From then on, the replies to open connections pass.
    pub fn deliver(&self) {
        self.shared.delivered.notify_waiters();
    }

    /// Lets everything pass again.
    pub fn pass(&self) {
        self.switch(Mode::Pass, Mode::Pass);
    }

    fn switch(&self, open: Mode, later: Mode) {
        let mut modes = self.shared.modes.lock().expect("no panic under the lock");
        modes.send_replace(open);
        *modes = watch::Sender::new(later);
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        // Subscribed before it is counted and connected to the server, so that no switch is missed.
        let mode = shared.modes.lock().expect("no panic under the lock").subscribe();
        shared.accepted.fetch_add(1, Ordering::Release);
        let port = shared.port.load(Ordering::Relaxed);
        let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
        for socket in [&client, &server] {
            socket.set_nodelay(true).expect("the socket is open");
        }
        tokio::spawn(relay(client, server, mode, Arc::clone(&shared)));
    }
}

async fn relay(mut client: TcpStream, mut server: TcpStream, mode: watch::Receiver<Mode>, shared: Arc<Shared>) {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let held = tokio::select! {
        held = pass_requests(from_client, to_server, mode.clone()) => held,
        () = pass_replies(from_server, to_client, mode.clone(), &shared) => None,
        () = closed(mode) => None,
    };
    drop(client);
    if let Some(request) = held {
        deliver_later(server, &request, &shared).await;
    }
}

/// Returns the request that is to be held back, if there is one.
async fn pass_requests(
    mut client: ReadHalf<'_>,
    mut server: WriteHalf<'_>,
    mode: watch::Receiver<Mode>,
) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = client.read(&mut bytes).await {
        let request = &bytes[..read];
        let mode = *mode.borrow();
        match mode {
            Mode::CloseAtScript if is_script(request) => return None,
            Mode::HoldScript if is_script(request) => return Some(request.to_vec()),
            Mode::Swallow => {}
            _ => server.write_all(request).await.ok()?,
        }
    }
    None
}

async fn deliver_later(mut server: TcpStream, request: &[u8], shared: &Shared) {
    // Listens before it is counted, so that no delivery is missed.
    let delivered = shared.delivered.notified();
    shared.held.fetch_add(1, Ordering::Release);
    delivered.await;
    if server.write_all(request).await.is_ok() {
        // Once there is an answer, it was executed.
        let _ = server.read(&mut [0; 1024]).await;
    }
}

async fn pass_replies(
    mut server: ReadHalf<'_>,
    mut client: WriteHalf<'_>,
    mode: watch::Receiver<Mode>,
    shared: &Shared,
) {
    let mut bytes = vec![0; 16 * 1024];
    let mut were_held = false;
    while let Ok(read @ 1..) = server.read(&mut bytes).await {
        let mode = *mode.borrow();
        if mode == Mode::CloseAtReply {
            return;
        }
        if mode == Mode::HoldReplies && !were_held {
            // Listens before it is counted, so that no delivery is missed.
            let delivered = shared.delivered.notified();
            shared.held.fetch_add(1, Ordering::Release);
            delivered.await;
            were_held = true;
        }
        let passes = matches!(mode, Mode::Pass | Mode::CloseAtScript | Mode::HoldScript | Mode::HoldReplies);
        if passes && client.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

/// Returns when the connection is to be closed.
async fn closed(mut mode: watch::Receiver<Mode>) {
    if mode.wait_for(|mode| *mode == Mode::Close).await.is_err() {
        pending::<()>().await;
    }
}

fn is_script(request: &[u8]) -> bool {
    request.windows(4).any(|word| word == b"EVAL")
}
