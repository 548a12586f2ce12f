use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::*;
use crate::engine::{self, now_us, run, sleep};

const CLIENT: Party = Party::Process(1);
const SERVER: Party = Party::Server(1);

/// Answers each request with itself, and remembers what it was asked.
#[derive(Default)]
struct Echo(RefCell<Vec<String>>);

impl Listener for Echo {
    fn open(&self, _: ConnectionId) -> bool {
        true
    }

    fn receive(&self, connection: ConnectionId, bytes: &[u8]) {
        self.0.borrow_mut().push(String::from_utf8_lossy(bytes).into_owned());
        reply(connection, bytes.to_vec());
    }

    fn close(&self, _: ConnectionId) {
        self.0.borrow_mut().push("closed".to_owned());
    }
}

async fn write(stream: &mut Stream, text: &str) -> io::Result<usize> {
    poll_fn(|context| Pin::new(&mut *stream).poll_write(context, text.as_bytes())).await
}

async fn read(stream: &mut Stream) -> io::Result<String> {
    let mut space = [0; 64];
    let mut buffer = ReadBuf::new(&mut space);
    poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut buffer)).await?;
    Ok(String::from_utf8_lossy(buffer.filled()).into_owned())
}

fn play<T>(world: impl Future<Output = T>) -> (T, Vec<String>) {
    let echo = Rc::new(Echo::default());
    begin(7, Link::default());
    listen(SERVER, "redis", 6379, Rc::clone(&echo) as _);
    let outcome = run(7, world).unwrap();
    let asked = echo.0.take();
    (outcome, asked)
}

async fn stream() -> Stream {
    connect(CLIENT, "redis".to_owned(), 6379).await.unwrap()
}

#[test]
fn bytes_arrive_in_order_and_take_their_time() {
    let (took_us, asked) = play(async {
        let mut stream = stream().await;
        let began_us = now_us();
        for text in ["one", "two", "three"] {
            write(&mut stream, text).await.unwrap();
        }
        let mut answer = String::new();
        while answer.len() < "onetwothree".len() {
            answer += &read(&mut stream).await.unwrap();
        }
        assert_eq!(answer, "onetwothree");
        now_us() - began_us
    });
    assert!((100..=200).contains(&took_us), "{took_us}");
    assert_eq!(asked[..3], ["one", "two", "three"]);
}

#[test]
fn a_stream_can_be_cut_before_the_request_and_before_the_reply() {
    for (requests, replies, executed) in [(1.0, 0.0, 0), (0.0, 1.0, 1)] {
        let (error, asked) = play(async move {
            let mut stream = stream().await;
            change_link(CLIENT, SERVER, |link| (link.cut_requests, link.cut_replies) = (requests, replies));
            write(&mut stream, "one").await.unwrap();
            read(&mut stream).await.unwrap_err().kind()
        });
        assert_eq!(error, io::ErrorKind::ConnectionReset);
        assert_eq!(asked.iter().filter(|text| *text == "one").count(), executed);
    }
}

#[test]
fn a_silent_link_delivers_late_or_never() {
    for (silent_us, executed) in [(3_000_000, 1), (30_000_000, 0)] {
        let (answer, asked) = play(async move {
            let mut stream = stream().await;
            change_link(CLIENT, SERVER, |link| link.is_silent = true);
            engine::after(silent_us, || change_link(CLIENT, SERVER, |link| link.is_silent = false));
            write(&mut stream, "one").await.unwrap();
            read(&mut stream).await.map_err(|error| error.kind())
        });
        assert_eq!(answer.is_ok(), executed == 1, "{answer:?}");
        assert_eq!(asked.iter().filter(|text| *text == "one").count(), executed);
    }
}

#[test]
fn a_server_that_is_gone_refuses_and_its_streams_end() {
    let (kinds, _) = play(async {
        let mut told = stream().await;
        vanish(SERVER, false);
        let refused = connect(CLIENT, "redis".to_owned(), 6379).await.unwrap_err().kind();
        let unknown = connect(CLIENT, "nowhere".to_owned(), 6379).await.unwrap_err().kind();
        (read(&mut told).await.unwrap_err().kind(), refused, unknown)
    });
    let expected = (io::ErrorKind::ConnectionReset, io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound);
    assert_eq!(kinds, expected);
}

#[test]
fn a_dropped_stream_is_closed_after_its_last_bytes() {
    let ((), asked) = play(async {
        let mut stream = stream().await;
        write(&mut stream, "one").await.unwrap();
        drop(stream);
        sleep(1_000_000).await;
    });
    assert_eq!(asked, ["one", "closed"]);
}
