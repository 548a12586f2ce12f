//! The net of a world: its hosts, its links, its streams, and what is on its way.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::connection::{Connection, Direction, Packet, Step};
use super::link::Link;
use super::party::{ConnectionId, Listener, Party};
use crate::engine::{self, Chance};

/// An attempt to connect.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Who connects.
    pub from: Party,
    /// Where to.
    pub address: (String, u16),
    /// When, in microseconds.
    pub us: u64,
}

pub(super) struct Host {
    pub(super) party: Party,
    pub(super) listener: Option<Rc<dyn Listener>>,
}

pub(super) struct Net {
    pub(super) chance: Chance,
    usual: Link,
    links: BTreeMap<(Party, Party), Link>,
    pub(super) hosts: BTreeMap<(String, u16), Host>,
    pub(super) connections: BTreeMap<ConnectionId, Connection>,
    pub(super) opened: u64,
    pub(super) attempts: Vec<Attempt>,
}

thread_local! {
    pub(super) static NET: RefCell<Net> = RefCell::new(Net::new(0, Link::default()));
}

impl Net {
    fn new(seed: u64, usual: Link) -> Self {
        Self {
            chance: Chance::new(seed, "net"),
            usual,
            links: BTreeMap::new(),
            hosts: BTreeMap::new(),
            connections: BTreeMap::new(),
            opened: 0,
            attempts: Vec::new(),
        }
    }

    pub(super) fn link(&self, one: Party, other: Party) -> &Link {
        self.links.get(&pair(one, other)).unwrap_or(&self.usual)
    }
}

/// Begins a net without hosts, whose links are usually like that.
pub fn begin(seed: u64, usual: Link) {
    drop(NET.replace(Net::new(seed, usual)));
}

/// Changes the link between two parties, in both directions.
pub fn change_link(one: Party, other: Party, change: impl FnOnce(&mut Link)) {
    NET.with_borrow_mut(|net| {
        let usual = net.usual.clone();
        change(net.links.entry(pair(one, other)).or_insert(usual));
    });
}

/// Returns the link between two parties.
#[must_use]
pub fn link(one: Party, other: Party) -> Link {
    NET.with_borrow(|net| net.link(one, other).clone())
}

/// How long the next packet between two parties takes, or `None` if nothing passes between them.
#[must_use]
pub fn delay_us(one: Party, other: Party) -> Option<u64> {
    NET.with_borrow_mut(|net| {
        let link = net.link(one, other).clone();
        (!link.is_silent).then(|| link.delay(&mut net.chance))
    })
}

/// Makes the attempts known that were made since this was called last.
#[must_use]
pub fn take_attempts() -> Vec<Attempt> {
    NET.with_borrow_mut(|net| std::mem::take(&mut net.attempts))
}

/// Gives a server an address, and lets it listen there.
pub fn listen(party: Party, host: &str, port: u16, listener: Rc<dyn Listener>) {
    let host_entry = Host { party, listener: Some(listener) };
    drop(NET.with_borrow_mut(|net| net.hosts.insert((host.to_owned(), port), host_entry)));
}

/// Ends a server: nobody listens at its addresses any more. Its clients learn it at once, or, if its host died with it, by
/// their next packet.
pub fn vanish(party: Party, is_quiet: bool) {
    let ended: Vec<ConnectionId> = NET.with_borrow_mut(|net| {
        net.hosts.values_mut().filter(|host| host.party == party).for_each(|host| host.listener = None);
        net.connections.iter().filter(|(_, connection)| connection.server == party).map(|(&id, _)| id).collect()
    });
    for id in ended {
        NET.with_borrow_mut(|net| {
            if let Some(connection) = net.connections.get_mut(&id) {
                connection.listener = None;
            }
        });
        if !is_quiet {
            send(id, Direction::Down, Packet::Reset);
        }
    }
}

/// Cuts all streams of a party, on both sides.
pub fn cut(party: Party) {
    let ids: Vec<ConnectionId> = NET.with_borrow(|net| {
        let own = |connection: &Connection| connection.client == party || connection.server == party;
        net.connections.iter().filter(|(_, connection)| own(connection)).map(|(&id, _)| id).collect()
    });
    ids.into_iter().for_each(reset);
}

/// Sends bytes from the server to its client.
pub fn reply(id: ConnectionId, bytes: Vec<u8>) {
    let is_cut = NET.with_borrow_mut(|net| {
        let Some(connection) = net.connections.get(&id) else { return false };
        let share = net.link(connection.client, connection.server).cut_replies;
        net.chance.happens(share)
    });
    if is_cut {
        reset(id);
    } else {
        send(id, Direction::Down, Packet::Bytes(bytes));
    }
}

/// Closes a connection as its server.
pub fn hang_up(id: ConnectionId) {
    NET.with_borrow_mut(|net| {
        if let Some(connection) = net.connections.get_mut(&id) {
            connection.listener = None;
        }
    });
    send(id, Direction::Down, Packet::End);
}

pub(super) fn send(id: ConnectionId, direction: Direction, packet: Packet) {
    let due_us = NET.with_borrow_mut(|net| {
        let connection = net.connections.get(&id)?;
        let link = net.link(connection.client, connection.server).clone();
        let due_us = engine::now_us() + link.delay(&mut net.chance);
        net.connections.get_mut(&id).map(|connection| connection.enqueue(direction, due_us, packet))
    });
    if let Some(due_us) = due_us {
        engine::at(due_us, move || deliver(id, direction));
    }
}

/// Delivers what is due.
fn deliver(id: ConnectionId, direction: Direction) {
    while let Some(step) = NET.with_borrow_mut(|net| net.next_step(id, direction)) {
        match step {
            Step::Deliver(packet) => arrive(id, direction, packet),
            Step::Later(us) => {
                engine::after(us, move || deliver(id, direction));
                return;
            }
            Step::GiveUp => return reset(id),
        }
    }
}

impl Net {
    fn next_step(&mut self, id: ConnectionId, direction: Direction) -> Option<Step> {
        let connection = self.connections.get(&id)?;
        let link = self.link(connection.client, connection.server);
        let (is_silent, share) = (link.is_silent, link.cut_requests);
        let connection = self.connections.get_mut(&id)?;
        if is_silent {
            return connection.wait_for_link(direction, engine::now_us());
        }
        let packet = connection.take_due(direction, engine::now_us())?;
        let is_request = direction == Direction::Up && matches!(packet, Packet::Bytes(_));
        Some(if is_request && self.chance.happens(share) { Step::GiveUp } else { Step::Deliver(packet) })
    }
}

fn arrive(id: ConnectionId, direction: Direction, packet: Packet) {
    match direction {
        Direction::Up => arrive_at_server(id, packet),
        Direction::Down => {
            let waker = NET.with_borrow_mut(|net| net.connections.get_mut(&id)?.arrive_at_client(packet));
            waker.into_iter().for_each(std::task::Waker::wake);
        }
    }
}

fn arrive_at_server(id: ConnectionId, packet: Packet) {
    let Some(listener) = NET.with_borrow(|net| net.connections.get(&id).map(|connection| connection.listener.clone()))
    else {
        return;
    };
    match (packet, listener) {
        (Packet::Bytes(bytes), Some(listener)) => listener.receive(id, &bytes),
        // The server that knew this connection is gone.
        (Packet::Bytes(_), None) => send(id, Direction::Down, Packet::Reset),
        (Packet::End | Packet::Reset, listener) => {
            drop(NET.with_borrow_mut(|net| net.connections.remove(&id)));
            if let Some(listener) = listener {
                listener.close(id);
            }
        }
    }
}

/// Ends a connection on both sides.
fn reset(id: ConnectionId) {
    let Some((listener, waker)) = NET.with_borrow_mut(|net| {
        let connection = net.connections.get_mut(&id)?;
        Some((connection.listener.take(), connection.arrive_at_client(Packet::Reset)))
    }) else {
        return;
    };
    waker.into_iter().for_each(std::task::Waker::wake);
    if let Some(listener) = listener {
        listener.close(id);
    }
}

fn pair(one: Party, other: Party) -> (Party, Party) {
    (one.min(other), one.max(other))
}
