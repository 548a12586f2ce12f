//! The groups of measurements.

pub(crate) mod attribute;
pub(crate) mod bounds;
pub(crate) mod compile;
pub(crate) mod decision;
pub(crate) mod floods;
pub(crate) mod instructions;
pub(crate) mod latency;
pub(crate) mod leases;
pub(crate) mod outage;
pub(crate) mod own_instructions;
pub(crate) mod prefetch;
pub(crate) mod remembered;
pub(crate) mod server_time;
pub(crate) mod storage;
pub(crate) mod subjects;
pub(crate) mod threads;
pub(crate) mod throughput;
pub(crate) mod tokens;
pub(crate) mod topologies;
pub(crate) mod units;
#[cfg(feature = "web")]
pub(crate) mod web;
pub(crate) mod weight;
pub(crate) mod windows;

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tallygate::{Policy, Rule};
use tokio::runtime::{self, Runtime};

/// The name of the peer in many lines.
const SORTED_SET: &str = "a script on a sorted set";

/// A policy of sliding windows.
fn sliding(name: &'static str, rules: &[(u64, Duration)]) -> Policy {
    let rules = rules.iter().map(|&(count, per)| Rule::sliding_window(count, per));
    Policy::builder(name).rules(rules).build().expect("a valid policy")
}

/// Returns a runtime for calls to a server.
fn runtime(workers: usize) -> Runtime {
    runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().expect("a runtime")
}

/// Returns the output of a future that is ready when it is first polled, so that the cost of a runtime is not measured.
fn at_once<F: IntoFuture>(future: F) -> F::Output {
    match pin!(future.into_future()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("memory never waits"),
    }
}
