//! The filters of placeholders, and the secret that one of them needs.

use std::fmt::{Display, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use blake2::digest::consts::{U16, U32};
use blake2::digest::{KeyInit, Mac};
use blake2::{Blake2s, Blake2sMac, Digest};

use crate::observe::opaque_debug;

/// The bits of an IPv6 address that identify its network, which usually belongs to one customer.
const NETWORK_BITS: u32 = 64;

/// The key of digests.
#[derive(Clone)]
pub(crate) struct Secret([u8; 32]);

impl Secret {
    /// Makes a key of a secret of any length.
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(Blake2s::<U32>::digest(secret).into())
    }

    /// The key of limiters without a secret. It is public.
    pub(crate) fn public() -> Self {
        Self::new(b"tallygate: no secret")
    }

    /// Returns whether this is the public key.
    #[cfg(feature = "admin")]
    pub(crate) fn is_public(&self) -> bool {
        self.0 == Self::public().0
    }

    /// Returns 128 bits in hexadecimal. Without the secret, nobody can compute the value from them.
    pub(crate) fn digest(&self, value: &str) -> String {
        let mut mac = <Blake2sMac<U16> as KeyInit>::new(&self.0.into());
        mac.update(value.as_bytes());
        mac.finalize().into_bytes().iter().fold(String::with_capacity(32), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

opaque_debug!(Secret);

/// Returns the text of a value. Only the `Display` of the value can fail. What it wrote until then is its text.
pub(crate) fn text_of(value: &(impl Display + ?Sized)) -> String {
    let mut text = String::new();
    let _ = write!(text, "{value}");
    text
}

/// Returns the value in lower case.
pub(crate) fn lower(value: &str) -> String {
    value.to_lowercase()
}

/// Returns the value without white space around it.
pub(crate) fn trim(value: &str) -> String {
    value.trim().to_owned()
}

/// Returns the network of an address: IPv4 as it is, even if it is mapped to IPv6, and the /64 of IPv6.
///
/// The port and the scope are ignored. Other text stays as it is.
pub(crate) fn subnet(value: &str) -> String {
    match address(value).map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => {
            let network = Ipv6Addr::from_bits(address.to_bits() >> NETWORK_BITS << NETWORK_BITS);
            format!("{network}/{NETWORK_BITS}")
        }
        None => value.to_owned(),
    }
}

fn address(value: &str) -> Option<IpAddr> {
    let socket = || value.parse().map(|socket: SocketAddr| socket.ip());
    value.parse().or_else(|_| socket()).ok()
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[test]
    fn an_address_is_its_network() {
        for (address, network) in [
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.1:443", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("[::ffff:192.0.2.1]:443", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("[2001:db8:1:2:3:4:5:6]:443", "2001:db8:1:2::/64"),
            ("[fe80::1%7]:443", "fe80::/64"),
            ("::1", "::/64"),
        ] {
            assert_eq!(subnet(address), network, "{address}");
        }
    }

    #[test]
    fn what_is_no_address_stays_as_it_is() {
        for text in ["", "localhost:80", "192.0.2.256", "2001:db8::/32"] {
            assert_eq!(subnet(text), text);
        }
    }

    #[test]
    fn the_text_of_a_value_that_fails_is_what_it_wrote_until_then() {
        struct Failing;
        impl Display for Failing {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("138")?;
                Err(fmt::Error)
            }
        }
        assert_eq!(text_of(&Failing), "138");
    }

    #[test]
    fn a_digest_depends_on_the_value_and_on_the_secret_and_on_nothing_else() {
        let (one, other) = (Secret::new(b"one"), Secret::new(b"other"));
        assert_eq!(one.digest("138"), one.clone().digest("138"));
        assert_ne!(one.digest("138"), one.digest("139"));
        assert_ne!(one.digest("138"), other.digest("138"));
        assert_eq!(one.digest("").len(), 32);
    }

    #[test]
    fn the_digest_without_a_secret_has_these_exact_bytes() {
        assert_eq!(Secret::public().digest("13800000000"), "0677a9289e8763cdefcc573d1fb7fbf3");
    }

    #[test]
    fn debug_output_keeps_the_secret_to_itself() {
        assert_eq!(format!("{:?}", Secret::new(b"hunter2")), "Secret { .. }");
    }
}
