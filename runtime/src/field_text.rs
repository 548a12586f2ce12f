//! The text of a field of a request, and of its host, as keys show them.

use std::fmt::Write as _;
use std::net::Ipv6Addr;

/// Returns the lines of a field as one text; `None` if there are no lines.
///
/// Different values have different texts: a byte that is not of UTF-8 is written behind a NUL, which no field contains.
pub(crate) fn field_text(name: &str, lines: &[&[u8]]) -> Option<String> {
    // HTTP/2 may split `Cookie` at its semicolons (RFC 9113, 8.2.3), and any other field at its commas (RFC 9110, 5.3).
    let separator = if name.eq_ignore_ascii_case("cookie") { "; " } else { ", " };
    let (first, others) = lines.split_first()?;
    let mut text = String::new();
    push_bytes(&mut text, first);
    for line in others {
        text.push_str(separator);
        push_bytes(&mut text, line);
    }
    Some(text)
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\0{byte:02X}");
        }
    }
}

/// Returns the host that an authority like `Shop.Example.:8443` names: in lower case, without user, port and the dot at the end.
///
/// A client may write any of these, and reaches the same server.
pub(crate) fn host_text(authority: &str) -> String {
    let host_and_port = authority.rsplit('@').next().unwrap_or_default().trim_ascii();
    let host = match host_and_port.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && is_whole(host) => host,
        _ => host_and_port,
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match address.and_then(|address| address.parse::<Ipv6Addr>().ok()) {
        Some(address) => format!("[{address}]"),
        None => host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase(),
    }
}

/// Whether the colon behind a host is that of a port, and not one within an IPv6 address.
fn is_whole(host: &str) -> bool {
    host.ends_with(']') || !host.contains(':')
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn different_values_of_a_field_have_different_texts() {
        let values: [&[&[u8]]; 13] = [
            &[],
            &[b""],
            &[b"", b""],
            &[b"a"],
            &[b"a", b"b"],
            &[b"b", b"a"],
            &["é".as_bytes()],
            &[b"\xe9"],
            &[b"\xff"],
            &[b"\xfe"],
            &[b"FF"],
            &[b"%FF"],
            &["\u{fffd}".as_bytes()],
        ];
        let texts: HashSet<_> = values.iter().map(|lines| field_text("x-api-key", lines)).collect();
        assert_eq!(texts.len(), values.len());
    }

    #[test]
    fn every_byte_is_shown_as_itself() {
        let bytes = || (0x20..=0xff).filter(|&byte| byte != 0x7f);
        let texts: HashSet<_> = bytes().map(|byte| field_text("x-api-key", &[&[byte]])).collect();
        assert_eq!(texts.len(), bytes().count());
        assert_eq!(field_text("x-user", &["zoë".as_bytes()]).as_deref(), Some("zoë"));
    }

    #[test]
    fn a_field_that_a_proxy_or_http_2_splits_is_joined_again() {
        assert_eq!(field_text("accept", &[b"a", b"b, c"]).as_deref(), Some("a, b, c"));
        assert_eq!(field_text("Cookie", &[b"a=1", b"b=2"]).as_deref(), Some("a=1; b=2"));
    }

    #[test]
    fn a_host_is_a_name_however_it_is_written() {
        for (authority, host) in [
            ("shop.example", "shop.example"),
            ("Shop.EXAMPLE.", "shop.example"),
            ("shop.example:8443", "shop.example"),
            ("shop.example.:", "shop.example"),
            ("user:word@shop.example:80", "shop.example"),
            ("192.0.2.1:80", "192.0.2.1"),
            ("[2001:DB8:0::7]:80", "[2001:db8::7]"),
            ("[2001:db8::7]", "[2001:db8::7]"),
            // A text that is no host stays as it is.
            ("", ""),
            (".", ""),
            ("shop.example:http", "shop.example:http"),
            ("2001:db8::7", "2001:db8::7"),
            ("[shop]:1", "[shop]"),
        ] {
            assert_eq!(host_text(authority), host, "{authority}");
        }
    }
}
