//! Masters that die, hang, come and go.

use std::time::{Duration, Instant};

use tallygate::{Limiter, Policy, Readiness, Rule, Subject};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::outage::{DEADLINE, GRACE};
use tallygate_harness::pressure::{Pressure, assert_all_stored, assert_stored, counted};
use tallygate_harness::punctuality::Punctuality;
use tallygate_harness::server::{Server, connected, free_port, patient, refused};
use tallygate_harness::until::{until, until_found};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, MutexGuard};

use super::{key, spread, tagged};

/// Long enough that no node is taken for dead on a busy machine.
const NODE_TIMEOUT: [&str; 2] = ["--cluster-node-timeout", "3000"];

/// Tests about time run one at a time.
async fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());
    ONE_AT_A_TIME.lock().await
}

/// Whether the replica has taken its master's place.
fn is_promoted(replica: &Server) -> bool {
    replica.ask::<String>("INFO replication").contains("role:master")
}

/// Callers whose slots are served by a node, and the others.
fn split(cluster: &Cluster, node: &Server) -> (Vec<Subject>, Vec<Subject>) {
    let owner = |subject: &Subject| cluster.owner(cluster.slot_of(&key(subject))).port();
    spread(30).into_iter().partition(|subject| owner(subject) == node.port())
}

/// Loses a master under load until its replica is promoted. Calls on other slots neither fail nor wait.
async fn assert_only_its_slots_wait(stop: impl FnOnce(&mut Server), go_on: impl FnOnce(&mut Server)) {
    let _alone = alone().await;
    let options = [&NODE_TIMEOUT[..], &["--cluster-require-full-coverage", "no"]].concat();
    let mut cluster = Cluster::start_with_replicas(&options);
    let limiter = connected(&Limiter::builder().deadline(DEADLINE), &cluster.url()).await;
    let (lost, others) = split(&cluster, &cluster.masters()[1]);
    assert!(lost.len() > 3 && others.len() > 6);
    let machine = Punctuality::watch();
    let [lost, others] = [lost, others].map(|subjects| Pressure::start(&limiter, subjects));
    lost.admit(100).await;
    others.admit(100).await;
    stop(&mut cluster.masters_mut()[1]);
    until("the calls on its slots fail", || lost.failed() > 0).await;
    until("its replica is promoted", || is_promoted(&cluster.replicas()[1])).await;
    let promoted = Instant::now();
    lost.admit(500).await;
    others.admit(500).await;
    let (lost, others) = (lost.end().await, others.end().await);
    let late = machine.lateness();
    go_on(&mut cluster.masters_mut()[1]);
    assert_stored(&cluster.limiter().await, &others).await;
    for called in others {
        // A machine that is later than the deadline lets a call fail by itself.
        assert!(called.failed.is_empty() || late > DEADLINE, "{:?}; {late:?}", called.failed.first());
        assert!(called.slowest <= DEADLINE + GRACE + late, "a call took {:?}; the machine: {late:?}", called.slowest);
    }
    for called in lost {
        let after = called.recovered.unwrap().saturating_duration_since(promoted);
        assert!(after <= Duration::from_secs(1) + late, "a call succeeded {after:?} after the promotion; {late:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_killed_master_is_replaced_only_its_slots_wait() {
    assert_only_its_slots_wait(Server::kill, |_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_hanging_master_is_replaced_only_its_slots_wait() {
    assert_only_its_slots_wait(|master| master.pause(), |master| master.resume()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_refuses_every_slot_without_one_of_its_masters_serves_again_with_its_replica() {
    let _alone = alone().await;
    let mut cluster = Cluster::start_with_replicas(&NODE_TIMEOUT);
    let limiter = connected(&Limiter::builder().deadline(DEADLINE), &cluster.url()).await;
    let pressure = Pressure::start(&limiter, spread(30));
    pressure.admit(1_000).await;
    cluster.masters_mut()[2].kill();
    until("calls fail", || pressure.failed() > 0).await;
    until("its replica is promoted", || is_promoted(&cluster.replicas()[2])).await;
    pressure.recover().await;
    let called = pressure.end().await;
    assert!(called.iter().all(|called| called.failed.is_empty() || called.recovered.is_some()));
}

#[tokio::test]
async fn concurrent_calls_that_a_dead_master_never_saw_leave_no_tasks_behind() {
    let mut cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    let policy = Policy::builder("p").rule(Rule::concurrency(1, Duration::from_secs(3_600))).build().unwrap();
    let lost = cluster.masters()[1].port();
    let is_lost = |tag: &u32| cluster.owner(cluster.slot_of(&format!("{{{tag}}}"))).port() == lost;
    let tag = (0..1_000).find(is_lost).unwrap();
    cluster.masters_mut()[1].kill();
    for call in 0..3_000 {
        assert!(limiter.check(&policy, &tagged(&limiter, &tag.to_string(), call)).await.is_err());
    }
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert!(tasks < 200, "{tasks}");
}

#[tokio::test(flavor = "multi_thread")]
async fn masters_that_come_and_go_fail_no_call() {
    let mut cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    let subjects = spread(30);
    let slots: Vec<_> = subjects.iter().map(|subject| cluster.slot_of(&key(subject))).collect();
    let pressure = Pressure::start(&limiter, subjects);
    pressure.admit(500).await;
    let new = cluster.add().port();
    let new = cluster.nodes().find(|node| node.port() == new).unwrap();
    for &slot in &slots[..10] {
        cluster.move_slot(slot, new);
        pressure.admit(20).await;
    }
    pressure.admit(500).await;
    for &slot in &slots[..10] {
        cluster.move_slot(slot, &cluster.masters()[0]);
        pressure.admit(20).await;
    }
    cluster.remove_last();
    pressure.admit(500).await;
    assert_all_stored(&limiter, &pressure.end().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_that_answers_is_enough_to_find_the_others() {
    let cluster = Cluster::shared();
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ports = [free_port(), deaf.local_addr().unwrap().port(), cluster.masters()[1].port()];
    let limiter = connected(&patient().prefix("seeds"), &Cluster::url_of(ports)).await;
    for subject in spread(20) {
        assert_eq!(counted(&limiter, &subject).await, 0);
    }
    let none = Cluster::url_of([free_port(), deaf.local_addr().unwrap().port()]);
    let error = Limiter::connect(&none).await.unwrap_err().to_string();
    assert!(error.contains("`url`") && error.contains("redis"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_do_not_know_their_host_are_reached_by_that_of_the_url_from_redis_7_on() {
    let cluster = Cluster::start();
    // With the first setting, the nodes announce no host; with the second, a question mark in its place.
    for kind in ["unknown-endpoint", "hostname"] {
        for node in cluster.masters() {
            let command = format!("CONFIG SET cluster-preferred-endpoint-type {kind}");
            // Redis 6 has no such setting, and always knows.
            if node.try_ask::<()>(&command).is_err() {
                return;
            }
        }
        let url = cluster.url().replace("127.0.0.1", "localhost");
        let limiter = connected(&patient(), &url).await;
        for subject in spread(20) {
            assert_eq!(counted(&limiter, &subject).await, 0, "{kind}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_names_all_seeds_of_a_cluster_if_none_answers() {
    let [one, other] = [free_port(), free_port()];
    let url = Cluster::url_of([one, other]);
    let error = refused(&patient(), &url).await.to_string();
    assert!(error.contains(&format!("127.0.0.1:{one}, 127.0.0.1:{other}: redis at 127.0.0.1:")), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ping_asks_each_master_and_says_how_much_of_the_cluster_decides() {
    let mut cluster = Cluster::start();
    let limiter = connected(&patient().deadline(DEADLINE), &cluster.url()).await;
    let ready = until_ready(&limiter, Readiness::is_complete).await;
    assert!(ready.error().is_none() && ready.to_string() == "all calls can be decided", "{ready}");
    // One hangs: the others are asked all the same, and nobody waits longer than the deadline for it.
    cluster.masters()[1].pause();
    let lacks_one = |ready: &Readiness| (0.6..0.7).contains(&ready.share());
    let ready = until_ready(&limiter, lacks_one).await;
    assert!(!ready.is_complete() && ready.error().is_some(), "{ready}");
    assert!(ready.to_string().starts_with("calls of 66 % of the subjects can be decided: redis"), "{ready}");
    cluster.masters()[1].resume();
    until_ready(&limiter, Readiness::is_complete).await;
    let killed = &mut cluster.masters_mut()[0];
    let address = format!("127.0.0.1:{}", killed.port());
    killed.kill();
    let says_who = |ready: &Readiness| ready.error().is_some_and(|error| error.to_string().contains(&address));
    until_ready(&limiter, |ready| says_who(ready) && lacks_one(ready)).await;
    cluster.masters_mut().iter_mut().for_each(Server::kill);
    until_found("no master answers", async || limiter.ping().await.is_err()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_no_node_serves_leaves_all_others_ready() {
    let cluster = Cluster::start_with(&["--cluster-require-full-coverage", "no"]);
    // The overrides are in it, whose node has the time.
    let slot = cluster.slot_of("tallygate:!overrides");
    // A node may hear of the slot once more from one that still has it.
    let command = format!("CLUSTER DELSLOTS {slot}");
    let knowing = || cluster.nodes().filter(|node| node.try_ask::<()>(&command).is_ok()).count();
    until("no node knows an owner", || knowing() == 0).await;
    let ready = cluster.limiter().await.ping().await.unwrap();
    assert!(!ready.is_complete() && ready.share() > 0.99, "{ready}");
    assert!(ready.to_string().contains("no node of the cluster serves some of the slots"), "{ready}");
}

/// Asks until the answer is as it is to be.
async fn until_ready(limiter: &Limiter, is_expected: impl Fn(&Readiness) -> bool) -> Readiness {
    let mut found = None;
    until_found("the cluster is as ready as expected", async || {
        found = limiter.ping().await.ok().filter(&is_expected);
        found.is_some()
    })
    .await;
    found.unwrap()
}

#[tokio::test]
async fn a_ping_leaves_the_overrides_where_they_are() {
    let cluster = Cluster::start();
    let limiter = cluster.limiter().await;
    let redirects = || {
        let told = cluster.masters().iter().map(|master| {
            let stats: String = master.ask("INFO errorstats");
            let moved = stats.lines().find_map(|line| line.strip_prefix("errorstat_MOVED:count="));
            moved.map_or(0, |count| count.trim().parse::<u64>().unwrap())
        });
        told.sum::<u64>()
    };
    let ping_and_override = async || {
        limiter.ping().await.unwrap();
        limiter.override_policy("p").text("5 per 1h").allow_unknown().set().await.unwrap();
    };
    // Each new connection is tried, wherever it leads.
    ping_and_override().await;
    let before = redirects();
    for _ in 0..3 {
        ping_and_override().await;
    }
    assert_eq!(redirects(), before);
}
