//! The limited functions whose calls are counted.

use std::hint::black_box;

use tallygate::{Rejection, rate_limit};

#[rate_limit(name = "bench.annotated", key = "sms:{phone}", rule(count = 1073741824, per = "1h"))]
pub(super) async fn window(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

#[rate_limit(
    name = "bench.tokens",
    key = "sms:{phone}",
    unit("tokens", cost = tokens),
    rule(count = 1073741824, per = "1h"),
    rule(count = 1073741824, per = "1h", unit = "tokens")
)]
pub(super) async fn tokens(phone: &str, tokens: u64) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

#[rate_limit(name = "bench.closed", key = "sms:{phone}", rule(count = 1, per = "1h"))]
pub(super) async fn closed_window(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

#[rate_limit(name = "bench.bucket", key = "sms:{phone}", rule(count = 1048576, per = "1h", algorithm = "token_bucket"))]
pub(super) async fn bucket(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

#[rate_limit(name = "bench.plain", key = "sms:{phone}", rule(count = 1073741824, per = "1h"))]
pub(super) fn window_of_plain_function(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

#[rate_limit(
    name = "bench.two",
    key = "sms:{phone}",
    rule(count = 1073741824, per = "1h"),
    rule(count = 1073741825, per = "2h")
)]
pub(super) async fn two_windows(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

#[rate_limit(
    name = "bench.mixed",
    key = "sms:{phone}",
    rule(count = 2000000, per = "1h"),
    rule(count = 1048576, per = "1h", algorithm = "token_bucket")
)]
pub(super) async fn window_and_bucket(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

#[rate_limit(name = "bench.fixed", key = "sms:{phone}", rule(count = 1048576, per = "1h", algorithm = "fixed_window"))]
pub(super) async fn fixed_window(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

#[rate_limit(
    name = "bench.counter",
    key = "sms:{phone}",
    rule(count = 1048576, per = "1h", algorithm = "sliding_counter")
)]
pub(super) async fn sliding_counter(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

#[rate_limit(name = "bench.concurrent", key = "sms:{phone}", concurrency(limit = 2, lease = "1h"))]
pub(super) async fn concurrency(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}

#[rate_limit(name = "bench.pausable", key = "sms:{phone}", pause = |_| None, rule(count = 1073741824, per = "1h"))]
pub(super) async fn pausable(phone: &str) -> Result<(), Rejection> {
    black_box(phone);
    Ok(())
}
