//! The process has chosen a provider of cryptography for rustls. This needs a process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use tallygate::Tls;
use tallygate_tests::server::patient;
use tallygate_tests::tls::{Authority, Clients, TlsServer};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_keeps_the_provider_that_it_has_chosen() {
    aws_lc_rs::default_provider().install_default().unwrap();
    let chosen = Arc::clone(CryptoProvider::get_default().unwrap());
    let authority = Authority::new("ours");
    let server = TlsServer::start(&authority, Clients::WithCertificate).await;
    let identity = authority.issue(&["tallygate"]);
    let tls = Tls::new().ca(authority.pem()).client_certificate(identity.certificate, identity.key);
    let connected = patient().tls(tls).connect(&server.url()).await;
    assert!(connected.is_ok(), "{connected:?}");
    assert!(Arc::ptr_eq(&chosen, CryptoProvider::get_default().unwrap()));
}
