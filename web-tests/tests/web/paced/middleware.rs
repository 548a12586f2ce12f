//! Calls of reqwest, paced by a middleware.

use http::Method;
use reqwest::{Body as ReqwestBody, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Result};
use tallygate::Rejection;

use super::grpc::late;
use super::pauses::{pausable, pausable_by};
use super::*;

fn client(pace: Pace) -> ClientWithMiddleware {
    ClientBuilder::new(::reqwest::Client::new()).with(pace.limiter(&Limiter::in_memory())).build()
}

/// The kind of the rejection; `None` if there is a response.
fn rejected(answer: Result<Response>) -> Option<RejectionKind> {
    match answer {
        Ok(_) => None,
        Err(Error::Middleware(error)) => Some(error.downcast_ref::<Rejection>().expect("a rejection").kind()),
        Err(Error::Reqwest(error)) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_call_beyond_the_pace_is_not_sent() {
    let partner = Partner::start().await;
    let client = client(pace([per_minute(2)], "{@host}"));
    let url = format!("http://{}/1", partner.address);
    let response = client.get(&url).send().await.unwrap();
    assert_eq!((response.status(), response.url().as_str()), (StatusCode::OK, url.as_str()));
    assert_eq!((response.content_length(), response.remote_addr()), (Some(4), Some(partner.address)));
    assert_eq!(response.extensions().get::<Heard>().unwrap().wait(), None);
    assert_eq!(response.text().await.unwrap(), "well");

    assert_eq!(rejected(client.post(&url).body("body").send().await), None);
    let polled = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&polled);
    let body = stream::once(async move { Ok::<_, Infallible>(noted.fetch_add(1, Ordering::SeqCst).to_string()) });
    let denied = client.post(&url).body(ReqwestBody::wrap_stream(body)).send().await;
    assert_eq!(rejected(denied), Some(RejectionKind::Limited));
    assert_eq!((polled.load(Ordering::SeqCst), partner.asked().len()), (0, 2));
}

#[tokio::test]
async fn the_key_shows_headers_and_extensions_of_the_request_which_are_sent_as_they_are() {
    let echo = any(async |headers: http::HeaderMap| headers["x-api-key"].to_str().unwrap().to_owned());
    let partner = Partner::answering(|router| router.route("/echo", echo)).await;
    let find = |request: &http::request::Parts| request.extensions.get::<Account>().map(|account| account.0.to_owned());
    let client = client(pace([per_minute(1)], "{@account}/{@method}/{@header_x_api_key}").value("account", find));
    let send = async |method: Method, account, key: &str| {
        let request = client.request(method, format!("http://{}/echo", partner.address));
        request.header("x-api-key", key).with_extension(Account(account)).send().await
    };
    for (method, account, key) in [
        (Method::GET, "alice", "a"),
        (Method::GET, "alice", "b"),
        (Method::POST, "alice", "a"),
        (Method::GET, "bob", "a"),
    ] {
        assert_eq!(send(method.clone(), account, key).await.unwrap().text().await.unwrap(), key);
        assert_eq!(rejected(send(method, account, key).await), Some(RejectionKind::Limited));
    }
}

#[tokio::test]
async fn after_a_denial_of_the_other_side_nothing_is_sent_until_it_says() {
    let denial = any(async || (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "60")]));
    let partner = Partner::answering(|router| router.route("/busy", denial)).await;
    let client = client(pausable());
    let get = async |path: &str| client.get(format!("http://{}{path}", partner.address)).send().await;
    let denied = get("/busy").await.unwrap();
    assert_eq!(denied.extensions().get::<Heard>().unwrap().wait(), Some(MINUTE));
    assert_eq!(rejected(get("/").await), Some(RejectionKind::Paused));
    assert!(partner.asked().is_empty());
}

#[tokio::test]
async fn what_another_host_answers_after_a_redirect_pauses_nothing_where_the_key_shows_the_host() {
    let denial = any(async || (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "60")]));
    let partner = Partner::answering(|router| router.route("/busy", denial)).await;
    let elsewhere = format!("http://localhost:{}/busy", partner.address.port());
    let redirect = any(async move || (StatusCode::FOUND, [("location", elsewhere)]));
    let first = Partner::answering(|router| router.route("/moved", redirect)).await;
    let by_host = || {
        let policy = Policy::builder("partner").rule(per_minute(100)).rule_on("host", per_minute(100));
        let policy = policy.pausable_on("host").build().unwrap();
        client::pace(&policy, "all").unwrap().subject("host", "{@host}").unwrap()
    };
    for (key, pace, rejection) in [
        ("{@host}", pausable_by("{@host}"), None),
        ("{@header_host}", pausable_by("{@header_host}"), None),
        ("host: {@host}", by_host(), None),
        ("partners", pausable_by("partners"), Some(RejectionKind::Paused)),
    ] {
        let client = client(pace);
        let get = async |path: &str| client.get(format!("http://{}{path}", first.address)).send().await;
        let denied = get("/moved").await.unwrap();
        assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(denied.extensions().get::<Heard>().unwrap().wait(), Some(MINUTE));
        assert_eq!(rejected(get("/").await), rejection, "{key}");
    }
}

#[tokio::test]
async fn nor_do_the_trailers_of_that_answer() {
    let denial = any(async || late(&[("grpc-status", "8"), ("grpc-retry-pushback-ms", "60000")]));
    let partner = Partner::answering(|router| router.route("/late", denial)).await;
    let elsewhere = format!("http://localhost:{}/late", partner.address.port());
    let redirect = any(async move || (StatusCode::FOUND, [("location", elsewhere)]));
    let first = Partner::answering(|router| router.route("/moved", redirect)).await;
    for (key, rejection) in [("{@host}", None), ("partners", Some(RejectionKind::Paused))] {
        // Only HTTP/2 sends trailers to those who do not ask for them.
        let http = ::reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
        let client = ClientBuilder::new(http).with(pausable_by(key).limiter(&Limiter::in_memory())).build();
        let get = async |path: &str| client.get(format!("http://{}{path}", first.address)).send().await;
        assert!(get("/moved").await.unwrap().bytes().await.unwrap().ends_with(b"well"));
        assert_eq!(rejected(get("/").await), rejection, "{key}");
    }
}

#[tokio::test]
async fn a_call_waits_for_its_turn_and_costs_what_it_uses() {
    let partner = Partner::start().await;
    let seconds = Rule::sliding_window(10, Duration::from_millis(30)).counting("tokens");
    let pace = pace([seconds], "{@host}").cost_of("tokens", |_| 10).unwrap().wait(MINUTE);
    let client = client(pace);
    let before = std::time::Instant::now();
    for _ in 0..3 {
        assert_eq!(rejected(client.get(format!("http://{}/", partner.address)).send().await), None);
    }
    assert!(before.elapsed() >= Duration::from_millis(60));
}

#[tokio::test]
async fn a_concurrent_call_runs_until_the_body_of_its_response_ends() {
    let endless =
        || async { AxumBody::from_stream(stream::once(async { Ok::<_, Infallible>("a") }).chain(stream::pending())) };
    let partner = Partner::answering(|router| router.route("/endless", any(endless))).await;
    let client = client(pace([Rule::concurrency(1, MINUTE)], "{@host}"));
    let get = async |path: &str| client.get(format!("http://{}{path}", partner.address)).send().await;
    let running = get("/endless").await.unwrap();
    assert_eq!(rejected(get("/").await), Some(RejectionKind::Concurrency));
    drop(running);
    assert_eq!(get("/").await.unwrap().text().await.unwrap(), "well");
    assert_eq!(rejected(get("/").await), None);
}

#[tokio::test]
async fn a_client_that_fails_says_so() {
    let client = client(pace([per_minute(9)], "{@host}"));
    assert!(matches!(client.get("http://127.0.0.1:1/").send().await, Err(Error::Reqwest(error)) if error.is_connect()));
}
