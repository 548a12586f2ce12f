//! What our own layer says, as clients that others wrote hear it.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ::axum::extract::State;
use ::axum::middleware::map_response;
use ::axum::response::Response;
use ::axum::routing::get;
use ::axum::{Json, Router};
use futures_util::future::join_all;
use http::StatusCode;
use rate_limits::{Headers, RateLimit, Status};
use tallygate::web::{Draft, Layer, Legacy};
use tallygate::{Limiter, Policy, Rejection, Rule, rate_limit, web};
use tallygate_web_tests::Client;
use tallygate_web_tests::server::serve;
use typespec_client_core::http::{
    ClientOptions, Context, ExponentialRetryOptions, Method, Pipeline, Request, RetryOptions, Url,
};

const MINUTE: Duration = Duration::from_secs(60);

#[rate_limit(
    name = "foreign",
    rule(count = 2, per = "60s"),
    rule(count = 1_000, per = "1h", unit = "tokens"),
    unit("tokens", cost = 300),
    limiter = limiter
)]
async fn limited(State(limiter): State<Limiter>) -> Result<Json<&'static str>, Rejection> {
    let _ = limiter;
    Ok(Json("done"))
}

#[tokio::test]
async fn a_parser_of_fields_reads_the_limit_what_is_left_and_how_long_to_wait() {
    for (legacy, draft) in [
        (Legacy::XRateLimit, None),
        (Legacy::XRateLimit, Some(Draft::V11)),
        (Legacy::XRateLimitByUnit, None),
        (Legacy::XRateLimitByUnit, Some(Draft::V11)),
    ] {
        let layer = Layer::new().fields(draft).legacy(legacy).on_success(true);
        let router = Router::new().route("/", get(limited)).layer(layer).with_state(Limiter::in_memory());
        let client = Client::new(serve(router).await);
        for remaining in [1, 0] {
            let read = Headers::new(&client.get("/").await.headers).unwrap();
            assert_eq!((read.limit(), read.remaining()), (2, remaining), "{legacy:?}");
            // It takes any `X-RateLimit-Reset` for a point in time, as GitHub's is.
            if legacy == Legacy::XRateLimitByUnit {
                let reset = read.reset().duration();
                assert!(Duration::ZERO < reset && reset <= MINUTE, "{reset:?}");
            }
        }

        let denied = client.get("/").await;
        let status = RateLimit::new(&denied.headers).unwrap().status();
        let said = denied.retry_after().map(Duration::from_secs).unwrap();
        assert_eq!((denied.status, status), (429, Status::Wait(said)), "{legacy:?}");
    }
}

/// A server that admits one request each second, and how many it denied.
async fn one_a_second() -> (SocketAddr, Arc<AtomicUsize>) {
    let rule = Rule::sliding_window(1, Duration::from_secs(1));
    let policy = Policy::builder("partner").rule(rule).build().unwrap();
    let limit = web::limit(&policy, "all").unwrap().limiter(&Limiter::in_memory());
    let denied = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&denied);
    let count = map_response(move |response: Response| {
        counted.fetch_add(usize::from(response.status() == StatusCode::TOO_MANY_REQUESTS), Ordering::SeqCst);
        ready(response)
    });
    let router = Router::new().route("/", get("done")).layer(limit).layer(Layer::new()).layer(count);
    (serve(router).await, denied)
}

#[tokio::test]
async fn a_client_that_retries_comes_back_when_the_next_call_fits() {
    let (server, denied) = one_a_second().await;
    // It would come back a millisecond later, and give up, if it did not hear what the layer says.
    let retries = ExponentialRetryOptions {
        initial_delay: typespec_client_core::time::Duration::milliseconds(1),
        max_retries: 1,
        ..ExponentialRetryOptions::default()
    };
    let options = ClientOptions { retry: RetryOptions::exponential(retries), ..ClientOptions::default() };
    let pipeline = Pipeline::new(options, Vec::new(), Vec::new(), None);
    let get = async || {
        let mut request = Request::new(Url::parse(&format!("http://{server}/")).unwrap(), Method::Get);
        u16::from(pipeline.send(&Context::new(), &mut request, None).await.unwrap().status())
    };
    // If the second request is late, it is not denied, and says nothing.
    while denied.load(Ordering::SeqCst) == 0 {
        assert_eq!(join_all([get(), get()]).await, [200, 200]);
    }
}
