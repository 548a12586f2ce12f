//! The address of the client, `{@ip}`, as the programs write it.

use std::net::Ipv6Addr;

/// The value of the context that is an address.
pub(super) const NAME: &str = "@ip";

/// The remedy for an address that the programs write in another way.
pub(super) const REMEDY: &str = "an IPv6 address is counted by its network, whose length the programs choose; write the network as `tallygate top` \
     prints it, like 2001:db8:1:2::/64, and IPv4 like 192.0.2.1";

/// Returns whether the programs may write an address like this: IPv4 by itself, and IPv6 as a network.
///
/// Another text for the same client would silently be another subject.
pub(super) fn may_be_written(address: &str) -> bool {
    // IPv4 addresses with a port or within IPv6 have a colon, too.
    !address.contains(':') || network(address).is_some_and(|written| written == address)
}

/// Returns the network that such a text means, as the programs write it.
fn network(text: &str) -> Option<String> {
    let (address, bits) = text.split_once('/')?;
    let (address, bits): (Ipv6Addr, u32) = (address.parse().ok()?, bits.parse().ok()?);
    // A network of 128 bits is written as an address. It is not known here whether the programs count those.
    let host_bits = 128_u32.checked_sub(bits).filter(|&host_bits| host_bits > 0)?;
    let network = address.to_bits().checked_shr(host_bits)?.checked_shl(host_bits)?;
    Some(format!("{}/{bits}", Ipv6Addr::from_bits(network)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_written_in_one_way() {
        for address in ["192.0.2.1", "2001:db8:1:2::/64", "8000::/1", "anything else"] {
            assert!(may_be_written(address), "{address}");
        }
        for address in
            ["2001:db8::7", "::ffff:192.0.2.1", "2001:db8::7/64", "2001:DB8::/64", "2001:db8::/+64", "::/0", "::1/128"]
        {
            assert!(!may_be_written(address), "{address}");
        }
    }
}
