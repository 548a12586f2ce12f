//! The `#[rate_limit]` attribute of [Tallygate](https://docs.rs/tallygate), which re-exports it beside the runtime that
//! its expansions call.
//!
//! The stages of the pipeline import each other in one direction: `attr` reads tokens as arguments, `model` gives them
//! a meaning, `validate` and `shape` check the model against itself and the function, and `expand` writes the function.
//! Every stage reports all mistakes that it finds.

mod attr;
mod debug;
mod diagnostic;
mod expand;
mod model;
mod pipeline;
#[cfg(test)]
mod random;
mod shape;
mod template;
#[cfg(test)]
mod tests;
#[cfg(all(test, not(fuzzing)))]
mod trial;
#[cfg(fuzzing)]
pub mod trial;
mod validate;

#[doc = include_str!("../rate_limit.md")]
#[cfg(not(fuzzing))]
#[proc_macro_attribute]
pub fn rate_limit(attribute: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let expansion = pipeline::limit(attribute.into(), &item.into());
    debug::print(&expansion);
    expansion.into()
}
