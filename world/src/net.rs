//! Streams in memory between processes and servers: with delay, loss, cuts, silence and refusals.
//!
//! Bytes of one stream keep their order. Loss is a long delay, as TCP sends again what is lost; a silent link delivers
//! nothing until it is heard again, or until the sender gives up.

mod connection;
mod link;
mod network;
mod party;
mod stream;
#[cfg(test)]
mod tests;

pub use self::link::Link;
pub use self::network::{
    Attempt, begin, change_link, cut, delay_us, hang_up, link, listen, reply, take_attempts, vanish,
};
pub use self::party::{ConnectionId, Listener, Party};
pub use self::stream::{Stream, connect};
