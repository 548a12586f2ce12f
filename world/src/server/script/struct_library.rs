//! The library `struct`, which packs values into strings.

use mlua::{Error, Lua, MultiValue, Result, Table, Value};

use super::failure::caller;
use super::struct_format::{Format, Item, Kind, Mistake};

/// Returns the library.
pub(crate) fn library(lua: &Lua) -> Result<Table> {
    let library = lua.create_table()?;
    library.raw_set("pack", lua.create_function(|lua, values: MultiValue| at_caller(lua, pack(lua, &values)))?)?;
    library.raw_set("unpack", lua.create_function(|lua, values: MultiValue| at_caller(lua, unpack(lua, &values)))?)?;
    Ok(library)
}

/// What is wrong with a call.
enum Misuse {
    Argument(usize, &'static str, String),
    Other(String),
    Lua(Error),
}

impl Misuse {
    fn of_format(mistake: Mistake, function: &'static str) -> Self {
        match mistake {
            Mistake::Option(option) => {
                Self::Argument(1, function, format!("invalid format option '{}'", char::from(option)))
            }
            Mistake::Number(text) => Self::Other(text),
        }
    }
}

impl From<Error> for Misuse {
    fn from(error: Error) -> Self {
        Self::Lua(error)
    }
}

/// Says where a script has called the library in a wrong way.
fn at_caller<T>(lua: &Lua, outcome: std::result::Result<T, Misuse>) -> Result<T> {
    outcome.map_err(|misuse| {
        let text = match misuse {
            Misuse::Argument(number, function, mistake) => {
                format!("bad argument #{number} to '{function}' ({mistake})")
            }
            Misuse::Other(text) => text,
            Misuse::Lua(error) => return error,
        };
        Error::RuntimeError(caller(lua) + &text)
    })
}

fn pack(lua: &Lua, values: &MultiValue) -> std::result::Result<mlua::String, Misuse> {
    let format = text(values, 0, "pack")?;
    let format = format.as_bytes();
    let mut format = Format::new(&format);
    let mut packed = Vec::with_capacity(32);
    let mut argument = 1;
    while let Some(item) = format.next(packed.len()) {
        let item = item.map_err(|mistake| Misuse::of_format(mistake, "pack"))?;
        packed.resize(packed.len() + item.padding, 0);
        if item.kind == Kind::Skipped {
            packed.push(0);
            continue;
        }
        append(&mut packed, item, values, argument)?;
        argument += 1;
    }
    Ok(lua.create_string(packed)?)
}

fn append(packed: &mut Vec<u8>, item: Item, values: &MultiValue, argument: usize) -> std::result::Result<(), Misuse> {
    const FUNCTION: &str = "pack";
    match item.kind {
        Kind::Unsigned | Kind::Signed => {
            let bytes = integer(number(values, argument, FUNCTION)?).to_be_bytes();
            let begin = packed.len();
            packed
                .extend((0..item.size).rev().map(|place| bytes.len().checked_sub(place + 1).map_or(0, |at| bytes[at])));
            in_order(&mut packed[begin..], item);
        }
        Kind::Float => {
            #[allow(clippy::cast_possible_truncation, reason = "the format wants fewer digits")]
            let bytes = (number(values, argument, FUNCTION)? as f32).to_be_bytes();
            let begin = packed.len();
            packed.extend_from_slice(&bytes);
            in_order(&mut packed[begin..], item);
        }
        Kind::Double => {
            let bytes = number(values, argument, FUNCTION)?.to_be_bytes();
            let begin = packed.len();
            packed.extend_from_slice(&bytes);
            in_order(&mut packed[begin..], item);
        }
        Kind::Text | Kind::Terminated => {
            let text = text(values, argument, FUNCTION)?;
            let text = text.as_bytes();
            let size = if item.size == 0 { text.len() } else { item.size };
            // The argument behind it is the one that servers name.
            let too_short = || Misuse::Argument(argument + 2, FUNCTION, "string too short".to_owned());
            packed.extend_from_slice(text.get(..size).ok_or_else(too_short)?);
            if item.kind == Kind::Terminated {
                packed.push(0);
            }
        }
        Kind::Skipped => {}
    }
    Ok(())
}

/// Turns bytes that begin with the highest one.
fn in_order(bytes: &mut [u8], item: Item) {
    if !item.is_big_endian {
        bytes.reverse();
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as in C")]
fn integer(number: f64) -> u64 {
    if number < 0.0 { (number as i64).cast_unsigned() } else { number as u64 }
}

fn unpack(lua: &Lua, values: &MultiValue) -> std::result::Result<MultiValue, Misuse> {
    const FUNCTION: &str = "unpack";
    let format = text(values, 0, FUNCTION)?;
    let format = format.as_bytes();
    let mut format = Format::new(&format);
    let data = text(values, 1, FUNCTION)?;
    let data = data.as_bytes();
    let first = if values.len() > 2 { integer(number(values, 2, FUNCTION)?) } else { 1 };
    let at_least_one = || Misuse::Argument(3, FUNCTION, "offset must be 1 or greater".to_owned());
    let mut at = usize::try_from(first).ok().and_then(|first| first.checked_sub(1)).ok_or_else(at_least_one)?;
    let too_short = || Misuse::Argument(2, FUNCTION, "data string too short".to_owned());
    let mut found = MultiValue::with_capacity(8);
    while let Some(item) = format.next(at) {
        let mut item = item.map_err(|mistake| Misuse::of_format(mistake, FUNCTION))?;
        at += item.padding;
        if item.kind == Kind::Text && item.size == 0 {
            let size = found.pop_back().and_then(|size| usize::try_from(integer(size.as_f64()?)).ok());
            item.size = size.ok_or_else(|| Misuse::Other("format 'c0' needs a previous size".to_owned()))?;
        }
        let rest = data.get(at..).ok_or_else(too_short)?;
        let bytes = rest.get(..item.size).ok_or_else(too_short)?;
        at += item.size;
        match item.kind {
            Kind::Unsigned | Kind::Signed => found.push_back(Value::Number(read_integer(bytes, item))),
            Kind::Float | Kind::Double => found.push_back(Value::Number(read_float(bytes, item))),
            Kind::Text => found.push_back(Value::String(lua.create_string(bytes)?)),
            Kind::Terminated => {
                let end = rest.iter().position(|byte| *byte == 0);
                let end = end.ok_or_else(|| Misuse::Other("unfinished string in data".to_owned()))?;
                found.push_back(Value::String(lua.create_string(&rest[..end])?));
                at += end + 1;
            }
            Kind::Skipped => {}
        }
    }
    found.push_back(Value::Integer(i64::try_from(at + 1).unwrap_or(i64::MAX)));
    Ok(found)
}

#[allow(clippy::cast_precision_loss, reason = "a number of Lua 5.1 is no integer")]
fn read_integer(bytes: &[u8], item: Item) -> f64 {
    let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    let sum = if item.is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) };
    if item.kind == Kind::Unsigned {
        return sum as f64;
    }
    let unused = 64_u32.saturating_sub(u32::try_from(bytes.len() * 8).unwrap_or(64));
    ((sum << unused).cast_signed() >> unused) as f64
}

fn read_float(bytes: &[u8], item: Item) -> f64 {
    let mut bytes = bytes.to_vec();
    in_order(&mut bytes, item);
    match (<[u8; 4]>::try_from(&bytes[..]), <[u8; 8]>::try_from(&bytes[..])) {
        (Ok(bytes), _) => f32::from_be_bytes(bytes).into(),
        (_, Ok(bytes)) => f64::from_be_bytes(bytes),
        _ => 0.0,
    }
}

/// Returns an argument that is text.
fn text(values: &MultiValue, index: usize, function: &'static str) -> std::result::Result<mlua::String, Misuse> {
    match values.get(index) {
        Some(Value::String(text)) => Ok(text.clone()),
        other => Err(wrong_type(other, index, function, "string")),
    }
}

/// Returns an argument that is a number, or text that says one.
#[allow(clippy::cast_precision_loss, reason = "a number of Lua 5.1 is no integer")]
fn number(values: &MultiValue, index: usize, function: &'static str) -> std::result::Result<f64, Misuse> {
    let wrong = |other| wrong_type(other, index, function, "number");
    match values.get(index) {
        Some(Value::Integer(number)) => Ok(*number as f64),
        Some(Value::Number(number)) => Ok(*number),
        Some(value @ Value::String(text)) => text.to_string_lossy().trim().parse().map_err(|_| wrong(Some(value))),
        other => Err(wrong(other)),
    }
}

fn wrong_type(found: Option<&Value>, index: usize, function: &'static str, expected: &str) -> Misuse {
    let found = found.map_or("no value", |value| match value {
        Value::Integer(_) => "number",
        value => value.type_name(),
    });
    Misuse::Argument(index + 1, function, format!("{expected} expected, got {found}"))
}
