//! A server that is asked to stop while it streams, and its process, which ends when the limiter is drained.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::StreamExt as _;
use reqwest::Method;
use tallygate::{Limiter, Permit, Policy, Rejection, Rule, RuleStatus, Subject, rate_limit};
use tallygate_harness::server::{Server as Redis, connected, patient};
use tallygate_web_tests::Client;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::bodies::Bodies;

const HOUR: Duration = Duration::from_secs(3_600);
const PREFIX: &str = "stopped";

/// How many bodies are open when the server is asked to stop.
const STREAMS: usize = 8;
/// What each stream reserves, and what it uses: one for each piece.
const RESERVED: u64 = 50;
const PIECES: u64 = 2;

#[derive(Clone)]
struct Service {
    limiter: Limiter,
    bodies: Bodies,
    tokens: Policy,
}

fn tokens() -> Policy {
    Policy::builder("/shutdown/tokens").rule(Rule::sliding_window(10_000, HOUR)).build().unwrap()
}

/// Whose calls are taken ahead.
fn busy() -> Policy {
    let window = Rule::sliding_window(10_000, HOUR);
    Policy::builder("/shutdown/busy").rule(window).prefetch(Duration::from_secs(10)).build().unwrap()
}

async fn permit(limiter: &Limiter, policy: &Policy, cost: u64) -> Result<Permit, Rejection> {
    Ok(limiter.check(policy, &Subject::everyone()).cost(cost).refundable().await?.into_result()?)
}

#[rate_limit(
    name = "/shutdown/streams",
    until = "body",
    concurrency(limit = 8, lease = "1h"),
    limiter = service.limiter
)]
async fn stream(State(service): State<Service>) -> Result<Response, Rejection> {
    permit(&service.limiter, &busy(), 1).await?;
    let used = permit(&service.limiter, &service.tokens, RESERVED).await?.meter("calls")?;
    Ok(Body::from_stream(service.bodies.open().inspect(move |_| used.add(1))).into_response())
}

/// A process that serves until it is asked to stop, and that ends when it has drained its limiter.
struct Process {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Process {
    fn start(runtime: Runtime, url: String, bodies: Bodies) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (listening, address) = mpsc::channel();
        let main = async move {
            let limiter = connected(&patient().prefix(PREFIX), &url).await;
            for _ in 0..40 {
                permit(&limiter, &busy(), 1).await.unwrap();
            }
            let service = Service { limiter: limiter.clone(), bodies, tokens: tokens() };
            let router = Router::new().route("/shutdown/streams", get(stream)).with_state(service);
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listening.send(listener.local_addr().unwrap()).unwrap();
            axum::serve(listener, router).with_graceful_shutdown(async { stopped.await.unwrap() }).await.unwrap();
            let left = limiter.drain(Duration::from_secs(60)).await;
            assert!(left.is_nothing(), "{left}");
        };
        let thread = thread::spawn(move || runtime.block_on(main));
        Self { address: address.recv().unwrap(), stop, thread }
    }
}

/// Opens the bodies, asks the process to stop, and ends one half of the bodies; the clients of the other half go away.
async fn stop_while_streaming(url: &str, runtime: Runtime) {
    let (bodies, mut opened) = Bodies::new();
    let process = Process::start(runtime, url.to_owned(), bodies);
    let client = Client::new(process.address);
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let response = client.request(Method::GET, "/shutdown/streams", &[]).send().await.unwrap();
        assert_eq!(response.status(), 200);
        streams.push((response, opened.recv().await.unwrap()));
    }
    process.stop.send(()).unwrap();
    for (number, (mut response, sender)) in streams.into_iter().enumerate() {
        for _ in 0..PIECES {
            sender.send(Ok(Bytes::from("piece"))).unwrap();
            assert_eq!(response.chunk().await.unwrap().unwrap(), "piece");
        }
        if number.is_multiple_of(2) {
            drop(sender);
            assert_eq!(response.text().await.unwrap(), "");
        }
    }
    tokio::task::spawn_blocking(|| process.thread.join()).await.unwrap().unwrap();
}

async fn remaining(limiter: &Limiter, policy: &Policy) -> Vec<u64> {
    let peeked = limiter.peek(policy, &Subject::everyone()).await.unwrap();
    peeked.report().iter().map(RuleStatus::remaining).collect()
}

#[tokio::test]
async fn a_process_that_stops_while_it_streams_leaves_nothing_counted_that_was_not_used() {
    let redis = Redis::start();
    let observer = connected(&patient().prefix(PREFIX), &redis.url()).await;
    let runtimes: [fn() -> Runtime; 2] = [
        || Builder::new_current_thread().enable_all().build().unwrap(),
        || Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap(),
    ];
    for round in 1..=4 {
        stop_while_streaming(&redis.url(), runtimes[round % 2]()).await;
        let streams = (round * STREAMS) as u64;
        let slots = Limiter::policy("/shutdown/streams").unwrap();
        assert_eq!(remaining(&observer, &slots).await, [STREAMS as u64], "round {round}");
        assert_eq!(remaining(&observer, &tokens()).await, [10_000 - streams * PIECES], "round {round}");
        assert_eq!(remaining(&observer, &busy()).await, [10_000 - streams - 40 * round as u64], "round {round}");
    }
}
