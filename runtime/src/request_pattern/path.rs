//! The path of a request, in each way in which a server may read it.
//!
//! Routers differ: some decode a path before they look for a handler, some merge its slashes, and a server behind them
//! may resolve its dots. So a path has several readings. A limit on a path applies if one of the readings is this path,
//! and an exemption only if all of them are.

use std::borrow::Cow;

#[derive(Clone, Debug)]
pub(crate) struct RequestPath<'p> {
    seen: Cow<'p, str>,
    /// Other readings, each once. Empty if only the slash at the end can be read in another way.
    others: Vec<String>,
    key: Cow<'p, str>,
}

#[derive(Clone, Copy)]
pub(crate) enum PathReading<'r> {
    /// The path as the router around the limit compares it. A slash at the end makes a difference.
    Seen(&'r str),
    /// The path as another router or a server may read it. A slash at the end makes no difference.
    Other(&'r str),
}

#[derive(Clone, Copy, PartialEq)]
enum Dots {
    Kept,
    Resolved,
}

impl<'p> RequestPath<'p> {
    /// Reads a path as a client has sent it, and as the router around the limit sees it.
    pub(crate) fn read(sent: &'p str, seen: &'p str) -> Self {
        if is_plain(sent) {
            let key = without_end(sent);
            return Self { seen: Cow::Borrowed(sent), others: Vec::new(), key: Cow::Borrowed(key) };
        }
        let mut others = Vec::with_capacity(4);
        for text in [&decoded(sent, |byte| byte == b'/'), &split(sent)] {
            for reading in [Dots::Kept, Dots::Resolved].map(|dots| merged(text, dots)) {
                if !others.contains(&reading) {
                    others.push(reading);
                }
            }
        }
        let resolved = resolved(sent);
        Self { seen: Cow::Owned(as_seen(seen)), others, key: Cow::Owned(without_end(&resolved).to_owned()) }
    }

    /// Returns the path as keys show it: decoded, with its dots resolved, and without repeated slashes or one at the
    /// end.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn readings(&self) -> impl Iterator<Item = PathReading<'_>> {
        let plain = self.others.is_empty().then_some(&*self.seen);
        let others = self.others.iter().map(String::as_str).chain(plain);
        [PathReading::Seen(&self.seen)].into_iter().chain(others.map(PathReading::Other))
    }
}

/// Whether all servers read this path as it was sent, apart from a slash at the end.
fn is_plain(path: &str) -> bool {
    let may_differ = |pair: &[u8]| matches!(pair, b"//" | b"/.");
    path.starts_with('/')
        && !path.bytes().any(|byte| matches!(byte, b'%' | b'\\'))
        && !path.as_bytes().windows(2).any(may_differ)
}

/// Returns a path as a router compares it that does not decode. Only characters that every client has to encode are
/// decoded.
pub(super) fn as_seen(path: &str) -> String {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    let seen = decoded(path, is_allowed);
    if seen.starts_with('/') { seen } else { format!("/{seen}") }
}

/// Returns a path as read by a server that decodes and resolves as much as possible.
pub(super) fn resolved(path: &str) -> String {
    merged(&split(path), Dots::Resolved)
}

/// Decodes a path, and replaces by a slash everything that some server takes for one.
fn split(path: &str) -> String {
    decoded(path, |_| false).replace('\\', "/")
}

pub(super) fn without_end(path: &str) -> &str {
    path.strip_suffix('/').filter(|start| !start.is_empty()).unwrap_or(path)
}

/// Decodes a path once. Bytes that are not UTF-8, percent signs, and the bytes to keep stay encoded, so that distinct
/// paths stay distinct.
fn decoded(path: &str, keeps: impl Fn(u8) -> bool) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match (byte, encoded_byte(behind)) {
            (b'%', Some((byte, behind))) => {
                rest = behind;
                if byte == b'%' || keeps(byte) {
                    bytes.extend_from_slice(encode(byte).as_bytes());
                } else {
                    bytes.push(byte);
                }
            }
            (b'%', None) => bytes.extend_from_slice(b"%25"),
            _ => bytes.push(*byte),
        }
    }
    let chunks = bytes.utf8_chunks();
    chunks.fold(String::with_capacity(bytes.len()), |text, chunk| {
        let invalid: String = chunk.invalid().iter().copied().map(encode).collect();
        text + chunk.valid() + &invalid
    })
}

/// Reads the two digits after a percent sign. Also returns the rest.
fn encoded_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let [high, low, rest @ ..] = text else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some((digit(*high)? << 4 | digit(*low)?, rest))
}

fn encode(byte: u8) -> String {
    format!("%{byte:02X}")
}

/// Returns a path that begins with a slash and has no repeated slashes.
fn merged(path: &str, dots: Dots) -> String {
    let mut segments = Vec::new();
    let mut ends_in_slash = false;
    for segment in path.split('/') {
        // Some servers take `..;x` for `..` with a parameter.
        let (name, _) = segment.split_once(';').unwrap_or((segment, ""));
        let is_dots = dots == Dots::Resolved && matches!(name, "." | "..");
        ends_in_slash = is_dots || segment.is_empty();
        if is_dots && name == ".." {
            segments.pop();
        }
        if !ends_in_slash {
            segments.push(segment);
        }
    }
    let end = if ends_in_slash && !segments.is_empty() { "/" } else { "" };
    format!("/{}{end}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str) -> String {
        RequestPath::read(path, path).key().to_owned()
    }

    #[test]
    fn a_key_shows_one_text_for_all_spellings_of_a_path() {
        for (path, shown) in [
            ("/users/7", "/users/7"),
            ("/users/7/", "/users/7"),
            ("//users/./x/..//%37", "/users/7"),
            ("/users%2F7", "/users/7"),
            ("/%C3%A9", "/é"),
            ("/é", "/é"),
            ("/", "/"),
            ("//", "/"),
            ("", "/"),
            ("*", "/*"),
            ("/a;b=1/c", "/a;b=1/c"),
            ("/.well-known/x", "/.well-known/x"),
        ] {
            assert_eq!(key(path), shown, "{path}");
        }
    }

    #[test]
    fn paths_of_which_no_server_makes_the_same_have_keys_of_their_own() {
        let paths = ["/%FF", "/%ff%FE", "/%EF%BF%BD", "/%25FF", "/%2525FF", "/%00", "/", "/a%20b", "/a+b", "/A", "/a"];
        let mut keys = paths.map(key);
        keys.sort();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{keys:?}");
        assert_eq!((key("/%FF"), key("/%")), ("/%FF".to_owned(), "/%25".to_owned()));
    }
}
