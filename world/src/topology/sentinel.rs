//! A primary, its replica, and three sentinels that vote on which is which.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use super::arrangement::Arrangement;
use super::node::{self, Node, PORT, reaches};
use super::plant::Plant;
use super::replication::Replication;
use crate::engine::{self, Chance};
use crate::history::{Event, History};
use crate::server::Role;
use crate::workload::Handover;

/// The name of the primary.
const NAME: &str = "main";

/// The two servers come first, then the sentinels.
const SERVERS: usize = 2;
const NODES: u32 = 5;
const MOST_SENTINELS: usize = 2;

/// How long a primary has to be away until sentinels replace it.
const DOWN_AFTER_US: u64 = 1_000_000;

/// How long a server that was replaced goes on at least, once sentinels reach it.
const DEMOTED_US: u64 = 3_500_000;

/// How long to wait before looking once more for what cannot be done yet.
const AGAIN_US: u64 = 500_000;

/// A primary, its replica, and three sentinels.
pub(super) struct Sentinel {
    me: Weak<Self>,
    nodes: Vec<Rc<Node>>,
    /// Which server is the primary by the latest failover.
    primary: Cell<usize>,
    /// Whether the server that it has replaced was not told yet.
    is_other_stale: Cell<bool>,
    /// The primary that each sentinel names.
    named: RefCell<[usize; NODES as usize]>,
    /// Since when most sentinels miss the primary.
    missed_since: Cell<Option<u64>>,
    lag_us: u64,
    stream: RefCell<Option<Rc<Replication>>>,
    chance: RefCell<Chance>,
    history: History,
}

impl Sentinel {
    pub(super) fn start(seed: u64, plant: &Plant, history: &History) -> Rc<Self> {
        let mut chance = Chance::new(seed, "sentinels");
        let lag_us = chance.spread(100, 1_000_000);
        let all = Rc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            nodes: (0..NODES).filter_map(|number| Node::start(number, plant, history)).collect(),
            primary: Cell::new(0),
            is_other_stale: Cell::new(false),
            named: RefCell::default(),
            missed_since: Cell::new(None),
            lag_us,
            stream: RefCell::default(),
            chance: RefCell::new(chance),
            history: history.clone(),
        });
        for node in all.sentinels() {
            node.with_server(|server| server.watch(primaries(0)));
        }
        all.follow();
        all
    }

    fn server(&self, index: usize) -> &Rc<Node> {
        &self.nodes[index]
    }

    fn primary(&self) -> &Rc<Node> {
        self.server(self.primary.get())
    }

    fn other(&self) -> &Rc<Node> {
        self.server(SERVERS - 1 - self.primary.get())
    }

    fn sentinels(&self) -> &[Rc<Node>] {
        &self.nodes[SERVERS..]
    }

    fn stream(&self) -> Option<Rc<Replication>> {
        self.stream.borrow().clone()
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

    /// Lets the other server follow the primary.
    fn follow(&self) {
        let (primary, other) = (self.primary(), self.other());
        let role = Role::Replica { host: node::host(primary.number()), port: PORT, is_connected: true };
        other.with_server(|server| server.set_role(role));
        other.end_branch();
        self.is_other_stale.set(false);
        *self.stream.borrow_mut() = Some(Replication::begin(primary, other, self.lag_us));
    }

    /// Lets the replica take over. The old primary goes on, if it can, until it learns of that.
    fn promote(&self) {
        let (old, new) = (Rc::clone(self.primary()), Rc::clone(self.other()));
        let stream = self.stream.take();
        if stream.as_ref().is_none_or(|stream| stream.is_behind()) {
            self.history.note(Event::Lost {
                how: format!("server {} lacks what server {} wrote last", new.number(), old.number()),
            });
        }
        if old.ahead_us() != new.ahead_us() {
            self.history.note(Event::Lost { how: format!("server {} has another clock", new.number()) });
        }
        if let Some(stream) = stream {
            stream.end();
        }
        old.begin_branch();
        new.with_server(|server| server.set_role(Role::Primary));
        self.primary.set(usize::from(self.primary.get() == 0));
        self.is_other_stale.set(true);
        self.missed_since.set(None);
        self.history.note(Event::Fault { what: format!("server {} takes over", new.number()) });
        self.spread_news();
    }

    /// Lets each sentinel, and the replaced server, learn of the primary at a time of its own.
    fn spread_news(&self) {
        for index in self.behind() {
            let us = self.draw_us(2_000_000);
            self.later(us, move |all| all.name(index));
        }
        if self.is_other_stale.get() {
            let us = self.draw_us(5_000_000);
            self.later(DEMOTED_US + us, Self::demote);
        }
    }

    /// The sentinels that name another primary.
    fn behind(&self) -> Vec<usize> {
        (SERVERS..self.nodes.len()).filter(|index| self.named.borrow()[*index] != self.primary.get()).collect()
    }

    /// Lets a sentinel name the primary, if it can know of it.
    fn name(&self, index: usize) {
        let (primary, sentinel) = (self.primary.get(), &self.nodes[index]);
        if self.named.borrow()[index] == primary || !reaches(sentinel, self.primary()) {
            return;
        }
        let is_first = self.named.borrow()[SERVERS..].iter().all(|named| *named != primary);
        self.named.borrow_mut()[index] = primary;
        if is_first {
            self.history.note(Event::Named { server: self.primary().number() });
        }
        sentinel.with_server(|server| server.watch(primaries(primary)));
        let (old, new) = (node::host(self.other().number()), node::host(self.primary().number()));
        sentinel.publish("+switch-master", &format!("{NAME} {old} {PORT} {new} {PORT}"));
    }

    /// Tells the replaced server to follow, if a sentinel that knows it reaches it. Its clients are sent away.
    fn demote(&self) {
        let other = self.other();
        let knows = |index: &usize| self.named.borrow()[*index] == self.primary.get();
        let mut informed = (SERVERS..self.nodes.len()).filter(knows);
        if self.is_other_stale.get() && informed.any(|index| reaches(&self.nodes[index], other)) {
            self.follow();
            other.hang_up();
            self.history.note(Event::Fault { what: format!("server {} follows", other.number()) });
        }
    }

    /// How many sentinels reach a server.
    fn reaching(&self, server: &Node) -> usize {
        self.sentinels().iter().filter(|sentinel| reaches(sentinel, server)).count()
    }

    /// Looks whether most sentinels miss the primary, and for how long.
    fn watch(&self) {
        let is_missed = self.reaching(self.primary()) < MOST_SENTINELS;
        if !is_missed {
            self.missed_since.set(None);
        } else if self.missed_since.get().is_none() {
            let since = Some(engine::now_us());
            self.missed_since.set(since);
            self.later(DOWN_AFTER_US, move |all| all.replace(since));
        }
    }

    /// Replaces a primary that is missed without end, as soon as most sentinels reach a replica.
    fn replace(&self, since: Option<u64>) {
        if self.missed_since.get() != since {
            return;
        }
        if !self.is_other_stale.get() && self.reaching(self.other()) >= MOST_SENTINELS {
            self.promote();
            self.watch();
        } else {
            self.later(AGAIN_US, move |all| all.replace(since));
        }
    }
}

impl Arrangement for Sentinel {
    fn url(&self) -> String {
        let hosts: Vec<_> =
            self.sentinels().iter().map(|node| format!("{}:{PORT}", node::host(node.number()))).collect();
        format!("redis+sentinel://{}/{NAME}", hosts.join(","))
    }

    fn nodes(&self) -> &[Rc<Node>] {
        &self.nodes
    }

    /// The first is the primary, then come the replica and the sentinels.
    fn node(&self, at: usize) -> Option<Rc<Node>> {
        match at {
            0 => Some(Rc::clone(self.primary())),
            1 => Some(Rc::clone(self.other())),
            _ => self.nodes.get(at).cloned(),
        }
    }

    fn lose(&self, node: &Node, how: &str) {
        if node.number() == self.primary().number() {
            self.history.note(Event::Lost { how: how.to_owned() });
        } else if self.is_other_stale.get() && node.number() == self.other().number() {
            node.begin_branch();
        }
    }

    fn empty(&self, node: &Node) {
        let is_server = self.nodes[..SERVERS].iter().any(|server| server.number() == node.number());
        if let Some(stream) = self.stream().filter(|_| is_server) {
            stream.begin_anew();
        }
    }

    fn hand_over(&self, _node: &Rc<Node>, handover: Handover) {
        let (primary, other) = (self.primary(), self.other());
        if self.is_other_stale.get() || !reaches(primary, other) || self.reaching(other) < MOST_SENTINELS {
            return;
        }
        if handover == Handover::BySentinel {
            self.promote();
        } else if self.stream().is_some_and(|stream| stream.catch_up()) {
            self.promote();
            self.follow();
        }
    }

    fn changed(&self) {
        if let Some(stream) = self.stream() {
            stream.go_on();
        }
        self.spread_news();
        self.watch();
    }
}

/// What a sentinel says of the primary.
fn primaries(primary: usize) -> BTreeMap<String, (String, u16)> {
    let number = u32::try_from(primary).unwrap_or_default();
    BTreeMap::from([(NAME.to_owned(), (node::host(number), PORT))])
}
