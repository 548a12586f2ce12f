//! The shape of the annotated function: the part before its body, and the body as tokens.

mod async_block;
mod bindings;
mod body;
mod function;
mod insertion;
mod opening;
mod return_type;
mod tokens;

pub(crate) use self::bindings::Binding;
pub(crate) use self::function::Function;
pub(crate) use self::insertion::{Additions, Epilogue};
