//! A cluster of three masters, with or without replicas. Each node has a view of its own, which lags.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use super::arrangement::Arrangement;
use super::node::{self, Node, PORT, reaches};
use super::plant::Plant;
use super::shard::{Shard, id};
use super::slot_move::{Move, Movers};
use super::slot_table::SlotTable;
use crate::engine::{self, Chance};
use crate::history::{Event, History};
use crate::server::{Cluster as View, slot};
use crate::workload::Handover;

const MASTERS: usize = 3;

/// How long a node has to be away until others take it for gone.
const NODE_TIMEOUT_US: u64 = 1_000_000;

/// How long a step of a move takes at most.
const STEP_US: u64 = 100_000;

/// How long to wait before looking once more for what cannot be done yet.
const AGAIN_US: u64 = 500_000;

/// Three masters and their replicas.
pub(super) struct Masters {
    me: Weak<Self>,
    nodes: Vec<Rc<Node>>,
    shards: Vec<Shard>,
    slots: SlotTable,
    moving: Cell<Option<Move>>,
    chance: RefCell<Chance>,
    history: History,
}

impl Masters {
    pub(super) fn start(seed: u64, plant: &Plant, history: &History) -> Rc<Self> {
        let mut chance = Chance::new(seed, "cluster");
        let lag_us = chance.spread(100, 1_000_000);
        let mut started = (0..).map_while(|number| Node::start(number, plant, history));
        let masters: Vec<_> = started.by_ref().take(MASTERS).collect();
        let mut nodes = masters.clone();
        let mut shards = Vec::new();
        for master in masters {
            let replica = if chance.happens(0.7) { started.next() } else { None };
            nodes.extend(replica.clone());
            shards.push(Shard::start([Some(master), replica].into_iter().flatten().collect(), lag_us));
        }
        let slots = SlotTable::new(MASTERS, nodes.len());
        let all = Rc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            nodes,
            shards,
            slots,
            moving: Cell::new(None),
            chance: RefCell::new(chance),
            history: history.clone(),
        });
        for node in &all.nodes {
            node.with_server(|server| server.set_cluster(Some(View::new(&id(node.number()), Vec::new()))));
            all.inform(node);
        }
        all.shards.iter().for_each(Shard::follow);
        all
    }

    fn later(&self, us: u64, what: impl FnOnce(&Self) + 'static) {
        let me = Weak::clone(&self.me);
        engine::after(us, move || {
            if let Some(all) = me.upgrade() {
                what(&all);
            }
        });
    }

    fn draw_us(&self, most_us: u64) -> u64 {
        self.chance.borrow_mut().spread(1_000, most_us)
    }

    /// Changes what a node knows of its cluster; the names of the masters help.
    fn change_view(&self, node: &Node, change: impl FnOnce(&mut View, &[String])) {
        let ids: Vec<_> = self.shards.iter().map(|shard| id(shard.master().number())).collect();
        node.with_server(|server| {
            if let Some(view) = server.cluster_mut() {
                change(view, &ids);
            }
        });
    }

    /// Tells a node all that has changed.
    fn inform(&self, node: &Rc<Node>) {
        let Some(index) = self.nodes.iter().position(|known| known.number() == node.number()) else { return };
        let roster = self.shards.iter().flat_map(Shard::roster).collect();
        self.change_view(node, |view, ids| {
            view.set_nodes(roster);
            self.slots.correct(index, view, ids);
        });
        let replaced = self.shards.iter().find(|shard| shard.is_other_stale.get() && shard.has(node));
        if let Some(shard) = replaced.filter(|shard| !shard.is_master(node)) {
            shard.follow();
        }
    }

    /// Lets each node learn of what has changed at a time of its own, if it reaches a master that knows it.
    fn spread_news(&self) {
        let behind: Vec<_> = (0..self.nodes.len()).filter(|index| self.slots.is_behind(*index)).collect();
        for index in behind {
            let us = self.draw_us(500_000);
            self.later(us, move |all| {
                let node = &all.nodes[index];
                let mut masters = all.shards.iter().map(Shard::master);
                if all.slots.is_behind(index)
                    && masters.any(|master| master.number() != node.number() && reaches(node, master))
                {
                    all.inform(node);
                }
            });
        }
    }

    /// Announces a move, first to the master that takes the slot.
    fn begin_move(&self, moving: Move) {
        let (from, to) = self.ends(moving);
        self.moving.set(Some(moving));
        self.change_view(&to, |view, ids| view.import(moving.slot, &ids[moving.from]));
        self.change_view(&from, |view, ids| view.migrate(moving.slot, &ids[moving.to]));
        self.step_later(moving);
    }

    /// Gives a move up, as one of its masters is gone. The keys that were moved are lost.
    fn give_up(&self, moving: Move) {
        self.moving.set(None);
        self.note_lost(&format!("slot {} does not move any more", moving.slot));
        for node in &self.nodes {
            self.change_view(node, |view, _| view.settle(moving.slot));
        }
        let (_, to) = self.ends(moving);
        to.with_server(|server| server.take_keys(moving.slot, usize::MAX));
    }

    /// Lets the replica of a shard take over.
    fn promote(&self, index: usize) {
        let shard = &self.shards[index];
        let Some(new) = shard.other().cloned() else { return };
        let old = Rc::clone(shard.master());
        if let Some(moving) = self.moving.get().filter(|moving| [moving.from, moving.to].contains(&index)) {
            self.give_up(moving);
        }
        if shard.stream().is_none_or(|stream| stream.is_behind()) || old.ahead_us() != new.ahead_us() {
            self.note_lost(&format!("server {} lacks something, or has another clock", new.number()));
        }
        old.begin_branch();
        shard.swap();
        self.slots.change();
        self.inform(&new);
        self.history.note(Event::Named { server: new.number() });
        self.spread_news();
    }

    /// How many other masters reach a node.
    fn reaching(&self, node: &Node) -> usize {
        let others = self.shards.iter().filter(|shard| !shard.has(node)).map(Shard::master);
        others.filter(|master| reaches(master, node)).count()
    }

    /// Looks which masters are missed by both others. A master that reaches no other serves nothing after a while.
    fn watch(&self) {
        for (index, shard) in self.shards.iter().enumerate() {
            if self.reaching(shard.master()) > 0 {
                shard.missed_since.set(None);
                self.change_view(shard.master(), |view, _| view.is_down = false);
            } else if shard.missed_since.get().is_none() {
                let since = Some(engine::now_us());
                shard.missed_since.set(since);
                self.later(NODE_TIMEOUT_US, move |all| all.take_for_gone(index, since));
            }
        }
    }

    fn take_for_gone(&self, index: usize, since: Option<u64>) {
        let shard = &self.shards[index];
        if shard.missed_since.get() != since {
            return;
        }
        self.change_view(shard.master(), |view, _| view.is_down = true);
        let us = self.draw_us(AGAIN_US);
        self.later(us, move |all| all.replace(index, since));
    }

    /// Replaces a master that is missed without end, as soon as both others reach its replica.
    fn replace(&self, index: usize, since: Option<u64>) {
        let shard = &self.shards[index];
        if shard.missed_since.get() != since {
            return;
        }
        let can_replace = |other: &Rc<Node>| !shard.is_other_stale.get() && self.reaching(other) == MASTERS - 1;
        if shard.other().is_some_and(can_replace) {
            self.promote(index);
            self.watch();
        } else {
            self.later(AGAIN_US, move |all| all.replace(index, since));
        }
    }
}

impl Movers for Masters {
    fn ends(&self, moving: Move) -> (Rc<Node>, Rc<Node>) {
        let [from, to] = [moving.from, moving.to].map(|shard| Rc::clone(self.shards[shard].master()));
        (from, to)
    }

    fn step_later(&self, moving: Move) {
        let us = self.draw_us(STEP_US);
        self.later(us, move |all| {
            if all.moving.get() == Some(moving) {
                moving.step(all);
            }
        });
    }

    fn note_lost(&self, how: &str) {
        self.history.note(Event::Lost { how: how.to_owned() });
    }

    fn arrived(&self, moving: Move) {
        self.moving.set(None);
        self.slots.give(moving.slot, moving.to);
        let master = self.shards[moving.to].master();
        self.inform(master);
        self.history.note(Event::Fault { what: format!("slot {} has moved to {}", moving.slot, master.number()) });
        self.spread_news();
    }
}

impl Arrangement for Masters {
    fn url(&self) -> String {
        let hosts: Vec<_> =
            self.nodes[..MASTERS].iter().map(|node| format!("{}:{PORT}", node::host(node.number()))).collect();
        format!("redis+cluster://{}/", hosts.join(","))
    }

    fn nodes(&self) -> &[Rc<Node>] {
        &self.nodes
    }

    /// The masters come first, then their replicas.
    fn node(&self, at: usize) -> Option<Rc<Node>> {
        let shard = self.shards.get(at % MASTERS)?;
        if at < MASTERS { Some(Rc::clone(shard.master())) } else { shard.other().cloned() }
    }

    fn lose(&self, node: &Node, how: &str) {
        if self.shards.iter().any(|shard| shard.is_master(node)) {
            self.note_lost(how);
        } else if self.shards.iter().any(|shard| shard.is_other_stale.get() && shard.has(node)) {
            node.begin_branch();
        }
    }

    fn empty(&self, node: &Node) {
        let shard = self.shards.iter().find(|shard| shard.has(node));
        if let Some(stream) = shard.and_then(Shard::stream) {
            stream.begin_anew();
        }
    }

    fn hand_over(&self, node: &Rc<Node>, _handover: Handover) {
        let Some(index) = self.shards.iter().position(|shard| shard.is_master(node)) else { return };
        let shard = &self.shards[index];
        let is_moving = self.moving.get().is_some_and(|moving| [moving.from, moving.to].contains(&index));
        let can_follow = shard.other().is_some_and(|other| reaches(node, other) && self.reaching(other) == MASTERS - 1);
        if !is_moving && can_follow && shard.stream().is_some_and(|stream| stream.catch_up()) {
            self.promote(index);
            self.inform(node);
        }
    }

    fn move_slot(&self, node: &Rc<Node>) {
        let Some(from) = self.shards.iter().position(|shard| shard.is_master(node)) else { return };
        let to = (from + 1 + self.chance.borrow_mut().index(MASTERS - 1)) % MASTERS;
        let keys = node.keys();
        if self.moving.get().is_some() || keys.is_empty() || !reaches(node, self.shards[to].master()) {
            return;
        }
        let slot = slot(self.chance.borrow_mut().pick(&keys).as_bytes());
        if self.slots.shard_of(slot) == from {
            self.begin_move(Move { slot, from, to });
        }
    }

    fn changed(&self) {
        self.shards.iter().filter_map(Shard::stream).for_each(|stream| stream.go_on());
        self.spread_news();
        self.watch();
    }
}
