//! A proxy that looks like one server, and refuses scripts and removals of keys in several slots: as the clustered policies of
//! some managed servers do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the server is asked in place of what is refused.
const REFUSAL: [&[u8]; 3] =
    [b"EVAL", b"return redis.error_reply(\"CROSSSLOT Keys in request don't hash to the same slot\")", b"0"];

/// A proxy on 127.0.0.1 in front of one server, which ends when dropped.
pub struct Clustered {
    address: SocketAddr,
    refused: Arc<AtomicUsize>,
    listening: JoinHandle<()>,
}

impl Drop for Clustered {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Clustered {
    /// Starts in front of the server at that port.
    ///
    /// # Panics
    ///
    /// There is no free port.
    pub async fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let refused = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&refused);
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                let (from_client, mut to_client) = client.into_split();
                let (mut from_server, to_server) = server.into_split();
                tokio::spawn(async move { copy(&mut from_server, &mut to_client).await });
                tokio::spawn(pass(from_client, to_server, Arc::clone(&count)));
            }
        });
        Self { address, refused, listening }
    }

    /// Returns the URL to connect to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    /// Returns how many commands were refused.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Passes commands on, until an end hangs up.
async fn pass(client: OwnedReadHalf, mut server: OwnedWriteHalf, refused: Arc<AtomicUsize>) {
    let mut client = BufReader::new(client);
    while let Some(words) = read_command(&mut client).await {
        let words: Vec<_> = words.iter().map(Vec::as_slice).collect();
        let passed = if is_on_several_slots(&words) {
            refused.fetch_add(1, Ordering::Relaxed);
            write_command(&mut server, &REFUSAL).await
        } else {
            write_command(&mut server, &words).await
        };
        if passed.is_none() {
            return;
        }
    }
}

fn is_on_several_slots(words: &[&[u8]]) -> bool {
    let keys = match words {
        [name, _, number, rest @ ..] if name.starts_with(b"EVAL") => {
            let number = String::from_utf8_lossy(number).parse().unwrap_or(0);
            rest.get(..number).unwrap_or_default()
        }
        [b"UNLINK", keys @ ..] => keys,
        _ => &[],
    };
    let mut slots = keys.iter().map(|key| slot_of(key));
    slots.next().is_some_and(|first| slots.any(|slot| slot != first))
}

/// The slot of a key: the CRC-16 of its hash tag, or else of the whole key, as the specification of Redis Cluster says.
fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|start| {
        let rest = &key[start + 1..];
        let end = rest.iter().position(|&byte| byte == b'}').filter(|&end| end > 0)?;
        Some(&rest[..end])
    });
    let key = tag.unwrap_or(key);
    let of_bit = |crc: u16| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
    let crc = key.iter().fold(0_u16, |crc, &byte| (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| of_bit(crc)));
    crc % 16_384
}

/// Reads a command; `None` when the client is gone.
async fn read_command(client: &mut BufReader<OwnedReadHalf>) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    for _ in 0..read_number(client).await? {
        let mut word = vec![0; read_number(client).await? + 2];
        client.read_exact(&mut word).await.ok()?;
        word.truncate(word.len() - 2);
        words.push(word);
    }
    Some(words)
}

/// Reads a line that is a number behind `*` or `$`.
async fn read_number(client: &mut BufReader<OwnedReadHalf>) -> Option<usize> {
    let mut line = String::new();
    client.read_line(&mut line).await.ok()?;
    line.get(1..)?.trim().parse().ok()
}

async fn write_command(server: &mut OwnedWriteHalf, words: &[&[u8]]) -> Option<()> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend_from_slice(word);
        bytes.extend(b"\r\n");
    }
    server.write_all(&bytes).await.ok()
}
