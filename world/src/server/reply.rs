//! What a server answers, and how that is written in the two versions of the protocol.

use std::borrow::Cow;

/// The version of the protocol that a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Status(Cow<'static, str>),
    Error(Cow<'static, str>),
    Integer(i64),
    Text(Vec<u8>),
    /// A number that is no integer, as the server writes it.
    Float(String),
    /// Text for people.
    Verbatim(String),
    Nothing,
    /// No list, where RESP 2 tells that from no text.
    NoArray,
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    /// Two by two: one list in RESP 2, a list of lists in RESP 3.
    Pairs(Vec<(Reply, Reply)>),
    /// Not the answer to a command.
    Push(Vec<Reply>),
}

impl Reply {
    pub(crate) const OK: Self = Self::Status(Cow::Borrowed("OK"));

    pub(crate) fn text(text: impl AsRef<[u8]>) -> Self {
        Self::Text(text.as_ref().to_vec())
    }

    pub(crate) fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Error(text.into())
    }

    /// A length or a number of things.
    pub(crate) fn count(count: usize) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// 1 for true, as most commands answer.
    pub(crate) fn flag(flag: bool) -> Self {
        Self::Integer(i64::from(flag))
    }

    pub(crate) fn array(items: impl IntoIterator<Item = Self>) -> Self {
        Self::Array(items.into_iter().collect())
    }

    /// Appends the bytes for a client that speaks that version.
    pub(crate) fn encode(&self, protocol: Protocol, bytes: &mut Vec<u8>) {
        let is_new = protocol == Protocol::Resp3;
        match self {
            Self::Status(text) => line(bytes, b'+', text.as_bytes()),
            Self::Error(text) => line(bytes, b'-', text.as_bytes()),
            Self::Integer(number) => line(bytes, b':', number.to_string().as_bytes()),
            Self::Text(text) => bulk(bytes, text),
            Self::Float(text) if is_new => line(bytes, b',', text.as_bytes()),
            Self::Verbatim(text) if is_new => {
                head(bytes, b'=', text.len() + 4);
                bytes.extend_from_slice(b"txt:");
                bytes.extend_from_slice(text.as_bytes());
                bytes.extend_from_slice(b"\r\n");
            }
            Self::Float(text) | Self::Verbatim(text) => bulk(bytes, text.as_bytes()),
            Self::Nothing | Self::NoArray if is_new => bytes.extend_from_slice(b"_\r\n"),
            Self::Nothing => bytes.extend_from_slice(b"$-1\r\n"),
            Self::NoArray => bytes.extend_from_slice(b"*-1\r\n"),
            Self::Array(items) => list(bytes, b'*', items, protocol),
            Self::Push(items) => list(bytes, if is_new { b'>' } else { b'*' }, items, protocol),
            Self::Map(pairs) if is_new => {
                head(bytes, b'%', pairs.len());
                for pair in pairs {
                    both(bytes, pair, protocol);
                }
            }
            Self::Pairs(pairs) if is_new => {
                head(bytes, b'*', pairs.len());
                for pair in pairs {
                    head(bytes, b'*', 2);
                    both(bytes, pair, protocol);
                }
            }
            Self::Map(pairs) | Self::Pairs(pairs) => {
                head(bytes, b'*', 2 * pairs.len());
                for pair in pairs {
                    both(bytes, pair, protocol);
                }
            }
        }
    }
}

fn list(bytes: &mut Vec<u8>, kind: u8, items: &[Reply], protocol: Protocol) {
    head(bytes, kind, items.len());
    for item in items {
        item.encode(protocol, bytes);
    }
}

fn both(bytes: &mut Vec<u8>, (first, second): &(Reply, Reply), protocol: Protocol) {
    first.encode(protocol, bytes);
    second.encode(protocol, bytes);
}

fn head(bytes: &mut Vec<u8>, kind: u8, length: usize) {
    line(bytes, kind, length.to_string().as_bytes());
}

fn line(bytes: &mut Vec<u8>, kind: u8, text: &[u8]) {
    bytes.push(kind);
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(b"\r\n");
}

fn bulk(bytes: &mut Vec<u8>, text: &[u8]) {
    head(bytes, b'$', text.len());
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(b"\r\n");
}
