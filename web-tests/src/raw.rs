//! A client that sends what no library would.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Sends a request by HTTP/1.1 with this target, byte for byte. Returns the status and the body of the answer.
pub async fn ask(server: SocketAddr, method: &str, target: &str, fields: &[(&str, &str)]) -> (u16, String) {
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let fields = fields.concat();
    let mut stream = BufReader::new(TcpStream::connect(server).await.expect("a connection"));
    let request = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    let (mut status, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.expect("a line of the head");
        let line = line.trim_end();
        match line.split_once(':') {
            _ if line.is_empty() => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().expect("a length");
            }
            _ if status.is_none() => status = line.split(' ').nth(1).and_then(|status| status.parse().ok()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("the body");
    (status.expect("a status"), String::from_utf8_lossy(&body).into_owned())
}
