//! Calls of tonic's client, whose statuses say when to come back.

use axum::response::Response;
use futures_util::stream;
use http::HeaderMap;
use http_body_util::StreamBody;
use tallygate::Rejection;
use tallygate_harness::clocked::new_clock;
use tallygate_harness::server::away;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;
use tower::ServiceBuilder;
use tower::util::MapErr;

use super::pauses::pausable_by;
use super::*;
use crate::tonic::text::{call_by, connect};

type PacedChannel = MapErr<PaceService<Channel>, fn(PaceError) -> Status>;

async fn channel(server: SocketAddr) -> PacedChannel {
    let pace = pausable_by("greeter").limiter(&Limiter::in_memory());
    ServiceBuilder::new().map_err(Status::from as fn(_) -> _).layer(pace).service(connect(server).await)
}

/// The code and the kind of the rejection.
fn not_sent(status: &Status) -> (Code, Option<RejectionKind>) {
    let rejection = std::error::Error::source(status).and_then(|source| source.downcast_ref::<Rejection>());
    (status.code(), rejection.map(Rejection::kind))
}

#[tokio::test]
async fn a_status_with_retry_info_pauses_calls_and_a_call_that_was_not_sent_has_such_a_status() {
    let server = crate::tonic::serve(None, None).await;
    let channel = channel(server).await;
    let call = async |phone: &str| call_by(channel.clone(), "Send", Request::new(phone.to_owned())).await;
    for _ in 0..3 {
        call("138").await.unwrap();
    }
    // The server denies.
    let denied = call("138").await.unwrap_err();
    assert_eq!(not_sent(&denied), (Code::ResourceExhausted, None));
    let asked = denied.get_details_retry_info().unwrap().retry_delay.unwrap();

    let paused = call("139").await.unwrap_err();
    assert_eq!(not_sent(&paused), (Code::Unavailable, Some(RejectionKind::Paused)));
    let told = paused.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!(told <= asked && told > asked / 2, "{told:?} of {asked:?}");
}

async fn late_denial() -> Response {
    late(&[("grpc-status", "8"), ("grpc-retry-pushback-ms", "30000")])
}

/// A message, and then a status among the trailers.
pub(super) fn late(trailers: &[(&str, &str)]) -> Response {
    let trailers: HeaderMap =
        trailers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    let message = Bytes::from_static(b"\0\0\0\0\x04well");
    let frames = [Frame::data(message), Frame::trailers(trailers)].map(Ok::<_, Infallible>);
    let body = AxumBody::new(StreamBody::new(stream::iter(frames)));
    Response::builder().header("content-type", "application/grpc").body(body).unwrap()
}

#[tokio::test]
async fn a_status_in_the_trailers_is_heard_too() {
    let partner = Partner::answering(|router| router.route("/captcha.Captcha/Late", any(late_denial))).await;
    let channel = channel(partner.address).await;
    let call = async || call_by(channel.clone(), "Late", Request::new(String::new())).await.unwrap_err();
    assert_eq!(not_sent(&call().await), (Code::ResourceExhausted, None));
    let paused = call().await;
    assert_eq!(not_sent(&paused), (Code::Unavailable, Some(RejectionKind::Paused)));
    let told = paused.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!(told <= MINUTE / 2 && told > MINUTE / 4, "{told:?}");
}

#[tokio::test]
async fn after_a_pause_the_status_in_the_trailers_opens_for_all_or_lets_the_next_call_be_tried() {
    let asked = Arc::new(AtomicUsize::new(0));
    let answer = async move || match asked.fetch_add(1, Ordering::SeqCst) {
        0 => late(&[("grpc-status", "8"), ("grpc-retry-pushback-ms", "60000")]),
        1 => late(&[("grpc-status", "14")]),
        2 => late(&[("grpc-status", "13")]),
        _ => late(&[("grpc-status", "0")]),
    };
    let partner = Partner::answering(|router| router.route("/captcha.Captcha/Late", any(answer))).await;
    let clock = new_clock();
    let limiter = away(|builder| builder.clock(&clock));
    let channel = pausable_by("greeter").limiter(&limiter).layer(connect(partner.address).await);
    let call = || {
        let request = http::Request::post("/captcha.Captcha/Late").body(tonic::body::Body::empty());
        channel.clone().oneshot(request.unwrap())
    };
    drop(call().await.unwrap().into_body().collect().await.unwrap());
    clock.advance(MINUTE);
    for _ in ["it has no room", "it has failed", "all is well"] {
        let tried = call().await.unwrap();
        let others = call().await.unwrap_err();
        assert_eq!(others.rejection().map(Rejection::kind), Some(RejectionKind::Paused));
        drop(tried.into_body().collect().await.unwrap());
    }
    let (_first, _second) = (call().await.unwrap(), call().await.unwrap());
}

#[tokio::test]
async fn a_call_beyond_the_pace_has_the_status_of_its_rejection() {
    let server = crate::tonic::serve(None, None).await;
    let pace = pace([per_minute(1)], "all").limiter(&Limiter::in_memory());
    let channel = ServiceBuilder::new().map_err(Status::from).layer(pace).service(connect(server).await);
    let call = async || call_by(channel.clone(), "Send", Request::new("138".to_owned())).await;
    call().await.unwrap();
    let denied = call().await.unwrap_err();
    assert_eq!(not_sent(&denied), (Code::ResourceExhausted, Some(RejectionKind::Limited)));
}

#[tokio::test]
async fn a_channel_that_fails_has_its_own_status() {
    let server = SocketAddr::from(([127, 0, 0, 1], 1));
    let lazy = tonic::transport::Endpoint::try_from(format!("http://{server}")).unwrap().connect_lazy();
    let pace = pace([per_minute(1)], "all").limiter(&Limiter::in_memory());
    let channel = ServiceBuilder::new().map_err(Status::from).layer(pace).service(lazy);
    let failed = call_by(channel, "Send", Request::new(String::new())).await.unwrap_err();
    assert_eq!(not_sent(&failed), (Code::Unavailable, None));
}
