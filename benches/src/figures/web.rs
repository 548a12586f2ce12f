//! The cost of the layer, and of a limit around a router, for a web server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use reqwest::Client;
use tallygate::web::{self, Layer};
use tallygate::{Limiter, Policy, Rule};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::runtime;
use crate::duel::Duel;
use crate::figure::Figure;

const ROUNDS: usize = 21;
const CLIENTS: usize = 32;
const REQUESTS: usize = 100;

const BARE: &str = "the same server without it";

pub(crate) fn figures() -> Vec<Figure> {
    let runtime = &runtime(2);
    // More than all rounds use.
    let policy = Policy::builder("bench.web").rule(Rule::sliding_counter(1 << 25, Duration::from_secs(3_600)));
    let policy = policy.build().expect("the rule is sound");
    let limit = web::limit(&policy, "{@ip}").expect("the key is sound").limiter(&Limiter::in_memory());
    let servers = [
        ("requests by HTTP/1 through `web::Layer`", router().layer(Layer::new())),
        ("the same, and a limit in memory", router().layer(limit.clone()).layer(Layer::new())),
        ("the same, with fields in each response", router().layer(limit).layer(Layer::new().on_success(true))),
    ];
    let bare = Server::start(runtime, router());
    let compare = |(what, router)| {
        let ours = Server::start(runtime, router);
        let duel = Duel::of(ROUNDS, || ours.requests_a_second(runtime), || bare.requests_a_second(runtime));
        Figure::ratio(what, "/s", BARE, &duel)
    };
    servers.into_iter().map(compare).collect()
}

fn router() -> Router {
    Router::new().route("/", get(|| async { "well" }))
}

/// A server, and a client that keeps its connections.
struct Server {
    url: String,
    client: Client,
}

impl Server {
    fn start(runtime: &Runtime, router: Router) -> Self {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        runtime.spawn(async move { axum::serve(listener, service).await });
        let client = Client::builder().no_proxy().http1_only().build().expect("a client");
        Self { url, client }
    }

    fn requests_a_second(&self, runtime: &Runtime) -> f64 {
        let started = Instant::now();
        let answered = runtime.block_on(async {
            let mut clients = JoinSet::new();
            for _ in 0..CLIENTS {
                clients.spawn(ask(self.client.clone(), self.url.clone()));
            }
            clients.join_all().await.into_iter().sum::<usize>()
        });
        assert_eq!(answered, CLIENTS * REQUESTS, "every request is answered");
        answered as f64 / started.elapsed().as_secs_f64()
    }
}

/// Returns how many requests were answered with the body of the router.
async fn ask(client: Client, url: String) -> usize {
    let mut answered = 0;
    for _ in 0..REQUESTS {
        let response = client.get(&url).send().await.expect("an answer");
        answered += usize::from(response.status() == 200 && response.bytes().await.is_ok_and(|body| body == "well"));
    }
    answered
}
