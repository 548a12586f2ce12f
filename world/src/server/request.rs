//! Commands as clients send them, read from bytes that arrive in pieces.

use super::arguments::Arguments;

/// The most words of a command.
const MOST_WORDS: i64 = 1 << 20;
/// The longest word.
const LONGEST_WORD: i64 = 512 << 20;

/// What has arrived, and was not read yet.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    /// Where the next command begins.
    at: usize,
}

/// Why the bytes are no command. The server says so, and hangs up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

impl Requests {
    pub(crate) fn arrive(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Reads the next command into the arguments; returns whether it has arrived as a whole. An empty line has no words.
    pub(crate) fn next(&mut self, arguments: &mut Arguments) -> Result<bool, Malformed> {
        arguments.clear();
        let mut reading = Reading { bytes: &self.bytes, at: self.at };
        let is_whole = match self.bytes.get(self.at) {
            None => None,
            Some(b'*') => reading.words(arguments)?,
            Some(_) => reading.line().map(|line| {
                line.split(u8::is_ascii_whitespace)
                    .filter(|word| !word.is_empty())
                    .for_each(|word| arguments.push(word));
            }),
        };
        if is_whole.is_some() {
            self.at = reading.at;
        }
        Ok(is_whole.is_some())
    }
}

struct Reading<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reading<'a> {
    /// Reads a command; `None` if a part of it has not arrived.
    fn words(&mut self, arguments: &mut Arguments) -> Result<Option<()>, Malformed> {
        let Some(header) = self.line() else { return Ok(None) };
        let number = number(&header[1..]).filter(|number| *number <= MOST_WORDS);
        let number = number.ok_or_else(|| malformed("invalid multibulk length"))?;
        for _ in 0..number {
            let Some(header) = self.line() else { return Ok(None) };
            let Some((b'$', length)) = header.split_first() else {
                let found = header.first().map_or(' ', |byte| char::from(*byte));
                return Err(malformed(&format!("expected '$', got '{found}'")));
            };
            let length = number_of_bytes(length).ok_or_else(|| malformed("invalid bulk length"))?;
            let Some(word) = self.bytes.get(self.at..self.at + length + 2) else { return Ok(None) };
            arguments.push(&word[..length]);
            self.at += length + 2;
        }
        Ok(Some(()))
    }

    /// Reads a line, without its end.
    fn line(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| *byte == b'\n')?;
        self.at += length + 1;
        Some(rest[..length].strip_suffix(b"\r").unwrap_or(&rest[..length]))
    }
}

fn malformed(text: &str) -> Malformed {
    Malformed(format!("ERR Protocol error: {text}"))
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn number_of_bytes(text: &[u8]) -> Option<usize> {
    number(text).filter(|length| *length <= LONGEST_WORD).and_then(|length| usize::try_from(length).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(pieces: &[&str]) -> Vec<Vec<String>> {
        let (mut requests, mut arguments, mut commands) = (Requests::default(), Arguments::default(), Vec::new());
        for piece in pieces {
            requests.arrive(piece.as_bytes());
            while requests.next(&mut arguments).unwrap() {
                commands.push((0..arguments.len()).map(|index| arguments.text(index)).collect());
            }
        }
        commands
    }

    #[test]
    fn commands_that_arrive_in_any_pieces_are_the_same() {
        let bytes = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING now\r\n*1\r\n$0\r\n\r\n";
        let whole = commands(&[bytes]);
        assert_eq!(whole, [vec!["GET", "k"], vec!["PING", "now"], vec![""]]);
        let pieces: Vec<_> = bytes.split_inclusive(|_| true).collect();
        assert_eq!(commands(&pieces), whole);
    }

    #[test]
    fn bytes_that_are_no_command_are_refused() {
        for (bytes, mistake) in [
            ("*x\r\n", "invalid multibulk length"),
            ("*1\r\n+3\r\n", "expected '$', got '+'"),
            ("*1\r\n$-1\r\n", "invalid bulk length"),
        ] {
            let mut requests = Requests::default();
            requests.arrive(bytes.as_bytes());
            let refused = requests.next(&mut Arguments::default()).unwrap_err();
            assert_eq!(refused.0, format!("ERR Protocol error: {mistake}"));
        }
    }
}
