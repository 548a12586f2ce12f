//! Commands about strings.

use super::arguments::Arguments;
use super::flavour::Flavour;
use super::keyspace::Value;
use super::numbers::integer;
use super::refusal::{Answer, NO_INTEGER, Refusal, SYNTAX};
use super::reply::Reply;
use super::state::State;

/// The longest string, in bytes.
const LONGEST: usize = 512 << 20;

const TOO_LONG: Refusal = Refusal::known("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

pub(crate) fn get(state: &mut State, arguments: &Arguments) -> Answer {
    Ok(state.text(arguments.word(1))?.map_or(Reply::Nothing, Reply::text))
}

pub(crate) fn strlen(state: &mut State, arguments: &Arguments) -> Answer {
    Ok(Reply::count(state.text(arguments.word(1))?.map_or(0, |text| text.len())))
}

pub(crate) fn getrange(state: &mut State, arguments: &Arguments) -> Answer {
    let first = integer(arguments.word(2)).ok_or(NO_INTEGER)?;
    let last = integer(arguments.word(3)).ok_or(NO_INTEGER)?;
    let Some(text) = state.text(arguments.word(1))? else { return Ok(Reply::text("")) };
    if first < 0 && last < 0 && first > last {
        return Ok(Reply::text(""));
    }
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let from_end = |index: i64| if index < 0 { (length + index.max(-length)).max(0) } else { index };
    let (first, last) = (from_end(first), from_end(last).min(length - 1));
    let range = usize::try_from(first).unwrap_or(usize::MAX)..usize::try_from(last + 1).unwrap_or(0);
    Ok(Reply::text(text.get(range).unwrap_or_default()))
}

pub(crate) fn append(state: &mut State, arguments: &Arguments) -> Answer {
    let (key, tail) = (arguments.word(1), arguments.word(2));
    let length = match state.text(key)? {
        None => {
            state.put(key, Value::Text(tail.to_vec()), None);
            tail.len()
        }
        Some(text) => {
            fits(text.len(), tail)?;
            text.extend_from_slice(tail);
            text.len()
        }
    };
    state.changed();
    Ok(Reply::count(length))
}

pub(crate) fn setrange(state: &mut State, arguments: &Arguments) -> Answer {
    let (key, piece) = (arguments.word(1), arguments.word(3));
    let offset = integer(arguments.word(2)).ok_or(NO_INTEGER)?;
    let offset = usize::try_from(offset).map_err(|_| Refusal::known("ERR offset is out of range"))?;
    let Some(text) = state.text(key)? else {
        if piece.is_empty() {
            return Ok(Reply::Integer(0));
        }
        fits(offset, piece)?;
        let mut text = vec![0; offset];
        text.extend_from_slice(piece);
        let length = text.len();
        state.put(key, Value::Text(text), None);
        state.changed();
        return Ok(Reply::count(length));
    };
    if piece.is_empty() {
        return Ok(Reply::count(text.len()));
    }
    fits(offset, piece)?;
    let end = offset + piece.len();
    if text.len() < end {
        text.resize(end, 0);
    }
    text[offset..end].copy_from_slice(piece);
    let length = text.len();
    state.changed();
    Ok(Reply::count(length))
}

fn fits(offset: usize, piece: &[u8]) -> Result<(), Refusal> {
    offset.checked_add(piece.len()).filter(|length| *length <= LONGEST).map(|_| ()).ok_or(TOO_LONG)
}

/// What `SET` is asked for besides the value.
#[derive(Default)]
struct Options {
    only: Option<Only>,
    keeps_ttl: bool,
    returns_old: bool,
    /// Which option says when the value expires, and what it says.
    expiry: Option<(Expiry, usize)>,
}

/// The keys that are written.
#[derive(Clone, Copy, PartialEq)]
enum Only {
    New,
    Old,
}

#[derive(Clone, Copy, PartialEq)]
enum Expiry {
    Seconds,
    Millis,
    AtSeconds,
    AtMillis,
}

impl Options {
    fn read(arguments: &Arguments, flavour: Flavour) -> Result<Self, Refusal> {
        const EXPIRIES: [(&str, Expiry); 4] =
            [("ex", Expiry::Seconds), ("px", Expiry::Millis), ("exat", Expiry::AtSeconds), ("pxat", Expiry::AtMillis)];
        let mut options = Self::default();
        let mut index = 3;
        while index < arguments.len() {
            let expiry = EXPIRIES.into_iter().find(|(name, _)| arguments.is(index, name)).map(|(_, expiry)| expiry);
            if arguments.is(index, "nx")
                && options.only != Some(Only::Old)
                && !(flavour == Flavour::Redis62 && options.returns_old)
            {
                options.only = Some(Only::New);
            } else if arguments.is(index, "xx") && options.only != Some(Only::New) {
                options.only = Some(Only::Old);
            } else if arguments.is(index, "get") && !(flavour == Flavour::Redis62 && options.only == Some(Only::New)) {
                options.returns_old = true;
            } else if arguments.is(index, "keepttl") && options.expiry.is_none() {
                options.keeps_ttl = true;
            } else {
                let expiry = expiry.filter(|_| !options.keeps_ttl && index + 1 < arguments.len()).ok_or(SYNTAX)?;
                if options.expiry.is_some_and(|(other, _)| other != expiry) {
                    return Err(SYNTAX);
                }
                index += 1;
                options.expiry = Some((expiry, index));
            }
            index += 1;
        }
        Ok(options)
    }

    fn expires_ms(&self, state: &State, arguments: &Arguments) -> Result<Option<i64>, Refusal> {
        let Some((expiry, index)) = self.expiry else { return Ok(None) };
        let number = integer(arguments.word(index)).ok_or(NO_INTEGER)?;
        let millis = match expiry {
            Expiry::Seconds | Expiry::AtSeconds => number.checked_mul(1000),
            Expiry::Millis | Expiry::AtMillis => Some(number),
        };
        let is_relative = matches!(expiry, Expiry::Seconds | Expiry::Millis);
        let base = if is_relative { state.now_ms() } else { 0 };
        let at = millis.filter(|_| number > 0).and_then(|millis| millis.checked_add(base));
        at.map(Some).ok_or_else(|| Refusal::expire_time(state.flavour, "set"))
    }
}

pub(crate) fn set(state: &mut State, arguments: &Arguments) -> Answer {
    let (key, text) = (arguments.word(1), arguments.word(2));
    let options = Options::read(arguments, state.flavour)?;
    let expires_ms = options.expires_ms(state, arguments)?;
    let old = if options.returns_old { state.text(key)?.map_or(Reply::Nothing, Reply::text) } else { Reply::Nothing };
    let known = state.entry(key).map(|entry| entry.expires_ms);
    let is_refused = match options.only {
        Some(Only::New) => known.is_some(),
        Some(Only::Old) => known.is_none(),
        None => false,
    };
    if is_refused {
        return Ok(old);
    }
    let kept_ms = if options.keeps_ttl { known.flatten() } else { None };
    state.put(key, Value::Text(text.to_vec()), expires_ms.or(kept_ms));
    state.changed();
    state.rewrite(|| match expires_ms {
        Some(at) => Arguments::of([b"SET", key, text, b"PXAT", at.to_string().as_bytes()]),
        None if options.keeps_ttl => Arguments::of([b"SET", key, text, b"KEEPTTL"]),
        None => Arguments::of([b"SET", key, text]),
    });
    Ok(if options.returns_old { old } else { Reply::OK })
}
