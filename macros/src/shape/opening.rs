//! What a body starts with: declarations, or the statements in which `#[async_trait]` binds the arguments again.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::discouraged::Speculative as _;
use syn::parse::{Parse, ParseBuffer, ParseStream, Parser as _};
use syn::{Attribute, Block, Item, Local, Pat, Signature, Stmt};

/// What an item starts with, beside an attribute.
const ITEM_WORDS: [&str; 16] = [
    "use",
    "const",
    "static",
    "fn",
    "async",
    "unsafe",
    "extern",
    "mod",
    "struct",
    "enum",
    "union",
    "type",
    "trait",
    "impl",
    "pub",
    "macro_rules",
];

/// Counts the tokens of the inner attributes and items at the start of a body.
///
/// They do nothing when the body runs. After a statement, inner attributes are errors and items break a lint.
pub(super) fn count_declarations(body: TokenStream) -> usize {
    // Most bodies have none, and this is quicker to find out than what they start with.
    let may_declare = body.clone().into_iter().next().is_some_and(|first| match first {
        TokenTree::Ident(word) => ITEM_WORDS.contains(&word.to_string().as_str()),
        TokenTree::Punct(_) | TokenTree::Group(_) => true,
        TokenTree::Literal(_) => false,
    });
    if !may_declare {
        return 0;
    }
    count_first(
        body,
        |input| Attribute::parse_inner(input).map(drop),
        |item: &Item| match item {
            // A macro call may do something.
            Item::Macro(call) => call.ident.is_some(),
            _ => true,
        },
    )
}

/// Counts the tokens of the statements in which `#[async_trait]` binds the arguments again.
pub(super) fn count_rebindings(body: TokenStream) -> usize {
    count_first(body, |_| Ok(()), |statement: &Stmt| !is_result(statement))
}

/// Returns the statements in which `#[async_trait]` binds the arguments again, if it has written this body.
pub(super) fn rebindings(signature: &Signature, body: &TokenStream) -> Option<Vec<Local>> {
    signature.generics.lifetimes().find(|parameter| parameter.lifetime.ident == "async_trait")?;
    let statements = Block::parse_within.parse2(body.clone()).ok()?;
    let result = statements.iter().position(is_result)?;
    let rebinding = |statement| if let Stmt::Local(local) = statement { Some(local) } else { None };
    Some(statements.into_iter().take(result).filter_map(rebinding).collect())
}

/// Returns whether this is the statement of `#[async_trait]` that holds the user's body: `let __ret: Ret = { … };`.
fn is_result(statement: &Stmt) -> bool {
    let Stmt::Local(Local { pat: Pat::Type(typed), .. }) = statement else { return false };
    matches!(&*typed.pat, Pat::Ident(binding) if binding.ident == "__ret")
}

/// Counts the tokens of a start, and of the syntax nodes behind it that `belongs` accepts.
fn count_first<T: Parse>(
    body: TokenStream,
    start: fn(ParseStream<'_>) -> syn::Result<()>,
    belongs: fn(&T) -> bool,
) -> usize {
    let all = body.clone().into_iter().count();
    let read = |input: ParseStream<'_>| {
        start(input)?;
        while let Some(rest) = skip_one(input, belongs) {
            input.advance_to(&rest);
        }
        input.parse::<TokenStream>()
    };
    read.parse2(body).map_or(0, |rest| all.saturating_sub(rest.into_iter().count()))
}

/// Returns what is behind the first syntax node, if `belongs` accepts that.
fn skip_one<T: Parse>(input: ParseStream<'_>, belongs: fn(&T) -> bool) -> Option<ParseBuffer<'_>> {
    let ahead = input.fork();
    ahead.parse::<T>().is_ok_and(|read| belongs(&read)).then_some(ahead)
}
