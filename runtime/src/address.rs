//! Addresses of clients and their networks. Sockets, fields of proxies, keys and tools all read them by this module.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tallygate_rules::SubnetBits;

/// The greatest length of an address: IPv6 in brackets with a zone and a port.
const LONGEST: usize = 80;

/// The first 96 bits of the well-known prefix of NAT64, `64:ff9b::/96`.
const NAT64: u128 = 0x0064_ff9b << 64;

/// The first 48 bits of the addresses of local translators, `64:ff9b:1::/48` (RFC 8215).
const LOCAL_NAT64: u128 = 0x0064_ff9b_0001;

/// The first 16 bits of 6to4, and the first 32 bits of Teredo.
const SIX_TO_FOUR: u128 = 0x2002;
const TEREDO: u128 = 0x2001_0000;

/// The last 24 bits of an address.
const LAST_24: u128 = 0x00ff_ffff;

/// How many bits of an IPv6 address stand before the IPv4 address in it.
const IPV6_WRAPPING: u8 = 96;

/// Reads an address, with or without a port: `192.0.2.1`, `192.0.2.1:443`, `2001:db8::1`, `[2001:db8::1%eth0]:_hidden`.
/// Leaves out blanks around it, its zone and its port.
pub(crate) fn parse(text: &[u8]) -> Option<IpAddr> {
    let text = text.trim_ascii();
    let text = str::from_utf8(text).ok().filter(|text| text.len() <= LONGEST)?;
    let address = match text.strip_prefix('[') {
        Some(rest) => {
            let (inner, port) = rest.split_once(']')?;
            let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
            IpAddr::V6(ipv6(inner).filter(|_| is_port)?)
        }
        None => match text.split_once(':') {
            Some((ipv4, port)) if is_port(port) => IpAddr::V4(ipv4.parse().ok()?),
            Some(_) => IpAddr::V6(ipv6(text)?),
            None => IpAddr::V4(text.parse().ok()?),
        },
    };
    Some(without_ipv6_wrapping(address))
}

/// Returns the IPv4 address in an IPv6 address that is mapped or has the well-known prefix of NAT64; else the address
/// itself.
///
/// Local translators and tunnels are left out, because anybody can choose the address that they carry, so it must not
/// be trusted. It only [counts](Network::widened).
pub(crate) fn without_ipv6_wrapping(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if address.to_bits() >> 32 == NAT64 => {
            let [.., a, b, c, d] = address.octets();
            IpAddr::from([a, b, c, d])
        }
        canonical => canonical,
    }
}

/// Returns an address or a network as it is counted if nothing widens it. Any other text is returned unchanged.
pub(crate) fn counted(text: String) -> String {
    let as_it_is = SubnetBits { ipv4: 32, ipv6: 128 };
    Network::parse(&text).map_or(text, |network| network.widened(as_it_is).to_string())
}

/// Reads an IPv6 address and leaves out its zone.
fn ipv6(text: &str) -> Option<Ipv6Addr> {
    let address = match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() && zone.bytes().all(|byte| byte.is_ascii_graphic()) => address,
        Some(_) => return None,
        None => text,
    };
    address.parse().ok()
}

/// Whether this is the number of a port, or a name that hides it (RFC 7239, section 6).
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(hidden) => {
            !hidden.is_empty() && hidden.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        }
        None => is_number(text) && text.parse::<u16>().is_ok(),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A network of addresses. A single address is a network, too.
///
/// It displays as the text that is counted: `192.0.2.1`, `192.0.2.0/24`, `2001:db8:1:2::/64`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Reads an address or a network, like `192.0.2.0/24`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let Some((address, bits)) = text.trim_ascii().split_once('/') else {
            return parse(text.as_bytes()).map(Self::from);
        };
        let written: IpAddr = address.parse().ok()?;
        let bits: u8 = is_number(bits).then(|| bits.parse().ok()).flatten()?;
        let address = without_ipv6_wrapping(written);
        let network = match bits.checked_sub(IPV6_WRAPPING) {
            Some(bits) if address != written => Self { address, bits },
            _ => Self { address: written, bits },
        };
        (network.bits <= most_bits(network.address)).then_some(network)
    }

    /// Returns the network that is counted for this one: at most `bits` long. An address of a tunnel or of a local
    /// translator counts as the IPv4 address behind it.
    pub(crate) fn widened(self, bits: SubnetBits) -> Self {
        let counted = self.carried_ipv4().map_or(self, |ipv4| Self::from(IpAddr::V4(ipv4)));
        let most = if counted.address.is_ipv4() { bits.ipv4 } else { bits.ipv6 };
        Self { bits: counted.bits.min(most), ..counted }
    }

    /// Returns the IPv4 address behind an address of a tunnel or of a local translator. With 6to4, one IPv4 address has
    /// 65,536 networks of 64 bits. With Teredo, and with a translator whose prefix has 96 bits, all IPv4 addresses
    /// share one such network. With a shorter prefix of a translator, the last 24 bits are zero.
    fn carried_ipv4(self) -> Option<Ipv4Addr> {
        let IpAddr::V6(address) = self.address else { return None };
        let address = address.to_bits();
        let carried = if address >> 112 == SIX_TO_FOUR && self.bits >= 48 {
            address >> 80
        } else if address >> 96 == TEREDO && self.bits == 128 {
            !address
        } else if address >> 80 == LOCAL_NAT64 && self.bits == 128 && address & LAST_24 != 0 {
            address
        } else {
            return None;
        };
        let [.., a, b, c, d] = carried.to_be_bytes();
        Some(Ipv4Addr::new(a, b, c, d))
    }

    pub(crate) fn address(self) -> IpAddr {
        self.address
    }

    pub(crate) fn bits(self) -> u8 {
        self.bits
    }

    /// Whether it is a single address.
    pub(crate) fn is_single(self) -> bool {
        self.bits == most_bits(self.address)
    }

    /// Whether the address of a client is counted like this, with this filter if there is one: IPv4 as a single address
    /// or as wide as the filter says, and IPv6 as a network.
    pub(crate) fn is_of_client(self, filter: Option<SubnetBits>) -> bool {
        match self.address {
            IpAddr::V4(_) => self.is_single() || filter.is_some_and(|bits| self.bits == bits.ipv4),
            IpAddr::V6(_) => (1..most_bits(self.address)).contains(&self.bits) && !self.is_within_tunnel(),
        }
    }

    /// Whether this is a whole IPv6 address, as one is counted if networks have 128 bits.
    pub(crate) fn is_whole_ipv6(self) -> bool {
        self.address.is_ipv6() && self.is_single() && self.carried_ipv4().is_none()
    }

    /// Whether all addresses of this network count as the IPv4 addresses that they carry.
    fn is_within_tunnel(self) -> bool {
        let IpAddr::V6(address) = self.address else { return false };
        let address = address.to_bits();
        address >> 112 == SIX_TO_FOUR && self.bits >= 16 || address >> 96 == TEREDO && self.bits >= 32
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        let address = without_ipv6_wrapping(address);
        Self { address, bits: most_bits(address) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = most_bits(self.address);
        if self.bits >= most {
            return self.address.fmt(f);
        }
        let others = u32::from(most - self.bits);
        let first = match self.address {
            IpAddr::V4(address) => {
                IpAddr::V4(Ipv4Addr::from_bits(u32::MAX.checked_shl(others).unwrap_or_default() & address.to_bits()))
            }
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(u128::MAX.checked_shl(others).unwrap_or_default() & address.to_bits()))
            }
        };
        write!(f, "{first}/{}", self.bits)
    }
}

fn most_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str, ipv4: u8, ipv6: u8) -> Option<String> {
        Network::parse(text).map(|network| network.widened(SubnetBits { ipv4, ipv6 }).to_string())
    }

    #[test]
    fn an_address_has_one_network_however_it_is_written() {
        for text in [
            "192.0.2.1",
            " 192.0.2.1\t",
            "192.0.2.1:443",
            "192.0.2.1:_hidden",
            "::ffff:192.0.2.1",
            "::ffff:c000:201",
            "[::ffff:192.0.2.1]:443",
            "64:ff9b::192.0.2.1",
            "64:FF9B:0::C000:0201",
            "[64:ff9b::c000:201%eth0]:443",
            "192.0.2.1/32",
            "::ffff:192.0.2.1/128",
        ] {
            assert_eq!(network(text, 32, 64).as_deref(), Some("192.0.2.1"), "{text}");
            assert_eq!(network(text, 24, 56).as_deref(), Some("192.0.2.0/24"), "{text}");
        }
        for text in [
            "2001:db8:1:2:3:4:5:6",
            "2001:DB8:1:2::",
            "[2001:db8:1:2::]",
            "[2001:db8:1:2::7]:443",
            " [2001:db8:1:2::7%25eth0]:443 ",
            "2001:db8:1:2::7%eth0",
            "2001:db8:1:2::7/64",
            "2001:db8:1:2::/127",
        ] {
            assert_eq!(network(text, 24, 64).as_deref(), Some("2001:db8:1:2::/64"), "{text}");
            assert_eq!(network(text, 24, 48).as_deref(), Some("2001:db8:1::/48"), "{text}");
        }
    }

    #[test]
    fn a_network_is_only_widened() {
        assert_eq!(network("2001:db8:1::/48", 32, 64).as_deref(), Some("2001:db8:1::/48"));
        assert_eq!(network("192.0.0.0/16", 24, 64).as_deref(), Some("192.0.0.0/16"));
        assert_eq!(network("192.0.2.200", 25, 64).as_deref(), Some("192.0.2.128/25"));
        assert_eq!(network("255.255.255.255", 1, 64).as_deref(), Some("128.0.0.0/1"));
        assert_eq!(network("255.255.255.255", 0, 0).as_deref(), Some("0.0.0.0/0"));
        assert_eq!(network("ffff::", 0, 0).as_deref(), Some("::/0"));
        assert_eq!(network("::1", 200, 200).as_deref(), Some("::1"));
        assert_eq!(network("::ffff:10.0.0.0/104", 32, 64).as_deref(), Some("10.0.0.0/8"));
        assert_eq!(network("64:ff9b::/64", 32, 64).as_deref(), Some("64:ff9b::/64"));
    }

    #[test]
    fn what_comes_through_a_tunnel_or_a_local_translator_counts_as_its_ipv4_address() {
        for (address, expected) in [
            ("2002:c000:201::1", "192.0.2.1"),
            ("[2002:c000:201:ffff::1]:443", "192.0.2.1"),
            ("2002:c000:201:7::/64", "192.0.2.1"),
            ("2002:c000:201::/48", "192.0.2.1"),
            ("2002:c000::/32", "2002:c000::/32"),
            ("2001:0:cb00:7101:0:f227:3fff:fdfe", "192.0.2.1"),
            ("2001:0:cb00:7102:8000:1:3fff:fdfe%eth0", "192.0.2.1"),
            ("2001:0:cb00:7101::/64", "2001:0:cb00:7101::/64"),
            ("2001:1::1", "2001:1::/64"),
            ("64:ff9b:1::c000:201", "192.0.2.1"),
            ("64:ff9b:1:7::192.0.2.1", "192.0.2.1"),
            // With a prefix of 48 bits, 192.0.2.1 does not stand in the last bits.
            ("64:ff9b:1:c000:2:100::", "64:ff9b:1:c000::/64"),
            ("64:ff9b:2::c000:201", "64:ff9b:2::/64"),
            ("::192.0.2.1", "::/64"),
            ("fe80::1%eth0", "fe80::/64"),
        ] {
            assert_eq!(network(address, 32, 64).as_deref(), Some(expected), "{address}");
        }
    }

    #[test]
    fn nobody_is_trusted_for_an_address_that_a_tunnel_carries() {
        for text in ["2002:0a00:0001::1", "2001:0:cb00:7101:0:f227:f5ff:fffe", "64:ff9b:1::10.0.0.1"] {
            assert!(parse(text.as_bytes()).unwrap().is_ipv6(), "{text}");
        }
    }

    #[test]
    fn other_text_is_no_network() {
        for text in
            ["", "localhost:80", "192.0.2.256", "192.0.2.0/33", "2001:db8::/129", "2001:db8::/+64", "::/", "/64"]
        {
            assert_eq!(network(text, 32, 64), None, "{text}");
        }
    }
}
