//! The client's end of a connection, as tokio's traits want it.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::{Connection, Direction, Ending, Packet};
use super::network::{Attempt, NET, Net, send};
use super::party::{ConnectionId, Party};
use crate::engine;

/// How long a system waits before it repeats the first packet of a connection.
const SYN_AGAIN_US: u64 = 1_000_000;
/// How long it takes to learn that a host cannot be reached.
const UNREACHABLE_US: u64 = 3_000;

/// A stream to a server. Dropping it closes the connection.
#[derive(Debug)]
pub struct Stream(ConnectionId);

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        NET.with_borrow_mut(|net| {
            let Some(connection) = net.connections.get_mut(&self.0) else {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            };
            if connection.read(buffer.remaining(), context.waker(), |bytes| buffer.put_slice(bytes)) {
                return Poll::Ready(Ok(()));
            }
            match connection.ending {
                Some(Ending::Closed) => Poll::Ready(Ok(())),
                Some(Ending::Reset) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                None => Poll::Pending,
            }
        })
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let is_open =
            NET.with_borrow(|net| net.connections.get(&self.0).is_some_and(|connection| connection.ending.is_none()));
        if !is_open {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        send(self.0, Direction::Up, Packet::Bytes(bytes.to_vec()));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let was_reset = NET.with_borrow_mut(|net| {
            let is_reset = net.connections.get(&self.0)?.ending == Some(Ending::Reset);
            is_reset.then(|| net.connections.remove(&self.0)).flatten()
        });
        if was_reset.is_none() {
            send(self.0, Direction::Up, Packet::End);
        }
    }
}

/// Opens a stream to an address, or fails as a system does.
///
/// # Errors
///
/// There is no such host, nobody listens, or the host cannot be reached. A silent link lets the caller wait.
pub async fn connect(from: Party, host: String, port: u16) -> io::Result<Stream> {
    let address = (host, port);
    NET.with_borrow_mut(|net| {
        net.attempts.push(Attempt { from, address: address.clone(), us: engine::now_us() });
    });
    loop {
        let (us, attempt) = NET.with_borrow_mut(|net| net.attempt(from, &address));
        engine::sleep(us).await;
        match attempt {
            Trial::Fails(kind) => return Err(kind.into()),
            Trial::Silent => {}
            Trial::Arrives => return open(from, &address),
        }
    }
}

enum Trial {
    Fails(io::ErrorKind),
    Silent,
    Arrives,
}

impl Net {
    /// How long an attempt takes, and what becomes of it.
    fn attempt(&mut self, from: Party, address: &(String, u16)) -> (u64, Trial) {
        let Some(host) = self.hosts.get(address) else {
            return (UNREACHABLE_US, Trial::Fails(io::ErrorKind::NotFound));
        };
        let link = self.link(from, host.party).clone();
        if link.is_silent {
            return (SYN_AGAIN_US, Trial::Silent);
        }
        if link.is_unreachable {
            return (UNREACHABLE_US, Trial::Fails(io::ErrorKind::HostUnreachable));
        }
        (link.delay(&mut self.chance) + link.delay(&mut self.chance), Trial::Arrives)
    }
}

fn open(from: Party, address: &(String, u16)) -> io::Result<Stream> {
    let opened = NET.with_borrow_mut(|net| {
        let host = net.hosts.get(address)?;
        let (server, listener) = (host.party, host.listener.clone()?);
        net.opened += 1;
        let id = ConnectionId(net.opened);
        net.connections.insert(id, Connection::new(from, server, Rc::clone(&listener)));
        Some((id, listener))
    });
    let Some((id, listener)) = opened else { return Err(io::ErrorKind::ConnectionRefused.into()) };
    if listener.open(id) {
        return Ok(Stream(id));
    }
    drop(NET.with_borrow_mut(|net| net.connections.remove(&id)));
    Err(io::ErrorKind::ConnectionRefused.into())
}
