//! Finds out from the bytes that a server sends why the client library does not understand it.
//!
//! A full server says so and hangs up while the client library is still sending its greeting: the library reports a
//! broken pipe and drops the reason. A port for TLS also hangs up, and so does a proxy that does not know the greeting.
//! Their bytes tell them apart.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use ::redis::{RedisError, Value, parse_redis_value};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::address::Address;
use super::attempt_budget::AttemptBudget;
use super::real_time;
use crate::system::{Instant, TcpStream};

/// How long to wait for a server that speaks first, and for its answer to a question.
const OF_ITSELF: Duration = Duration::from_millis(50);
const IN_ANSWER: Duration = Duration::from_millis(200);

/// The longest time that a diagnosis takes.
pub(crate) const LONGEST_DIAGNOSIS: Duration = Duration::from_millis(400);

/// A question that each kind of server refuses in its own way. To TLS, it is a greeting in a valid frame with invalid
/// content, which is answered with an alert. To Redis and HTTP, it is a short line with an unknown command: the first
/// byte of the frame's length ends the line. No zero comes before it, because older servers stop there in their search
/// for the end of a line.
fn question() -> Vec<u8> {
    // A record of 0x0a0a bytes, with a greeting that is four bytes shorter.
    let frame = *b"\x16\x03\x01\x0a\x0a\x01\x00\x0a\x06";
    [&frame[..], &[b'-'; 0x0a06]].concat()
}

/// A command that every server and every proxy answers, and the greeting of the client library.
const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const HELLO: &[u8] = b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";

#[derive(Debug, PartialEq)]
pub(crate) enum Diagnosis {
    /// The server refuses every connection, and says why.
    Refusal(RedisError),
    /// The server speaks Redis without TLS.
    Plain,
    Tls,
    Http,
    /// The server answers `PING` and hangs up on the greeting, as twemproxy does on each command that it does not know.
    HangsUpOnHello,
}

/// Connects again without the client library, if the budget of attempts allows it, and reads the bytes of the server.
/// `None` if they show nothing.
pub(crate) async fn diagnose(address: &Address) -> Option<Diagnosis> {
    let looked = async {
        let mut stream = connect(address).await?;
        if let Some(bytes) = read(&mut stream, OF_ITSELF).await {
            return read_refusal(&bytes);
        }
        match &ask(&mut stream, &question()).await?[..] {
            [] => {
                let mut stream = connect(address).await?;
                let pong = ask(&mut stream, PING).await?;
                if !is_pong(&pong) {
                    return read_refusal(&pong);
                }
                let hello = ask(&mut stream, HELLO).await?;
                hello.is_empty().then_some(Diagnosis::HangsUpOnHello)
            }
            answer => understand(answer),
        }
    };
    real_time::wait_until(Instant::now() + LONGEST_DIAGNOSIS, looked).await?
}

async fn connect(address: &Address) -> Option<impl AsyncRead + AsyncWrite + Unpin> {
    let host = address.host()?;
    AttemptBudget::shared(&address.to_string()).try_spend(Instant::now()).ok()?;
    TcpStream::connect(host).await.ok()
}

/// Sends a question; returns the bytes of the answer, none if the server hangs up. `None` if there is no answer.
async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), question: &[u8]) -> Option<Vec<u8>> {
    poll_fn(|context| Pin::new(&mut *stream).poll_write(context, question)).await.ok()?;
    read(stream, IN_ANSWER).await
}

/// Returns the bytes that come within `patience`, none if the server hangs up. `None` if it stays silent.
async fn read(stream: &mut (impl AsyncRead + Unpin), patience: Duration) -> Option<Vec<u8>> {
    let mut bytes = [0; 512];
    let mut bytes = ReadBuf::new(&mut bytes);
    let read = poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut bytes));
    _ = real_time::wait_until(Instant::now() + patience, read).await?;
    Some(bytes.filled().to_vec())
}

/// Reads why a server hangs up that speaks before it is asked.
fn read_refusal(bytes: &[u8]) -> Option<Diagnosis> {
    match parse_redis_value(bytes) {
        Ok(Value::ServerError(error)) => Some(Diagnosis::Refusal(error.into())),
        _ => None,
    }
}

/// Whether the answer to `PING` is that of a server that takes commands, with or without a login.
fn is_pong(answer: &[u8]) -> bool {
    answer.starts_with(b"+PONG") || answer.starts_with(b"-NOAUTH")
}

fn understand(answer: &[u8]) -> Option<Diagnosis> {
    match answer {
        // An alert or a handshake, of any version.
        [0x15 | 0x16, 0x03, ..] => Some(Diagnosis::Tls),
        // If the line names no version of HTTP, some servers answer without a head.
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
        assert!(is_pong(b"+PONG\r\n") && is_pong(b"-NOAUTH Authentication required.\r\n"));
        assert!(!is_pong(b"") && !is_pong(b"-ERR max number of clients reached\r\n") && !is_pong(b"220 mail\r\n"));
    }
}
