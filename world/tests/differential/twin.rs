//! A real server and one of the world that are asked the same.

use std::io::{Read, Write};
use std::net::TcpStream;

use redis::{Connection, Value, parse_redis_value};
use tallygate_harness::server::{Server as RealServer, ask, now_us};
use tallygate_world::server::{Flavour, Server, SessionId};

/// Between commands that are sent at once.
const TOGETHER: &str = " && ";

/// Words of a command.
pub(crate) type Words = Vec<Vec<u8>>;

/// A client of a real server.
pub(crate) struct Client {
    stream: TcpStream,
    end: End,
}

/// What a client sends behind a command, to see where the answer ends.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// A command that no server knows.
    Unknown,
    /// A greeting that no server takes. It needs no login, but a client that listens may not send it.
    Greeting,
}

impl End {
    fn command(self) -> &'static [u8] {
        match self {
            Self::Unknown => b"*1\r\n$7\r\nthe-end\r\n",
            Self::Greeting => b"*2\r\n$5\r\nHELLO\r\n$7\r\nthe-end\r\n",
        }
    }

    /// Returns where the answer to it begins.
    fn find(self, answer: &[u8]) -> Option<usize> {
        let last = |text: &[u8]| answer.windows(text.len()).rposition(|part| part == text);
        match self {
            Self::Unknown => last(b"the-end").and_then(|_| last(b"-ERR unknown command")),
            Self::Greeting => last(b"-ERR Protocol version is not an integer"),
        }
    }
}

impl Client {
    pub(crate) fn of(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, end: End::Unknown }
    }

    /// Returns all that the server answers.
    pub(crate) fn ask(&mut self, command: &[u8]) -> Vec<u8> {
        self.stream.write_all(&[command, self.end.command()].concat()).unwrap();
        let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            if let Some(end) = self.end.find(&answer).filter(|_| answer.ends_with(b"\r\n")) {
                answer.truncate(end);
                return answer;
            }
            let length = self.stream.read(&mut piece).unwrap();
            assert!(length > 0, "the server hangs up: {}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&piece[..length]);
        }
    }
}

/// A client of each of both.
pub(crate) struct Twin {
    real: Client,
    clock: Connection,
    pub(crate) world: Server,
    session: SessionId,
    /// By how many microseconds the real server was later at most.
    late_us: u64,
}

impl Twin {
    pub(crate) fn of(server: &RealServer) -> Self {
        let info: String = server.ask("INFO server");
        let flavour = Flavour::of(&info).unwrap_or_else(|| panic!("the world has no such server: {info}"));
        let mut world = Server::new(flavour).unwrap();
        let session = world.open();
        Self { real: Client::of(server.port()), clock: server.connection(), world, session, late_us: 0 }
    }

    pub(crate) fn flavour(server: &RealServer) -> Flavour {
        Flavour::of(&server.ask::<String>("INFO server")).unwrap()
    }

    /// From here on, answers end like that.
    pub(crate) fn end_with(&mut self, end: End) {
        self.real.end = end;
    }

    /// Another client of both.
    pub(crate) fn reconnect(&mut self, server: &RealServer) {
        self.real = Client::of(server.port());
        self.session = self.world.open();
    }

    /// Asks both, and returns how their answers differ, if they do.
    pub(crate) fn ask(&mut self, words: &Words) -> Option<String> {
        let (real, world) = self.answers(&encoded(words));
        self.difference(words, &real, &world)
    }

    /// Says how two answers to a command differ, if they do.
    pub(crate) fn difference(&self, words: &Words, real: &[u8], world: &[u8]) -> Option<String> {
        if real == world || self.means_the_same(&words[0], real, world) {
            return None;
        }
        let [asked, real, world] = [&words.join(&b' '), real, world].map(|bytes| bytes.escape_ascii().to_string());
        Some(format!("{asked}\n  the real server: {real}\n  the world:       {world}"))
    }

    /// Sends bytes to both, and expects the same answers.
    pub(crate) fn agree_on_bytes(&mut self, bytes: &[u8]) {
        let (real, world) = self.answers(bytes);
        assert_eq!(real.escape_ascii().to_string(), world.escape_ascii().to_string(), "{}", bytes.escape_ascii());
    }

    /// Tells the world what the real server knows already.
    pub(crate) fn settle(&mut self, commands: &[&str]) {
        let session = self.world.open();
        for command in commands {
            let answer = self.world.feed(session, &encoded(&split(command)));
            assert!(!answer.starts_with(b"-"), "{command}: {}", answer.escape_ascii());
        }
    }

    fn answers(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let before_us = now_us(&mut self.clock);
        let real = self.real.ask(bytes);
        self.world_answers(before_us, real, self.session, bytes)
    }

    /// What both answer to another client.
    pub(crate) fn answers_of(&mut self, real: &mut Client, session: SessionId, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let before_us = now_us(&mut self.clock);
        let real = real.ask(bytes);
        self.world_answers(before_us, real, session, bytes)
    }

    fn world_answers(&mut self, asked_us: u64, real: Vec<u8>, session: SessionId, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        self.late_us = self.late_us.max(now_us(&mut self.clock).saturating_sub(asked_us));
        self.world.set_time_us(asked_us);
        (real, self.world.feed(session, bytes))
    }

    /// Asks commands, written as in `redis-cli`, and expects the same answers. Those with `&&` between them go together.
    pub(crate) fn agree(&mut self, commands: &[&str]) {
        for command in commands {
            if command.contains(TOGETHER) {
                let together: Vec<_> = command.split(TOGETHER).flat_map(|command| encoded(&split(command))).collect();
                self.agree_on_bytes(&together);
            } else if let Some(difference) = self.ask(&split(command)) {
                panic!("{difference}");
            }
        }
    }

    /// Asserts that both answer alike, where the server does not tell the time.
    pub(crate) fn agree_untimed(&mut self, commands: &[&str]) {
        for command in commands {
            let words = split(command);
            let bytes = encoded(&words);
            let (real, world) = (self.real.ask(&bytes), self.world.feed(self.session, &bytes));
            if let Some(difference) = self.difference(&words, &real, &world) {
                panic!("{difference}");
            }
        }
    }

    /// Whether answers only differ in the order of what has none, or in the time that has passed.
    fn means_the_same(&self, name: &[u8], real: &[u8], world: &[u8]) -> bool {
        let name = String::from_utf8_lossy(name).to_uppercase();
        match name.as_str() {
            "CLUSTER" | "HGETALL" | "HKEYS" | "HSCAN" | "KEYS" | "SCAN" => sorted(real) == sorted(world),
            "PTTL" | "TTL" => {
                let tolerance_ms = i64::try_from(self.late_us / 500 + 2).unwrap();
                let (Some(Value::Int(real)), Some(Value::Int(world))) = (parsed(real), parsed(world)) else {
                    return false;
                };
                real > 0 && world > 0 && (real - world).abs() <= tolerance_ms
            }
            "HELLO" => without_id(real) == without_id(world),
            _ => self.world.flavour() == Flavour::Valkey9 && are_the_same_numbers(real, world),
        }
    }
}

/// Whether answers only differ in the digits of numbers that read the same: Valkey does not always write the fewest, or the
/// closest ones.
fn are_the_same_numbers(real: &[u8], world: &[u8]) -> bool {
    let [real, world] = [real, world].map(|bytes| bytes.split(|byte| *byte == b'\n').collect::<Vec<_>>());
    let number = |line: &[u8]| {
        let text = String::from_utf8_lossy(line.strip_prefix(b",").unwrap_or(line)).trim_end().to_owned();
        text.parse::<f64>().ok()
    };
    let is_same = |real: &[u8], world: &[u8]| {
        let are_lengths = real.starts_with(b"$") && world.starts_with(b"$");
        real == world || are_lengths || number(real).is_some_and(|real| number(world) == Some(real))
    };
    real.len() == world.len() && real.iter().zip(&world).all(|(real, world)| is_same(real, world))
}

fn parsed(bytes: &[u8]) -> Option<Value> {
    parse_redis_value(bytes).ok()
}

/// The leaves of an answer, in an order of their own.
fn sorted(bytes: &[u8]) -> Option<Vec<String>> {
    let mut leaves = Vec::new();
    collect(&parsed(bytes)?, &mut leaves);
    leaves.sort();
    Some(leaves)
}

fn collect(value: &Value, leaves: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, leaves)),
        Value::Map(pairs) => {
            // A field stays with its text.
            let pair = |(field, text): &(Value, Value)| leaves.push(format!("{field:?} {text:?}"));
            pairs.iter().for_each(pair);
        }
        leaf => leaves.push(format!("{leaf:?}")),
    }
}

/// A greeting without the number of the client.
fn without_id(bytes: &[u8]) -> Option<Vec<String>> {
    let text = format!("{:?}", parsed(bytes)?);
    let (before, behind) = text.split_once("'id'")?;
    let behind = behind.split_once("'mode'").map(|(_, behind)| behind)?;
    Some(vec![before.to_owned(), behind.to_owned()])
}

/// Starts both from nothing.
pub(crate) fn emptied(twin: &mut Twin, server: &RealServer) {
    ask::<()>(&mut twin.clock, "FLUSHALL");
    ask::<()>(&mut twin.clock, "SCRIPT FLUSH");
    twin.world = Server::new(Twin::flavour(server)).unwrap();
    twin.reconnect(server);
}

/// Splits a command at its spaces, but not within quotes.
pub(crate) fn split(command: &str) -> Words {
    let (mut words, mut word, mut quote, mut is_word) = (Vec::new(), Vec::new(), None, false);
    for byte in command.bytes() {
        match (byte, quote) {
            (_, Some(open)) if byte == open => quote = None,
            (b'"' | b'`', None) => (quote, is_word) = (Some(byte), true),
            (b' ', None) => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            _ => {
                word.push(byte);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

/// Writes a command as clients do.
pub(crate) fn encoded(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
