//! What the routes answer where the tallies cannot be asked.

use reqwest::Method;
use tallygate::OnOutage;
use tallygate_harness::server::{Server, connected, patient};

use super::{Service, codes, path_of};

#[tokio::test]
async fn while_redis_is_away_everything_is_unavailable_whatever_calls_do_meanwhile() {
    let policy = codes("admin.away");
    for on_outage in [OnOutage::Deny, OnOutage::Local, OnOutage::Allow] {
        let server = Server::start();
        let limiter = connected(&patient().registry(true).on_outage(on_outage), &server.url()).await;
        let mut service = Service::in_axum(limiter, Some(server)).await;
        service.calls(&policy, "138", 1).await;
        service.server.as_mut().unwrap().kill();
        for (method, path, body) in [
            (Method::GET, "/policies".to_owned(), ""),
            (Method::GET, "/overrides".to_owned(), ""),
            (Method::GET, path_of(&policy, "/subject?phone=138"), ""),
            (Method::DELETE, path_of(&policy, "/subject?phone=138"), ""),
            (Method::PUT, path_of(&policy, "/ban?phone=138"), ""),
            (Method::PUT, path_of(&policy, "/override"), r#"{"rules":"9 per 1h"}"#),
            (Method::GET, path_of(&policy, "/bans"), ""),
        ] {
            let answer = service.ask(method, &path, body).await;
            let problem = answer.problem();
            assert_eq!((answer.status, problem.kind.as_str()), (503, "unavailable"), "{path}");
            assert!(problem.detail.starts_with("redis"), "{path}: {}", problem.detail);
            assert!(problem.problem_type.ends_with("#temporary-reduced-capacity"));
        }
    }
}
