//! The entries of the fields in which proxies list addresses, last first.
//!
//! A proxy adds its entry at the end, so the end was written by a trusted proxy. Both fields are read from there. What
//! a client wrote before cannot change how the end is read.

use std::iter;
use std::net::IpAddr;

use crate::address::parse;

/// Reads the entries of `X-Forwarded-For`. An entry that is not an address is `None`.
pub(super) fn x_forwarded_for<'h>(lines: &'h [&[u8]]) -> impl Iterator<Item = Option<IpAddr>> + use<'h> {
    let entries = lines.iter().rev().flat_map(|line| line.rsplit(|&byte| byte == b','));
    entries.map(parse)
}

/// Reads the `for` of the elements of `Forwarded` (RFC 7239). One that is not an address is `None`.
pub(super) fn forwarded<'h>(lines: &'h [&[u8]]) -> impl Iterator<Item = Option<IpAddr>> + use<'h> {
    lines.iter().rev().flat_map(|line| elements(line)).map(|element| parse(&node(element)?))
}

/// Splits a line at the commas outside of quoted strings, from its end, which is outside of any.
fn elements(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    iter::from_fn(move || {
        let line = rest?;
        let mut is_quoted = false;
        let comma = (0..line.len()).rev().find(|&at| match line.get(at) {
            // In a quoted string, a quote after a backslash is text.
            Some(b'"') => {
                is_quoted = !is_quoted || is_escaped(line, at);
                false
            }
            Some(b',') => !is_quoted,
            _ => false,
        });
        let (before, element) = match comma {
            Some(comma) => (line.get(..comma), line.get(comma + 1..)),
            None => (None, Some(line)),
        };
        rest = before;
        element
    })
}

/// Returns whether an odd number of backslashes is before this position.
fn is_escaped(line: &[u8], at: usize) -> bool {
    let before = line.get(..at).unwrap_or_default();
    before.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// Returns the value of `for` in an element, unless it is there twice. Semicolons separate the pairs.
fn node(element: &[u8]) -> Option<Vec<u8>> {
    let mut node = None;
    let mut rest = element.trim_ascii();
    while !rest.is_empty() {
        if !rest.starts_with(b";") {
            let (name, value, behind) = pair(rest)?;
            if name.eq_ignore_ascii_case(b"for") && node.replace(value).is_some() {
                return None;
            }
            rest = behind;
        }
        match rest.split_first() {
            Some((b';', behind)) => rest = behind.trim_ascii_start(),
            Some(_) => return None,
            None => {}
        }
    }
    node
}

/// Reads a pair, like `proto=https`. Returns its name, its value, and the rest.
fn pair(text: &[u8]) -> Option<(&[u8], Vec<u8>, &[u8])> {
    let equals = text.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (text.get(..equals)?.trim_ascii(), text.get(equals + 1..)?.trim_ascii_start());
    if name.is_empty() || !name.iter().copied().all(is_token) {
        return None;
    }
    let (value, behind) = if let Some(quoted) = value.strip_prefix(b"\"") {
        quoted_string(quoted)?
    } else {
        // Not only tokens: some proxies write a port without quotes.
        let (value, behind) = value.split_at(value.iter().position(|&byte| byte == b';').unwrap_or(value.len()));
        (!value.contains(&b'"')).then(|| (value.trim_ascii_end().to_vec(), behind))?
    };
    Some((name, value, behind.trim_ascii_start()))
}

/// Reads a string after its opening quote, without its backslashes. Also returns the rest after its closing quote.
fn quoted_string(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut rest = text;
    loop {
        let (byte, behind) = match rest.split_first()? {
            (b'"', behind) => return Some((value, behind)),
            (b'\\', behind) => behind.split_first()?,
            unescaped => unescaped,
        };
        value.push(*byte);
        rest = behind;
    }
}

/// Returns whether a byte may be part of a token (RFC 9110), such as the name of a field or of a parameter.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::address::without_ipv6_wrapping;

    /// An element as a trusted proxy writes it, and the address that it names.
    fn element() -> impl Strategy<Value = (String, IpAddr)> {
        let port = prop_oneof![Just(String::new()), Just(":443".to_owned()), Just(":_p-1.x".to_owned())];
        // A text in quotes, with the characters that separate elements and pairs elsewhere.
        let host =
            vec(prop_oneof![Just("a"), Just(","), Just(";"), Just("\\\""), Just("\\\\"), Just("for=192.0.2.66")], 0..6);
        (any::<IpAddr>(), port, host, any::<bool>(), any::<bool>()).prop_map(|(address, port, host, first, escapes)| {
            let shown = match address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            };
            let shown = if escapes { shown.replace('.', "\\.").replace(':', "\\:") } else { shown };
            let (node, host) = (format!("FOR=\"{shown}{port}\""), format!("host=\"{}\"", host.concat()));
            let pairs = if first { [node, host] } else { [host, node] };
            (pairs.join(if escapes { "; " } else { ";" }), without_ipv6_wrapping(address))
        })
    }

    proptest! {
        #[test]
        fn what_proxies_add_is_read_whatever_a_client_wrote_before_it(
            forged in "[a=;,\"\\\\ 1.:_\\[\\]]{0,24}",
            added in vec(element(), 1..5),
            on_own_line in any::<bool>(),
        ) {
            let (texts, addresses): (Vec<_>, Vec<_>) = added.into_iter().unzip();
            let (own, texts) = (forged, texts.join(", "));
            let joined = format!("{own},{texts}");
            let lines = if on_own_line { vec![own.as_bytes(), texts.as_bytes()] } else { vec![joined.as_bytes()] };
            let read: Vec<_> = forwarded(&lines).take(addresses.len()).collect();
            let expected: Vec<_> = addresses.into_iter().rev().map(Some).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
