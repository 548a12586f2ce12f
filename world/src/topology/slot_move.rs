//! A slot that moves to another master: its keys one after the other, then the slot.

use std::rc::Rc;

use super::node::{Node, reaches};

/// A slot on its way from one shard to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) slot: u16,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The masters between which slots move.
pub(super) trait Movers {
    /// The masters that give and take.
    fn ends(&self, moving: Move) -> (Rc<Node>, Rc<Node>);

    /// Takes the next step in a while, if the slot moves still.
    fn step_later(&self, moving: Move);

    /// Notes that something may be lost.
    fn note_lost(&self, how: &str);

    /// All keys are there: the slot may follow.
    fn arrived(&self, moving: Move);
}

impl Move {
    /// Moves a key, or gives the slot away when no key is left.
    pub(super) fn step(self, movers: &impl Movers) {
        let (from, to) = movers.ends(self);
        if !reaches(&from, &to) {
            return movers.step_later(self);
        }
        let key = from.with_server(|server| server.take_keys(self.slot, 1));
        if key.is_empty() {
            return movers.arrived(self);
        }
        if from.ahead_us() != to.ahead_us() {
            movers.note_lost(&format!("slot {} moves to another clock", self.slot));
        }
        to.with_server(|server| server.put_keys(&key));
        movers.step_later(self);
    }
}
