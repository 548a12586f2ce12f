//! Scripts in Lua.

mod call;
mod engine;
mod failure;
mod library;
mod running;
mod struct_format;
mod struct_library;
mod values;

#[cfg(tallygate_world)]
pub(crate) use self::engine::OVERRUN;
pub(crate) use self::engine::Scripts;
