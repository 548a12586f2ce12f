//! The cost of the layer, and of a limit around a router, for a web server; and of a pace for its client.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use reqwest::Client;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use tallygate::web::{self, Layer};
use tallygate::{Limiter, Policy, Rule, client};
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
const PLAIN: &str = "the same client without it";

/// The most that a pace may add to the time of a call.
const MOST: f64 = 1.05;

pub(crate) fn figures() -> Vec<Figure> {
    let runtime = &runtime(2);
    // More than all rounds use.
    let policy =
        |name: &'static str| Policy::builder(name).rule(Rule::sliding_counter(1 << 25, Duration::from_secs(3_600)));
    let limiter = Limiter::in_memory();
    let of_server = policy("bench.web").build().expect("the rule is sound");
    let limit = web::limit(&of_server, "{@ip}").expect("the key is sound").limiter(&limiter);
    let of_client = policy("bench.client").pausable().build().expect("the rule is sound");
    let pace = client::pace(&of_client, "{@host}").expect("the key is sound").limiter(&limiter);
    let servers = [
        ("requests by HTTP/1 through `web::Layer`", router().layer(Layer::new())),
        ("the same, and a limit in memory", router().layer(limit.clone()).layer(Layer::new())),
        ("the same, with fields in each response", router().layer(limit).layer(Layer::new().on_success(true))),
    ];
    let bare = Server::start(runtime, router());
    let compare = |what, ours: &Server, than| {
        let duel = Duel::of(ROUNDS, || ours.requests_a_second(runtime), || bare.requests_a_second(runtime));
        Figure::ratio(what, "/s", than, &duel)
    };
    let measure = |(what, router)| compare(what, &Server::start(runtime, router), BARE);
    let mut figures: Vec<_> = servers.into_iter().map(measure).collect();
    let paced = bare.asked_by(|client| client.with(pace));
    figures.push(compare("requests of reqwest through `client::pace`", &paced, PLAIN));
    let times = Duel::of(ROUNDS, || paced.us_of_a_request(runtime), || bare.us_of_a_request(runtime));
    figures.push(Figure::ratio("the same, one after the other: time of each", "µs", PLAIN, &times).at_most(MOST));
    figures
}

fn router() -> Router {
    Router::new().route("/", get(|| async { "well" }))
}

/// A server, and a client that keeps its connections.
struct Server {
    url: String,
    client: ClientWithMiddleware,
}

impl Server {
    fn start(runtime: &Runtime, router: Router) -> Self {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        runtime.spawn(async move { axum::serve(listener, service).await });
        Self::at(url, |client| client)
    }

    /// Returns the same server with a client of its own.
    fn asked_by(&self, middlewares: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        Self::at(self.url.clone(), middlewares)
    }

    fn at(url: String, middlewares: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        let client = Client::builder().no_proxy().http1_only().build().expect("a client");
        Self { url, client: middlewares(ClientBuilder::new(client)).build() }
    }

    fn requests_a_second(&self, runtime: &Runtime) -> f64 {
        let started = Instant::now();
        let answered = runtime.block_on(async {
            let mut clients = JoinSet::new();
            for _ in 0..CLIENTS {
                clients.spawn(ask(self.client.clone(), self.url.clone(), REQUESTS));
            }
            clients.join_all().await.into_iter().sum::<usize>()
        });
        assert_eq!(answered, CLIENTS * REQUESTS, "every request is answered");
        answered as f64 / started.elapsed().as_secs_f64()
    }

    /// The microseconds of a request, of one client that makes one after the other.
    fn us_of_a_request(&self, runtime: &Runtime) -> f64 {
        const ALL: usize = 10 * REQUESTS;
        let started = Instant::now();
        let answered = runtime.block_on(ask(self.client.clone(), self.url.clone(), ALL));
        assert_eq!(answered, ALL, "every request is answered");
        started.elapsed().as_secs_f64() * 1e6 / ALL as f64
    }
}

/// Returns how many of so many requests were answered with the body of the router.
async fn ask(client: ClientWithMiddleware, url: String, requests: usize) -> usize {
    let mut answered = 0;
    for _ in 0..requests {
        let response = client.get(&url).send().await.expect("an answer");
        answered += usize::from(response.status() == 200 && response.bytes().await.is_ok_and(|body| body == "well"));
    }
    answered
}
