//! Limited functions that are not async, called by handlers.

use actix_web::web::{Data, Path, ServiceConfig};
use actix_web::{App, HttpServer, get};
use tallygate::web::Layer;
use tallygate::{Limiter, Rejection, rate_limit};
use tallygate_harness::server::Server;
use tallygate_web_tests::Client;
use tokio::task::JoinSet;

use super::run;

#[rate_limit(key = "{@ip}/{name}", rule(count = 3, per = "1h"), limiter = limiter)]
fn blocking(limiter: &Limiter, name: &str) -> Result<String, Rejection> {
    let _ = limiter;
    Ok(name.to_owned())
}

#[rate_limit(key = "{name}", rule(count = 1_000, per = "1h"), limiter = limiter)]
async fn awaiting(limiter: &Limiter, name: &str) -> Result<(), Rejection> {
    let _ = (limiter, name);
    Ok(())
}

#[get("/reports/{name}")]
async fn report(limiter: Data<Limiter>, name: Path<String>) -> Result<String, Rejection> {
    awaiting(&limiter, &name).await?;
    blocking(&limiter, &name)
}

fn routes(config: &mut ServiceConfig) {
    config.service(report);
}

#[tokio::test]
async fn they_are_decided_in_redis_by_each_worker_within_the_context_of_the_request() {
    let server = Server::start();
    let limiter = Limiter::builder().deadline(std::time::Duration::from_secs(30)).connect_lazy(server.url()).unwrap();
    let limiter = Data::new(limiter);
    let address = run(move || {
        let server = HttpServer::new(move || {
            App::new().app_data(limiter.clone()).configure(routes).wrap(Layer::new().on_success(true))
        });
        let server = server.workers(2).disable_signals().bind("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    })
    .await;
    let mut answers = JoinSet::new();
    for number in 0..40 {
        let client = Client::new(address);
        answers.spawn(async move { client.get(&format!("/reports/{}", number % 4)).await });
    }
    let answers = answers.join_all().await;
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 4 * 3, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    assert!(
        answers.iter().all(|answer| answer.limits().iter().any(|limit| limit.r < 3)),
        "a decision is in the fields"
    );
}
