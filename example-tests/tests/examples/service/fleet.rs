//! Several processes of the service, and their Redis.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use serde_json::Value;
use tallygate_harness::server::Server as Redis;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{SERVICE, code, report, start};
use crate::process::{Service, fail_to_start};

/// How many requests go to each of two services at once.
const EACH: usize = 16;

/// Sends the same request to all services at once, and returns how many were admitted; all others were limited.
async fn admitted<F>(services: [&Arc<Service>; 2], request: impl Fn(Arc<Service>) -> F) -> usize
where
    F: Future<Output = u16> + Send + 'static,
{
    let mut requests = JoinSet::new();
    for service in services.into_iter().flat_map(|service| vec![service; EACH]) {
        requests.spawn(request(Arc::clone(service)));
    }
    let statuses = requests.join_all().await;
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    statuses.iter().filter(|status| **status == 200).count()
}

#[tokio::test]
async fn two_services_on_one_redis_admit_exactly_count_together() {
    let redis = Redis::start();
    let url = redis.url();
    let (one, other) = (Arc::new(start(&[("TALLYGATE_URL", &url)])), Arc::new(start(&[("TALLYGATE_URL", &url)])));
    assert_eq!(admitted([&one, &other], async |service| report(&service).await).await, 10);
    let to_alice = async |service: Arc<Service>| code(&service, "alice@example.org").await.status().as_u16();
    assert_eq!(admitted([&one, &other], to_alice).await, 1);
}

#[tokio::test]
async fn two_services_on_their_own_memory_count_apart() {
    let (one, other) = (Arc::new(start(&[])), Arc::new(start(&[("TALLYGATE_URL", "memory://")])));
    assert_eq!(admitted([&one, &other], async |service| report(&service).await).await, 20);
}

#[tokio::test]
async fn a_request_is_unavailable_while_redis_is_away_and_served_when_it_is_back() {
    let mut redis = Redis::start();
    let service = start(&[("TALLYGATE_URL", &redis.url())]);
    redis.kill();
    let response = service.get("/report").send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers().get(RETRY_AFTER)), (503, None));
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["detail"], "the rate limit cannot be checked right now; try again later");
    assert_eq!(service.get("/health").send().await.unwrap().status(), 200, "it is exempt");

    redis.restart();
    let recovery = async { while report(&service).await != 200 {} };
    timeout(Duration::from_secs(30), recovery).await.expect("the service recovers by itself");
}

#[tokio::test]
async fn a_service_that_is_asked_to_stop_ends_well() {
    let service = start(&[]);
    assert_eq!(report(&service).await, 200);
    assert!(service.stop().success());
}

#[test]
fn a_service_that_is_set_up_wrongly_does_not_start() {
    // No server uses the first port.
    let away = "redis://127.0.0.1:1/";
    for (variable, value, named) in [
        ("TALLYGATE_URL", "reddis://127.0.0.1", "`url`"),
        ("TALLYGATE_URL", away, "`url`"),
        ("LIMITS_FILE", "/missing/limits.toml", "/missing/limits.toml"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,proxy", "`behind`: `proxy` is no network"),
    ] {
        let output = fail_to_start(&SERVICE, &[(variable, value)]);
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains(named), "{output:?}");
    }
}
