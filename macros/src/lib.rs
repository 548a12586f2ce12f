//! The `#[rate_limit]` attribute of Tallygate.

use proc_macro::TokenStream;

/// Limits a function.
#[proc_macro_attribute]
pub fn rate_limit(_attr: TokenStream, item: TokenStream) -> TokenStream {
    item
}
