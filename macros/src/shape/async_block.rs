//! The async block in which a function without `async` awaits the decision.
//!
//! The block is found by its tokens, so its contents need not parse.

use proc_macro2::{Delimiter, Group, TokenTree};

use crate::shape::tokens::{is_group, is_punct, is_word, trees_of};

/// Methods of futures that do not change the output.
const ADAPTERS: [&str; 4] = ["boxed", "boxed_local", "instrument", "in_current_span"];

/// The place of an async block in the tokens of a body.
pub(super) struct AsyncBlock {
    /// The positions of the groups around the block, outermost first, and of its braces.
    pub(super) path: Vec<usize>,
    /// The position at which the expression around the block starts.
    pub(super) start: usize,
    pub(super) moves: bool,
}

impl AsyncBlock {
    /// Finds `async move { … }` or `Box::pin(async move { … })` as the last expression of a body.
    pub(super) fn at_end(body: &[TokenTree]) -> Option<Self> {
        let (last, ended) = without_semicolon(body);
        let found = Self::ending(last)?;
        let before = &last[..found.start];
        let returned = strip_word(before, "return");
        let before = returned.unwrap_or(before);
        let found = Self { start: before.len(), ..found };
        (ends_statement(before) && (!ended || returned.is_some())).then_some(found)
    }

    /// Finds `let body = async { … };` as the first statement of a body whose value is `….block_on(body)`, as
    /// `#[tokio::test]` writes it. What a user wrote may do more with the block or its output, so that a denial in the block
    /// would not end the call.
    pub(super) fn blocked_on(body: &[TokenTree]) -> Option<Self> {
        let [binding, name @ TokenTree::Ident(_), equals, rest @ ..] = body else { return None };
        let end = rest.iter().position(|tree| is_punct(tree, ';'))?;
        let found = Self::ending(&rest[..end])?;
        let first = is_word(binding, "let") && is_punct(equals, '=') && found.start == 0 && found.path.len() == 1;
        let is_run = first && is_output_returned(&rest[end..], &name.to_string());
        is_run.then(|| Self { path: vec![found.path[0] + 3], start: 0, ..found })
    }

    fn ending(trees: &[TokenTree]) -> Option<Self> {
        let (TokenTree::Group(group), before) = without_adapter(trees).split_last()? else { return None };
        let at = before.len();
        match group.delimiter() {
            Delimiter::Brace => Self::opened_by(before, vec![at]),
            Delimiter::Parenthesis => {
                let start = strip_path(strip_word(before, "pin")?)?.len();
                let inner = Self::argument(group)?;
                Some(Self { path: [vec![at], inner.path].concat(), start, ..inner })
            }
            // A macro puts a `$body:block` or a `$future:expr` into such a group.
            Delimiter::None if matches!(trees_of(&group.stream())[..], [ref block] if is_group(block, Delimiter::Brace)) => {
                Self::opened_by(before, vec![at, 0])
            }
            Delimiter::None => {
                let inner = Self::argument(group)?;
                Some(Self { path: [vec![at], inner.path].concat(), start: at, ..inner })
            }
            Delimiter::Bracket => None,
        }
    }

    /// Returns the block at that path, if `async` or `async move` stands before it.
    fn opened_by(before: &[TokenTree], path: Vec<usize>) -> Option<Self> {
        let moved = strip_word(before, "move");
        let start = strip_word(moved.unwrap_or(before), "async")?.len();
        Some(Self { path, start, moves: moved.is_some() })
    }

    fn argument(arguments: &Group) -> Option<Self> {
        let mut argument = trees_of(&arguments.stream());
        argument.pop_if(|last| is_punct(last, ','));
        Self::ending(&argument).filter(|found| found.start == 0)
    }
}

/// Returns whether a statement can start after these tokens.
fn ends_statement(trees: &[TokenTree]) -> bool {
    match trees {
        [] => true,
        [.., bang, attribute] if is_punct(bang, '!') && is_group(attribute, Delimiter::Bracket) => true,
        // A macro puts an item or a statement that it takes as one fragment into such a group.
        [.., last] if is_group(last, Delimiter::None) => ends_statement(&contents(last)),
        [.., last] => is_punct(last, ';') || is_group(last, Delimiter::Brace),
    }
}

fn strip_word<'a>(trees: &'a [TokenTree], word: &str) -> Option<&'a [TokenTree]> {
    trees.split_last().filter(|(last, _)| is_word(last, word)).map(|(_, before)| before)
}

/// Strips `Box::`, `::std::boxed::Box::`.
fn strip_path(trees: &[TokenTree]) -> Option<&[TokenTree]> {
    let before = match trees {
        [before @ .., first, second] if is_punct(first, ':') && is_punct(second, ':') => before,
        _ => return None,
    };
    match before.split_last() {
        Some((TokenTree::Ident(name), rest)) if name != "return" => Some(strip_path(rest).unwrap_or(rest)),
        _ => Some(before),
    }
}

/// Strips `.boxed()`, `.instrument(span)`.
fn without_adapter(trees: &[TokenTree]) -> &[TokenTree] {
    match trees {
        [future @ .., dot, TokenTree::Ident(method), arguments]
            if is_punct(dot, '.')
                && ADAPTERS.iter().any(|adapter| method == adapter)
                && is_group(arguments, Delimiter::Parenthesis) =>
        {
            without_adapter(future)
        }
        _ => trees,
    }
}

/// Strips a semicolon at the end. Returns whether there was one.
fn without_semicolon(trees: &[TokenTree]) -> (&[TokenTree], bool) {
    match trees {
        [before @ .., semicolon] if is_punct(semicolon, ';') => (before, true),
        _ => (trees, false),
    }
}

/// Returns whether `….block_on(name)` is the value of these statements, also within braces at their end, and nothing else
/// can end them.
fn is_output_returned(statements: &[TokenTree], name: &str) -> bool {
    match statements {
        [before @ .., block] if is_group(block, Delimiter::Brace) => {
            goes_on(without_attributes(before), name) && is_output_returned(&contents(block), name)
        }
        _ => {
            let (last, ended) = without_semicolon(statements);
            let [chain @ .., method, argument] = last else { return false };
            let is_call = is_word(method, "block_on") && holds_only(argument, name);
            let (before, chain) = chain.split_at(without_chain(chain).len());
            let is_returned = chain.first().is_some_and(|first| is_word(first, "return"));
            let is_left = chain.iter().any(|tree| can_leave(&contents(tree)));
            is_call && (is_returned || !ended) && !is_left && goes_on(without_attributes(before), name)
        }
    }
}

/// Strips a chain of methods, and the path before it: `Builder::<Driver>::new().build()`.
fn without_chain(trees: &[TokenTree]) -> &[TokenTree] {
    let Some((last, before)) = trees.split_last() else { return trees };
    let before = match last {
        TokenTree::Ident(_) => Some(before),
        TokenTree::Punct(punct) if punct.as_char() == '>' => without_generics(trees),
        TokenTree::Punct(punct) => matches!(punct.as_char(), '.' | ':').then_some(before),
        TokenTree::Group(group) => {
            matches!(group.delimiter(), Delimiter::Parenthesis | Delimiter::None).then_some(before)
        }
        TokenTree::Literal(_) => None,
    };
    before.map_or(trees, without_chain)
}

/// Strips `<Driver>` behind `::`. What is compared with `<` or `>` is no chain.
fn without_generics(trees: &[TokenTree]) -> Option<&[TokenTree]> {
    let mut depth = 0_usize;
    let start = trees.iter().rposition(|tree| {
        depth += usize::from(is_punct(tree, '>'));
        depth -= usize::from(is_punct(tree, '<'));
        depth == 0
    })?;
    let before = &trees[..start];
    before.last().is_some_and(|last| is_punct(last, ':')).then_some(before)
}

/// Returns whether these are statements that neither leave the function, as a macro except `pin!` may, nor change what
/// the block of that name is.
fn goes_on(statements: &[TokenTree], name: &str) -> bool {
    let mut each = statements.split(|tree| is_punct(tree, ';'));
    ends_statement(statements) && !can_leave(statements) && each.all(|statement| keeps(statement, name))
}

/// Returns whether a statement does no more with the block of that name than to pin it, or to check its type.
fn keeps(statement: &[TokenTree], name: &str) -> bool {
    match statement {
        [.., pin, bang, argument] if is_word(pin, "pin") && is_punct(bang, '!') => holds_only(argument, name),
        [binding, bound, .., equals, value]
            if is_word(binding, "let") && is_word(bound, name) && is_punct(equals, '=') =>
        {
            is_word(value, name) || is_type_check(&contents(value), name)
        }
        _ => !mentions(statement, name),
    }
}

/// Returns whether these are the contents of `{ if false { … } body }`, which never runs what is in its braces.
fn is_type_check(contents: &[TokenTree], name: &str) -> bool {
    match contents {
        [value] => is_word(value, name),
        [condition, constant, _, value] => {
            is_word(condition, "if") && is_word(constant, "false") && is_word(value, name)
        }
        _ => false,
    }
}

fn mentions(trees: &[TokenTree], name: &str) -> bool {
    trees.iter().any(|tree| is_word(tree, name) || mentions(&contents(tree), name))
}

fn can_leave(trees: &[TokenTree]) -> bool {
    let is_macro =
        |pair: &[TokenTree]| matches!(pair, [TokenTree::Ident(name), bang] if is_punct(bang, '!') && name != "pin");
    let leaves = |tree: &TokenTree| {
        is_word(tree, "return") || is_word(tree, "block_on") || is_punct(tree, '?') || can_leave(&contents(tree))
    };
    trees.windows(2).any(is_macro) || trees.iter().any(leaves)
}

/// Strips `#[allow(…)]` at the end.
fn without_attributes(trees: &[TokenTree]) -> &[TokenTree] {
    match trees {
        [before @ .., hash, attribute] if is_punct(hash, '#') && is_group(attribute, Delimiter::Bracket) => {
            without_attributes(before)
        }
        _ => trees,
    }
}

fn holds_only(tree: &TokenTree, name: &str) -> bool {
    matches!(contents(tree)[..], [ref only] if is_word(only, name))
}

fn contents(tree: &TokenTree) -> Vec<TokenTree> {
    match tree {
        TokenTree::Group(group) => trees_of(&group.stream()),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(body: &str) -> bool {
        AsyncBlock::blocked_on(&trees_of(&body.parse().expect("tokens"))).is_some()
    }

    #[test]
    fn a_block_whose_output_is_that_of_the_function_is_found() {
        for rest in [
            "rt.block_on(body)",
            "return rt.block_on(body);",
            "#[allow(clippy::needless_return)] return Builder::new().build().expect(\"a runtime\").block_on(body);",
            "tokio::pin!(body); let body: Pin<&mut dyn Future<Output = R>> = body; \
             #[allow(a)] #[allow(b)] { use tokio::runtime::Builder; return Builder::new().block_on(body); }",
            "let body = { if false { let _: &dyn Future<Output = R> = &body; } body }; { return rt().block_on(body); }",
            "let body = { body }; { return rt().block_on(body); }",
            "monoio::RuntimeBuilder::<monoio::Driver<Io>>::new().build().expect(\"a runtime\").block_on(body)",
        ] {
            assert!(is_found(&format!("let body = async {{ Ok(1) }}; {rest}")), "{rest}");
        }
    }

    #[test]
    fn a_block_that_the_function_goes_on_without_is_not_found() {
        for rest in [
            "let body = rt.block_on(body).unwrap_or_default(); Ok(render(&body))",
            "let body = rt.block_on(body); body",
            "rt.block_on(body);",
            "rt.block_on(body).or(Ok(0))",
            "rt.block_on(body)?; Ok(0)",
            "Ok(rt.block_on(body).unwrap_or_default())",
            "let shown = rt.block_on(body); { rt.block_on(body) }",
            "if quick { return Ok(0); } rt.block_on(body)",
            "ensure!(quick); rt.block_on(body)",
            "check()?; rt.block_on(body)",
            "Builder::new().threads(threads()?).block_on(body)",
            "if quick { Ok(0) } else { rt.block_on(body) }",
            "match quick { _ => rt.block_on(body) }",
            "std::thread::spawn(move || { rt.block_on(body) }); Ok(0)",
            "quick && rt.block_on(body)",
            "let other = 1; rt.block_on(other)",
            "let body = body.or_else(|_| ready(Ok(0))); rt.block_on(body)",
            "let body = with_default(body); rt.block_on(body)",
            "let body = async { body.await.or(Ok(0)) }; rt.block_on(body)",
            "let body = { let body = async { Ok(0) }; body }; rt.block_on(body)",
            "let (body, _) = (body.or_else(zero), 1); rt.block_on(body)",
            "let body = ready(Ok(0)); rt.block_on(body)",
            "0 < rt.block_on(body)",
            "first > rt.block_on(body)",
            "first < second > rt.block_on(body)",
        ] {
            assert!(!is_found(&format!("let body = async {{ Ok(1) }}; {rest}")), "{rest}");
        }
    }
}
