//! The process chooses no provider of cryptography, and rustls cannot: as where two are linked. This needs a process of its
//! own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::panic::catch_unwind;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use tallygate::Tls;
use tallygate_harness::server::patient;
use tallygate_harness::tls::{Authority, Clients, TlsServer};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_chooses_no_provider_where_rustls_cannot_choose_can_connect() {
    let authority = Authority::new("ours");
    let server = TlsServer::start(&authority, Clients::Anybody).await;
    assert!(catch_unwind(ClientConfig::builder).is_err(), "rustls cannot choose by itself");
    assert!(CryptoProvider::get_default().is_none());
    let connected = patient().tls(Tls::new().ca(authority.pem())).connect(server.url()).await;
    assert!(connected.is_ok(), "{connected:?}");
    assert!(CryptoProvider::get_default().is_some());
}
