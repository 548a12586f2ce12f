//! The service in tonic.

use std::sync::LazyLock;

use escargot::CargoRun;
use tallygate_harness::server::Server as Redis;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use self::mail::SendRequest;
use self::mail::codes_client::CodesClient;
use crate::built;
use crate::process::Service;

static SERVICE: LazyLock<CargoRun> = LazyLock::new(|| built::service("tonic-example"));

#[path = "../../../examples/web/tonic/src/mail.rs"]
#[allow(missing_docs, clippy::pedantic, unreachable_pub, dead_code, reason = "it is generated")]
mod mail;

pub(crate) async fn code(client: &mut CodesClient<Channel>, email: &str) -> Result<bool, Status> {
    let response = client.send(SendRequest { email: email.to_owned() }).await?;
    assert!(response.metadata().contains_key("ratelimit"));
    Ok(response.into_inner().sent)
}

pub(crate) fn client(service: &Service) -> CodesClient<Channel> {
    CodesClient::new(Endpoint::from_shared(service.url.clone()).unwrap().connect_lazy())
}

#[tokio::test]
async fn a_mail_address_gets_one_code_a_minute_from_all_services() {
    let redis = Redis::start();
    let url = redis.url();
    let services = [(); 2].map(|()| Service::start(&SERVICE, &[("TALLYGATE_URL", &url)]));
    let [mut one, mut other] = services.each_ref().map(client);
    assert!(code(&mut one, "alice@example.org").await.unwrap());
    let status = code(&mut other, " Alice@example.org").await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().starts_with("the code is on its way; try again in "), "{status}");
    assert!(status.get_details_retry_info().unwrap().retry_delay.is_some());
    assert!(code(&mut other, "bob@example.org").await.unwrap());
}
