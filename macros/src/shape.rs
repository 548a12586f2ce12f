//! The shape of the annotated function: what stands before its body, and the body as it is written.

mod additions;
mod async_block;
mod bindings;
mod body;
mod function;
mod insertion;
mod opening;
mod returned;
mod returns;
mod tokens;

pub(crate) use self::additions::{Additions, Epilogue};
pub(crate) use self::bindings::Binding;
pub(crate) use self::function::Function;
