//! The attribute as it is written: lists of arguments, and the forms that their values have.

mod argument;
mod arguments;
mod suggestion;
mod value;

pub(crate) use self::argument::Argument;
pub(crate) use self::arguments::{Arguments, WrittenList};
pub(crate) use self::value::{Amount, number};
