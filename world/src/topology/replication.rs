//! What a primary has written, on its way to its replica.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use super::node::{Node, reaches};
use crate::engine;
use crate::server::Write;

/// The way from a primary to its replica. What is on it is lost with the primary.
pub(super) struct Replication {
    from: Weak<Node>,
    to: Rc<Node>,
    lag_us: u64,
    /// The writes, and when they are due.
    pending: RefCell<VecDeque<(u64, Write)>>,
    is_scheduled: Cell<bool>,
    /// Whether the replica has to be given all keys first.
    lacks_all: Cell<bool>,
    is_over: Cell<bool>,
}

impl Replication {
    /// Gives the replica all that the primary has, and then what that writes.
    pub(super) fn begin(from: &Rc<Node>, to: &Rc<Node>, lag_us: u64) -> Rc<Self> {
        let stream = Rc::new(Self {
            from: Rc::downgrade(from),
            to: Rc::clone(to),
            lag_us,
            pending: RefCell::default(),
            is_scheduled: Cell::new(false),
            lacks_all: Cell::new(true),
            is_over: Cell::new(false),
        });
        let sink = Rc::clone(&stream);
        from.set_sink(Some(Rc::new(move |writes| sink.send(writes))));
        stream.go_on();
        stream
    }

    /// Lets nothing more arrive.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        if let Some(from) = self.from.upgrade() {
            from.set_sink(None);
        }
    }

    /// Lets the replica begin anew: it, or its primary, has forgotten what it had.
    pub(super) fn begin_anew(self: &Rc<Self>) {
        self.pending.borrow_mut().clear();
        self.lacks_all.set(true);
        self.go_on();
    }

    fn send(self: &Rc<Self>, writes: Vec<Write>) {
        let due_us = engine::now_us() + self.lag_us;
        self.pending.borrow_mut().extend(writes.into_iter().map(|write| (due_us, write)));
        self.go_on();
    }

    /// Whether the replica lacks anything.
    pub(super) fn is_behind(&self) -> bool {
        self.lacks_all.get() || !self.pending.borrow().is_empty()
    }

    /// Goes on when something has changed: there is more, or a link or a server is there again.
    pub(super) fn go_on(self: &Rc<Self>) {
        if !self.is_scheduled.get() {
            self.deliver(engine::now_us());
        }
    }

    /// Delivers all at once. Returns whether the replica has all now.
    pub(super) fn catch_up(self: &Rc<Self>) -> bool {
        self.deliver(u64::MAX);
        !self.is_behind()
    }

    fn deliver(self: &Rc<Self>, until_us: u64) {
        let Some(from) = self.from.upgrade() else { return };
        if self.is_over.get() || !reaches(&from, &self.to) {
            return;
        }
        if self.lacks_all.replace(false) {
            self.pending.borrow_mut().clear();
            let all = from.with_server(|server| server.save());
            self.to.with_server(|server| server.load(&all));
        }
        while let Some(write) = self.take_due(until_us) {
            self.to.with_server(|server| server.apply(&write));
        }
        let next_us = self.pending.borrow().front().map(|(due_us, _)| *due_us);
        if let Some(next_us) = next_us.filter(|_| !self.is_scheduled.get()) {
            self.is_scheduled.set(true);
            let stream = Rc::clone(self);
            engine::at(next_us, move || {
                stream.is_scheduled.set(false);
                stream.go_on();
            });
        }
    }

    fn take_due(&self, until_us: u64) -> Option<Write> {
        let mut pending = self.pending.borrow_mut();
        pending.front().filter(|(due_us, _)| *due_us <= until_us)?;
        pending.pop_front().map(|(_, write)| write)
    }
}
