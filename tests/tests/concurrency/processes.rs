//! Several processes that share one Redis admit, together, exactly as many as the rules say.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use tallygate_harness::length::cases;
use tallygate_harness::load::TASKS;
use tallygate_harness::server::Server;

/// A process that calls from many tasks at once, on a signal.
struct Caller {
    process: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Drop for Caller {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Caller {
    /// Starts a process, and waits until it is ready to call.
    fn start(url: &str, count: u64, calls_per_task: usize) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_caller"))
            .args([url, &count.to_string(), &calls_per_task.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary was built beside this test");
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut caller = Self { process, output };
        assert_eq!(caller.line(), "ready");
        caller
    }

    fn go(&mut self) {
        self.process.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }

    fn line(&mut self) -> String {
        self.output.next().expect("the process says something").unwrap()
    }

    /// Waits for the process to end, and returns how many of its calls were admitted.
    fn admitted(mut self) -> u64 {
        self.line().parse().unwrap()
    }
}

#[test]
fn two_processes_at_once_admit_exactly_count() {
    let server = Server::start();
    for count in [1, 500].repeat(cases(1, 5)) {
        server.ask::<()>("FLUSHALL");
        // Either process alone calls often enough.
        let calls_per_task = 100;
        assert!(TASKS * calls_per_task > 500);
        let mut callers = [0; 2].map(|_| Caller::start(&server.url(), count, calls_per_task));
        callers.iter_mut().for_each(Caller::go);
        assert_eq!(callers.map(Caller::admitted).iter().sum::<u64>(), count);
    }
}

#[test]
fn a_process_that_comes_later_finds_the_tally_full() {
    let server = Server::start();
    let mut first = Caller::start(&server.url(), 100, 10);
    first.go();
    assert_eq!(first.admitted(), 100);
    let mut second = Caller::start(&server.url(), 100, 10);
    second.go();
    assert_eq!(second.admitted(), 0);
}
