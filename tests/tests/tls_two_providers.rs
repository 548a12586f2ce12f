//! rustls is linked with two providers of cryptography, and the process chooses neither. This needs a process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::panic::catch_unwind;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use tallygate::Tls;
use tallygate_tests::server::patient;
use tallygate_tests::tls::{Authority, Clients, TlsServer};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_links_two_providers_and_chooses_none_can_connect() {
    let authority = Authority::new("ours");
    let server = TlsServer::start(&authority, Clients::Anybody).await;
    assert!(catch_unwind(ClientConfig::builder).is_err(), "rustls cannot choose by itself");
    assert!(CryptoProvider::get_default().is_none());
    let connected = patient().tls(Tls::new().ca(authority.pem())).connect(&server.url()).await;
    assert!(connected.is_ok(), "{connected:?}");
    assert!(CryptoProvider::get_default().is_some());
}
