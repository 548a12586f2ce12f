//! The path of a request, in each way in which a server may read it.
//!
//! Routers differ: some decode a path before they look for a handler, some merge its slashes, and a server behind them
//! may resolve its dots, before or after a gateway has. So a path has several readings. A limit on a path applies if one of
//! the readings is this path, and an exemption only if all of them are.

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

/// What a server makes of the segments `.` and `..`.
#[derive(Clone, Copy, PartialEq)]
enum Dots {
    Kept,
    Resolved(DotSegments, EmptySegments),
}

/// The segments that a server takes for dots; each kind includes those before it.
#[derive(Clone, Copy, PartialEq)]
enum DotSegments {
    Plain,
    /// Also `%2e`.
    Encoded,
    /// Also `..;x`, dots with a parameter.
    WithParameters,
}

/// Whether `..` removes an empty segment, or the one before it.
#[derive(Clone, Copy, PartialEq)]
enum EmptySegments {
    Kept,
    Dropped,
}

impl Dots {
    const ALL: [Self; 7] = [
        Self::Kept,
        Self::RESOLVED,
        Self::Resolved(DotSegments::Encoded, EmptySegments::Dropped),
        Self::Resolved(DotSegments::Plain, EmptySegments::Dropped),
        Self::Resolved(DotSegments::WithParameters, EmptySegments::Kept),
        Self::OF_URLS,
        Self::Resolved(DotSegments::Plain, EmptySegments::Kept),
    ];
    const RESOLVED: Self = Self::Resolved(DotSegments::WithParameters, EmptySegments::Dropped);
    /// As the URL standard of browsers resolves them, which clients of HTTP follow.
    const OF_URLS: Self = Self::Resolved(DotSegments::Encoded, EmptySegments::Kept);

    /// Returns which dots a server takes this segment for, if any.
    fn resolves(self, segment: &str) -> Option<DotSegment> {
        let Self::Resolved(known, _) = self else { return None };
        let behind_one = known.strip_dot(segment)?;
        let (dots, rest) = match known.strip_dot(behind_one) {
            Some(behind_two) => (DotSegment::Parent, behind_two),
            None => (DotSegment::Same, behind_one),
        };
        let has_parameter = || [";", "%3B", "%3b"].iter().any(|start| rest.starts_with(start));
        let is_whole = rest.is_empty() || known == DotSegments::WithParameters && has_parameter();
        is_whole.then_some(dots)
    }
}

impl DotSegments {
    fn strip_dot(self, text: &str) -> Option<&str> {
        let encoded = || text.strip_prefix("%2e").or_else(|| text.strip_prefix("%2E")).filter(|_| self != Self::Plain);
        text.strip_prefix('.').or_else(encoded)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum DotSegment {
    Same,
    Parent,
}

impl<'p> RequestPath<'p> {
    /// Reads a path as a client has sent it, and as the router around the limit sees it.
    pub(crate) fn read(sent: &'p str, seen: &'p str) -> Self {
        if is_plain(sent) {
            let key = without_end(sent);
            return Self { seen: Cow::Borrowed(sent), others: Vec::new(), key: Cow::Borrowed(key) };
        }
        let key = Cow::Owned(without_end(&resolved(sent)).to_owned());
        Self { seen: Cow::Owned(as_seen(seen)), others: other_readings(sent), key }
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
    read(&with_slashes(path, &["%2F", "%2f", "\\", "%5C", "%5c"]), Dots::RESOLVED)
}

/// The sets of spellings that some server takes for slashes.
const SLASHES: [&[&str]; 6] =
    [&[], &["%2F", "%2f", "\\", "%5C", "%5c"], &["%2F", "%2f"], &["\\"], &["%2F", "%2f", "\\"], &["\\", "%5C", "%5c"]];

/// Returns a path, as it was sent or as a client of HTTP sends it on, in all combinations of what servers take for slashes
/// and for dots: at most 84.
fn other_readings(sent: &str) -> Vec<String> {
    let mut texts = Vec::with_capacity(2);
    for path in [sent, &sent_on(sent)] {
        for spellings in SLASHES {
            insert(&mut texts, with_slashes(path, spellings));
        }
    }
    let mut readings = Vec::with_capacity(4);
    for text in &texts {
        let has_dots = text.split('/').any(|segment| Dots::RESOLVED.resolves(segment).is_some());
        for dots in Dots::ALL.into_iter().filter(|dots| has_dots || *dots == Dots::Kept) {
            insert(&mut readings, read(text, dots));
        }
    }
    readings
}

/// Adds a text that is not known yet.
fn insert(texts: &mut Vec<String>, text: String) {
    if !texts.contains(&text) {
        texts.push(text);
    }
}

/// Returns a path as a gateway may send it on, whose client of HTTP reads it by the URL standard.
fn sent_on(path: &str) -> String {
    let path = with_slashes(path, &["\\"]);
    format!("/{}", segments(&path, Dots::OF_URLS).join("/"))
}

/// Returns a path with slashes in place of these spellings.
fn with_slashes(path: &str, spellings: &[&str]) -> String {
    spellings.iter().fold(path.to_owned(), |path, spelling| path.replace(spelling, "/"))
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

/// Returns a path decoded, with a slash at the start and without repeated slashes.
fn read(path: &str, dots: Dots) -> String {
    let mut segments = segments(path, dots);
    let ends_in_slash = segments.last().is_none_or(|last| last.is_empty());
    segments.retain(|segment| !segment.is_empty());
    let end = if ends_in_slash && !segments.is_empty() { "/" } else { "" };
    decoded(&format!("/{}{end}", segments.join("/")), |byte| byte == b'/')
}

/// Splits a path into its segments, which are encoded as they were. The last one is empty if the path ends in a slash or
/// in dots.
fn segments(path: &str, dots: Dots) -> Vec<&str> {
    let drops_empty = matches!(dots, Dots::Resolved(_, EmptySegments::Dropped));
    let mut segments = Vec::new();
    let mut is_last_left_out = false;
    for segment in path.strip_prefix('/').unwrap_or(path).split('/') {
        let resolved = dots.resolves(segment);
        is_last_left_out = resolved.is_some() || drops_empty && segment.is_empty();
        if resolved == Some(DotSegment::Parent) {
            segments.pop();
        }
        if !is_last_left_out {
            segments.push(segment);
        }
    }
    if is_last_left_out {
        segments.push("");
    }
    segments
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
