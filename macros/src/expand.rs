//! The expansion: from the model to tokens.

mod code;
mod context;
mod decision;
mod document;
mod function;
mod message;
mod options;
mod policy;
mod preparation;
mod refund;
mod subject;

pub(crate) use self::function::expand;
