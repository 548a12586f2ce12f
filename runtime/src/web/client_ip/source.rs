//! Ways to find the address of a client: by the socket, or by the fields of trusted proxies.

use std::net::IpAddr;
use std::num::NonZeroUsize;

use ipnet::IpNet;
use tallygate_rules::SubnetBits;

use super::{ClientIp, entries};
use crate::address;
use crate::error::Error;

/// A way to find the address of a client: see [`ClientIp::socket`], [`ClientIp::behind`] and [`ClientIp::hops`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIpSource {
    trust: Trust,
    field: ProxyField,
    ipv6_prefix: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Trust {
    Nobody,
    Networks(Vec<IpNet>),
    /// This number of proxies, including the one that connects to this server.
    Hops(NonZeroUsize),
}

/// The field in which proxies write the address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ProxyField {
    XForwardedFor,
    Forwarded,
    /// A field with this name and one address.
    Single(String),
}

impl ClientIp {
    /// Takes the address from the socket: for a server that clients connect to without a proxy.
    #[must_use]
    pub fn socket() -> ClientIpSource {
        ClientIpSource::trusting(Trust::Nobody)
    }

    /// Trusts the proxies in these networks, like `10.0.0.0/8` or `192.0.2.7`, and takes the address from the field
    /// `X-Forwarded-For`, unless [another field](ClientIpSource::forwarded) is chosen.
    ///
    /// The entries of the field are read from the end, where the proxy that connects to this server added its own. The
    /// client is the first address that is not in these networks. If an entry is not an address, the client is the last
    /// trusted address before it. Such an address of a proxy is only a [fallback](ClientIp::is_fallback), which exempts nobody. A
    /// request from outside these networks comes from the address of its socket, whatever its fields say.
    ///
    /// List only networks of proxies: a client in one of them could choose its address.
    ///
    /// # Errors
    ///
    /// No network is given, or one of them is not a network or contains every address.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::web::ClientIp;
    ///
    /// let source = ClientIp::behind(["10.0.0.0/8", "fd00::/8"])?;
    /// let client = source.resolve("10.0.0.7".parse().ok(), [&b"203.0.113.9, 10.1.2.3"[..]]);
    /// assert_eq!(client.map(|client| client.to_string()).as_deref(), Some("203.0.113.9"));
    ///
    /// let direct = source.resolve("198.51.100.4".parse().ok(), [&b"203.0.113.9"[..]]);
    /// assert_eq!(direct.map(|client| client.to_string()).as_deref(), Some("198.51.100.4"));
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn behind<N: AsRef<str>>(networks: impl IntoIterator<Item = N>) -> Result<ClientIpSource, Error> {
        let networks = self::networks("behind", "trusts everybody; list your proxies, or use `hops`", networks)?;
        if networks.is_empty() {
            return Err(Error::new(
                "`behind` needs a network of proxies, like `behind([\"10.0.0.0/8\"])`; without proxies, use `socket()`",
            ));
        }
        Ok(ClientIpSource::trusting(Trust::Networks(networks)))
    }

    /// Trusts this number of proxies in front of this server, whatever their addresses. The client is the entry that
    /// the farthest of them added: the one at position `proxies` from the end.
    ///
    /// Use it if the addresses of the proxies are not known, and only if nobody can connect to this server without
    /// them: such a client could choose its address. [`behind`](Self::behind) is safer.
    ///
    /// # Errors
    ///
    /// The number is 0.
    pub fn hops(proxies: usize) -> Result<ClientIpSource, Error> {
        let proxies = NonZeroUsize::new(proxies).ok_or_else(|| {
            Error::new("`hops` must be at least 1, the number of proxies; without proxies, use `ClientIp::socket()`")
        })?;
        Ok(ClientIpSource::trusting(Trust::Hops(proxies)))
    }
}

impl ClientIpSource {
    fn trusting(trust: Trust) -> Self {
        Self { trust, field: ProxyField::XForwardedFor, ipv6_prefix: SubnetBits::DEFAULT.ipv6 }
    }

    /// Takes the address from the field `Forwarded` of RFC 7239.
    ///
    /// Choose the field that the trusted proxies write. The client may write other fields, so only one is ever read.
    #[must_use]
    pub fn forwarded(self) -> Self {
        Self { field: ProxyField::Forwarded, ..self }
    }

    /// Takes the address from a field with a single address, as content delivery networks write it, like
    /// `CF-Connecting-IP`.
    ///
    /// The field is used if a trusted proxy connects, and the field occurs once, with one address. Otherwise the client
    /// is the address of the socket.
    ///
    /// # Errors
    ///
    /// The name is not the name of a field.
    pub fn header(self, name: &str) -> Result<Self, Error> {
        if name.is_empty() || !name.bytes().all(entries::is_token) {
            return Err(Error::new(format!(
                "`header` must be the name of a field, like `header(\"cf-connecting-ip\")`, and `{}` is none",
                name.escape_default()
            )));
        }
        Ok(Self { field: ProxyField::Single(name.to_ascii_lowercase()), ..self })
    }

    /// Sets how many bits of an IPv6 address are counted: 64 by default. A customer with a larger network, such as a
    /// /56, has one limit for each of its networks of this length.
    ///
    /// # Errors
    ///
    /// The number is 0 or more than 128.
    pub fn ipv6_prefix(self, bits: u8) -> Result<Self, Error> {
        if !(1..=128).contains(&bits) {
            return Err(Error::new("`ipv6_prefix` must be from 1 to 128 bits, like `ipv6_prefix(64)`"));
        }
        Ok(Self { ipv6_prefix: bits, ..self })
    }

    /// Returns the name of the field that is read, in lower case, or `None` if no field is read.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match (&self.trust, &self.field) {
            (Trust::Nobody, _) => None,
            (_, ProxyField::XForwardedFor) => Some("x-forwarded-for"),
            (_, ProxyField::Forwarded) => Some("forwarded"),
            (_, ProxyField::Single(name)) => Some(name),
        }
    }

    /// Finds the client by the address of the socket and all lines of [the field](Self::field), in their order. Use it
    /// in a server for which this crate has no layer.
    ///
    /// Returns `None` if there is no address: neither of the socket, such as a Unix socket, nor from trusted proxies.
    pub fn resolve<'h>(&self, peer: Option<IpAddr>, lines: impl IntoIterator<Item = &'h [u8]>) -> Option<ClientIp> {
        let peer = peer.map(address::without_ipv6_wrapping);
        let found = if self.trusts_peer(peer) {
            let lines: Vec<_> = lines.into_iter().collect();
            self.client_from_field(peer, &lines)
        } else {
            peer.map(ClientIp::from)
        };
        found.map(|client| ClientIp { ipv6_prefix: self.ipv6_prefix, ..client })
    }

    fn trusts_peer(&self, peer: Option<IpAddr>) -> bool {
        match &self.trust {
            Trust::Nobody => false,
            Trust::Networks(networks) => peer.is_some_and(|peer| contains(networks, peer)),
            Trust::Hops(_) => true,
        }
    }

    fn client_from_field(&self, peer: Option<IpAddr>, lines: &[&[u8]]) -> Option<ClientIp> {
        match &self.field {
            ProxyField::XForwardedFor => self.walk(peer, entries::x_forwarded_for(lines)),
            ProxyField::Forwarded => self.walk(peer, entries::forwarded(lines)),
            ProxyField::Single(_) => {
                let written = if let [line] = lines { address::parse(line) } else { None };
                let fallback = || peer.map(|peer| ClientIp::from(peer).as_fallback());
                written.map(ClientIp::from).or_else(fallback)
            }
        }
    }

    /// Walks from the socket towards the client, as long as trusted proxies wrote the entries.
    fn walk(&self, peer: Option<IpAddr>, entries: impl Iterator<Item = Option<IpAddr>>) -> Option<ClientIp> {
        let mut last = peer;
        for (hop, entry) in (1..).zip(entries) {
            // A proxy writes an address, so everything before this entry may be forged.
            let Some(address) = entry else { break };
            last = Some(address);
            let is_proxy = match &self.trust {
                Trust::Nobody => false,
                Trust::Networks(networks) => contains(networks, address),
                Trust::Hops(proxies) => hop < proxies.get(),
            };
            if !is_proxy {
                return Some(ClientIp::from(address));
            }
        }
        last.map(|proxy| ClientIp::from(proxy).as_fallback())
    }
}

impl Default for ClientIpSource {
    /// [`ClientIp::socket`].
    fn default() -> Self {
        ClientIp::socket()
    }
}

fn contains(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

/// Reads networks. An error names the setting. `everybody` is what it says of a network with every address, as "trusts everybody".
pub(in crate::web) fn networks<N: AsRef<str>>(
    setting: &str,
    everybody: &str,
    networks: impl IntoIterator<Item = N>,
) -> Result<Vec<IpNet>, Error> {
    networks.into_iter().map(|text| network(setting, everybody, text.as_ref())).collect()
}

fn network(setting: &str, everybody: &str, text: &str) -> Result<IpNet, Error> {
    let single = || text.parse::<IpAddr>().map(IpNet::from);
    let refuse = |why: &str| Err(Error::new(format!("`{setting}`: `{}` {why}", text.escape_default())));
    match text.parse::<IpNet>().or_else(|_| single()) {
        Ok(IpNet::V6(network)) if address::without_ipv6_wrapping(network.addr().into()).is_ipv4() => {
            refuse("is an IPv4 network within IPv6; write it as IPv4, like `10.0.0.0/8`")
        }
        Ok(network) if network.prefix_len() == 0 => refuse(everybody),
        Ok(network) => Ok(network),
        Err(_) => refuse("is no network; write one, like `10.0.0.0/8`, `fd00::/8` or `192.0.2.7`"),
    }
}
