//! The start of a body: declarations, or the statements in which `#[async_trait]` binds the arguments again.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::discouraged::Speculative as _;
use syn::parse::{Parse, ParseBuffer, ParseStream, Parser as _};
use syn::{Attribute, Block, Item, Local, Pat, Signature, Stmt};

/// The words that an item can start with.
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
/// Declarations do nothing when the body runs, so the check can follow them. The check cannot come first: after a
/// statement, inner attributes are errors and items break a lint.
pub(super) fn count_declarations(body: TokenStream) -> usize {
    // Most bodies have no declarations, and this check is quicker than parsing the start.
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
            // A macro call may run code.
            Item::Macro(call) => call.ident.is_some(),
            _ => true,
        },
    )
}

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

/// Returns whether the statement is `let __ret: Ret = { … };`, in which `#[async_trait]` puts the user's body.
fn is_result(statement: &Stmt) -> bool {
    let Stmt::Local(Local { pat: Pat::Type(typed), .. }) = statement else { return false };
    matches!(&*typed.pat, Pat::Ident(binding) if binding.ident == "__ret")
}

/// Counts the tokens that `start` reads, and those of the following syntax nodes that `belongs` accepts.
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

/// Returns the input after its first syntax node, if `belongs` accepts that node.
fn skip_one<T: Parse>(input: ParseStream<'_>, belongs: fn(&T) -> bool) -> Option<ParseBuffer<'_>> {
    let ahead = input.fork();
    ahead.parse::<T>().is_ok_and(|read| belongs(&read)).then_some(ahead)
}
