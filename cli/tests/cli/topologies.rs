//! The same commands on a cluster, behind sentinels, and by TLS.

use tallygate_harness::cluster::Cluster;
use tallygate_harness::sentinels::Sentinels;

use crate::console::Console;
use crate::seeded::{CALLER, folder, limiter, seed};

/// Runs every command that asks a server.
fn run_all(console: &Console<'_>, prefix: &str) {
    let run = |words: &str, code| console.run(&format!("{words} --prefix {prefix}")).expect(code);
    assert!(run("policies", 0).out.contains("sms:{phone}"));
    run(&format!("peek sms.send {CALLER}"), 1);
    assert!(run("top", 0).out.contains("2 of 2 subjects"));
    assert!(run("top sms.send", 0).out.contains(&format!("sms:{CALLER}   100 %")));
    run(&format!("reset sms.send {CALLER} --yes"), 0);
    run(&format!("peek sms.send {CALLER}"), 0);
    // Shown in minutes, so that the same is shown some seconds later.
    run("ban login alice --for 3h --yes", 0);
    run("peek login alice", 1);
    assert!(run("bans", 0).out.starts_with("login alice   banned for 3h\n"));
    run("unban login alice --yes", 0);
    let words = ["override", "login", "0 per 1h", "--yes", "--prefix", prefix];
    console.run_words(&words).expect(0);
    assert!(run("peek login alice", 1).out.starts_with("denied for good by rule 0"));
    run("override login --clear --yes", 0);
    run("doctor", 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_one_place() {
    let cluster = Cluster::start();
    let (url, folder) = (cluster.url(), folder());
    seed(&limiter(&url, "cli").await).await;
    run_all(&Console { url: &url, folder: folder.path() }, "cli");
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_name_the_server() {
    let servers = Sentinels::start();
    let (url, folder) = (servers.url(), folder());
    seed(&limiter(&url, "cli").await).await;
    let console = Console { url: &url, folder: folder.path() };
    run_all(&console, "cli");
    let printed = console.run("doctor --prefix cli").expect(0);
    assert!(printed.out.starts_with(&format!("127.0.0.1:{}\n", servers.primary().port())), "{printed:?}");
}
