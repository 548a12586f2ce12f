//! The process has chosen a provider of cryptography for rustls. This needs a process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustls::Error;
use rustls::crypto::{CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, ring};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;
use tallygate::Tls;
use tallygate_harness::server::patient;
use tallygate_harness::tls::{Authority, Clients, TlsServer};

/// Random bytes and keys as of ring, each of which is counted.
#[derive(Debug)]
struct Counting {
    random: AtomicU32,
    keys: AtomicU32,
}

static CHOSEN: Counting = Counting { random: AtomicU32::new(0), keys: AtomicU32::new(0) };

impl SecureRandom for Counting {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        self.random.fetch_add(1, Ordering::Relaxed);
        ring::default_provider().secure_random.fill(bytes)
    }
}

impl KeyProvider for Counting {
    fn load_private_key(&self, key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        self.keys.fetch_add(1, Ordering::Relaxed);
        ring::default_provider().key_provider.load_private_key(key)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_keeps_the_provider_that_it_has_chosen() {
    let chosen = CryptoProvider { secure_random: &CHOSEN, key_provider: &CHOSEN, ..ring::default_provider() };
    chosen.install_default().unwrap();
    let authority = Authority::new("ours");
    let server = TlsServer::start(&authority, Clients::WithCertificate).await;
    let identity = authority.issue(&["tallygate"]);
    let tls = Tls::new().ca(authority.pem()).client_certificate(identity.certificate, identity.key);
    let connected = patient().tls(tls).connect(server.url()).await;
    assert!(connected.is_ok(), "{connected:?}");
    let used = [&CHOSEN.random, &CHOSEN.keys].map(|count| count.load(Ordering::Relaxed));
    assert!(used.iter().all(|count| *count > 0), "{used:?}");
}
