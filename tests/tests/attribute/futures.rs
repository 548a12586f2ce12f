//! The future of a limited function is as it was.

use std::cell::Cell;
use std::rc::Rc;

use tallygate::{Limiter, Rejection, rate_limit};

use crate::assert_limited;

fn assert_send<T: Send>(future: T) -> T {
    future
}

#[rate_limit(key = "{count.get()}:{name}", rule(count = 1, per = "60s"), limiter = source.limiter())]
async fn not_sync(count: Cell<u32>, name: String, source: Source) -> Result<u32, Rejection> {
    let _ = (name, source);
    Ok(count.get())
}

struct Source;

impl Source {
    #[allow(clippy::unused_self)]
    fn limiter(&self) -> NotSend {
        NotSend(Rc::new(Limiter::installed().clone()))
    }
}

struct NotSend(Rc<Limiter>);

impl std::ops::Deref for NotSend {
    type Target = Limiter;

    fn deref(&self) -> &Limiter {
        &self.0
    }
}

#[tokio::test]
async fn a_future_is_send_although_placeholders_and_limiter_are_not_sync_or_send() {
    let call = || assert_send(not_sync(Cell::new(7), "x".into(), Source));
    assert_eq!(call().await.unwrap(), 7);
    assert_limited(call().await);
}

#[rate_limit(key = "{name}", rule(count = 1, per = "60s"))]
async fn not_send(name: Rc<str>) -> Result<Rc<str>, Rejection> {
    tokio::task::yield_now().await;
    Ok(name)
}

#[tokio::test]
async fn a_future_need_not_be_send() {
    assert_eq!(&*not_send("x".into()).await.unwrap(), "x");
    assert_limited(not_send("x".into()).await);
}

#[rate_limit(key = "{of}", rule(count = 1, per = "60s"))]
async fn opaque(of: u8) -> Result<impl Iterator<Item = u8>, Box<dyn std::error::Error + Send + Sync>> {
    Ok((0..of).map(|n| n * 2))
}

#[rate_limit(rule(count = 1, per = "60s"))]
async fn wholly_opaque() -> impl IntoText {
    Ok::<_, Rejection>("text")
}

trait IntoText {
    fn into_text(self) -> String;
}

impl IntoText for Result<&str, Rejection> {
    fn into_text(self) -> String {
        self.map_or_else(|rejection| rejection.to_string(), str::to_owned)
    }
}

#[tokio::test]
async fn what_is_returned_may_be_opaque() {
    assert_eq!(opaque(3).await.unwrap().collect::<Vec<_>>(), [0, 2, 4]);
    assert!(opaque(3).await.err().unwrap().to_string().starts_with("too many requests"));
    assert_eq!(wholly_opaque().await.into_text(), "text");
    assert!(wholly_opaque().await.into_text().starts_with("too many requests"));
}
