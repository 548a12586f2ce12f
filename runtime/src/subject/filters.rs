//! The filters of placeholders, and the secret for digests.

use std::fmt::{Display, Write as _};
use std::sync::OnceLock;

use blake2::digest::consts::{U16, U32};
use blake2::digest::{KeyInit, Mac};
use blake2::{Blake2s, Blake2sMac, Digest};
use tallygate_rules::{Filter, SubnetBits};

use crate::address::Network;
use crate::observe::opaque_debug;

/// The key of digests.
#[derive(Clone)]
pub(crate) struct Secret {
    key: [u8; 32],
    fingerprint: OnceLock<String>,
}

/// Some editors write this mark at the start of a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Tools know by the digest of this text whether they have the secret of the programs.
const FINGERPRINTED: &str = "tallygate: fingerprint of the secret";

/// The number of digests for one fingerprint, which anyone who guesses secrets has to compute for each guess. Only 16
/// bits of the last digest are shown, so that thousands of wrong guesses have this fingerprint, too.
const FINGERPRINT_ROUNDS: u32 = 10_000;

/// Returns a secret without the additions of editors and shells: white space around it, and a byte order mark.
///
/// Programs and tools read one file in different ways, and have to get one secret.
pub(crate) fn bare_secret(secret: &[u8]) -> &[u8] {
    secret.strip_prefix(BYTE_ORDER_MARK).unwrap_or(secret).trim_ascii()
}

impl Secret {
    /// Makes a key of a secret of any length.
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self { key: Blake2s::<U32>::digest(bare_secret(secret)).into(), fingerprint: OnceLock::new() }
    }

    /// Returns a text that distinguishes this secret from most others and does not help to find it; `none` without a
    /// secret. The first call takes some milliseconds.
    pub(crate) fn fingerprint(&self) -> &str {
        self.fingerprint.get_or_init(|| {
            if self.key == Self::public().key {
                return "none".to_owned();
            }
            let first = self.mac(FINGERPRINTED.as_bytes());
            let [high, low, ..] = (1..FINGERPRINT_ROUNDS).fold(first, |last, _| self.mac(&last));
            format!("{high:02x}{low:02x}")
        })
    }

    /// Returns the key of limiters without a secret. It is public.
    pub(crate) fn public() -> Self {
        Self::new(b"tallygate: no secret")
    }

    pub(crate) fn is_public(&self) -> bool {
        self.key == Self::public().key
    }

    /// Returns 128 bits in hexadecimal. Without the secret, nobody can compute the value from them.
    pub(crate) fn digest(&self, value: &str) -> String {
        self.mac(value.as_bytes()).iter().fold(String::with_capacity(32), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    fn mac(&self, value: &[u8]) -> [u8; 16] {
        let mut mac = <Blake2sMac<U16> as KeyInit>::new(&self.key.into());
        mac.update(value);
        mac.finalize().into_bytes().into()
    }
}

opaque_debug!(Secret);

/// Only the `Display` of a value can fail. The text that it wrote until then is its text.
pub(crate) fn text_of(value: &(impl Display + ?Sized)) -> String {
    let mut text = String::new();
    let _ = write!(text, "{value}");
    text
}

pub(crate) fn lower(value: &str) -> String {
    value.to_lowercase()
}

pub(crate) fn trim(value: &str) -> String {
    value.trim().to_owned()
}

/// Returns the network of an address, or of a network that is no wider. Other text does not change.
pub(crate) fn subnet(value: &str, bits: SubnetBits) -> String {
    Network::parse(value).map_or_else(|| value.to_owned(), |network| network.widened(bits).to_string())
}

/// Applies a filter of a template.
pub(crate) fn apply(filter: Filter, value: &str, secret: &Secret) -> String {
    match filter {
        // A value of the context is text already. Other values are refused.
        Filter::Debug => value.to_owned(),
        Filter::Lower => lower(value),
        Filter::Trim => trim(value),
        Filter::Hash => secret.digest(value),
        Filter::Subnet(bits) => subnet(value, bits),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[test]
    fn an_address_is_its_network_and_other_text_stays_as_it_is() {
        let default = |text| subnet(text, SubnetBits::DEFAULT);
        assert_eq!(default("[::ffff:192.0.2.1]:443"), "192.0.2.1");
        assert_eq!(default("[2001:db8:1:2:3:4:5:6]:443"), "2001:db8:1:2::/64");
        assert_eq!(subnet("192.0.2.1", SubnetBits { ipv4: 24, ipv6: 56 }), "192.0.2.0/24");
        for text in ["", " ", "localhost:80", "192.0.2.256"] {
            assert_eq!(default(text), text);
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
    fn a_secret_is_the_same_however_its_file_ends() {
        let secret = Secret::new("sécret of two words".as_bytes());
        for (before, after) in [
            ("", ""),
            ("", "\n"),
            ("", "\r\n"),
            ("", "\n\n"),
            ("", " \t"),
            (" ", "\n"),
            ("\u{feff}", "\r\n"),
            ("\u{feff}\n", ""),
        ] {
            let written = format!("{before}sécret of two words{after}");
            assert_eq!(Secret::new(written.as_bytes()).digest("138"), secret.digest("138"), "{written:?}");
        }
        let other = |secret: &[u8]| Secret::new(secret).digest("138");
        assert_ne!(other("sécret  of two words".as_bytes()), secret.digest("138"));
        assert_ne!(other(b"\xff\xfe"), other(b"\xff\xfd"), "it need not be text");
        assert_ne!(other(b"a\0"), other(b"a"));
    }

    #[test]
    fn a_fingerprint_tells_secrets_apart_and_is_shared_by_many() {
        let fingerprint = |secret: &str| Secret::new(secret.as_bytes()).fingerprint().to_owned();
        assert_eq!((fingerprint("one\n"), Secret::public().fingerprint()), (fingerprint("one"), "none"));
        assert_ne!(fingerprint("one"), fingerprint("other"));
        assert_eq!(fingerprint("one").len(), 4);
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
