//! A request whose body comes later than its head.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::process::Service;

const CONTACTS: &str = "alice@example.org\nbob@example.org\n";

/// An upload of contacts that has begun.
pub(crate) struct Upload {
    stream: TcpStream,
}

impl Upload {
    /// Sends all but the contacts, with these headers.
    pub(crate) async fn begin(service: &Service, headers: &[(&str, &str)]) -> Self {
        let address = service.url.strip_prefix("http://").expect("an address");
        let mut stream = TcpStream::connect(address).await.expect("the service listens");
        let headers: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let headers = headers.concat();
        let length = CONTACTS.len();
        let head = format!(
            "POST /contacts HTTP/1.1\r\nhost: {address}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("the service reads");
        Self { stream }
    }

    /// Sends the contacts, and returns the answer. A service that has answered already reads no more.
    pub(crate) async fn finish(mut self) -> String {
        let mut answer = Vec::new();
        let _ = self.stream.write_all(CONTACTS.as_bytes()).await;
        let _ = self.stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}
