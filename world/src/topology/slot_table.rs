//! Which shard has which slot, and which nodes know it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::server::Cluster as View;

const SLOTS: u16 = 16_384;

/// Which of these shards has which slot, and which nodes know it.
pub(super) struct SlotTable {
    shards: usize,
    /// The slots that have moved, and their shards.
    moved: RefCell<BTreeMap<u16, usize>>,
    /// How often something has changed, and up to where each node knows it.
    version: Cell<u64>,
    known: RefCell<Vec<u64>>,
}

impl SlotTable {
    /// Each shard has a range of its own, which no node knows yet.
    pub(super) fn new(shards: usize, nodes: usize) -> Self {
        Self { shards, moved: RefCell::default(), version: Cell::new(1), known: RefCell::new(vec![0; nodes]) }
    }

    pub(super) fn shard_of(&self, slot: u16) -> usize {
        let first = usize::from(slot) * self.shards / usize::from(SLOTS);
        self.moved.borrow().get(&slot).copied().unwrap_or(first)
    }

    /// Gives a slot to another shard.
    pub(super) fn give(&self, slot: u16, to: usize) {
        self.moved.borrow_mut().insert(slot, to);
        self.change();
    }

    /// Something has changed that no node knows yet.
    pub(super) fn change(&self) {
        self.version.set(self.version.get() + 1);
    }

    pub(super) fn is_behind(&self, node: usize) -> bool {
        self.known.borrow().get(node).is_some_and(|known| *known < self.version.get())
    }

    /// Corrects the view of a node, which knows all from here on.
    pub(super) fn correct(&self, node: usize, view: &mut View, masters: &[String]) {
        for slot in 0..SLOTS {
            let owner = &masters[self.shard_of(slot)];
            if view.owner(slot).is_none_or(|known| known.id != *owner) {
                view.assign(slot..=slot, owner);
            }
        }
        view.is_down = false;
        if let Some(known) = self.known.borrow_mut().get_mut(node) {
            *known = self.version.get();
        }
    }
}
