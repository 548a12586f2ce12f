//! The additions of an expansion to a function, and how the check is put into a block, behind what has to stay at its start.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::parse::discouraged::Speculative as _;
use syn::parse::{Parse, ParseBuffer, ParseStream, Parser as _};
use syn::{Attribute, Block, Item, Local, Pat, Signature, Stmt};

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
