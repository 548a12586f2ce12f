//! Servers that encrypt, and the certificates for them.
//!
//! Where the server under test was built without TLS, a proxy encrypts in front of it, as operators do it.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::launch::has_tls;
use crate::server::{Server, free_port};

/// Issues certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate, and the private key to it, as PEM.
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// What the server asks of its clients.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// Nothing.
    Anybody,
    /// A certificate of the authority that issued the server's.
    WithCertificate,
}

impl Authority {
    /// Creates an authority that nobody knows yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, key()).expect("the certificate is sound"))
    }

    /// Returns the certificate of the authority, as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for these names and addresses.
    #[must_use]
    pub fn issue(&self, names: &[&str]) -> Identity {
        self.issue_with(names, |_| {})
    }

    /// Issues a certificate for these names that has expired years ago.
    #[must_use]
    pub fn issue_expired(&self, names: &[&str]) -> Identity {
        self.issue_with(names, |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1))
    }

    /// Issues a certificate for these names that begins to be valid in many years.
    #[must_use]
    pub fn issue_for_later(&self, names: &[&str]) -> Identity {
        self.issue_with(names, |params| params.not_before = rcgen::date_time_ymd(4000, 1, 1))
    }

    /// Issues a certificate for these names that is one of another authority.
    #[must_use]
    pub fn issue_authority(&self, names: &[&str]) -> Identity {
        self.issue_with(names, |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained))
    }

    /// Issues a certificate for these names that is for clients only.
    #[must_use]
    pub fn issue_for_clients(&self, names: &[&str]) -> Identity {
        self.issue_with(names, |params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth])
    }

    fn issue_with(&self, names: &[&str], set: impl FnOnce(&mut CertificateParams)) -> Identity {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let key = key();
        let mut params = CertificateParams::new(names).expect("the names are sound");
        set(&mut params);
        let certificate = params.signed_by(&key, &self.0).expect("the certificate is sound");
        Identity { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

/// What a proxy does with clients that do not encrypt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    Refused,
    Passed,
}

/// The host of all servers.
pub const OWN: &str = "127.0.0.1";

/// What the first byte of an encrypted connection says: a handshake.
const HANDSHAKE: u8 = 0x16;

/// A server that encrypts, for `localhost` and 127.0.0.1.
pub struct TlsServer {
    server: Server,
    port: u16,
    _proxy: Option<TlsProxy>,
    _files: TempDir,
}

/// A proxy that encrypts in front of a server, which ends when dropped.
pub struct TlsProxy {
    port: u16,
    listening: JoinHandle<()>,
}

impl Drop for TlsProxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl TlsServer {
    /// Starts a server with a certificate of that authority.
    pub async fn start(authority: &Authority, clients: Clients) -> Self {
        Self::start_as(authority, authority.issue(&["localhost", "127.0.0.1"]), clients).await
    }

    /// Starts a server with that certificate.
    pub async fn start_as(authority: &Authority, identity: Identity, clients: Clients) -> Self {
        let files = tempfile::tempdir().expect("a temporary folder");
        let file = |name: &str, text: &str| write(files.path(), name, text);
        let (ca, certificate) = (file("ca.pem", &authority.pem()), file("server.pem", &identity.certificate));
        let key = file("server.key", &identity.key);
        if !has_tls() {
            let server = Server::start();
            let proxy = TlsProxy::start_as(server.port(), config(authority, &identity, clients), Plain::Refused).await;
            return Self { server, port: proxy.port(), _proxy: Some(proxy), _files: files };
        }
        let port = free_port();
        let asks = if clients == Clients::WithCertificate { "yes" } else { "no" };
        let server = Server::start_with(
            &[
                &["--tls-port", &port.to_string(), "--tls-auth-clients", asks][..],
                &["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &ca],
            ]
            .concat(),
        );
        Self { server, port, _proxy: None, _files: files }
    }

    /// Returns the port at which connections are encrypted.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server, which can also be asked without encryption.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the URL to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("rediss://127.0.0.1:{}/", self.port)
    }
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("a file in a temporary folder");
    path.to_string_lossy().into_owned()
}

impl TlsProxy {
    /// Starts a proxy in front of the server at that port, with a certificate of that authority for 127.0.0.1.
    pub async fn start(server: u16, authority: &Authority) -> Self {
        Self::start_named(server, authority, OWN).await
    }

    /// Starts a proxy with a certificate for that host.
    pub async fn start_named(server: u16, authority: &Authority, host: &str) -> Self {
        Self::start_as(server, own_config(authority, host), Plain::Refused).await
    }

    /// Starts a proxy that serves clients which encrypt and servers which do not, on one port.
    pub async fn start_for_both(server: u16, authority: &Authority, host: &str) -> Self {
        Self::start_as(server, own_config(authority, host), Plain::Passed).await
    }

    async fn start_as(server: u16, config: ServerConfig, plain: Plain) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        Self { port, listening: tokio::spawn(listen(listener, acceptor, plain, server)) }
    }

    /// Returns the port at which connections are encrypted.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

fn own_config(authority: &Authority, host: &str) -> ServerConfig {
    config(authority, &authority.issue(&[host]), Clients::Anybody)
}

fn config(authority: &Authority, identity: &Identity, clients: Clients) -> ServerConfig {
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let config = config.with_safe_default_protocol_versions().expect("the provider knows them");
    let config = match clients {
        Clients::Anybody => config.with_no_client_auth(),
        Clients::WithCertificate => {
            let mut roots = RootCertStore::empty();
            roots.add(certificate(&authority.pem())).expect("the certificate is sound");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            config.with_client_cert_verifier(verifier.expect("there is a root"))
        }
    };
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("the key is PEM");
    config.with_single_cert(vec![certificate(&identity.certificate)], key).expect("they belong together")
}

async fn listen(listener: TcpListener, acceptor: TlsAcceptor, plain: Plain, server: u16) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(serve(client, acceptor.clone(), plain, server));
    }
}

async fn serve(mut client: TcpStream, acceptor: TlsAcceptor, plain: Plain, server: u16) -> io::Result<()> {
    let mut first = [0];
    let is_plain = plain == Plain::Passed && client.peek(&mut first).await? > 0 && first != [HANDSHAKE];
    if is_plain {
        let mut server = TcpStream::connect(("127.0.0.1", server)).await?;
        copy_bidirectional(&mut client, &mut server).await?;
    } else {
        let mut client = acceptor.accept(client).await?;
        let mut server = TcpStream::connect(("127.0.0.1", server)).await?;
        copy_bidirectional(&mut client, &mut server).await?;
    }
    Ok(())
}

fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("the certificate is PEM")
}
