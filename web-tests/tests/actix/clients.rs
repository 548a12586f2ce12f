//! Clients that go away.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_web::web::Data;
use actix_web::{App, HttpServer, get};
use reqwest::Method;
use tallygate::web::Layer;
use tallygate::{Limiter, Rejection, rate_limit};
use tallygate_tests::until::until;
use tallygate_web_tests::Client;

use super::run;

#[get("/")]
#[rate_limit(name = "waits", rule(count = 1, per = "5s"), wait = "60s", limiter = limiter.get_ref())]
async fn waits(limiter: Data<Limiter>, started: Data<AtomicUsize>) -> Result<&'static str, Rejection> {
    let _ = limiter;
    started.fetch_add(1, Ordering::Relaxed);
    Ok("ran")
}

/// Where a server closes connections of which the client has closed its half. Otherwise, actix-web ends what it has begun.
#[tokio::test]
async fn clients_that_go_away_while_they_wait_are_not_counted() {
    let (limiter, started) = (Data::new(Limiter::in_memory()), Data::new(AtomicUsize::new(0)));
    let (arrived, ran) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&started));
    let arrival = Arc::clone(&arrived);
    let server = run(move || {
        let layer = Layer::new().value("arrived", move |_| {
            arrival.fetch_add(1, Ordering::Relaxed);
            None::<String>
        });
        let app = move || {
            let app = App::new().app_data(limiter.clone()).app_data(Data::clone(&started));
            app.service(waits).wrap(layer.clone())
        };
        let server = HttpServer::new(app).workers(1).disable_signals().h1_allow_half_closed(false);
        let server = server.bind("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    });
    let server = server.await;
    let stays = Client::new(server);
    // Made before the window starts, as each of them takes a while.
    let requests: Vec<_> = (0..20).map(|_| Client::new(server).request(Method::GET, "/", &[])).collect();
    assert_eq!(stays.get("/").await.body, "ran");
    let waiting: Vec<_> = requests.into_iter().map(|request| tokio::spawn(request.send())).collect();
    until("all have arrived", || arrived.load(Ordering::Relaxed) == 21).await;
    for client in waiting {
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled(), "it went away before it was answered");
    }
    // If one of the twenty were still in the queue, this one would wait for a minute.
    assert_eq!(stays.get("/").await.body, "ran");
    assert_eq!(ran.load(Ordering::Relaxed), 2);
}
