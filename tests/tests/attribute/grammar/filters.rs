//! What a filter makes of a value.

use std::fmt::{self, Display};
use std::net::{IpAddr, SocketAddr};

use tallygate::{Limiter, Rejection, rate_limit};

use crate::grammar::denial;

#[rate_limit(key = "{email:trim:lower}", rule(count = 1, per = "1h"), limiter = limiter)]
async fn sign_up(email: &str, limiter: &Limiter) -> Result<(), Rejection> {
    let _ = (email, limiter);
    Ok(())
}

#[tokio::test]
async fn white_space_and_case_may_be_left_aside() {
    let limiter = Limiter::in_memory();
    sign_up("Zoë@example.org", &limiter).await.unwrap();
    for same in [" zoë@example.org", "ZOË@EXAMPLE.ORG\n"] {
        denial(sign_up(same, &limiter).await);
    }
    sign_up("zoe@example.org", &limiter).await.unwrap();
}

#[rate_limit(key = "{address:subnet}", rule(count = 1, per = "1h"), limiter = limiter)]
async fn visit(address: impl Display, limiter: &Limiter) -> Result<(), Rejection> {
    let _ = (address, limiter);
    Ok(())
}

#[tokio::test]
async fn the_addresses_of_one_network_are_one_subject() {
    let limiter = Limiter::in_memory();
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    visit(ip("192.0.2.1"), &limiter).await.unwrap();
    visit(ip("192.0.2.2"), &limiter).await.unwrap();
    denial(visit(ip("::ffff:192.0.2.1"), &limiter).await);
    denial(visit(SocketAddr::new(ip("192.0.2.1"), 80), &limiter).await);
    visit(ip("2001:db8::1"), &limiter).await.unwrap();
    denial(visit("[2001:db8::2]:80", &limiter).await);
    visit(ip("2001:db8:0:1::1"), &limiter).await.unwrap();
}

#[rate_limit(key = "{address:subnet(24, 56)}", rule(count = 1, per = "1h"), limiter = limiter)]
async fn visit_of_many(address: &str, limiter: &Limiter) -> Result<(), Rejection> {
    let _ = (address, limiter);
    Ok(())
}

#[tokio::test]
async fn networks_may_be_as_wide_as_the_key_says() {
    let limiter = Limiter::in_memory();
    visit_of_many("192.0.2.1", &limiter).await.unwrap();
    visit_of_many("192.0.3.1", &limiter).await.unwrap();
    visit_of_many("2001:db8:0:100::1", &limiter).await.unwrap();
    visit_of_many("2001:db8:0:200::1", &limiter).await.unwrap();
    for same in
        ["192.0.2.200", "64:ff9b::192.0.2.9", " [::ffff:192.0.3.9]:80", "2001:db8:0:1ff::1", "[2001:db8:0:2ff::1%1]:80"]
    {
        denial(visit_of_many(same, &limiter).await);
    }
}

/// A value that is only `Display`.
struct Phone(&'static str);

impl Display for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[rate_limit(name = "grammar.hashed", key = "sms:{phone:hash}", rule(count = 1, per = "1h"), limiter = limiter)]
async fn hashed(phone: Phone, limiter: &Limiter) -> Result<Phone, Rejection> {
    let _ = limiter;
    Ok(phone)
}

#[tokio::test]
async fn a_digest_tells_values_apart() {
    let limiter = Limiter::in_memory();
    assert_eq!(hashed(Phone("138"), &limiter).await.unwrap().0, "138");
    hashed(Phone("139"), &limiter).await.unwrap();
    assert!(hashed(Phone("138"), &limiter).await.is_err());
}

#[rate_limit(rule(count = 1, per = "1h"), message = "{phone:hash}", limiter = limiter)]
async fn shown(phone: &str, limiter: &Limiter) -> Result<(), Rejection> {
    let _ = (phone, limiter);
    Ok(())
}

#[tokio::test]
async fn a_digest_depends_on_the_secret() {
    let limiter = |secret: &str| Limiter::builder().secret(secret).build_in_memory().unwrap();
    let mut digests = Vec::new();
    for limiter in [limiter("one"), limiter("other"), limiter("one\r\n"), Limiter::in_memory()] {
        shown("138", &limiter).await.unwrap();
        digests.push(denial(shown("138", &limiter).await).to_string());
    }
    assert_eq!(digests[0], digests[2]);
    assert!(digests[0] != digests[1] && digests[0] != digests[3] && digests[1] != digests[3]);
    assert!(digests.iter().all(|digest| digest.len() == 32 && !digest.contains("138")), "{digests:?}");
}

#[rate_limit(key = "{phone:hash}", rule(count = 1, per = "1h"))]
async fn by_the_installed_limiter(phone: &str) -> Result<(), Rejection> {
    let _ = phone;
    Ok(())
}

#[tokio::test]
async fn the_installed_limiter_has_a_secret_too() {
    by_the_installed_limiter("138").await.unwrap();
    by_the_installed_limiter("139").await.unwrap();
    denial(by_the_installed_limiter("138").await);
}

#[test]
fn an_empty_secret_is_refused() {
    for secret in ["", "\n", " \r\n", "\u{feff}"] {
        let error = Limiter::builder().secret(secret).build_in_memory().unwrap_err();
        assert!(error.to_string().starts_with("`secret` must not be empty"), "{error}");
    }
}

#[test]
fn a_secret_stays_out_of_debug_output() {
    let builder = Limiter::builder().secret("hunter2");
    assert!(!format!("{builder:?}").contains("hunter2") && !format!("{builder:?}").contains("104, 117"));
    assert!(!format!("{:?}", builder.build_in_memory().unwrap()).contains("104, 117"));
}
