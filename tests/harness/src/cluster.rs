//! A cluster of three masters, with or without replicas.

mod node_line;

use std::collections::{BTreeMap, HashMap};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};

use tallygate::Limiter;

use self::node_line::{NodeLine, lines};
use crate::proxy::Proxy;
use crate::server::{Server, connected, patient};
use crate::until::wait_until;

/// How many slots a cluster has.
pub const SLOTS: u16 = 16_384;

const MASTERS: usize = 3;

/// Three masters, which share all slots evenly, and maybe a replica of each. All processes are killed when dropped.
pub struct Cluster {
    masters: Vec<Server>,
    /// In the order of their masters.
    replicas: Vec<Server>,
    /// Those that came later.
    others: Vec<Server>,
    /// The names of the nodes by their ports.
    ids: HashMap<u16, String>,
}

impl Cluster {
    /// Starts a cluster without replicas.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a cluster without replicas, with more options for all nodes, written as on their command line.
    #[must_use]
    pub fn start_with(options: &[&str]) -> Self {
        Self::form(start_nodes(options), Vec::new())
    }

    /// Starts a cluster whose nodes tell clients that they are behind these proxies.
    #[must_use]
    pub fn start_behind(proxies: &[Proxy; MASTERS]) -> Self {
        Self::start_announcing(proxies.each_ref().map(Proxy::port), proxies)
    }

    /// Starts a cluster whose nodes tell clients that they are at these ports, from which these proxies are reached.
    #[must_use]
    pub fn start_announcing(ports: [u16; MASTERS], proxies: &[Proxy; MASTERS]) -> Self {
        let start = |(port, proxy): (u16, &Proxy)| {
            let node = Server::start_node(&["--cluster-announce-port", &port.to_string()]);
            proxy.point_to(node.port());
            node
        };
        Self::form(ports.into_iter().zip(proxies).map(start).collect(), Vec::new())
    }

    /// Starts a cluster with a replica of each master, and more options for all nodes, written as on their command line.
    #[must_use]
    pub fn start_with_replicas(options: &[&str]) -> Self {
        Self::form(start_nodes(options), start_nodes(options))
    }

    /// Returns a cluster without replicas that other tests use at the same time: each needs a prefix of its own. It ends
    /// with the last test that uses it.
    #[must_use]
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().expect("no panic under the lock");
        shared.upgrade().unwrap_or_else(|| {
            let cluster = Arc::new(Self::start());
            *shared = Arc::downgrade(&cluster);
            cluster
        })
    }

    fn form(masters: Vec<Server>, replicas: Vec<Server>) -> Self {
        let mut cluster = Self { masters, replicas, others: Vec::new(), ids: HashMap::new() };
        cluster.ids = cluster.nodes().map(|node| (node.port(), node.ask("CLUSTER MYID"))).collect();
        for (index, node) in cluster.nodes().enumerate() {
            node.ask::<()>(&format!("CLUSTER SET-CONFIG-EPOCH {}", index + 1));
            cluster.meet(node);
        }
        for (share, master) in cluster.masters.iter().enumerate() {
            let [first, end] = [share, share + 1].map(|share| usize::from(SLOTS) * share / MASTERS);
            let slots: Vec<_> = (first..end).map(|slot| slot.to_string()).collect();
            master.ask::<()>(&format!("CLUSTER ADDSLOTS {}", slots.join(" ")));
        }
        cluster.await_acquaintance();
        for (master, replica) in cluster.masters.iter().zip(&cluster.replicas) {
            replica.ask::<()>(&format!("CLUSTER REPLICATE {}", cluster.id(master)));
        }
        cluster.await_health();
        cluster
    }

    fn meet(&self, node: &Server) {
        self.masters[0].ask::<()>(&format!("CLUSTER MEET 127.0.0.1 {}", node.port()));
    }

    fn await_acquaintance(&self) {
        let number = self.nodes().count();
        wait_until("all nodes know each other", || self.nodes().all(|node| lines(node).len() == number));
    }

    /// Adds a master without slots.
    pub fn add(&mut self) -> &Server {
        // Without any slot it would become a replica, which at first takes the cluster for down.
        let new = Server::start_node(&["--cluster-allow-replica-migration", "no"]);
        self.ids.insert(new.port(), new.ask("CLUSTER MYID"));
        self.meet(&new);
        self.others.push(new);
        self.await_acquaintance();
        self.await_health();
        &self.others[self.others.len() - 1]
    }

    /// Removes the node that came last, and has no slots any more: the others forget it, and its process is killed.
    pub fn remove_last(&mut self) {
        let gone = self.others.pop().expect("a node was added");
        let id = self.id(&gone).to_owned();
        // A node that forgets the owner of a slot that has moved, and has not heard of that, takes the cluster for down.
        let is_known_bare = |node: &Server| lines(node).iter().all(|line| line.id != id || line.slots.is_empty());
        wait_until("all nodes know that it has no slots", || self.nodes().all(is_known_bare));
        self.nodes().for_each(|node| node.ask::<()>(&format!("CLUSTER FORGET {id}")));
    }

    /// Waits until every node serves, and knows the role of all others.
    pub fn await_health(&self) {
        let is_healthy = |node: &Server| {
            let masters = lines(node).into_iter().filter(|line| line.is_master && !line.slots.is_empty()).count();
            node.ask::<String>("CLUSTER INFO").contains("cluster_state:ok") && masters == MASTERS
        };
        wait_until("the cluster serves", || self.nodes().all(is_healthy));
        let follows = |replica: &Server| replica.ask::<String>("INFO replication").contains("master_link_status:up");
        wait_until("the replicas follow", || self.replicas.iter().all(follows));
    }

    /// Returns the URL to connect to, with all masters.
    #[must_use]
    pub fn url(&self) -> String {
        Self::url_of(self.masters.iter().map(Server::port))
    }

    /// Returns the URL with nodes on these ports.
    #[must_use]
    pub fn url_of(ports: impl IntoIterator<Item = u16>) -> String {
        let hosts: Vec<_> = ports.into_iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("redis+cluster://{}/", hosts.join(","))
    }

    /// Returns a limiter that keeps its tallies here, and waits for a busy machine.
    pub async fn limiter(&self) -> Limiter {
        connected(&patient(), &self.url()).await
    }

    /// Returns a limiter with its own keys, for tests that share the cluster.
    pub async fn own_limiter(&self) -> Limiter {
        static LIMITERS: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("own-{}", LIMITERS.fetch_add(1, Ordering::Relaxed));
        connected(&patient().prefix(prefix), &self.url()).await
    }

    /// Returns all nodes, those first that were masters at first.
    pub fn nodes(&self) -> impl Iterator<Item = &Server> {
        self.masters.iter().chain(&self.replicas).chain(&self.others)
    }

    /// Returns the nodes that were masters at first.
    #[must_use]
    pub fn masters(&self) -> &[Server] {
        &self.masters
    }

    /// Returns the nodes that were masters at first.
    pub fn masters_mut(&mut self) -> &mut [Server] {
        &mut self.masters
    }

    /// Returns the nodes that were replicas at first, in the order of their masters.
    #[must_use]
    pub fn replicas(&self) -> &[Server] {
        &self.replicas
    }

    /// Returns the slot of a key.
    #[must_use]
    pub fn slot_of(&self, key: &str) -> u16 {
        self.masters[0].ask(&format!("CLUSTER KEYSLOT {key}"))
    }

    fn id(&self, node: &Server) -> &str {
        &self.ids[&node.port()]
    }

    /// Returns which master serves a slot, as the first one says.
    #[must_use]
    pub fn owner(&self, slot: u16) -> &Server {
        let lines = lines(&self.masters[0]);
        let serves = |line: &&NodeLine| line.slots.iter().any(|&(first, last)| (first..=last).contains(&slot));
        let id = &lines.iter().find(serves).expect("every slot is served").id;
        self.nodes().find(|node| self.id(node) == id).expect("every node is ours")
    }

    /// Begins to move a slot to that node: keys that its owner does not have are asked for there.
    pub fn begin_move(&self, slot: u16, to: &Server) {
        let from = self.owner(slot);
        to.ask::<()>(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", self.id(from)));
        from.ask::<()>(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", self.id(to)));
    }

    /// Moves the keys of a slot that [is being moved](Self::begin_move).
    pub fn move_keys(&self, slot: u16, to: &Server) {
        let from = self.owner(slot);
        loop {
            let keys: Vec<String> = from.ask(&format!("CLUSTER GETKEYSINSLOT {slot} 100"));
            if keys.is_empty() {
                return;
            }
            for key in &keys {
                Self::move_key(from, key, to);
            }
        }
    }

    /// Moves one key.
    pub fn move_key(from: &Server, key: &str, to: &Server) {
        from.ask::<()>(&format!("MIGRATE 127.0.0.1 {} {key} 0 5000", to.port()));
    }

    /// Gives a slot whose keys [were moved](Self::move_keys) to its new owner.
    pub fn end_move(&self, slot: u16, to: &Server) {
        let from = self.owner(slot);
        let command = format!("CLUSTER SETSLOT {slot} NODE {}", self.id(to));
        to.ask::<()>(&command);
        // Without any slot it may follow the new owner already, and take no orders.
        let _ = from.try_ask::<()>(&command);
        self.await_agreement();
    }

    /// Waits until all nodes know the same owners and epochs. A slot that moves before that may be claimed by two nodes for
    /// good, each of which sends its clients to the other: the new owner takes an epoch that another has already.
    fn await_agreement(&self) {
        let known = |node: &Server| -> BTreeMap<_, _> {
            lines(node).into_iter().map(|line| (line.id, (line.epoch, line.slots))).collect()
        };
        let first = &self.masters[0];
        wait_until("all nodes agree", || {
            let expected = known(first);
            self.nodes().all(|node| known(node) == expected)
        });
    }

    /// Moves that many slots from one node to another by `redis-cli --cluster reshard`: its lowest ones. Without that
    /// program, it does the same.
    pub fn reshard(&self, from: &Server, to: &Server, slots: u16) {
        let (node, slots_to_move) = (format!("127.0.0.1:{}", from.port()), slots.to_string());
        let options =
            [["--cluster-from", self.id(from)], ["--cluster-to", self.id(to)], ["--cluster-slots", &slots_to_move]];
        let mut command = Command::new("redis-cli");
        command.args(["--cluster", "reshard", &node]).args(options.concat()).arg("--cluster-yes");
        match command.stdin(Stdio::null()).output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
            Err(_) => self.slots_of(from).take(slots.into()).for_each(|slot| self.move_slot(slot, to)),
        }
    }

    /// Returns the slots of a node, as the node says itself.
    fn slots_of(&self, node: &Server) -> impl Iterator<Item = u16> {
        let own = lines(node).into_iter().filter(|line| line.id == self.id(node));
        own.flat_map(|line| line.slots).flat_map(|(first, last)| first..=last)
    }

    /// Moves a slot to that node, as `redis-cli --cluster reshard` does.
    pub fn move_slot(&self, slot: u16, to: &Server) {
        self.begin_move(slot, to);
        self.move_keys(slot, to);
        self.end_move(slot, to);
    }
}

fn start_nodes(options: &[&str]) -> Vec<Server> {
    (0..MASTERS).map(|_| Server::start_node(options)).collect()
}
