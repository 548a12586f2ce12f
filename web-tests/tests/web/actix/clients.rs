//! Clients that go away.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{App, Error, FromRequest, HttpRequest, HttpServer, get};
use reqwest::Method;
use tallygate::testing::ManualClock;
use tallygate::{Limiter, Rejection, rate_limit};
use tallygate_harness::until::until;
use tallygate_web_tests::Client;

use super::run;

/// What the requests of a server share.
struct Shared {
    limiter: Limiter,
    /// The requests that are there: they wait, or run.
    present: AtomicUsize,
    started: AtomicUsize,
}

/// A request that is there.
struct Present(Data<Shared>);

impl FromRequest for Present {
    type Error = Error;
    type Future = Ready<Result<Self, Error>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let shared = request.app_data::<Data<Shared>>().unwrap();
        shared.present.fetch_add(1, Ordering::Relaxed);
        ready(Ok(Self(shared.clone())))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.present.fetch_sub(1, Ordering::Relaxed);
    }
}

#[get("/")]
#[rate_limit(name = "waits", rule(count = 1, per = "3s"), wait = "60s", limiter = &present.0.limiter)]
async fn waits(present: Present) -> Result<&'static str, Rejection> {
    present.0.started.fetch_add(1, Ordering::Relaxed);
    Ok("ran")
}

/// Where a server closes connections of which the client has closed its half. Otherwise, actix-web ends what it has begun.
#[tokio::test]
async fn clients_that_go_away_while_they_wait_are_not_counted() {
    let clock = ManualClock::new(SystemTime::now());
    let limiter = Limiter::builder().clock(&clock).build_in_memory().unwrap();
    let shared = Arc::new(Shared { limiter, present: AtomicUsize::new(0), started: AtomicUsize::new(0) });
    let of_server = Data::from(Arc::clone(&shared));
    let server = run(move || {
        let app = move || App::new().app_data(of_server.clone()).service(waits);
        let server = HttpServer::new(app).workers(1).disable_signals().h1_allow_half_closed(false);
        let server = server.bind("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    });
    let server = server.await;
    let stays = Client::new(server);
    let requests: Vec<_> = (0..20).map(|_| Client::new(server).request(Method::GET, "/", &[])).collect();
    assert_eq!(stays.get("/").await.body, "ran");
    let waiting: Vec<_> = requests.into_iter().map(|request| tokio::spawn(request.send())).collect();
    until("all have arrived", || shared.present.load(Ordering::Relaxed) == 20).await;
    for client in waiting {
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled(), "it went away before it was answered");
    }
    until("all are gone", || shared.present.load(Ordering::Relaxed) == 0).await;
    clock.advance(Duration::from_secs(3));
    // If one of the twenty were still in the queue, this one would wait for it.
    assert_eq!(stays.get("/").await.body, "ran");
    assert_eq!(shared.started.load(Ordering::Relaxed), 2);
}
