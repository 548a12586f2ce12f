//! Arguments of every shape can be named, and stay what they were.

use std::fmt::Display;
use std::net::IpAddr;

use tallygate::{Rejection, rate_limit};

use crate::assert_limited;

struct Json<T>(T);

struct Order {
    id: u64,
    lines: Vec<&'static str>,
}

#[rate_limit(key = "{order.id}", rule(count = 1, per = "60s"))]
async fn wrapped(Json(order): Json<Order>) -> Result<usize, Rejection> {
    Ok(order.lines.len())
}

#[allow(clippy::used_underscore_binding)]
#[rate_limit(key = "{a}:{c}:{id}:{first}:{whole.0}:{_unused}", rule(count = 1, per = "60s"))]
async fn nested(
    (a, [_, c]): (u8, [u8; 2]),
    Order { id, lines: _ }: Order,
    [first, ..]: [u8; 3],
    whole @ Json(_): Json<u8>,
    _unused: u8,
    _: u8,
) -> Result<u64, Rejection> {
    Ok(u64::from(a) + u64::from(c) + id + u64::from(first) + u64::from(whole.0))
}

#[tokio::test]
async fn destructured_arguments_are_named_by_what_they_bind() {
    let order = |id| Json(Order { id, lines: vec!["x"] });
    assert_eq!(wrapped(order(1)).await.unwrap(), 1);
    wrapped(order(2)).await.unwrap();
    assert_limited(wrapped(order(1)).await);
    let call = |id| nested((1, [2, 3]), order(id).0, [4, 5, 6], Json(7), 8, 9);
    assert_eq!(call(1).await.unwrap(), 16);
    call(2).await.unwrap();
    assert_limited(call(1).await);
}

#[rate_limit(key = "{list.len()}", rule(count = 1, per = "60s"))]
async fn mutable(mut list: Vec<u8>) -> Result<usize, Rejection> {
    list.push(1);
    Ok(list.len())
}

#[rate_limit(key = "{list.len()}", rule(count = 1, per = "60s"))]
async fn mutably_borrowed(list: &mut Vec<u8>) -> Result<&u8, Rejection> {
    list.push(1);
    Ok(&list[0])
}

#[tokio::test]
async fn mutable_arguments_stay_mutable() {
    assert_eq!(mutable(vec![1]).await.unwrap(), 2);
    assert_limited(mutable(vec![2]).await);
    let mut list = Vec::new();
    assert_eq!(*mutably_borrowed(&mut list).await.unwrap(), 1);
    assert_limited(mutably_borrowed(&mut Vec::new()).await);
}

#[allow(clippy::needless_lifetimes)]
#[rate_limit(key = "{value}:{text}:{other}", rule(count = 1, per = "60s"))]
async fn generic<'a, T, const N: usize>(
    value: T,
    text: &'a str,
    other: impl Display + Clone,
    bytes: [u8; N],
) -> Result<(T, &'a str, String, usize), Rejection>
where
    T: Display + Clone,
{
    Ok((value, text, other.to_string(), bytes.len()))
}

#[tokio::test]
async fn generic_functions_share_one_tally_among_their_instances() {
    assert_eq!(generic(1, "a", 'x', [0; 3]).await.unwrap(), (1, "a", "x".to_owned(), 3));
    assert_limited(generic("1", "a", "x", [0; 4]).await);
    generic(2, "a", 'x', [0; 3]).await.unwrap();
}

#[rate_limit(key = "{name}", rule(count = 1, per = "60s"))]
async fn unsized_and_boxed(name: Box<str>, ip: &(dyn Display + Sync)) -> Result<String, Rejection> {
    Ok(format!("{name}{ip}"))
}

#[tokio::test]
async fn unsized_values_can_be_shown() {
    assert_eq!(unsized_and_boxed("a".into(), &IpAddr::from([127, 0, 0, 1])).await.unwrap(), "a127.0.0.1");
    assert_limited(unsized_and_boxed("a".into(), &1).await);
}
