//! A primary, its replica, and three sentinels that watch them.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tallygate::Limiter;

use crate::proxy::Proxy;
use crate::server::{Server, connected, patient};
use crate::until::{until, wait_until};

/// The name by which the sentinels know the primary.
pub const NAME: &str = "tallies";

const SENTINELS: usize = 3;

/// How long a server may be silent until a sentinel takes it for dead: so long that a busy machine makes none do so.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a server may be silent while a test takes one away.
const SHORT_SILENCE: Duration = Duration::from_secs(1);

/// How often, in milliseconds, a sentinel asks the servers for their roles, and tells the other sentinels what it knows. By
/// default these are 10 and 2 seconds, of which a failover takes several.
const HASTE: &str = "SENTINEL DEBUG INFO-PERIOD 500 PUBLISH-PERIOD 500";

/// A primary, its replica, and three sentinels that watch them. All processes are killed when dropped.
pub struct Sentinels {
    servers: [Server; 2],
    /// Where the servers are, as the sentinels name them.
    ports: [u16; 2],
    /// The sentinels.
    watching: Vec<Server>,
}

impl Sentinels {
    /// Starts them, and waits until each knows all others.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[], &[], &[])
    }

    /// Starts servers with more options, written as on their command line, and sentinels with such options, too, and with
    /// more lines in their configuration.
    #[must_use]
    pub fn start_with(options: &[&str], sentinel_options: &[&str], lines: &[&str]) -> Self {
        let primary = Server::start_with(options);
        let replica = start_replica(primary.port(), options);
        let ports = [primary.port(), replica.port()];
        Self::watch([primary, replica], ports, sentinel_options, lines)
    }

    /// Starts servers that are named as being at these ports, from which these proxies are reached.
    #[must_use]
    pub fn start_announcing(ports: [u16; 2], proxies: &[Proxy; 2]) -> Self {
        let [announced, announced_by_replica] = ports.map(|port| port.to_string());
        let primary = Server::start_with(&["--replica-announce-port", &announced]);
        proxies[0].point_to(primary.port());
        let replica = start_replica(ports[0], &["--replica-announce-port", &announced_by_replica]);
        proxies[1].point_to(replica.port());
        Self::watch([primary, replica], ports, &[], &[])
    }

    fn watch(servers: [Server; 2], ports: [u16; 2], options: &[&str], lines: &[&str]) -> Self {
        let usual = [
            format!("sentinel monitor {NAME} 127.0.0.1 {} 2", ports[0]),
            format!("sentinel down-after-milliseconds {NAME} {}", SILENCE.as_millis()),
            format!("sentinel failover-timeout {NAME} 10000"),
        ];
        let lines: Vec<_> = usual.into_iter().chain(lines.iter().map(|&line| line.to_owned())).collect();
        let watching: Vec<_> = (0..SENTINELS).map(|_| Server::start_sentinel(&lines, options)).collect();
        for sentinel in &watching {
            // Redis 6 cannot be hurried.
            let _ = sentinel.try_ask::<()>(HASTE);
        }
        let all = Self { servers, ports, watching };
        wait_until("the replica follows the primary", || {
            all.replica().ask::<String>("INFO replication").contains("master_link_status:up")
        });
        wait_until("each sentinel knows the replica and the other sentinels", || all.watching.iter().all(knows_all));
        all
    }

    /// Returns servers that other tests use at the same time: each needs a prefix of its own. They end with the last test
    /// that uses them.
    #[must_use]
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Sentinels>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().expect("no panic under the lock");
        shared.upgrade().unwrap_or_else(|| {
            let servers = Arc::new(Self::start());
            *shared = Arc::downgrade(&servers);
            servers
        })
    }

    /// Returns the URL to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        Self::url_of(self.watching.iter().map(Server::port))
    }

    /// Returns the URL with sentinels on these ports.
    #[must_use]
    pub fn url_of(ports: impl IntoIterator<Item = u16>) -> String {
        let mut url = "redis+sentinel://".to_owned();
        for (index, port) in ports.into_iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(url, "{comma}127.0.0.1:{port}");
        }
        url + "/" + NAME
    }

    /// Returns a limiter that keeps its tallies here, and waits for a busy machine.
    pub async fn limiter(&self) -> Limiter {
        connected(&patient(), &self.url()).await
    }

    /// Returns the server that was the primary at first.
    #[must_use]
    pub fn primary(&self) -> &Server {
        &self.servers[0]
    }

    /// Returns the server that was the primary at first.
    pub fn primary_mut(&mut self) -> &mut Server {
        &mut self.servers[0]
    }

    /// Returns the server that was the replica at first.
    #[must_use]
    pub fn replica(&self) -> &Server {
        &self.servers[1]
    }

    /// Returns the sentinels.
    #[must_use]
    pub fn sentinels(&self) -> &[Server] {
        &self.watching
    }

    /// Returns the sentinels.
    pub fn sentinels_mut(&mut self) -> &mut [Server] {
        &mut self.watching
    }

    /// Whether any sentinel names the server that was the replica at first as the primary.
    #[must_use]
    pub fn any_names_replica(&self) -> bool {
        self.watching.iter().any(|sentinel| named_by(sentinel) == self.ports[1])
    }

    /// Whether all sentinels do.
    #[must_use]
    pub fn all_name_replica(&self) -> bool {
        self.watching.iter().all(|sentinel| named_by(sentinel) == self.ports[1])
    }

    /// Whether the server that was the primary at first follows the other one. Until then it takes writes, and loses them.
    #[must_use]
    pub fn has_handed_over(&self) -> bool {
        // Sentinels close the connections to a server whose role they change.
        self.primary().try_ask::<String>("INFO replication").is_ok_and(|info| info.contains("role:slave"))
    }

    /// Loses the server that was the primary at first, and waits until a sentinel names the other one.
    pub async fn lose_primary(&mut self, lose: impl FnOnce(&mut Server)) {
        self.take_for_dead_after(SHORT_SILENCE);
        lose(self.primary_mut());
        until("a sentinel names the new primary", || self.any_names_replica()).await;
        // A busy machine must not make them go back.
        self.take_for_dead_after(SILENCE);
    }

    fn take_for_dead_after(&self, silence: Duration) {
        let command = format!("SENTINEL SET {NAME} down-after-milliseconds {}", silence.as_millis());
        self.watching.iter().for_each(|sentinel| sentinel.ask(&command));
    }

    /// Begins to exchange the roles of primary and replica, while both answer.
    pub fn fail_over(&self) {
        self.watching[0].ask::<()>(&format!("SENTINEL FAILOVER {NAME}"));
    }
}

fn start_replica(primary: u16, options: &[&str]) -> Server {
    Server::start_with(&[&["--replicaof", "127.0.0.1", &primary.to_string()], options].concat())
}

/// Returns the port of the primary that a sentinel names.
#[must_use]
pub fn named_by(sentinel: &Server) -> u16 {
    let (_, port): (String, u16) = sentinel.ask(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {NAME}"));
    port
}

fn knows_all(sentinel: &Server) -> bool {
    let info: String = sentinel.ask("INFO sentinel");
    info.contains(&format!("slaves=1,sentinels={SENTINELS}"))
}
