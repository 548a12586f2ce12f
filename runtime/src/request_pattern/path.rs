//! The path of a request, in each way in which a server may read it.
//!
//! Routers differ: some decode a path before they look for a handler, some merge its slashes, and a server behind them
//! may resolve its dots, before or after a gateway has. So a path has several readings. A limit on a path applies if one of
//! the readings is this path, and an exemption only if all of them are.

use std::borrow::Cow;
use std::iter;
use std::sync::OnceLock;

#[derive(Clone, Debug)]
pub(crate) struct RequestPath<'p> {
    sent: &'p str,
    seen: Cow<'p, str>,
    /// Other readings, each once, as soon as a pattern is compared with them. Empty if only the slash at the end can be read in
    /// another way.
    others: OnceLock<Vec<String>>,
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

/// What `..` does to an empty segment before it: of `/a//..`.
#[derive(Clone, Copy, PartialEq)]
enum EmptySegments {
    /// It removes it: `/a/`.
    Kept,
    /// There is none any more, so it removes the segment before: `/`.
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

    /// Returns those that may read this path in different ways, the first of each kind.
    fn that_differ(path: &str) -> Vec<Self> {
        if !path.split('/').any(|segment| Self::RESOLVED.resolves(segment).is_some()) {
            return vec![Self::Kept];
        }
        let spellings = Spellings::in_path(path);
        let mut kinds = Vec::with_capacity(Self::ALL.len());
        for dots in Self::ALL {
            insert(&mut kinds, dots.simplified(spellings));
        }
        kinds
    }

    /// Returns what reads paths with these spellings in the same way, and knows no others.
    fn simplified(self, spellings: Spellings) -> Self {
        let Self::Resolved(dots, empty) = self else { return self };
        let dots = match dots {
            DotSegments::WithParameters if spellings.has_parameters => dots,
            DotSegments::Plain => dots,
            _ if spellings.has_encoded_dots => DotSegments::Encoded,
            _ => DotSegments::Plain,
        };
        Self::Resolved(dots, if spellings.has_empty_segments { empty } else { EmptySegments::Dropped })
    }

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

/// What a path has that servers read in different ways.
#[derive(Clone, Copy)]
struct Spellings {
    has_encoded_dots: bool,
    has_parameters: bool,
    has_empty_segments: bool,
}

impl Spellings {
    fn in_path(path: &str) -> Self {
        let has = |spellings: &[&str]| spellings.iter().any(|spelling| path.contains(spelling));
        Self {
            has_encoded_dots: has(&["%2e", "%2E"]),
            has_parameters: has(&[";", "%3b", "%3B"]),
            has_empty_segments: has(&["//"]),
        }
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
            let key = Cow::Borrowed(without_end(sent));
            return Self { sent, seen: Cow::Borrowed(sent), others: OnceLock::from(Vec::new()), key };
        }
        let key = Cow::Owned(without_end(&resolved(sent)).to_owned());
        Self { sent, seen: Cow::Owned(as_seen(seen)), others: OnceLock::new(), key }
    }

    /// Returns the path as keys show it: decoded, with its dots resolved, and without repeated slashes or one at the
    /// end.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Whether some server takes a segment for `..`. Several servers in a row can then read the path in more ways than
    /// [`readings`](Self::readings) has.
    pub(crate) fn has_parents(&self) -> bool {
        let is_parent = |segment| Dots::RESOLVED.resolves(segment) == Some(DotSegment::Parent);
        !is_plain(self.sent) && with_slashes(self.sent, ALL_SLASHES).split('/').any(is_parent)
    }

    pub(crate) fn readings(&self) -> impl Iterator<Item = PathReading<'_>> {
        let others = || {
            let others = self.others.get_or_init(|| other_readings(self.sent));
            let plain = others.is_empty().then_some(&*self.seen);
            others.iter().map(String::as_str).chain(plain).map(PathReading::Other)
        };
        // Who finds what it looks for in the first one needs no others.
        iter::once(PathReading::Seen(&self.seen)).chain(iter::once_with(others).flatten())
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
    read(&with_slashes(path, ALL_SLASHES), Dots::RESOLVED)
}

const ALL_SLASHES: &[&str] = &["%2F", "%2f", "\\", "%5C", "%5c"];

/// The sets of spellings that some server takes for slashes.
const SLASHES: [&[&str]; 6] =
    [&[], ALL_SLASHES, &["%2F", "%2f"], &["\\"], &["%2F", "%2f", "\\"], &["\\", "%5C", "%5c"]];

/// Returns a path in all combinations of what servers take for slashes and for dots: at most 84.
fn other_readings(sent: &str) -> Vec<String> {
    let mut readings = Vec::with_capacity(4);
    for text in &texts_of(sent) {
        for dots in Dots::that_differ(text) {
            insert(&mut readings, read(text, dots));
        }
    }
    readings
}

/// Returns a path, as it was sent and as a client of HTTP sends it on, with all that servers take for slashes.
fn texts_of(sent: &str) -> Vec<String> {
    let mut texts = Vec::with_capacity(2);
    for path in [sent, &sent_on(sent)] {
        for spellings in SLASHES {
            insert(&mut texts, with_slashes(path, spellings));
        }
    }
    texts
}

/// Adds what is not known yet.
fn insert<T: PartialEq>(known: &mut Vec<T>, new: T) {
    if !known.contains(&new) {
        known.push(new);
    }
}

/// Returns a path as a gateway may send it on, whose client of HTTP reads it by the URL standard.
fn sent_on(path: &str) -> String {
    let path = with_slashes(path, &["\\"]);
    format!("/{}", segments(&path, Dots::OF_URLS).join("/"))
}

/// Returns a path with slashes in place of these spellings.
fn with_slashes(path: &str, spellings: &[&str]) -> String {
    let replaced =
        |path: String, spelling: &&str| if path.contains(spelling) { path.replace(spelling, "/") } else { path };
    spellings.iter().fold(path.to_owned(), replaced)
}

pub(super) fn without_end(path: &str) -> &str {
    path.strip_suffix('/').filter(|start| !start.is_empty()).unwrap_or(path)
}

/// Decodes a path once. Bytes that are not UTF-8, percent signs, and the bytes to keep stay encoded, so that distinct
/// paths stay distinct.
fn decoded(path: &str, keeps: impl Fn(u8) -> bool) -> String {
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let rest = match encoded_byte(part.as_bytes()) {
            Some((byte, rest)) if byte == b'%' || keeps(byte) => {
                bytes.extend(encode(byte));
                rest
            }
            Some((byte, rest)) => {
                bytes.push(byte);
                rest
            }
            None => {
                bytes.extend(encode(b'%'));
                part.as_bytes()
            }
        };
        bytes.extend_from_slice(rest);
    }
    String::from_utf8(bytes).unwrap_or_else(|invalid| with_invalid_encoded(invalid.as_bytes()))
}

fn with_invalid_encoded(bytes: &[u8]) -> String {
    bytes.utf8_chunks().fold(String::with_capacity(bytes.len()), |text, chunk| {
        let invalid = chunk.invalid().iter().copied().flat_map(encode).map(char::from);
        text + chunk.valid() + &invalid.collect::<String>()
    })
}

/// Reads the two digits after a percent sign. Also returns the rest.
fn encoded_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let [high, low, rest @ ..] = text else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some((digit(*high)? << 4 | digit(*low)?, rest))
}

fn encode(byte: u8) -> [u8; 3] {
    let digit = |number: u8| if number < 10 { b'0' + number } else { b'A' - 10 + number };
    [b'%', digit(byte >> 4), digit(byte & 0x0F)]
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
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn ways_to_read_a_path_are_left_out_only_if_another_one_reads_it_alike(
            path in "/((a|\\.|%2e|%2E|;|%3b|%3B|/|%2F|\\\\|%5c){0,12}|[a./;%2E3b]{0,12})",
        ) {
            let mut of_all = Vec::new();
            for text in texts_of(&path) {
                for dots in Dots::ALL {
                    insert(&mut of_all, read(&text, dots));
                }
            }
            assert_eq!(other_readings(&path), of_all, "{path}");
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
