//! Tests of the reader, field by field.

mod any_bytes;
mod denials;
mod limits;
mod times;

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, StatusCode};

use super::{Heard, HeardPause, ResponseReader};

/// Sunday, 6 November 1994, 08:49:37 UTC: the example of HTTP.
const NOW: u64 = 784_111_777;
/// 1,800,000,000: Friday, 15 January 2027, 08:00:00 UTC.
const LATER: u64 = 1_800_000_000;

fn headers<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = http::HeaderName::try_from(name).unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn read_at(reader: ResponseReader, status: u16, fields: &[(&str, &str)], seconds: u64) -> Heard {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    reader.read_at(StatusCode::from_u16(status).unwrap(), &headers(fields.iter().copied()), now)
}

fn read(status: u16, fields: &[(&str, &str)]) -> Heard {
    read_at(ResponseReader::new(), status, fields, LATER)
}

/// The milliseconds of the pause, and the field that says so.
fn pause(heard: &Heard) -> Option<(u128, Option<&str>)> {
    heard.pause().map(|pause| (pause.duration().as_millis(), pause.field()))
}
