//! The additions of an expansion to a function, and how the check is put into a block.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::parse::{ParseStream, Parser as _};
use syn::{Attribute, Block};

use crate::shape::opening::count_declarations;
use crate::shape::tokens::{is_group, is_punct, trees_of, with_contents};

pub(crate) struct Additions {
    /// Attributes that follow those of the function.
    pub(crate) attributes: TokenStream,
    /// Statements that evaluate the user's expressions. All arguments are in their scope.
    pub(crate) preparation: TokenStream,
    /// The expression that awaits the decision. It stands right before the code that it decides about.
    pub(crate) decision: TokenStream,
    /// The name of the decision's value, which is kept until the body is over.
    pub(crate) permit: TokenStream,
    pub(crate) epilogue: Option<Epilogue>,
}

/// The code that follows a body. Each `return` and `?` of the body leads to it.
pub(crate) struct Epilogue {
    /// The name of the body's result.
    pub(crate) result: TokenStream,
    /// A statement before the body that gives its result a type.
    pub(crate) result_type: TokenStream,
    /// The function that runs the body: as a closure if it is plain, or else, if there is one, as an async block.
    pub(crate) run_body: Option<TokenStream>,
    /// Statements that use the permit and the result, and the value that the function returns.
    pub(crate) after: TokenStream,
}

/// Words that start something with a block or a semicolon, which is more than a call.
const BLOCK_WORDS: [&str; 8] = ["let", "if", "match", "while", "for", "fn", "impl", "struct"];

pub(super) struct Insertion<'a> {
    pub(super) statements: TokenStream,
    pub(super) epilogue: Option<&'a Epilogue>,
    pub(super) wrapper: Wrapper,
}

/// The form of a body that an epilogue follows.
pub(super) enum Wrapper {
    Async,
    AsyncMove,
    Closure,
}

impl Insertion<'_> {
    /// Puts the check between the declarations of a block and its statements.
    ///
    /// An unfinished block is put unchanged into another block: the compiler has already reported the mistake, and
    /// would report it again if a span changed.
    pub(super) fn before_statements(&self, block: &Group) -> Group {
        if is_finished(block) {
            self.behind_first(count_declarations, block)
        } else {
            self.behind_first(|_| 0, &with_contents(block, block.to_token_stream()))
        }
    }

    /// Puts the check behind as many tokens as `count` returns, and the epilogue behind the rest.
    pub(super) fn behind_first(&self, count: fn(TokenStream) -> usize, block: &Group) -> Group {
        let Self { statements, epilogue, wrapper } = self;
        edit_behind_first(count, block, |rest| match epilogue {
            None => quote!(#statements #rest),
            Some(Epilogue { result, result_type, run_body, after }) => {
                let body = with_contents(block, quote!(#result_type #rest));
                let wrapped = match wrapper {
                    Wrapper::Async => quote!(async #body),
                    Wrapper::AsyncMove => quote!(async move #body),
                    Wrapper::Closure => quote!(move || #body),
                };
                let run = run_body.as_ref().map_or_else(|| wrapped.clone(), |run| quote!(#run(#wrapped)));
                let awaited = (!matches!(wrapper, Wrapper::Closure)).then(|| quote!(.await));
                quote!(#statements let #result = #run #awaited; #after)
            }
        })
    }
}

/// Keeps as many tokens of a block as `count` returns, and edits the rest.
pub(super) fn edit_behind_first(
    count: fn(TokenStream) -> usize,
    block: &Group,
    edit: impl FnOnce(TokenStream) -> TokenStream,
) -> Group {
    let count = count(block.stream());
    if count == 0 {
        return with_contents(block, edit(block.stream()));
    }
    let mut trees = trees_of(&block.stream());
    let rest = edit(trees.split_off(count).into_iter().collect());
    with_contents(block, quote!(#(#trees)* #rest))
}

/// Returns whether the last statement of a block parses. If not, the compiler reports the mistake at the closing brace.
///
/// Earlier mistakes are reported at tokens of the user, so they are not searched for.
fn is_finished(block: &Group) -> bool {
    let trees = trees_of(&block.stream());
    let last = trees.iter().rposition(|tree| is_punct(tree, ';')).map_or(0, |semicolon| semicolon + 1);
    let last = &trees[last..];
    let read = |input: ParseStream<'_>| {
        Attribute::parse_inner(input)?;
        Block::parse_within(input)
    };
    is_call(last) || read.parse2(last.iter().cloned().collect()).is_ok()
}

/// Returns whether an expression is a call of a function or a method, like most last expressions: `Ok(receipt)`.
///
/// This check is quicker than parsing the statement.
fn is_call(trees: &[TokenTree]) -> bool {
    let within = |tree: &TokenTree| match tree {
        TokenTree::Ident(name) => !BLOCK_WORDS.contains(&name.to_string().as_str()),
        TokenTree::Punct(_) => is_punct(tree, ':') || is_punct(tree, '.'),
        TokenTree::Group(_) => is_group(tree, Delimiter::Parenthesis),
        TokenTree::Literal(_) => false,
    };
    match trees {
        [] => true,
        [name @ TokenTree::Ident(_), .., arguments] if is_group(arguments, Delimiter::Parenthesis) => {
            within(name) && trees.iter().all(within)
        }
        _ => false,
    }
}
