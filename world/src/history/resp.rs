//! Reads what clients send and what servers answer, as far as the world looks at it.

/// The commands in the bytes of a client.
pub(super) fn commands(mut bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut commands = Vec::new();
    while let Some((words, rest)) = command(bytes) {
        commands.push(words);
        bytes = rest;
    }
    commands
}

/// The answers in the bytes of a server: the text of each, if it is a text. What a server says on its own is left out.
pub(super) fn answers(mut bytes: &[u8]) -> Vec<Option<&[u8]>> {
    let mut answers = Vec::new();
    while let Some(&kind) = bytes.first() {
        let Some((text, rest)) = value(bytes) else { break };
        if kind != b'>' {
            answers.push(text);
        }
        bytes = rest;
    }
    answers
}

fn command(bytes: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let (kind, number, mut rest) = head(bytes)?;
    let mut words = Vec::with_capacity(number.min(64));
    for _ in 0..number {
        let (word, after) = value(rest)?;
        words.push(word?);
        rest = after;
    }
    (kind == b'*').then_some((words, rest))
}

/// Skips a value. Returns its text, if it is one.
fn value(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (kind, number, rest) = head(bytes)?;
    let items = match kind {
        b'$' | b'=' if number != usize::MAX => {
            let text = rest.get(..number)?;
            return Some((Some(text), rest.get(number + 2..)?));
        }
        b'*' | b'~' | b'>' if number != usize::MAX => number,
        b'%' => 2 * number,
        _ => 0,
    };
    let mut rest = rest;
    for _ in 0..items {
        rest = value(rest)?.1;
    }
    Some((None, rest))
}

/// The first line: its kind, the number in it, and what follows.
fn head(bytes: &[u8]) -> Option<(u8, usize, &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let (line, rest) = bytes.split_at(end + 1);
    let (&kind, line) = line.split_first()?;
    let number = std::str::from_utf8(line).ok().and_then(|line| line.trim_end().parse().ok());
    Some((kind, number.unwrap_or(usize::MAX), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_answers_are_read_one_after_the_other() {
        let asked = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n";
        assert_eq!(commands(asked), [vec![&b"GET"[..], b"k"], vec![b"PING"]]);
        let answered = b"$-1\r\n>2\r\n+a\r\n+b\r\n%1\r\n+a\r\n*2\r\n:1\r\n_\r\n-ERR no\r\n$2\r\nok\r\n";
        assert_eq!(answers(answered), [None, None, None, Some(&b"ok"[..])]);
    }
}
