//! The text of a rejection.

use std::future::Future;
use std::time::Duration;

use tallygate::{Limiter, Rejection, rate_limit};
use tokio::time::advance;

use crate::grammar::denial;

#[rate_limit(
    key = "{phone}",
    rule(count = 1, per = "60s", message = "one code a minute, {phone}"),
    rule(count = 2, per = "1h", name = "hourly"),
    rule(count = 3, per = "1d"),
    message = "slow down, {phone}: {@count} per {@per} ({@rule}); try again in {@retry_after} {{}}",
    limiter = limiter
)]
async fn send_code(phone: String, limiter: &Limiter) -> Result<String, Rejection> {
    let _ = limiter;
    Ok(phone)
}

#[tokio::test(start_paused = true)]
async fn a_rule_has_its_message_and_the_others_have_that_of_the_policy() {
    let limiter = Limiter::in_memory();
    let send = async || send_code("138 <x>".to_owned(), &limiter).await;
    assert_eq!(send().await.unwrap(), "138 <x>");
    let rejection = denial(send().await);
    assert_eq!(rejection.message(), Some("one code a minute, 138 <x>"));
    assert_eq!(rejection.to_string(), "one code a minute, 138 <x>");
    advance(Duration::from_secs(60)).await;
    send().await.unwrap();
    let hourly = denial(send().await).to_string();
    assert_eq!(hourly, "slow down, 138 <x>: 2 per 1h (hourly); try again in 59m {}");
    advance(Duration::from_secs(3600)).await;
    send().await.unwrap();
    advance(Duration::from_secs(3600)).await;
    let daily = denial(send().await).to_string();
    assert_eq!(daily, "slow down, 138 <x>: 3 per 1d (3 per 1d); try again in 21h 59m {}");
}

#[rate_limit(
    unit("input_tokens", cost = tokens),
    rule(count = 1, per = "60s"),
    rule(count = 9_000, per = "60s", unit = "input_tokens"),
    message = "at most {@count} {@unit} per {@per}",
    limiter = limiter
)]
async fn say(tokens: u64, limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test]
async fn a_message_shows_what_the_rule_that_denied_counts() {
    let limiter = Limiter::in_memory();
    assert_eq!(denial(say(10_000, &limiter).await).to_string(), "at most 9,000 input tokens per 1m");
    say(9_000, &limiter).await.unwrap();
    assert_eq!(denial(say(0, &limiter).await).to_string(), "at most 1 requests per 1m");
}

#[rate_limit(rule(count = calls, per = "60s"), message = "{@count}, again in {@retry_after}", limiter = limiter)]
async fn closed(calls: u64, limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_message_shows_the_count_of_its_call_and_that_waiting_will_not_help() {
    let limiter = Limiter::in_memory();
    closed(1, &limiter).await.unwrap();
    assert_eq!(denial(closed(1, &limiter).await).to_string(), "1, again in 1m");
    assert_eq!(denial(closed(0, &limiter).await).to_string(), "0, again in never");
}

#[rate_limit(rule(count = 1, cron = "0 0 6 * * *", message = "{@rule}; {@per}"), limiter = limiter)]
async fn scheduled(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_schedule_is_shown_as_it_is_written() {
    let limiter = Limiter::in_memory();
    scheduled(&limiter).await.unwrap();
    let text = denial(scheduled(&limiter).await).to_string();
    assert_eq!(text, "1 per \"0 0 6 * * *\" UTC; \"0 0 6 * * *\" UTC");
}

struct User {
    name: String,
}

#[rate_limit(key = "{user.name}", rule(count = 1, per = "60s"), message = "not now, {user.name:trim}")]
async fn consumed(user: User) -> Result<User, Rejection> {
    Ok(user)
}

#[rate_limit(rule(count = 1, per = "60s"), message = "not now, {user.name}")]
fn returned(user: &User) -> impl Future<Output = Result<(), Rejection>> + Send + use<> {
    let _ = user;
    async { Ok(()) }
}

fn assert_send<T: Send>(future: T) -> T {
    future
}

#[tokio::test]
async fn a_message_leaves_its_arguments_to_the_body_and_the_future_as_it_was() {
    let user = || User { name: "zoe ".into() };
    assert_eq!(assert_send(consumed(user())).await.unwrap().name, "zoe ");
    assert_eq!(consumed(user()).await.err().unwrap().to_string(), "not now, zoe");
    let first = returned(&user());
    let second = returned(&user());
    assert_send(first).await.unwrap();
    assert_eq!(second.await.unwrap_err().to_string(), "not now, zoe ");
}

#[rate_limit(rule(count = 1, per = "60s"), message = "at most {@count}", limiter = limiter)]
async fn unreachable(limiter: Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test]
async fn an_outage_has_a_text_of_its_own() {
    let limiter = Limiter::builder().connect_lazy("redis+unix:///nowhere").unwrap();
    let rejection = unreachable(limiter).await.unwrap_err();
    assert_eq!((rejection.kind(), rejection.message()), (tallygate::RejectionKind::Unavailable, None));
    assert!(rejection.to_string().contains("cannot be checked right now"), "{rejection}");
}
