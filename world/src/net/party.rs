//! Who meets on the net.

/// Who may be at one end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// A process of the fleet.
    Process(u32),
    /// A server, or a sentinel.
    Server(u32),
}

/// Names a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub(super) u64);

/// A server as the net sees it.
pub trait Listener {
    /// A client has connected. Returns whether the server wants it.
    fn open(&self, connection: ConnectionId) -> bool;
    /// Bytes have arrived.
    fn receive(&self, connection: ConnectionId, bytes: &[u8]);
    /// The client is gone.
    fn close(&self, connection: ConnectionId);
}
