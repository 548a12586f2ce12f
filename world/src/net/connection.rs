//! The state of one stream: what is on its way, and what the client can read.

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use super::party::{Listener, Party};

/// How often a packet is sent again over a silent link.
const AGAIN_US: u64 = 100_000;
/// How long a system waits for the acknowledgement of what it has sent.
const PATIENCE_US: u64 = 10_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the client to the server.
    Up,
    Down,
}

pub(super) enum Packet {
    Bytes(Vec<u8>),
    End,
    Reset,
}

/// What to do about a packet that is due.
pub(super) enum Step {
    Deliver(Packet),
    Later(u64),
    GiveUp,
}

/// How a stream has ended for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Closed,
    Reset,
}

pub(super) struct Connection {
    pub(super) client: Party,
    pub(super) server: Party,
    /// The server, unless it is gone.
    pub(super) listener: Option<Rc<dyn Listener>>,
    pub(super) ending: Option<Ending>,
    up: Lane,
    down: Lane,
    inbox: VecDeque<u8>,
    reader: Option<Waker>,
}

/// What is on its way in one direction.
#[derive(Default)]
struct Lane {
    packets: VecDeque<(u64, Packet)>,
    latest_us: u64,
}

impl Connection {
    pub(super) fn new(client: Party, server: Party, listener: Rc<dyn Listener>) -> Self {
        Self {
            client,
            server,
            listener: Some(listener),
            ending: None,
            up: Lane::default(),
            down: Lane::default(),
            inbox: VecDeque::new(),
            reader: None,
        }
    }

    /// Puts a packet on its way, behind those before it. Returns when it arrives.
    pub(super) fn enqueue(&mut self, direction: Direction, due_us: u64, packet: Packet) -> u64 {
        let lane = self.lane(direction);
        lane.latest_us = lane.latest_us.max(due_us);
        lane.packets.push_back((lane.latest_us, packet));
        lane.latest_us
    }

    pub(super) fn take_due(&mut self, direction: Direction, now_us: u64) -> Option<Packet> {
        let packets = &mut self.lane(direction).packets;
        packets.front().filter(|(due_us, _)| *due_us <= now_us)?;
        packets.pop_front().map(|(_, packet)| packet)
    }

    /// What to do while nothing passes: try again later, or give up.
    pub(super) fn wait_for_link(&mut self, direction: Direction, now_us: u64) -> Option<Step> {
        let (due_us, _) = self.lane(direction).packets.front()?;
        Some(if now_us > due_us + PATIENCE_US { Step::GiveUp } else { Step::Later(AGAIN_US) })
    }

    /// Takes what has arrived. Returns who waits for it.
    pub(super) fn arrive_at_client(&mut self, packet: Packet) -> Option<Waker> {
        match packet {
            Packet::Bytes(bytes) => self.inbox.extend(bytes),
            Packet::End => _ = self.ending.get_or_insert(Ending::Closed),
            Packet::Reset => {
                self.inbox.clear();
                self.ending = Some(Ending::Reset);
            }
        }
        self.reader.take()
    }

    /// Copies what can be read. Without anything, the reader is woken when there is.
    pub(super) fn read(&mut self, most: usize, reader: &Waker, mut put: impl FnMut(&[u8])) -> bool {
        if self.inbox.is_empty() {
            self.reader = Some(reader.clone());
            return false;
        }
        let (front, _) = self.inbox.as_slices();
        let length = front.len().min(most);
        put(&front[..length]);
        drop(self.inbox.drain(..length));
        true
    }

    fn lane(&mut self, direction: Direction) -> &mut Lane {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}
