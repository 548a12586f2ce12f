//! The attribute's pipeline as a library. Nothing can link a procedural macro, so it is built here once more, from the same
//! files.

#![allow(dead_code, reason = "what only the attribute itself needs")]

#[path = "../../macros/src/argument.rs"]
mod argument;
#[path = "../../macros/src/attr.rs"]
mod attr;
#[path = "../../macros/src/debug.rs"]
mod debug;
#[path = "../../macros/src/diagnostic.rs"]
mod diagnostic;
#[path = "../../macros/src/document.rs"]
mod document;
#[path = "../../macros/src/expand.rs"]
mod expand;
#[path = "../../macros/src/model.rs"]
mod model;
#[path = "../../macros/src/pipeline.rs"]
mod pipeline;
#[path = "../../macros/src/placeholder.rs"]
mod placeholder;
#[path = "../../macros/src/rule.rs"]
mod rule;
#[path = "../../macros/src/shape.rs"]
mod shape;
#[path = "../../macros/src/template.rs"]
mod template;
#[path = "../../macros/src/trial.rs"]
pub mod trial;
#[path = "../../macros/src/validate.rs"]
mod validate;
