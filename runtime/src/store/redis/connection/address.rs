//! The servers that a URL leads to: the address of each, and the login.

pub(super) mod location;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use ::redis::io::tcp::TcpSettings;
use ::redis::io::tcp::socket2::TcpKeepalive;
use ::redis::{
    Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo, RedisError,
};

pub(crate) use self::location::{Host, ServerRole};
use self::location::{Location, Login, Target};
#[cfg(feature = "tls")]
use super::tls::{self, Tls};
use crate::error::Error;

/// After this time without traffic, the system asks the other end whether it is still there.
const IDLE: Duration = Duration::from_secs(10);

/// How often the system asks again while it gets no answer.
#[cfg(any(target_os = "linux", target_os = "macos", target_os = "windows"))]
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// How long the other end may take to acknowledge data or such a question.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) enum Destination {
    Server(Address),
    /// The primary that the sentinels know by this name. The address has its login and its database.
    Primary {
        name: String,
        sentinels: Vec<Address>,
        address: Address,
    },
    /// The cluster of these nodes. The address is that of the first.
    Cluster {
        seeds: Vec<Host>,
        address: Address,
    },
}

#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) client: Client,
    pub(crate) role: ServerRole,
}

impl Address {
    fn new(info: ConnectionInfo, role: ServerRole) -> Result<Self, Error> {
        #[cfg(feature = "tls")]
        if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            tls::provide();
        }
        // With RESP3, the client library reports a connection that is lost between two calls.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let sockets = watched(info.tcp_settings().clone().set_nodelay(true));
        let client = Client::open(info.set_redis_settings(settings).set_tcp_settings(sockets)).map_err(unusable)?;
        Ok(Self { client, role })
    }

    #[cfg(feature = "tls")]
    fn with_tls(self, tls: &Tls) -> Result<Self, Error> {
        if self.is_encrypted() {
            return Ok(Self { client: tls.apply(&self.client)?, role: self.role });
        }
        let text = "`tls` is set, but `url` does not ask for it; write `rediss://host:port`";
        Err(Error::of_setting(crate::error::Setting::Tls, text, "", " does not ask for it"))
    }

    /// Returns the address of another server, with the same login and settings.
    pub(crate) fn at(&self, host: &Host) -> Result<Self, Error> {
        let Host { name, port } = host.clone();
        let address = match self.socket().clone() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host: name, port, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(name, port),
        };
        Self::new(self.client.get_connection_info().clone().set_addr(address), self.role)
    }

    /// Returns the address of a node that the cluster announces, with the same login and settings.
    pub(crate) fn at_node(&self, host: &Host) -> Result<Self, Error> {
        Ok(Self { role: ServerRole::Node, ..self.at(host)? })
    }

    /// Returns the address of a sentinel, with the same login and settings.
    fn at_sentinel(&self, host: &Host) -> Result<Self, Error> {
        let address = self.at(host)?;
        let info = address.client.get_connection_info().clone();
        let settings = info.redis_settings().clone().set_db(0);
        Self::new(info.set_redis_settings(settings), ServerRole::Sentinel)
    }

    /// Returns the same address without user and password; `None` if it has none.
    pub(crate) fn without_login(&self) -> Option<Self> {
        let info = self.client.get_connection_info().clone();
        let settings = info.redis_settings();
        settings.password()?;
        let anonymous = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3);
        Self::new(info.set_redis_settings(anonymous), self.role).ok()
    }

    /// Whether connections begin with a user or a password.
    pub(crate) fn has_login(&self) -> bool {
        self.client.get_connection_info().redis_settings().password().is_some()
    }

    /// Removes the password from a text of the server: some servers quote it.
    pub(crate) fn without_password(&self, text: String) -> String {
        match self.client.get_connection_info().redis_settings().password() {
            Some(password) => without(&text, password).unwrap_or(text),
            None => text,
        }
    }

    /// Returns the scheme of a URL for this address.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.is_encrypted() { "rediss" } else { "redis" }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.socket(), ConnectionAddr::TcpTls { .. })
    }

    /// Returns host and port; `None` for a Unix socket.
    pub(crate) fn host(&self) -> Option<(&str, u16)> {
        match self.socket() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => Some((host, *port)),
            _ => None,
        }
    }

    fn socket(&self) -> &ConnectionAddr {
        self.client.get_connection_info().addr()
    }
}

/// Shows host and port, or the path of a socket.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket().fmt(f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl Destination {
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let Location { target, is_encrypted, login, database } = Location::parse(url)?;
        let login = settings(login, database);
        let address = |address: ConnectionAddr, role| {
            check_supported(&address)?;
            let info = address.into_connection_info().map_err(unusable)?;
            Address::new(info.set_redis_settings(login.clone()), role)
        };
        let server = |Host { name, port }, role| {
            let socket = if is_encrypted {
                ConnectionAddr::TcpTls { host: name, port, insecure: false, tls_params: None }
            } else {
                ConnectionAddr::Tcp(name, port)
            };
            address(socket, role)
        };
        match target {
            Target::Server(host) => server(host, ServerRole::Server).map(Self::Server),
            Target::Socket(path) => address(ConnectionAddr::Unix(path), ServerRole::Server).map(Self::Server),
            Target::Primary { name, first, others } => {
                let address = server(first.clone(), ServerRole::Primary)?;
                let hosts = [vec![first], others].concat();
                let sentinels = hosts.iter().map(|host| address.at_sentinel(host)).collect::<Result<_, _>>()?;
                Ok(Self::Primary { name, sentinels, address })
            }
            Target::Cluster { first, others } => {
                let address = server(first.clone(), ServerRole::Seed)?;
                Ok(Self::Cluster { seeds: [vec![first], others].concat(), address })
            }
        }
    }

    /// Returns the server that a client leads to.
    pub(crate) fn of_client(client: &Client) -> Result<Self, Error> {
        Address::new(client.get_connection_info().clone(), ServerRole::Server).map(Self::Server)
    }

    #[cfg(feature = "tls")]
    pub(crate) fn with_tls(self, tls: &Tls) -> Result<Self, Error> {
        match self {
            Self::Server(address) => address.with_tls(tls).map(Self::Server),
            Self::Primary { name, sentinels, address } => {
                let sentinels = sentinels.into_iter().map(|sentinel| sentinel.with_tls(tls));
                let sentinels = sentinels.collect::<Result<_, _>>()?;
                Ok(Self::Primary { name, sentinels, address: address.with_tls(tls)? })
            }
            Self::Cluster { seeds, address } => Ok(Self::Cluster { seeds, address: address.with_tls(tls)? }),
        }
    }

    /// The address of the server, or of one of several.
    pub(crate) fn address(&self) -> &Address {
        match self {
            Self::Server(address) | Self::Primary { address, .. } | Self::Cluster { address, .. } => address,
        }
    }
}

/// Shows host and port of one server, or the path of its socket.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address().fmt(f)
    }
}

/// Checks that this build can connect to this kind of address.
fn check_supported(address: &ConnectionAddr) -> Result<(), Error> {
    match address {
        ConnectionAddr::Unix(_) if cfg!(not(unix)) => {
            Err(Error::new("`url` names a Unix socket, which this system does not have; write `redis://host:port`"))
        }
        ConnectionAddr::TcpTls { .. } if cfg!(not(feature = "tls")) => {
            Err(Error::new("`url` asks for TLS; enable the feature `tls` of tallygate, or write `redis://host:port`"))
        }
        _ => Ok(()),
    }
}

/// Returns an error for an address that the client library refuses. Its own text is left out, as it may quote the URL.
fn unusable(_: RedisError) -> Error {
    Error::new("`url` cannot be used; write `redis://user:password@host:port/database`")
}

fn settings(login: Option<Login>, database: u32) -> RedisConnectionInfo {
    let settings = RedisConnectionInfo::default().set_db(database.into());
    match login {
        Some(Login { user: Some(user), password }) => settings.set_username(user).set_password(password),
        Some(Login { user: None, password }) => settings.set_password(password),
        None => settings,
    }
}

/// Replaces a password.
const REMOVED: &str = "…";

/// A password of at most so many bytes may be a part of other words by chance.
const SHORT: usize = 3;

/// Removes a secret from a text; `None` if the text does not contain it. A short secret is found only as a whole word.
fn without(text: &str, secret: &str) -> Option<String> {
    if secret.is_empty() || !text.contains(secret) {
        return None;
    }
    if secret.len() > SHORT {
        return Some(text.replace(secret, REMOVED));
    }
    let words = text.split_inclusive(|character: char| !character.is_alphanumeric() && !secret.contains(character));
    let word = |word: &str| {
        let end = word.chars().last().filter(|last| !last.is_alphanumeric() && !secret.contains(*last));
        let bare = word.strip_suffix(|last| Some(last) == end).unwrap_or(word);
        if bare == secret { format!("{REMOVED}{}", end.map(String::from).unwrap_or_default()) } else { word.to_owned() }
    };
    Some(words.map(word).collect())
}

/// Lets the system find connections whose other end is gone. Settings of the caller's own client are kept.
fn watched(settings: TcpSettings) -> TcpSettings {
    let settings = if settings.keepalive().is_none() { settings.set_keepalive(keepalive()) } else { settings };
    #[cfg(target_os = "linux")]
    if settings.user_timeout().is_none() {
        return settings.set_user_timeout(UNACKNOWLEDGED);
    }
    settings
}

fn keepalive() -> TcpKeepalive {
    let keepalive = TcpKeepalive::new().with_time(IDLE);
    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "windows"))]
    let keepalive = keepalive.with_interval(ASK_AGAIN);
    keepalive
}

const SHOWN: usize = 5;

/// Shows the first names of a list to an operator, and how many others there are.
pub(crate) struct ShortList<'a, T>(pub(crate) &'a [T]);

impl<T: fmt::Display> fmt::Display for ShortList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().take(SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            others => write!(f, " and {others} more"),
        }
    }
}
