//! The scheme of a URL, and the servers that it leads to.

use tallygate_rules::nearest;

use crate::error::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Server,
    Socket,
    Sentinels,
    Cluster,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scheme {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) is_encrypted: bool,
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
    pub(super) fn split(url: &str) -> Result<(Self, &str), Error> {
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
