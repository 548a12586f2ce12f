//! Real servers, in their own words.

use std::time::Duration;

use tallygate::BackendErrorKind::{Away, Wrong};
use tallygate::{Limiter, Subject};
use tallygate_harness::cluster::{Cluster, SLOTS};
use tallygate_harness::server::{Server, free_port, key_of, patient, refused};
use tokio::time::{sleep, timeout};

use super::{PATIENCE, assert_fault, fault, policy};

async fn assert_decides(limiter: &Limiter) {
    let policy = policy().build().unwrap();
    let decided = async {
        while limiter.check(&policy, &Subject::of("s")).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, decided).await.expect("the server decides again");
}

#[tokio::test]
async fn a_full_server_is_away() {
    let server = Server::start();
    let limiter = server.limiter().await;
    server.ask::<()>("CONFIG SET maxmemory 1");
    assert_fault(&limiter, Away, "redis: OOM command not allowed").await;
    server.ask::<()>("CONFIG SET maxmemory 0");
    assert_decides(&limiter).await;
}

#[tokio::test]
async fn a_server_that_cannot_persist_is_away() {
    let server = Server::start();
    let limiter = server.limiter().await;
    // The file cannot be replaced by the one that is saved.
    std::fs::create_dir(server.folder().join("dump.rdb")).unwrap();
    server.ask::<()>("SET k v");
    let mut save = redis::cmd("CONFIG");
    save.arg(&["SET", "save", "3600 1"]).exec(&mut server.connection()).unwrap();
    server.ask::<()>("BGSAVE");
    let failed = async {
        while !server.ask::<String>("INFO persistence").contains("rdb_last_bgsave_status:err") {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, failed).await.expect("the server cannot save");
    assert_fault(&limiter, Away, "redis: MISCONF").await;
    assert!(limiter.ping().await.unwrap_err().to_string().contains("MISCONF"));
}

#[tokio::test]
async fn a_server_without_enough_replicas_is_away() {
    let server = Server::start();
    let limiter = server.limiter().await;
    server.ask::<()>("CONFIG SET min-replicas-to-write 1");
    // Scripts of Redis 6 write all the same.
    let error = limiter.ping().await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("redis: NOREPLICAS")), (Away, true), "{error}");
}

#[tokio::test]
async fn a_replica_is_away_and_one_without_its_primary_too() {
    let (primary, replica) = (Server::start(), Server::start());
    let limiter = replica.limiter().await;
    replica.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    assert_fault(&limiter, Away, "READONLY").await;
    let error = refused(&patient(), &replica.url()).await.to_string();
    assert!(error.contains("`url`") && error.contains("the url has to lead to the primary"), "{error}");

    replica.ask::<()>("REPLICAOF NO ONE");
    assert_decides(&limiter).await;
    replica.ask::<()>("CONFIG SET replica-serve-stale-data no");
    replica.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", free_port()));
    // Some servers look for the primary first, others whether they may write.
    assert_fault(&limiter, Away, "the url has to lead to the primary").await;
    replica.ask::<()>("REPLICAOF NO ONE");
    assert_decides(&limiter).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_busy_with_a_script_is_away() {
    let server = Server::start();
    let limiter = server.limiter().await;
    server.ask::<()>("CONFIG SET lua-time-limit 1");
    let mut connection = server.connection();
    let endless = std::thread::spawn(move || {
        let mut script = redis::cmd("EVAL");
        script.arg("while true do end").arg(0).exec(&mut connection)
    });
    let error = async {
        loop {
            match limiter.ping().await {
                Ok(_) => sleep(Duration::from_millis(1)).await,
                Err(error) => return error,
            }
        }
    };
    let error = timeout(PATIENCE, error).await.expect("the script runs");
    assert_eq!((error.kind(), error.to_string().contains("redis: BUSY")), (Away, true), "{error}");
    server.ask::<()>("SCRIPT KILL");
    assert!(endless.join().unwrap().is_err());
    assert_decides(&limiter).await;
}

#[tokio::test]
async fn a_server_that_is_loading_is_away() {
    // While it loads, a server looks after its clients every two megabytes: after each of these keys.
    let mut server = Server::start_with(&["--key-load-delay", "300000", "--rdbcompression", "no"]);
    for key in 0..20 {
        server.ask::<()>(&format!("SETRANGE large{key} 2100000 x"));
    }
    server.ask::<()>("SAVE");
    server.kill();
    server.restart();
    let limiter = patient().connect_lazy(server.url()).unwrap();
    let error = async {
        loop {
            // On a busy machine, even the greeting may be late.
            let error = fault(&limiter).await;
            assert_eq!(error.kind(), Away, "{error}");
            if error.to_string().contains("redis: LOADING") {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, error).await.expect("the server says that it is loading");
    // One that has nothing to load is back at once.
    server.kill();
    std::fs::remove_file(server.folder().join("dump.rdb")).unwrap();
    server.restart();
    assert_decides(&limiter).await;
}

#[tokio::test]
async fn a_server_with_too_many_clients_is_away() {
    let (server, _others) = Server::start_full();
    let limiter = patient().connect_lazy(server.url()).unwrap();
    assert_fault(&limiter, Away, "max number of clients reached; raise `maxclients` of the server").await;
}

#[tokio::test]
async fn a_key_of_another_type_is_a_mistake() {
    let server = Server::start();
    let limiter = server.limiter().await;
    assert_decides(&limiter).await;
    let key = key_of(&mut server.connection(), "p", "s");
    server.ask::<()>(&format!("UNLINK {key}"));
    server.ask::<()>(&format!("LPUSH {key} x"));
    assert_fault(&limiter, Wrong, "is no tally").await;
}

#[tokio::test]
async fn a_value_that_is_no_tally_is_a_mistake() {
    let server = Server::start();
    let limiter = server.limiter().await;
    assert_decides(&limiter).await;
    let key = key_of(&mut server.connection(), "p", "s");
    server.ask::<()>(&format!("SET {key} no-tally"));
    assert_fault(&limiter, Wrong, "holds something that is no tally").await;
}

#[tokio::test]
async fn a_missing_permission_is_a_mistake_wherever_it_is_missing() {
    let server = Server::start();
    let url = format!("redis://alice:x@127.0.0.1:{}/", server.port());
    for rights in ["~tallygate:* +@all -evalsha", "~tallygate:* +@all -time", "~other:* +@all"] {
        server.ask::<()>(&format!("ACL SETUSER alice reset on >x {rights}"));
        let limiter = patient().connect_lazy(&url).unwrap();
        assert_fault(&limiter, Wrong, "give the user the permissions that the guide lists").await;
    }
    let error = refused(&patient(), &url).await.to_string();
    assert!(error.contains("`url`") && error.contains("give the user the permissions"), "{error}");
}

#[tokio::test]
async fn a_login_that_is_missing_or_wrong_is_a_mistake() {
    let server = Server::start_with(&["--requirepass", "right"]);
    let limiter = patient().connect_lazy(server.url()).unwrap();
    assert_fault(&limiter, Wrong, "NOAUTH").await;
    let limiter = patient().connect_lazy(format!("redis://:wrong@127.0.0.1:{}/", server.port())).unwrap();
    assert_fault(&limiter, Wrong, "check user and password in the url").await;
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_a_mistake() {
    let server = Server::start();
    let limiter = patient().connect_lazy(format!("{}99", server.url())).unwrap();
    assert_fault(&limiter, Wrong, "check the database in the url").await;
}

#[tokio::test]
async fn a_server_without_scripts_is_a_mistake_on_valkey_9_1() {
    let Some(server) = Server::start_without_scripts() else { return };
    let words = "scripts are disabled on the server, and decide every call: restart it with its module `lua`";
    let refused = patient().connect(server.url()).await.unwrap_err();
    assert!(refused.to_string().contains(words), "{refused}");
    assert_fault(&patient().connect_lazy(server.url()).unwrap(), Wrong, words).await;
}

#[tokio::test]
async fn a_cluster_without_all_slots_is_away() {
    let node = Server::start_node(&[]);
    let limiter = patient().connect_lazy(Cluster::url_of([node.port()])).unwrap();
    assert_fault(&limiter, Away, "knows of no slot").await;
    let slots: Vec<_> = (0..SLOTS - 1).map(|slot| slot.to_string()).collect();
    node.ask::<()>(&format!("CLUSTER ADDSLOTS {}", slots.join(" ")));
    let limiter = patient().connect_lazy(Cluster::url_of([node.port()])).unwrap();
    assert_fault(&limiter, Away, "CLUSTERDOWN").await;
}
