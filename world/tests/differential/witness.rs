//! A real server that clients connect to, while the world is sent the same and has to answer the same.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tallygate_harness::server::Server as RealServer;

use crate::twin::{Client, Twin, encoded};

/// A port in front of a real server.
pub(crate) struct Witness {
    port: u16,
    seen: Arc<Mutex<Seen>>,
}

/// What clients have sent.
struct Seen {
    twin: Twin,
    commands: u64,
    differences: Vec<String>,
}

impl Witness {
    /// Begins to listen. It ends with the process.
    pub(crate) fn of(server: &RealServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, real_port) = (listener.local_addr().unwrap().port(), server.port());
        let seen = Arc::new(Mutex::new(Seen { twin: Twin::of(server), commands: 0, differences: Vec::new() }));
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&shared);
                thread::spawn(move || serve(client, real_port, &seen));
            }
        });
        Self { port, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns how many commands were compared, or how answers differed.
    pub(crate) fn compared(&self) -> Result<u64, String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.differences.is_empty() { Ok(seen.commands) } else { Err(seen.differences.join("\n")) }
    }
}

fn serve(mut client: TcpStream, real_port: u16, seen: &Mutex<Seen>) {
    client.set_nodelay(true).unwrap();
    let mut real = Client::of(real_port);
    let session = seen.lock().unwrap_or_else(PoisonError::into_inner).twin.world.open();
    let (mut bytes, mut piece) = (Vec::new(), [0; 8_192]);
    while let Ok(length @ 1..) = client.read(&mut piece) {
        bytes.extend_from_slice(&piece[..length]);
        while let Some((words, end)) = first_command(&bytes) {
            bytes.drain(..end);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let (answer, world) = seen.twin.answers_of(&mut real, session, &encoded(&words));
            seen.commands += 1;
            let difference = seen.twin.difference(&words, &answer, &world);
            seen.differences.extend(difference);
            drop(seen);
            if client.write_all(&answer).is_err() {
                return;
            }
        }
    }
}

/// Reads the first command, if it is there as a whole, and where it ends.
fn first_command(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let mut at = 0;
    let number = number_line(bytes, &mut at)?;
    let mut words = Vec::new();
    for _ in 0..number {
        let length = number_line(bytes, &mut at)?;
        words.push(bytes.get(at..at + length)?.to_vec());
        at += length + 2;
    }
    (at <= bytes.len()).then_some((words, at))
}

/// Reads the number behind `*` or `$`.
fn number_line(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let rest = bytes.get(*at..)?;
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    *at += end + 2;
    String::from_utf8_lossy(&rest[1..end]).parse().ok()
}
