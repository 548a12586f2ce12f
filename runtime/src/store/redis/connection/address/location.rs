//! The parts of a URL.
//!
//! An error names the wrong part and shows none of its text: if a password is not encoded, any part may be a piece of
//! it.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use tallygate_rules::nearest;

use crate::error::Error;
use crate::observe::opaque_debug;

const SERVER_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) target: Target,
    pub(super) is_encrypted: bool,
    pub(super) login: Option<Login>,
    pub(super) database: u32,
}

/// The role of a server, and who says where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerRole {
    /// The server of the URL, which stands alone.
    Server,
    /// A sentinel in the URL.
    Sentinel,
    /// The primary that the sentinels name.
    Primary,
    /// A node of a cluster in the URL.
    Seed,
    /// A node that the nodes of a cluster announce.
    Node,
}

/// The servers to ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Server(Host),
    Socket(PathBuf),
    /// The primary that the sentinels know by this name.
    Primary {
        name: String,
        first: Host,
        others: Vec<Host>,
    },
    /// The cluster to which these nodes belong.
    Cluster {
        first: Host,
        others: Vec<Host>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// Shows host and port as in a URL.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port } = self;
        if name.contains(':') { write!(f, "[{name}]:{port}") } else { write!(f, "{name}:{port}") }
    }
}

/// A user and a password. Without a user, the password is that of the default user.
#[derive(PartialEq, Eq)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: String,
}

// Leaves out user and password.
opaque_debug!(Login);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Server,
    Socket,
    Sentinels,
    Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheme {
    name: &'static str,
    kind: Kind,
    is_encrypted: bool,
}

const SCHEMES: [Scheme; 7] = [
    Scheme { name: "redis", kind: Kind::Server, is_encrypted: false },
    Scheme { name: "rediss", kind: Kind::Server, is_encrypted: true },
    Scheme { name: "redis+unix", kind: Kind::Socket, is_encrypted: false },
    Scheme { name: "redis+sentinel", kind: Kind::Sentinels, is_encrypted: false },
    Scheme { name: "rediss+sentinel", kind: Kind::Sentinels, is_encrypted: true },
    Scheme { name: "redis+cluster", kind: Kind::Cluster, is_encrypted: false },
    Scheme { name: "rediss+cluster", kind: Kind::Cluster, is_encrypted: true },
];

impl Scheme {
    /// Splits a URL into its scheme and the text after `://`.
    fn split(url: &str) -> Result<(Self, &str), Error> {
        // Text that cannot be a scheme may be a password, so it is not shown.
        let Some((name, rest)) = url.split_once("://").filter(|(name, _)| is_scheme(name)) else {
            return Err(Error::new("`url` has no scheme; write `redis://host:port` or `memory://`"));
        };
        match SCHEMES.iter().find(|scheme| scheme.name.eq_ignore_ascii_case(name)) {
            Some(&scheme) => Ok((scheme, rest)),
            None => Err(unknown(name)),
        }
    }
}

fn is_scheme(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'))
}

fn unknown(name: &str) -> Error {
    let known = SCHEMES.iter().map(|scheme| scheme.name).chain(["memory"]);
    let remedy = match nearest(name, known) {
        Some(known) => format!("did you mean `{known}://`?"),
        None => {
            "write `redis://host:port`, `rediss://host:port` for TLS, `redis+unix:///path` or `memory://`".to_owned()
        }
    };
    Error::new(format!("`url` has the unknown scheme `{name}`; {remedy}"))
}

/// The parts of a URL after the scheme.
struct Pieces<'a> {
    login: Option<&'a str>,
    hosts: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

impl Location {
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        let (scheme, rest) = Scheme::split(url)?;
        let pieces = Pieces::split(rest)?;
        let login = pieces.login.map(Login::parse).transpose()?.flatten();
        let (target, database) = pieces.target(scheme)?;
        Ok(Self { target, is_encrypted: scheme.is_encrypted, login, database })
    }
}

impl<'a> Pieces<'a> {
    fn split(rest: &'a str) -> Result<Self, Error> {
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if tail.contains('@') {
            return Err(mistake(
                "has an `@` behind the host; in user and password, write `/` as `%2F`, `?` as `%3F` and `#` as `%23`",
            ));
        }
        if tail.contains('#') {
            return Err(mistake("has something behind a `#`, which means nothing here; leave it out"));
        }
        let (path, query) = match tail.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (tail, None),
        };
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        Ok(Self { login, hosts, path, query })
    }

    fn target(&self, scheme: Scheme) -> Result<(Target, u32), Error> {
        if scheme.kind == Kind::Socket {
            return Ok((self.socket()?, self.database_of_socket()?));
        }
        if self.query.is_some() {
            return Err(mistake(
                "has settings behind a `?`; leave them out: user and password stand before the host, as in \
                 `redis://user:password@host`, and the database behind it, as in `redis://host/1`",
            ));
        }
        let path = self.path.strip_prefix('/').unwrap_or(self.path);
        match scheme.kind {
            Kind::Sentinels => {
                let (name, database) = path.split_once('/').unwrap_or((path, ""));
                Ok((self.primary(name)?, parse_database(database)?))
            }
            Kind::Cluster => match parse_database(path)? {
                0 => {
                    let (first, others) = self.hosts(SERVER_PORT)?;
                    Ok((Target::Cluster { first, others }, 0))
                }
                _ => Err(mistake("names a database, and a cluster has only one; leave it out")),
            },
            Kind::Server | Kind::Socket => Ok((Target::Server(self.host()?), parse_database(path)?)),
        }
    }

    fn host(&self) -> Result<Host, Error> {
        if self.hosts.contains(',') {
            return Err(mistake(
                "names several hosts; write `redis+sentinel://host,host/name-of-the-primary` or \
                 `redis+cluster://host,host`",
            ));
        }
        Host::parse(self.hosts, SERVER_PORT)
    }

    /// Returns the first host, and the others.
    fn hosts(&self, usual_port: u16) -> Result<(Host, Vec<Host>), Error> {
        let mut hosts = self.hosts.split(',').map(|host| Host::parse(host, usual_port));
        let first = hosts.next().unwrap_or_else(|| Host::parse("", usual_port))?;
        Ok((first, hosts.collect::<Result<_, _>>()?))
    }

    fn primary(&self, name: &str) -> Result<Target, Error> {
        let name = decode(name).filter(|name| !name.is_empty()).ok_or_else(|| {
            mistake(
                "does not say which primary the sentinels watch; write its name behind the hosts, like \
                 `redis+sentinel://host,host/mymaster`",
            )
        })?;
        let (first, others) = self.hosts(SENTINEL_PORT)?;
        Ok(Target::Primary { name, first, others })
    }

    fn socket(&self) -> Result<Target, Error> {
        if !self.hosts.is_empty() {
            return Err(mistake("names a host, and a Unix socket has a path only; write `redis+unix:///path`"));
        }
        match decode(self.path).filter(|path| path.len() > 1) {
            Some(path) => Ok(Target::Socket(path.into())),
            None => Err(mistake("has no path that can be read; write `redis+unix:///path/to/socket`")),
        }
    }

    fn database_of_socket(&self) -> Result<u32, Error> {
        match self.query.map(|query| query.strip_prefix("db=")) {
            None => Ok(0),
            Some(Some(database)) if !database.is_empty() => parse_database(database),
            Some(_) => Err(mistake(
                "has settings behind a `?` other than `db`; user and password stand before the path, as in \
                 `redis+unix://user:password@/path?db=1`",
            )),
        }
    }
}

impl Login {
    /// Reads the text before the `@`. An empty text means no login.
    fn parse(text: &str) -> Result<Option<Self>, Error> {
        if text.is_empty() {
            return Ok(None);
        }
        let Some((user, password)) = text.split_once(':') else {
            return Err(mistake(
                "has a user without a password; write `user:password@host`, or `user:@host` if the user has none",
            ));
        };
        let decode = |part, text| {
            decode(text).ok_or_else(|| {
                mistake(&format!("has a {part} that is not percent-encoded; write `%` as `%25`, and all text as UTF-8"))
            })
        };
        let user = decode("user", user)?;
        Ok(Some(Self { user: Some(user).filter(|user| !user.is_empty()), password: decode("password", password)? }))
    }
}

/// The greatest length of a host's name, as in DNS.
const NAME_BYTES: usize = 253;

impl Host {
    /// Returns a host that a server names; `None` if the text is neither a name nor an address.
    pub(crate) fn named(name: &str, port: u16) -> Option<Self> {
        let is_name = !name.is_empty()
            && name.len() <= NAME_BYTES
            && name.chars().all(|letter| is_plain(letter) || letter == '%');
        is_name.then(|| Self { name: name.to_owned(), port })
    }

    fn parse(text: &str, usual_port: u16) -> Result<Self, Error> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => Self::split_ipv6(rest)?,
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(mistake("has an IPv6 address without brackets; write `redis://[::1]:6379`"));
                }
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            },
        };
        let port = port.map_or(Ok(usual_port), parse_port)?;
        check_name(name)?;
        Ok(Self { name: name.to_owned(), port })
    }

    /// Splits the text after the opening bracket into address and port.
    fn split_ipv6(rest: &str) -> Result<(&str, Option<&str>), Error> {
        let broken = || mistake("has brackets that hold no IPv6 address; write `redis://[::1]:6379`");
        let (address, port) = rest.split_once(']').ok_or_else(broken)?;
        address.parse::<Ipv6Addr>().map_err(|_| broken())?;
        match port.strip_prefix(':') {
            Some(port) => Ok((address, Some(port))),
            None if port.is_empty() => Ok((address, None)),
            None => Err(broken()),
        }
    }
}

/// Whether a name or an address may contain this character.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':')
}

fn check_name(name: &str) -> Result<(), Error> {
    match name {
        "" => Err(mistake("names no host; write `redis://127.0.0.1:6379`")),
        "0.0.0.0" | "::" => Err(mistake("has an address to listen on; write `127.0.0.1`, or the host's own address")),
        name if name.chars().all(is_plain) => Ok(()),
        _ => Err(mistake("has a host that is no name and no address; write `redis://user:password@host:6379`")),
    }
}

fn parse_port(text: &str) -> Result<u16, Error> {
    let port = parse_number(text).and_then(|port| u16::try_from(port).ok()).filter(|&port| port > 0);
    port.ok_or_else(|| mistake("has a port that is no number from 1 to 65535; write `redis://host:6379`"))
}

fn parse_database(text: &str) -> Result<u32, Error> {
    let database = if text.is_empty() { Some(0) } else { parse_number(text) };
    database.ok_or_else(|| mistake("has a database that is no number; write `redis://host:6379/0`"))
}

/// Reads digits only: in Rust, a number may also have a sign.
fn parse_number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn decode(text: &str) -> Option<String> {
    let is_hexadecimal = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    let is_encoded = text.split('%').skip(1).all(|rest| rest.as_bytes().get(..2).is_some_and(is_hexadecimal));
    let decoded = percent_decode_str(text).decode_utf8().ok().filter(|_| is_encoded)?;
    Some(decoded.into_owned())
}

fn mistake(text: &str) -> Error {
    Error::new(format!("`url` {text}"))
}
