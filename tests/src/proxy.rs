//! A proxy in front of a server, for what a server does not do on request: hang up, fall silent, lose replies.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Passes,
    /// Both ends see the connection close.
    IsCut,
    /// Both ends see it open, and nothing arrives any more.
    IsSwallowed,
    /// The server is asked; its replies are lost.
    LosesReplies,
}

/// A proxy on 127.0.0.1, which ends when dropped.
pub struct Proxy {
    address: SocketAddr,
    port: Arc<AtomicU16>,
    fates: Arc<Mutex<watch::Sender<Fate>>>,
    listening: JoinHandle<()>,
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
        let fates = Arc::new(Mutex::new(watch::Sender::new(Fate::Passes)));
        let port = Arc::new(AtomicU16::new(port));
        let listening = tokio::spawn(listen(listener, Arc::clone(&port), Arc::clone(&fates)));
        Self { address, port, fates, listening }
    }

    /// Returns the URL to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Leads later connections to the server on that port; those there are stay with theirs.
    pub fn lead_to(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
    }

    /// Closes the connections there are; later ones pass.
    pub fn cut(&self) {
        self.decree(Fate::IsCut);
    }

    /// Lets the connections there are fall silent, in both directions, but stay open; later ones pass.
    pub fn swallow(&self) {
        self.decree(Fate::IsSwallowed);
    }

    /// Loses every reply to the connections there are; later ones pass.
    pub fn lose_replies(&self) {
        self.decree(Fate::LosesReplies);
    }

    fn decree(&self, fate: Fate) {
        let mut fates = self.fates.lock().expect("no panic under the lock");
        fates.send_replace(fate);
        *fates = watch::Sender::new(Fate::Passes);
    }
}

async fn listen(listener: TcpListener, port: Arc<AtomicU16>, fates: Arc<Mutex<watch::Sender<Fate>>>) {
    while let Ok((client, _)) = listener.accept().await {
        // Subscribed before connecting on, so that no decree falls into the gap.
        let fate = fates.lock().expect("no panic under the lock").subscribe();
        let Ok(server) = TcpStream::connect(("127.0.0.1", port.load(Ordering::Relaxed))).await else { continue };
        for socket in [&client, &server] {
            socket.set_nodelay(true).expect("the socket is open");
        }
        tokio::spawn(relay(client, server, fate));
    }
}

async fn relay(mut client: TcpStream, mut server: TcpStream, fate: watch::Receiver<Fate>) {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::select! {
        () = pass_requests(from_client, to_server, fate.clone()) => {}
        () = pass_replies(from_server, to_client, fate.clone()) => {}
        () = cut(fate) => {}
    }
}

async fn pass_requests(mut client: ReadHalf<'_>, mut server: WriteHalf<'_>, fate: watch::Receiver<Fate>) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = client.read(&mut bytes).await {
        if *fate.borrow() != Fate::IsSwallowed && server.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

async fn pass_replies(mut server: ReadHalf<'_>, mut client: WriteHalf<'_>, fate: watch::Receiver<Fate>) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = server.read(&mut bytes).await {
        if *fate.borrow() == Fate::Passes && client.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

/// Returns when the connection is to be cut.
async fn cut(mut fate: watch::Receiver<Fate>) {
    if fate.wait_for(|fate| *fate == Fate::IsCut).await.is_err() {
        pending::<()>().await;
    }
}
