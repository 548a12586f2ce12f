//! Answers as values of Lua, and values of Lua as answers.

use mlua::{Lua, Result, Table, Value};

use super::failure::one_line;
use crate::server::flavour::Flavour;
use crate::server::numbers::precise;
use crate::server::reply::Reply;

/// How deep a value may be nested.
const DEEPEST: usize = 64;

/// Returns an answer as a script sees it.
pub(crate) fn into_lua(lua: &Lua, reply: Reply) -> Result<Value> {
    Ok(match reply {
        Reply::Integer(number) => Value::Integer(number),
        Reply::Text(text) => Value::String(lua.create_string(text)?),
        Reply::Float(text) | Reply::Verbatim(text) => Value::String(lua.create_string(text)?),
        Reply::Status(text) => Value::Table(field(lua, "ok", text.as_bytes())?),
        Reply::Error(text) => Value::Table(field(lua, "err", text.as_bytes())?),
        Reply::Nothing | Reply::NoArray => Value::Boolean(false),
        Reply::Array(items) | Reply::Push(items) => list(lua, items.into_iter())?,
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            list(lua, pairs.into_iter().flat_map(|(first, second)| [first, second]))?
        }
    })
}

fn list(lua: &Lua, items: impl Iterator<Item = Reply>) -> Result<Value> {
    let table = lua.create_table_with_capacity(items.size_hint().0, 0)?;
    for item in items {
        table.raw_push(into_lua(lua, item)?)?;
    }
    Ok(Value::Table(table))
}

/// Returns a table with one field.
pub(crate) fn field(lua: &Lua, name: &str, text: &[u8]) -> Result<Table> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, lua.create_string(text)?)?;
    Ok(table)
}

/// Returns what a script has returned as an answer.
pub(crate) fn into_reply(flavour: Flavour, value: &Value, depth: usize) -> Result<Reply> {
    if depth > DEEPEST {
        return Ok(Reply::error("ERR reached lua stack limit"));
    }
    Ok(match value {
        Value::String(text) => Reply::text(text.as_bytes()),
        Value::Integer(number) => Reply::Integer(*number),
        Value::Number(number) => Reply::Integer(truncated(*number)),
        Value::Boolean(true) => Reply::Integer(1),
        Value::Table(table) => of_table(flavour, table, depth)?,
        _ => Reply::Nothing,
    })
}

/// Cuts a fraction off. What is no integer of 64 bits is the least one, as on the machines that servers run on.
fn truncated(number: f64) -> i64 {
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    #[allow(clippy::cast_possible_truncation, reason = "that is what it is for")]
    if number < TOO_LARGE { number as i64 } else { i64::MIN }
}

fn of_table(flavour: Flavour, table: &Table, depth: usize) -> Result<Reply> {
    // Most tables are lists.
    let first: Value = table.raw_get(1)?;
    if first.is_nil() {
        if let Some(text) = table.raw_get::<Option<mlua::String>>("err")? {
            return Ok(Reply::error(one_line(&text.to_string_lossy())));
        }
        if let Some(text) = table.raw_get::<Option<mlua::String>>("ok")? {
            return Ok(Reply::Status(one_line(&text.to_string_lossy()).into()));
        }
        if let Some(number) = table.raw_get::<Option<f64>>("double")? {
            return Ok(Reply::Float(precise(flavour, number)));
        }
        return Ok(Reply::Array(Vec::new()));
    }
    let mut items = vec![into_reply(flavour, &first, depth + 1)?];
    for index in 2.. {
        let value: Value = table.raw_get(index)?;
        if value.is_nil() {
            break;
        }
        items.push(into_reply(flavour, &value, depth + 1)?);
    }
    Ok(Reply::Array(items))
}
