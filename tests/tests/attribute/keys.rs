//! Every subject has a tally of its own.

use std::net::SocketAddr;

use tallygate::{Rejection, Subject, rate_limit};

use crate::assert_limited;

struct Account {
    id: u64,
    tenant: String,
}

impl Account {
    fn owner(&self) -> (&str, u64) {
        (&self.tenant, self.id)
    }
}

fn account(id: u64) -> Account {
    Account { id, tenant: "acme".into() }
}

#[rate_limit(key = "sms:{phone}", rule(count = 1, per = "60s"))]
async fn send_code(phone: &str) -> Result<usize, Rejection> {
    Ok(phone.len())
}

#[tokio::test]
async fn every_value_has_a_tally_of_its_own() {
    assert_eq!(send_code("138").await.unwrap(), 3);
    assert_eq!(send_code("1390").await.unwrap(), 4);
    assert_eq!(send_code("").await.unwrap(), 0);
    for phone in ["138", "1390", ""] {
        assert_limited(send_code(phone).await);
    }
}

#[rate_limit(key = "{account.owner().0}/{account.id}/{address.ip()}/{pair.1}", rule(count = 1, per = "60s"))]
async fn members(account: Account, address: SocketAddr, pair: (u8, char)) -> Result<Account, Rejection> {
    let _ = (address, pair);
    Ok(account)
}

#[tokio::test]
async fn fields_methods_and_positions_tell_subjects_apart() {
    let here: SocketAddr = "10.0.0.1:80".parse().unwrap();
    let there: SocketAddr = "10.0.0.2:80".parse().unwrap();
    assert_eq!(members(account(1), here, (1, 'a')).await.unwrap().id, 1);
    members(account(2), here, (1, 'a')).await.unwrap();
    members(account(1), there, (1, 'a')).await.unwrap();
    members(account(1), here, (1, 'b')).await.unwrap();
    let same_ip = SocketAddr::new(here.ip(), 81);
    assert_limited(members(account(1), same_ip, (2, 'a')).await);
}

#[rate_limit(key = "a{{{word}}}%!é", rule(count = 1, per = "60s"))]
async fn braces(word: &str) -> Result<(), Rejection> {
    let _ = word;
    Ok(())
}

#[tokio::test]
async fn braces_and_odd_text_are_text() {
    braces("x").await.unwrap();
    braces("y").await.unwrap();
    assert_limited(braces("x").await);
}

#[rate_limit(key = "{r#type}:{r#in.id}", rule(count = 1, per = "60s"))]
async fn raw(r#type: &str, r#in: Account) -> Result<(), Rejection> {
    let _ = (r#type, r#in);
    Ok(())
}

#[rate_limit(key = "{type}:{in.id}", rule(count = 1, per = "60s"))]
async fn keywords(r#type: &str, r#in: Account) -> Result<(), Rejection> {
    let _ = (r#type, r#in);
    Ok(())
}

#[tokio::test]
async fn raw_identifiers_are_named_with_and_without_their_mark() {
    raw("x", account(1)).await.unwrap();
    assert_limited(raw("x", account(1)).await);
    keywords("x", account(1)).await.unwrap();
    keywords("x", account(2)).await.unwrap();
    assert_limited(keywords("x", account(1)).await);
}

#[rate_limit(key = "everyone", rule(count = 1, per = "60s"))]
async fn constant(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

#[tokio::test]
async fn a_key_without_placeholders_is_one_tally() {
    constant("1").await.unwrap();
    assert_limited(constant("2").await);
}

#[rate_limit(key = "{ token.name }", rule(count = 1, per = "60s"))]
async fn consumed(token: Token) -> Result<String, Rejection> {
    Ok(token.name)
}

struct Token {
    name: String,
}

#[tokio::test]
async fn a_placeholder_leaves_its_argument_to_the_body() {
    let token = || Token { name: "t".into() };
    assert_eq!(consumed(token()).await.unwrap(), "t");
    assert_limited(consumed(token()).await);
}

#[test]
fn no_value_contains_what_keeps_placeholders_apart() {
    let values: String = (0..=0x2ff_u32).filter_map(char::from_u32).collect();
    for value in values.chars() {
        let subject = Subject::of(value).to_string();
        assert!(!subject.contains(|c| " \"#$&'()*,/:;<=>?[\\]^`{|}".contains(c)), "{subject}");
    }
}

#[rate_limit(key = "{a}: {b}", rule(count = 1, per = "60s"))]
async fn parted(a: &str, b: &str) -> Result<(), Rejection> {
    let _ = (a, b);
    Ok(())
}

#[tokio::test]
async fn values_never_run_into_each_other() {
    for (a, b) in [("a", "b"), ("a: b", ""), ("", "a: b"), ("a:", "b"), ("a", ": b"), ("a%3A", "b"), ("", "")] {
        parted(a, b).await.unwrap();
        assert_limited(parted(a, b).await);
    }
}
