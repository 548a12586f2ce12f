//! Scripts in Lua.

mod call;
mod engine;
mod failure;
mod library;
mod running;
mod struct_format;
mod struct_library;
mod values;

pub(crate) use self::engine::{OVERRUN, Scripts};
