//! What an expansion adds to a function.

use proc_macro2::TokenStream;

pub(crate) struct Additions {
    /// Attributes, behind those of the function.
    pub(crate) attributes: TokenStream,
    /// Statements that evaluate the user's expressions. They stand where all arguments are in scope.
    pub(crate) preparation: TokenStream,
    /// The expression that awaits the decision. It stands right before what it decides about.
    pub(crate) decision: TokenStream,
    /// The name of its value, which is kept until the body is over.
    pub(crate) permit: TokenStream,
    pub(crate) epilogue: Option<Epilogue>,
}

/// What follows a body, to which the body's `return`s and `?`s then lead.
pub(crate) struct Epilogue {
    /// The name of the body's result.
    pub(crate) result: TokenStream,
    /// A statement in front of the body that gives the type of its result.
    pub(crate) result_type: TokenStream,
    /// Statements that use the permit and the result, and the value that the function returns.
    pub(crate) after: TokenStream,
}
