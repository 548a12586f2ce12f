//! Several servers compared with one, and the time until a promoted server is used.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use tallygate::Limiter;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use super::runtime;
use super::throughput::{CALLS, TwoRules, calls_a_second, compare};
use crate::cluster::Cluster;
use crate::duel::{Duel, Spread};
use crate::figure::Figure;
use crate::load::{Caller, patient};
use crate::server::{Server, binary, wait_until};

const ROUNDS: usize = 31;
/// Each takes some seconds, until the servers have found out which one is dead.
const PROMOTIONS: usize = 5;

/// Between two calls of one subject, so that none is denied.
const PAUSE: Duration = Duration::from_millis(5);

const ONE: &str = "one server";

pub(crate) fn figures(server: &Server) -> Vec<Figure> {
    let runtime = &runtime(2);
    let cluster = Cluster::start();
    let one = TwoRules(runtime.block_on(patient(&server.url())));
    let several = TwoRules(runtime.block_on(patient(&cluster.url())));
    let of_one = || processor_us(runtime, &one, std::slice::from_ref(server));
    let of_several = || processor_us(runtime, &several, &cluster.masters);
    vec![
        Figure::ratio("three masters: calls, 256 tasks, two rules", "/s", ONE, &compare(runtime, &several, &one))
            .at_least(0.4),
        Figure::ratio(
            "— the same: processor time of the servers for a call",
            "µs",
            ONE,
            &Duel::of(ROUNDS, of_several, of_one),
        )
        .at_most(2.5),
        promotions("first call after the promotion of a replica, in a cluster", || after_masters(runtime))
            .at_most(1_000.0),
        // A sentinel names the new primary about 0.9 s after its promotion.
        promotions("— the same by Sentinel", || after_sentinels(runtime)).at_most(1_900.0),
    ]
}

/// The processor time of these servers for a call.
fn processor_us(runtime: &Runtime, caller: &TwoRules, servers: &[Server]) -> f64 {
    let spent = || servers.iter().map(Server::processor_us).sum::<f64>();
    let before = spent();
    calls_a_second(runtime, caller);
    (spent() - before) / CALLS as f64
}

fn promotions(what: &str, mut measure: impl FnMut() -> f64) -> Figure {
    let values = (0..PROMOTIONS).map(|_| measure()).collect();
    Figure::amount(what, "ms", "killed while it is called", Spread::of(values))
}

fn after_sentinels(runtime: &Runtime) -> f64 {
    let primary = Server::start();
    let port = primary.port().to_string();
    let replica = Server::launch(Command::new(binary()), &["--replicaof", "127.0.0.1", &port].map(AsRef::as_ref));
    wait_until(|| replica.follows());
    let sentinel = sentinel(&port);
    wait_until(|| sentinel.ask::<String>(&["INFO", "sentinel"]).contains("slaves=1"));
    let url = format!("redis+sentinel://127.0.0.1:{}/bench/", sentinel.port());
    let caller = TwoRules(runtime.block_on(Limiter::connect(&url)).expect("the primary answers"));
    first_success_ms(runtime, caller, 0, primary, &replica)
}

fn sentinel(primary: &str) -> Server {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("sentinel.conf");
    let lines = format!("sentinel monitor bench 127.0.0.1 {primary} 1\nsentinel down-after-milliseconds bench 1000\n");
    fs::write(&file, lines).expect("the folder can be written to");
    let mut command = Command::new(binary());
    command.arg(file).arg("--sentinel");
    Server::launch_in(command, &[], folder)
}

fn after_masters(runtime: &Runtime) -> f64 {
    let mut cluster = Cluster::with_replica();
    let caller = TwoRules(runtime.block_on(Limiter::connect(cluster.url())).expect("the cluster answers"));
    let first = cluster.masters.remove(0);
    let is_there = |subject: &usize| {
        assert!(runtime.block_on(caller.call(*subject)));
        first.ask::<u64>(&["DBSIZE"]) > 0
    };
    let subject = (0..1_000).find(is_there).expect("a third of all subjects is there");
    let replica = cluster.replica.take().expect("the first master has a replica");
    first_success_ms(runtime, caller, subject, first, &replica)
}

/// Kills a server, and returns the time from the promotion of its replica to the first call that is admitted.
fn first_success_ms(runtime: &Runtime, caller: TwoRules, subject: usize, server: Server, replica: &Server) -> f64 {
    let first = runtime.spawn(async move {
        while caller.call(subject).await {
            sleep(PAUSE).await;
        }
        while !caller.call(subject).await {
            sleep(PAUSE).await;
        }
        Instant::now()
    });
    drop(server);
    wait_until(|| replica.is_primary());
    let promoted = Instant::now();
    let first = runtime.block_on(first).expect("no call panics");
    first.saturating_duration_since(promoted).as_secs_f64() * 1_000.0
}
