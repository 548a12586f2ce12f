//! A cluster for a measurement.

use crate::server::{Server, wait_until};

const MASTERS: usize = 3;
const SLOTS: usize = 16_384;

/// Short, because only a promotion waits for it.
const OPTIONS: [&str; 4] = ["--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no"];

/// Three masters, which share all slots evenly, and maybe a replica of the first. They are killed when dropped.
pub(crate) struct Cluster {
    pub(crate) masters: Vec<Server>,
    pub(crate) replica: Option<Server>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let masters: Vec<_> = (0..MASTERS).map(|_| Server::node(&OPTIONS)).collect();
        for (share, master) in masters.iter().enumerate() {
            let [first, end] = [share, share + 1].map(|share| SLOTS * share / MASTERS);
            let slots: Vec<_> = (first..end).map(|slot| slot.to_string()).collect();
            let words: Vec<_> = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect();
            master.ask::<()>(&words);
            master.ask::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(share + 1).to_string()]);
        }
        let cluster = Self { masters, replica: None };
        cluster.masters.iter().for_each(|master| cluster.meet(master));
        cluster.await_health(MASTERS);
        cluster
    }

    /// Starts a cluster in which the first master has a replica.
    pub(crate) fn with_replica() -> Self {
        let mut cluster = Self::start();
        let replica = Server::node(&OPTIONS);
        cluster.meet(&replica);
        wait_until(|| knows(&replica, MASTERS + 1));
        replica.ask::<()>(&["CLUSTER", "REPLICATE", &cluster.masters[0].ask::<String>(&["CLUSTER", "MYID"])]);
        wait_until(|| replica.follows());
        cluster.replica = Some(replica);
        cluster.await_health(MASTERS + 1);
        cluster
    }

    pub(crate) fn url(&self) -> String {
        let hosts: Vec<_> = self.masters.iter().map(|master| format!("127.0.0.1:{}", master.port())).collect();
        format!("redis+cluster://{}/", hosts.join(","))
    }

    fn meet(&self, node: &Server) {
        self.masters[0].ask::<()>(&["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string()]);
    }

    fn await_health(&self, nodes: usize) {
        let serves = |node: &Server| node.ask::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
        wait_until(|| self.masters.iter().all(|master| serves(master) && knows(master, nodes)));
    }
}

/// Returns whether it knows this number of nodes, itself included.
fn knows(node: &Server, nodes: usize) -> bool {
    let known: String = node.ask(&["CLUSTER", "NODES"]);
    known.lines().filter(|line| !line.contains("handshake")).count() == nodes
}
