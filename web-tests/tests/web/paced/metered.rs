//! Paced calls that are settled for what their answers say.

use tallygate::Subject;
use tallygate::client::Meters;

use super::*;

#[tokio::test]
async fn a_call_counts_as_what_its_answer_says_once_its_body_and_its_meters_have_ended() {
    let partner = Partner::start().await;
    let (limiter, subject) = (Limiter::in_memory(), Subject::of("127.0.0.1"));
    let policy = policy([per_minute(10), per_minute(1_000).counting("tokens")]);
    let pace = client::pace(&policy, "{@host}").unwrap().cost_of("tokens", |_| 400).unwrap();
    let mistake = pace.clone().metered("token").unwrap_err().to_string();
    assert!(mistake.starts_with("`metered`: ") && mistake.contains("tokens"), "{mistake}");
    let pace = pace.metered("tokens").unwrap().limiter(&limiter);
    let client: Paced = pace.layer(Client::builder(TokioExecutor::new()).build_http());
    let used = async || {
        let peeked = limiter.peek(&policy, &subject).await.unwrap();
        [0, 1].map(|position| peeked.report()[position].used())
    };
    let (parts, body) = client.clone().oneshot(partner.request("/")).await.unwrap().into_parts();
    assert_eq!(used().await, [1, 400]);
    assert_eq!(body.collect().await.unwrap().to_bytes(), "well");
    let meters = parts.extensions.get::<Meters>().unwrap();
    meters.get("tokens").unwrap().add(120);
    assert!(meters.get("calls").is_none());
    assert_eq!(used().await, [1, 400]);
    drop(parts);
    assert_eq!(used().await, [1, 120]);

    // Without a response, nobody knows what it has used.
    let gone = Request::get("http://127.0.0.1:1/").body(Noted::default()).unwrap();
    assert!(matches!(client.oneshot(gone).await, Err(PaceError::Client(_))));
    assert_eq!(used().await, [2, 520]);
}
