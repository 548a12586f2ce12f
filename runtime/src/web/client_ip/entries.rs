//! The entries of the fields in which proxies write where a request comes from, last first.
//!
//! A proxy adds its entry at the end, so the end is what a trusted proxy has written. Both fields are read from there, and
//! what a client has written before it cannot change how the end is read.

use std::iter;
use std::net::IpAddr;

use super::address;

/// Reads the entries of `X-Forwarded-For`; `None` for one that is no address.
pub(super) fn x_forwarded_for<'h>(lines: &'h [&[u8]]) -> impl Iterator<Item = Option<IpAddr>> + use<'h> {
    let entries = lines.iter().rev().flat_map(|line| line.rsplit(|&byte| byte == b','));
    entries.map(address::parse)
}

/// Reads the `for` of the elements of `Forwarded` (RFC 7239); `None` for one that is no address.
pub(super) fn forwarded<'h>(lines: &'h [&[u8]]) -> impl Iterator<Item = Option<IpAddr>> + use<'h> {
    lines.iter().rev().flat_map(|line| elements(line)).map(|element| address::parse(node(element)?))
}

/// Splits a line at the commas outside of quotes, from its end.
fn elements(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    iter::from_fn(move || {
        let line = rest?;
        let mut is_quoted = false;
        let comma = line.iter().rposition(|&byte| {
            is_quoted ^= byte == b'"';
            byte == b',' && !is_quoted
        });
        let (before, element) = match comma {
            Some(comma) => (line.get(..comma), line.get(comma + 1..)),
            None => (None, Some(line)),
        };
        rest = before;
        element
    })
}

/// Returns the value of `for`, which an element has once, without its quotes. No address needs an escape.
fn node(element: &[u8]) -> Option<&[u8]> {
    if element.contains(&b'\\') {
        return None;
    }
    let mut is_quoted = false;
    let pairs = element.split(|&byte| {
        is_quoted ^= byte == b'"';
        byte == b';' && !is_quoted
    });
    let mut values = pairs.filter_map(|pair| {
        let equals = pair.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (pair.get(..equals)?, pair.get(equals + 1..)?);
        name.trim_ascii().eq_ignore_ascii_case(b"for").then_some(value.trim_ascii())
    });
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    match value.strip_prefix(b"\"") {
        Some(quoted) => quoted.strip_suffix(b"\""),
        None => Some(value),
    }
}
