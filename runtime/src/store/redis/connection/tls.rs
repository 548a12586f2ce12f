//! Encrypted connections: the certificates that are accepted, and the one that is shown.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use ::redis::{Client, ClientTlsConfig, ConnectionAddr, RedisError, TlsCertificates};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, CertificateError, RootCertStore};

use super::address::location::ServerRole;
use crate::error::{Error, Setting};
use crate::observe::opaque_debug;

/// The certificates that connections of `rediss://` accept, and the client's own, for [`LimiterBuilder::tls`].
///
/// Without any of these settings, the server has to show a certificate for the host of the URL, issued by an authority that
/// the system trusts.
///
/// Certificates and keys are PEM: text that begins with `-----BEGIN`.
///
/// # Examples
///
/// ```no_run
/// use tallygate::{Limiter, Tls};
///
/// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
/// let tls = Tls::new()
///     .ca(std::fs::read("ca.pem")?)
///     .client_certificate(std::fs::read("client.pem")?, std::fs::read("client.key")?);
/// Limiter::builder().tls(tls).connect("rediss://redis.example.com/").await?.install()?;
/// # Ok(())
/// # }
/// ```
///
/// [`LimiterBuilder::tls`]: crate::LimiterBuilder::tls
#[derive(Clone, Default)]
#[must_use = "settings do nothing until a `LimiterBuilder` has them"]
pub struct Tls {
    ca: Option<Vec<u8>>,
    identity: Option<Identity>,
    accepts_any: bool,
}

#[derive(Clone)]
struct Identity {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl Tls {
    /// Trusts the authorities that the system trusts, and shows no certificate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts only the authorities of these certificates, in place of the system's.
    pub fn ca(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca = Some(pem.into());
        self
    }

    /// Shows the server this certificate, and proves with the private key that the client owns it. Append the
    /// certificates of its issuers if the server does not know them.
    pub fn client_certificate(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.identity = Some(Identity { chain: chain.into(), key: key.into() });
        self
    }

    /// Accepts any certificate of any server. Whoever can reach the connection can read and change its data, the
    /// password included. Only for a test server.
    pub fn danger_accept_any_certificate(mut self) -> Self {
        self.accepts_any = true;
        self
    }

    /// Checks the settings as far as possible without a server.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(ca) = &self.ca {
            if self.accepts_any {
                return Err(mistake(
                    "has a `ca`, and accepts any certificate; leave `danger_accept_any_certificate` out",
                ));
            }
            check_ca(ca)?;
        }
        self.identity.as_ref().map_or(Ok(()), Identity::check)
    }

    pub(crate) fn apply(&self, client: &Client) -> Result<Client, Error> {
        let unusable = |_| mistake("cannot be used; write certificates and keys as PEM");
        let info = client.get_connection_info().clone();
        let client = Client::build_with_tls(info, self.certificates()).map_err(unusable)?;
        match client.get_connection_info().addr().clone() {
            ConnectionAddr::TcpTls { host, port, tls_params, .. } if self.accepts_any => {
                tracing::warn!("the certificate of redis is not checked: `danger_accept_any_certificate` is set");
                let address = ConnectionAddr::TcpTls { host, port, insecure: true, tls_params };
                Client::open(client.get_connection_info().clone().set_addr(address)).map_err(unusable)
            }
            _ => Ok(client),
        }
    }

    fn certificates(&self) -> TlsCertificates {
        let client = self.identity.as_ref();
        TlsCertificates {
            client_tls: client
                .map(|Identity { chain, key }| ClientTlsConfig { client_cert: chain.clone(), client_key: key.clone() }),
            root_cert: self.ca.clone(),
        }
    }
}

// Leaves out certificates and keys.
opaque_debug!(Tls { accepts_any });

impl Identity {
    fn check(&self) -> Result<(), Error> {
        const REMEDY: &str = "`client_certificate(std::fs::read(\"client.pem\")?, std::fs::read(\"client.key\")?)`";
        let chain = certificates(&self.chain).ok_or_else(|| {
            let text = format!("`tls` has a client certificate that is no PEM; write {REMEDY}");
            Error::of_setting(Setting::ClientCertificate, text, "", " holds no certificate as PEM")
        })?;
        provide();
        let key = CryptoProvider::get_default().and_then(|provider| {
            let key = PrivateKeyDer::from_pem_slice(&self.key).ok()?;
            provider.key_provider.load_private_key(key).ok()
        });
        let key = key.ok_or_else(|| {
            let text = format!("`tls` has no private key that can be read; write {REMEDY}");
            Error::of_setting(Setting::PrivateKey, text, "", " holds no private key that can be read")
        })?;
        match CertifiedKey::new(chain, key).keys_match() {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::of_setting(
                Setting::KeyPair,
                "`tls` has a client certificate that does not belong to its private key; write the pair",
                "",
                " does not belong to its private key",
            )),
        }
    }
}

fn check_ca(pem: &[u8]) -> Result<(), Error> {
    let mut roots = RootCertStore::empty();
    let certificates = certificates(pem).unwrap_or_default();
    let (usable, unusable) = roots.add_parsable_certificates(certificates);
    if usable > 0 && unusable == 0 {
        return Ok(());
    }
    let text = "`tls` has a `ca` that holds no certificate, or a broken one; write `ca(std::fs::read(\"ca.pem\")?)`";
    Err(Error::of_setting(Setting::Ca, text, "", " holds no certificate, or a broken one"))
}

/// Reads all certificates of a text; `None` if it has none, or one that cannot be read.
fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
    Some(certificates).filter(|certificates| !certificates.is_empty())
}

/// Sets the cryptography of rustls, unless this process has chosen one. With none, or with two to choose from, rustls
/// panics.
pub(crate) fn provide() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have set it first.
        let _ = ring::default_provider().install_default();
    }
}

/// Says what to do about a failed handshake with a server of this role; `None` if the error is not one of a handshake.
pub(crate) fn advice(role: ServerRole, error: &RedisError) -> Option<Advice> {
    use rustls::Error::{AlertReceived, InvalidCertificate, PeerIncompatible};
    Some(match handshake_error(error)? {
        InvalidCertificate(error) => certificate_advice(role, error),
        AlertReceived(alert) => alert_advice(*alert),
        PeerIncompatible(_) => VERSION.into(),
        _ => "".into(),
    })
}

pub(crate) struct Advice {
    pub(crate) text: &'static str,
    /// A setting, and its name as the end of the advice.
    pub(crate) setting: Option<(Setting, &'static str)>,
}

impl From<&'static str> for Advice {
    fn from(text: &'static str) -> Self {
        Self { text, setting: None }
    }
}

const VERSION: &str = "; the server has to speak TLS 1.2 or 1.3";
const CA: (Setting, &str) = (Setting::Ca, "`Tls::ca`");
const CLIENT_CERTIFICATE: (Setting, &str) = (Setting::ClientCertificate, "`Tls::client_certificate`");

/// What to do about the certificate of a server.
fn certificate_advice(role: ServerRole, error: &CertificateError) -> Advice {
    let text = match error {
        CertificateError::UnknownIssuer => {
            return Advice { text: "; give the certificate of its authority with ", setting: Some(CA) };
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => name_advice(role),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "; the certificate has expired: let its authority issue another one, or set the clock of this machine"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "; the certificate is not valid yet: set the clock of this machine, or wait"
        }
        CertificateError::Revoked => "; the certificate was revoked: install another one",
        _ => {
            "; the server needs a certificate for servers, which an authority has issued and which is none of an authority"
        }
    };
    text.into()
}

/// What to do about a certificate that does not name the host. That depends on who says that the server is there.
fn name_advice(role: ServerRole) -> &'static str {
    match role {
        ServerRole::Server | ServerRole::Sentinel | ServerRole::Seed => "; write a host that the certificate names",
        ServerRole::Primary => {
            "; the sentinels name this host: let them name one that the certificate names, with `sentinel resolve-hostnames yes`, \
             `sentinel announce-hostnames yes` and the name in `sentinel monitor` and `replica-announce-ip`, or issue one \
             for this host"
        }
        ServerRole::Node => {
            "; the nodes announce this host: let them announce one that the certificate names, with \
             `cluster-announce-hostname` and `cluster-preferred-endpoint-type hostname`, or issue one for this host"
        }
    }
}

/// What to do about a server that refuses the handshake.
fn alert_advice(alert: AlertDescription) -> Advice {
    use AlertDescription as Alert;
    let named = |text| Advice { text, setting: Some(CLIENT_CERTIFICATE) };
    match alert {
        Alert::CertificateRequired | Alert::HandshakeFailure => {
            named("; the server may want a certificate: give one with ")
        }
        Alert::ProtocolVersion => VERSION.into(),
        Alert::UnrecognisedName => "; write a host that the server knows itself by".into(),
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA
        | Alert::AccessDenied
        | Alert::DecryptError => named("; the server does not accept the certificate of "),
        _ => "".into(),
    }
}

/// Whether the server has answered with bytes that are no handshake.
pub(crate) fn is_garbled(error: &RedisError) -> bool {
    matches!(handshake_error(error), Some(rustls::Error::InvalidMessage(_)))
}

/// Returns the error of a handshake, which the client library wraps in an error of input and output.
fn handshake_error(error: &RedisError) -> Option<&rustls::Error> {
    let passed_on = error.source()?.downcast_ref::<Arc<dyn StdError + Send + Sync>>()?;
    passed_on.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
}

fn mistake(text: &str) -> Error {
    Error::new(format!("`tls` {text}"))
}
