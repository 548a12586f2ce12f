//! What is to happen, by time; at one time, in the order in which it was entered.

use std::collections::BTreeMap;
use std::task::Waker;

/// Something that is to happen.
pub(super) enum Event {
    Wake(Waker),
    Call(Box<dyn FnOnce()>),
}

/// Names an event on the agenda: its time, and the number of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventId {
    us: u64,
    number: u64,
}

#[derive(Default)]
pub(super) struct Agenda {
    events: BTreeMap<EventId, Event>,
    entries: u64,
}

impl Agenda {
    pub(super) fn insert(&mut self, us: u64, event: Event) -> EventId {
        self.entries += 1;
        let id = EventId { us, number: self.entries };
        self.events.insert(id, event);
        id
    }

    pub(super) fn remove(&mut self, id: EventId) -> Option<Event> {
        self.events.remove(&id)
    }

    /// Replaces an event that has not happened yet.
    pub(super) fn replace(&mut self, id: EventId, event: Event) -> Option<Event> {
        self.events.get_mut(&id).map(|old| std::mem::replace(old, event))
    }

    /// Takes all events of the earliest time.
    pub(super) fn take_earliest(&mut self) -> Option<(u64, Vec<Event>)> {
        let us = self.events.first_key_value()?.0.us;
        let mut due = Vec::new();
        while let Some(event) = self.events.first_entry().filter(|event| event.key().us == us) {
            due.push(event.remove());
        }
        Some((us, due))
    }
}
