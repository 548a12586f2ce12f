//! The address of the client that a request comes from.

mod entries;
mod source;
#[cfg(test)]
mod vectors;

use std::fmt;
use std::net::IpAddr;

use tallygate_rules::SubnetBits;

pub use self::source::ClientIpSource;
pub(super) use self::source::networks;
use crate::address::{Network, without_ipv6_wrapping};
use crate::context::Context;
use crate::observe::opaque_debug;
use crate::observe::{ReportedOnce, log};

/// The address of the client that a request comes from, as keys show it by `{@ip}`.
///
/// It displays as the text that is counted: an IPv4 address as it is, and an IPv6 address as its network, because one
/// customer has all addresses of a network. An IPv4 address within IPv6, mapped or by the well-known prefix of NAT64,
/// is the IPv4 address.
///
/// A [`ClientIpSource`] finds it, behind proxies or without: [`ClientIp::socket`], [`ClientIp::behind`],
/// [`ClientIp::hops`].
///
/// # Examples
///
/// ```
/// use std::net::IpAddr;
/// use tallygate::web::ClientIp;
///
/// let address: IpAddr = "2001:db8:1:2::7".parse()?;
/// assert_eq!(ClientIp::from(address).to_string(), "2001:db8:1:2::/64");
/// assert_eq!(ClientIp::from(address).address(), address);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientIp {
    address: IpAddr,
    ipv6_prefix: u8,
    is_fallback: bool,
}

impl ClientIp {
    /// Returns the whole address, without a port and a zone.
    #[must_use]
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// Returns whether the client's own address is not known, so that this is the address of a proxy in its place.
    ///
    /// All clients of that proxy have this address. They are counted together, and nobody should be trusted because of it.
    #[must_use]
    pub fn is_fallback(self) -> bool {
        self.is_fallback
    }

    pub(super) fn as_fallback(self) -> Self {
        Self { is_fallback: true, ..self }
    }

    /// Returns the client whose address a context has, as that of a test or of an application. An IPv6 address may stand
    /// there as its network, as `{@ip}` shows it.
    pub(super) fn of(context: &Context) -> Option<Self> {
        let network = Network::parse(context.get("ip")?)?;
        let client = Self::from(network.address());
        match client.address {
            _ if network.is_single() => Some(client),
            IpAddr::V6(_) if network.bits() > 0 => Some(Self { ipv6_prefix: network.bits(), ..client }),
            _ => None,
        }
    }

    pub(super) fn current() -> Option<Self> {
        Self::of(&Context::current()?)
    }
}

/// The client at that address, whose IPv6 network is its /64.
impl From<IpAddr> for ClientIp {
    fn from(address: IpAddr) -> Self {
        Self { address: without_ipv6_wrapping(address), ipv6_prefix: SubnetBits::DEFAULT.ipv6, is_fallback: false }
    }
}

impl fmt::Display for ClientIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = SubnetBits { ipv6: self.ipv6_prefix, ..SubnetBits::DEFAULT };
        Network::from(self.address).widened(bits).fmt(f)
    }
}

opaque_debug!(ClientIp);

/// The client of a request is not known: there is no [`Layer`](super::Layer) around its handler, or the layer found no
/// address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MissingClientIp;

impl MissingClientIp {
    /// Reports it to the log, for the first request that fails because of it.
    pub(super) fn report(self) {
        static REPORTED: ReportedOnce = ReportedOnce::new();
        if REPORTED.is_first() {
            log::client_missing(&self);
        }
    }
}

impl fmt::Display for MissingClientIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the client of the request is not known; add `web::Layer` to the router, and in axum serve with \
             `into_make_service_with_connect_info::<SocketAddr>()`",
        )
    }
}

impl std::error::Error for MissingClientIp {}

tallygate_rules::__debug_by_display!(MissingClientIp);
