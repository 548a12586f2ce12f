//! Why the client library does not understand a server: what the server sends shows it.
//!
//! A server that is full says so and hangs up, while the client library is still sending its greeting: it reports a broken pipe
//! and keeps the reason to itself. A port for TLS hangs up, too. Their bytes tell them apart.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use ::redis::{RedisError, Value, parse_redis_value};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::address::Address;
use super::attempt_budget::AttemptBudget;
use super::real_time;
use crate::system::{Instant, TcpStream};

/// How long a server has to say something by itself, and then to answer.
const OF_ITSELF: Duration = Duration::from_millis(50);
const IN_ANSWER: Duration = Duration::from_millis(200);

/// The longest that a diagnosis takes.
pub(crate) const LONGEST_DIAGNOSIS: Duration = Duration::from_millis(400);

/// A question that each kind of server refuses in its own way. To TLS it is a greeting whose frame is sound and whose content is
/// not, which an alert answers. To Redis and to HTTP it is a short line with an unknown command, because the first byte of the
/// frame's length ends a line; no zero stands before that, where older servers would stop to look for the end.
fn question() -> Vec<u8> {
    // A record of 0x0a0a bytes with a greeting of four bytes less.
    let frame = *b"\x16\x03\x01\x0a\x0a\x01\x00\x0a\x06";
    [&frame[..], &[b'-'; 0x0a06]].concat()
}

/// What the bytes of a server show.
#[derive(Debug, PartialEq)]
pub(crate) enum Diagnosis {
    /// It refuses every connection, and says why.
    Refusal(RedisError),
    /// It speaks Redis, without TLS.
    Plain,
    Tls,
    Http,
}

/// Connects once more without the client library, if the budget of attempts allows it, and looks at what comes. `None` if that
/// shows nothing.
pub(crate) async fn diagnose(address: &Address) -> Option<Diagnosis> {
    let host = address.host()?;
    AttemptBudget::shared(&address.to_string()).try_spend(Instant::now()).ok()?;
    let looked = async {
        let mut stream = TcpStream::connect(host).await.ok()?;
        if let Some(bytes) = read(&mut stream, OF_ITSELF).await {
            return read_refusal(&bytes);
        }
        let question = question();
        poll_fn(|context| Pin::new(&mut stream).poll_write(context, &question)).await.ok()?;
        understand(&read(&mut stream, IN_ANSWER).await?)
    };
    real_time::wait_until(Instant::now() + LONGEST_DIAGNOSIS, looked).await?
}

/// Returns what can be read by then; `None` if nothing comes.
async fn read(stream: &mut (impl AsyncRead + Unpin), patience: Duration) -> Option<Vec<u8>> {
    let mut bytes = [0; 512];
    let mut bytes = ReadBuf::new(&mut bytes);
    let read = poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut bytes));
    real_time::wait_until(Instant::now() + patience, read).await?.ok()?;
    Some(bytes.filled().to_vec())
}

/// A server that speaks before it is asked says why it hangs up.
fn read_refusal(bytes: &[u8]) -> Option<Diagnosis> {
    match parse_redis_value(bytes) {
        Ok(Value::ServerError(error)) => Some(Diagnosis::Refusal(error.into())),
        _ => None,
    }
}

fn understand(answer: &[u8]) -> Option<Diagnosis> {
    match answer {
        // An alert or a handshake, whatever the version.
        [0x15 | 0x16, 0x03, ..] => Some(Diagnosis::Tls),
        // To a line that names no version of HTTP, some answer without a head.
        [b'H', b'T', b'T', b'P', b'/', ..] | [b'<', ..] => Some(Diagnosis::Http),
        [b'-', ..] => Some(Diagnosis::Plain),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_show_what_answers() {
        assert_eq!(understand(b"\x15\x03\x03\x00\x02\x02\x46"), Some(Diagnosis::Tls));
        for http in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"<!DOCTYPE HTML>\n", b"<html>"] {
            assert_eq!(understand(http), Some(Diagnosis::Http));
        }
        assert_eq!(understand(b"-NOAUTH Authentication required.\r\n"), Some(Diagnosis::Plain));
        assert_eq!((understand(b""), understand(b"220 mail")), (None, None));
        assert!(matches!(read_refusal(b"-ERR max number of clients reached\r\n"), Some(Diagnosis::Refusal(_))));
        assert_eq!((read_refusal(b""), read_refusal(b"220 mail\r\n")), (None, None));
    }
}
