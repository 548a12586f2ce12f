//! Processes that share a concurrency limit: no more bodies run than it allows, whatever happens to them.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::Server;
use tallygate_harness::until::wait_until;

const LIMIT: u64 = 7;

/// A process whose tasks work, as many at a time as there are slots.
struct Worker {
    process: Child,
    /// What it has said last.
    said: Arc<Mutex<String>>,
}

/// What all workers of a test share.
struct Work {
    /// That of the slots, which are the machine's.
    name: String,
    lease_seconds: u64,
}

impl Work {
    fn new(lease_seconds: u64) -> Self {
        Self { name: format!("leases-{}-{lease_seconds}", std::process::id()), lease_seconds }
    }

    fn start(&self, url: &str) -> Worker {
        let mut process = Command::new(env!("CARGO_BIN_EXE_worker"))
            .args([url, &self.name, &LIMIT.to_string(), &self.lease_seconds.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary was built beside this test");
        let output = BufReader::new(process.stdout.take().unwrap());
        let said = Arc::new(Mutex::new("0".to_owned()));
        // Read as it comes, so that nothing old is read later.
        thread::spawn({
            let said = Arc::clone(&said);
            move || {
                for line in output.lines().map_while(Result::ok) {
                    let mut said = said.lock().unwrap();
                    // That a limit was exceeded is the last that counts.
                    if *said != "over" {
                        *said = line;
                    }
                }
            }
        });
        Worker { process, said }
    }
}

impl Worker {
    /// Returns how much work is done. No more calls were running than the limit.
    fn done(&self) -> u64 {
        let said = self.said.lock().unwrap();
        said.parse().unwrap_or_else(|_| panic!("more calls were running than the limit: {said}"))
    }

    /// Waits until so much more work is done.
    fn work(&self, more: u64) {
        let goal = self.done() + more;
        wait_until("the work is done", || self.done() >= goal);
    }

    fn signal(&self, signal: &str) {
        let process = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until each of them has done so much more work.
fn work(workers: &[Worker], more: u64) {
    for worker in workers {
        worker.work(more);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_bodies_run_than_the_limit_though_replies_are_lost_and_a_process_stands_still() {
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let urls = [server.url(), proxy.url()];
    tokio::task::spawn_blocking(move || {
        let all = Work::new(60);
        let workers = urls.map(|url| all.start(&url));
        work(&workers, 100);
        for _ in 0..5 {
            proxy.cut_replies();
            work(&workers, 50);
        }
        for _ in 0..5 {
            // Some of the slots are its own meanwhile, and perhaps all. A lease is much longer.
            workers[0].signal("-STOP");
            let (stopped, before) = (Instant::now(), workers[1].done());
            while workers[1].done() < before + 20 && stopped.elapsed() < Duration::from_secs(1) {
                thread::sleep(Duration::from_millis(5));
            }
            workers[0].signal("-CONT");
            work(&workers, 50);
        }
    })
    .await
    .unwrap();
}

#[test]
fn no_more_bodies_run_than_the_limit_when_a_process_dies_with_all_its_leases() {
    let server = Server::start();
    let all = Work::new(6);
    let mut workers = [0, 1].map(|_| all.start(&server.url()));
    work(&workers, 100);
    workers[0].signal("-KILL");
    workers[1].work(200);
    workers[0] = all.start(&server.url());
    work(&workers, 100);
}
