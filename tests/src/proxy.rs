//! A proxy in front of a server, for what a server does not do on request: hang up, fall silent, lose replies.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
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
}

/// A proxy on 127.0.0.1, which ends when dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

/// What the connections share.
struct Shared {
    /// The server's.
    port: AtomicU16,
    accepted: AtomicU64,
    /// The mode of the open connections, which is also the first mode of the next one.
    modes: Mutex<watch::Sender<Mode>>,
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
        let shared = Arc::new(Shared { port: AtomicU16::new(port), accepted: AtomicU64::new(0), modes });
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
        tokio::spawn(relay(client, server, mode));
    }
}

async fn relay(mut client: TcpStream, mut server: TcpStream, mode: watch::Receiver<Mode>) {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::select! {
        () = pass_requests(from_client, to_server, mode.clone()) => {}
        () = pass_replies(from_server, to_client, mode.clone()) => {}
        () = closed(mode) => {}
    }
}

async fn pass_requests(mut client: ReadHalf<'_>, mut server: WriteHalf<'_>, mode: watch::Receiver<Mode>) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = client.read(&mut bytes).await {
        let request = &bytes[..read];
        let mode = *mode.borrow();
        if mode == Mode::CloseAtScript && is_script(request) {
            return;
        }
        if mode != Mode::Swallow && server.write_all(request).await.is_err() {
            return;
        }
    }
}

async fn pass_replies(mut server: ReadHalf<'_>, mut client: WriteHalf<'_>, mode: watch::Receiver<Mode>) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = server.read(&mut bytes).await {
        let mode = *mode.borrow();
        if mode == Mode::CloseAtReply {
            return;
        }
        let passes = matches!(mode, Mode::Pass | Mode::CloseAtScript);
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
