//! Every kind of address leads to the server, the user and the database that it names.

use std::fs;
use std::time::Duration;

use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::server::{Server, connected, patient};

/// The password `p@ss/w:o?r#d 100%`, as a URL has it.
const ENCODED: &str = "p%40ss%2Fw:o%3Fr%23d%20100%25";

const HOUR: Duration = Duration::from_secs(3_600);

/// Counts one call, and returns how many keys each database has, like `db0:1 db3:1`.
async fn counted(limiter: &Limiter, server: &Server) -> String {
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    assert!(limiter.check(&policy, &Subject::of("s")).await.unwrap().is_allowed());
    let keyspace: String = server.ask("INFO keyspace");
    let databases = keyspace.lines().filter_map(|line| line.strip_prefix("db"));
    databases
        .map(|line| format!("db{}", line.split(',').next().unwrap().replace("keys=", "")))
        .collect::<Vec<_>>()
        .join(" ")
}

async fn limiter_at(url: &str) -> Limiter {
    connected(&patient(), url).await
}

fn user_with_password(server: &Server) {
    let mut command = redis::cmd("ACL");
    command.arg(&["SETUSER", "al@ice", "on", ">p@ss/w:o?r#d 100%", "~*", "+@all"]);
    command.exec(&mut server.connection()).unwrap();
}

#[tokio::test]
async fn a_url_leads_to_host_database_and_user() {
    let server = Server::start();
    let port = server.port();
    user_with_password(&server);
    assert_eq!(counted(&server.limiter().await, &server).await, "db0:1");
    let named = limiter_at(&format!("redis://al%40ice:{ENCODED}@localhost:{port}/3")).await;
    assert_eq!(counted(&named, &server).await, "db0:1 db3:1");
    let clients: String = server.ask("CLIENT LIST");
    assert!(clients.lines().any(|client| client.contains(" db=3 ") && client.contains(" user=al@ice ")), "{clients}");
}

#[tokio::test]
async fn a_password_without_a_user_is_that_of_the_default_user() {
    let server = Server::start_with(&["--requirepass", "p@ss"]);
    let limiter = limiter_at(&format!("redis://:p%40ss@127.0.0.1:{}/", server.port())).await;
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    assert!(limiter.check(&policy, &Subject::of("s")).await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_user_without_a_password_is_logged_in() {
    let server = Server::start();
    server.ask::<()>("ACL SETUSER bob on nopass ~* +@all");
    let _limiter = limiter_at(&format!("redis://bob:@127.0.0.1:{}/", server.port())).await;
    let clients: String = server.ask("CLIENT LIST");
    assert!(clients.contains(" user=bob "), "{clients}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_url_leads_to_a_socket_with_user_and_database() {
    let server = Server::start_with(&["--unixsocket", "our redis.sock"]);
    user_with_password(&server);
    let path = server.folder().join("our%20redis.sock");
    let path = path.to_str().unwrap();
    assert_eq!(counted(&limiter_at(&format!("redis+unix://{path}")).await, &server).await, "db0:1");
    let named = limiter_at(&format!("redis+unix://al%40ice:{ENCODED}@{path}?db=3")).await;
    assert_eq!(counted(&named, &server).await, "db0:1 db3:1");
    let clients: String = server.ask("CLIENT LIST");
    assert!(clients.lines().any(|client| client.contains(" db=3 ") && client.contains(" user=al@ice ")), "{clients}");
}

#[tokio::test]
async fn a_client_of_the_callers_own_leads_to_its_server_user_and_database() {
    let server = Server::start();
    user_with_password(&server);
    let url = format!("redis://al%40ice:{ENCODED}@127.0.0.1:{}/3", server.port());
    let client = redis::Client::open(url.as_str()).unwrap();
    let limiter = patient().build_with_client(&client).unwrap();
    assert_eq!(server.calls("hello"), 0, "nothing is connected before it is needed");
    assert_eq!(counted(&limiter, &server).await, "db3:1");
    let clients: String = server.ask("CLIENT LIST");
    assert!(clients.contains(" user=al@ice "), "{clients}");
}

/// Returns what the system's timer of each connection to that port is doing, by the table of its sockets.
fn timers(port: u16) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/net/tcp").unwrap();
    let connections = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let remote = format!(":{port:04X}");
    connections.filter(|fields| fields[2].ends_with(&remote)).map(|fields| fields[5].to_owned()).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_system_looks_after_an_idle_connection() {
    let server = Server::start();
    let _limiter = server.limiter().await;
    let timers = timers(server.port());
    // 02 is the timer of keepalive.
    assert!(timers.iter().any(|timer| timer.starts_with("02:")), "{timers:?}");
}
