//! Slots of which each has at most one holder, over all processes: a name that only one socket can have.
//!
//! The operating system frees the slots of a process that ends.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

/// A slot, taken until it is dropped.
#[derive(Debug)]
pub struct Slot(#[allow(dead_code, reason = "held")] UnixListener);

/// Takes one of this number of slots of that name. Returns `None` if all are taken.
///
/// # Panics
///
/// The operating system has no such sockets.
#[must_use]
pub fn take(name: &str, slots: u64) -> Option<Slot> {
    (0..slots).find_map(|slot| {
        let address = SocketAddr::from_abstract_name(format!("tallygate-test-{name}-{slot}")).expect("a short name");
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Some(Slot(listener)),
            Err(error) if error.kind() == ErrorKind::AddrInUse => None,
            Err(error) => panic!("no slot: {error}"),
        }
    })
}
