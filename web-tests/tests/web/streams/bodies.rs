//! Streamed bodies, whose pieces the test sends.

use std::io;

use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::sync::mpsc;

pub(super) type Piece = io::Result<Bytes>;

/// What sends the pieces of one body. Dropping it ends the body.
pub(super) type Sender = mpsc::UnboundedSender<Piece>;

/// Opens bodies for handlers.
#[derive(Clone)]
pub(super) struct Bodies(mpsc::UnboundedSender<Sender>);

impl Bodies {
    /// Returns this, and the senders of all bodies that it opens.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Sender>) {
        let (opened, senders) = mpsc::unbounded_channel();
        (Self(opened), senders)
    }

    /// Opens a body.
    pub(super) fn open(&self) -> impl Stream<Item = Piece> + Send + use<> {
        let (sender, pieces) = mpsc::unbounded_channel();
        self.0.send(sender).expect("the test listens");
        stream::unfold(pieces, async |mut pieces| Some((pieces.recv().await?, pieces)))
    }
}
