//! Addresses as proxies write them.

use std::net::{IpAddr, Ipv6Addr};

/// The longest text that may be an address: IPv6 in brackets with a zone and a port.
const LONGEST: usize = 80;

/// The first 96 bits of the well-known prefix of NAT64, `64:ff9b::/96`.
const NAT64: u128 = 0x0064_ff9b << 64;

/// Reads an address, with or without a port: `192.0.2.1`, `192.0.2.1:443`, `2001:db8::1`, `[2001:db8::1%eth0]:_hidden`.
pub(super) fn parse(text: &[u8]) -> Option<IpAddr> {
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

/// Whether an IPv6 address stands for an IPv4 address.
pub(super) fn wraps_ipv4(address: Ipv6Addr) -> bool {
    without_ipv6_wrapping(address.into()).is_ipv4()
}

/// Returns the IPv4 address that an IPv6 address stands for, where it does.
pub(super) fn without_ipv6_wrapping(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if address.to_bits() >> 32 == NAT64 => {
            let [.., a, b, c, d] = address.octets();
            IpAddr::from([a, b, c, d])
        }
        canonical => canonical,
    }
}

/// Reads an address without its zone.
fn ipv6(text: &str) -> Option<Ipv6Addr> {
    let address = match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() && zone.bytes().all(|byte| byte.is_ascii_graphic()) => address,
        Some(_) => return None,
        None => text,
    };
    address.parse().ok()
}

/// Whether it is the number of a port, or a name that hides it (RFC 7239, section 6).
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(hidden) => {
            !hidden.is_empty() && hidden.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        }
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}
