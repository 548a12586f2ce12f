//! The shape of the annotated function: what stands before its body, and the body as it is written.

mod async_block;
mod body;
mod returned;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::visit::{Visit, visit_pat_ident};
use syn::{Attribute, Expr, ExprLit, FnArg, ItemFn, Lit, Meta, PatIdent, Signature};

use self::body::Body;
use crate::diagnostic::{Place, error};

/// A function with a body.
///
/// The body stays tokens: it need not parse, and its errors keep their places.
pub(crate) struct Function {
    /// Its attributes, as they are written.
    outer: TokenStream,
    /// From its visibility to its return type or its `where` clause.
    head: TokenStream,
    attributes: Vec<Attribute>,
    pub(crate) signature: Signature,
    body: Body,
}

/// What an expansion adds to a function.
pub(crate) struct Additions {
    /// Attributes, behind those that the function has.
    pub(crate) attributes: TokenStream,
    /// Statements that name arguments. They stand where all arguments are in scope.
    pub(crate) before: TokenStream,
    /// The statement that awaits the decision. It stands right before what it decides about.
    pub(crate) check: TokenStream,
    /// What is done behind the body, if anything is: the value of `check` is then the permit.
    pub(crate) around: Option<Around>,
}

/// What is done behind a body, whose `return`s and `?`s then lead there.
pub(crate) struct Around {
    /// The name of the permit.
    pub(crate) permit: TokenStream,
    /// The name of what the body results in.
    pub(crate) result: TokenStream,
    /// Statements in front of the body, that return where it does.
    pub(crate) within: TokenStream,
    /// What is done with the permit and the result, and what results from that.
    pub(crate) behind: TokenStream,
}

impl Function {
    pub(crate) fn parse(item: TokenStream) -> syn::Result<Self> {
        let place = Place::of(&item);
        let mut trees: Vec<_> = item.into_iter().collect();
        let Some(TokenTree::Group(body)) = trees.pop_if(|last| is_group(last, Delimiter::Brace)) else {
            return Err(error(place, "`#[rate_limit]` needs a function with a body; put it on an `async fn`"));
        };
        let head: TokenStream = trees.drain(count_attributes(&trees)..).collect();
        let outer: TokenStream = trees.into_iter().collect();
        let function: ItemFn = syn::parse2(quote!(#outer #head {}))
            .map_err(|_| error(place, "`#[rate_limit]` limits functions; put it on an `async fn`"))?;
        let body = Body::find(body, &function.sig);
        Ok(Self { outer, head, attributes: function.attrs, signature: function.sig, body })
    }

    /// Returns whether the function has something that can wait for the limiter's answer.
    pub(crate) fn can_wait(&self) -> bool {
        self.body.can_wait()
    }

    /// Returns whether the check waits in a future of the user's own, which must not capture more for it.
    pub(crate) fn is_split(&self) -> bool {
        self.body.is_split()
    }

    /// Returns whether the function returns what looks like a future, without being async.
    pub(crate) fn returns_future(&self) -> bool {
        self.signature.asyncness.is_none() && returned::is_future(&self.signature.output)
    }

    /// Returns the first `return` that leaves the function without its future, and so without being limited.
    pub(crate) fn early_return(&self) -> Option<Place> {
        self.body.early_return()
    }

    /// Returns whether an attribute of that name is still to come.
    pub(crate) fn has_attribute(&self, name: &str) -> bool {
        let last = |attribute: &Attribute| attribute.path().segments.last().map(|segment| segment.ident == name);
        self.attributes.iter().filter_map(last).any(|same| same)
    }

    /// Returns the lines of the function's documentation.
    pub(crate) fn documentation(&self) -> impl Iterator<Item = String> {
        self.attributes.iter().filter_map(documented)
    }

    /// Returns the name that an argument has under this text: `self` too, for a method.
    ///
    /// It is another name where an attribute has rewritten the function, and bound the argument anew.
    pub(crate) fn binding(&self, name: &str) -> Option<Ident> {
        let renamed = (name == "self").then(|| self.body.renamed_self()).flatten();
        renamed.or_else(|| self.bindings().into_iter().find(|binding| binding.unraw() == name))
    }

    /// Returns all the names that the arguments bind.
    pub(crate) fn bindings(&self) -> Vec<Ident> {
        let mut bindings = Bindings::default();
        for input in &self.signature.inputs {
            match input {
                FnArg::Receiver(receiver) => bindings.0.push(Ident::new("self", receiver.self_token.span)),
                FnArg::Typed(typed) => bindings.visit_pat(&typed.pat),
            }
        }
        self.body.rebound().for_each(|pattern| bindings.visit_pat(pattern));
        bindings.0
    }

    /// Returns an expression of the user's, as it has to be written where the arguments are bound anew.
    pub(crate) fn in_scope(&self, expression: &impl ToTokens) -> TokenStream {
        let expression = expression.to_token_stream();
        match self.body.renamed_self() {
            Some(renamed) => rename_self(expression, &renamed),
            None => expression,
        }
    }

    /// Returns the place of what the function results in, or of its name if it says nothing.
    pub(crate) fn returned(&self) -> Place {
        let Signature { output, ident, .. } = &self.signature;
        let result = if self.body.is_future() { returned::output(output) } else { returned::whole(output) };
        result.map_or_else(|| Place::from(ident.span()), Place::of)
    }

    /// Returns the type of what the body results in, as it is written where the body is.
    pub(crate) fn result(&self) -> TokenStream {
        returned::result(&self.signature.output, self.body.is_future())
    }

    /// Returns the function with what is added to it.
    pub(crate) fn with(&self, additions: &Additions) -> TokenStream {
        let (Self { outer, head, .. }, Additions { attributes, before, check, around }) = (self, additions);
        let body = self.body.with(before, check, around.as_ref());
        quote!(#outer #attributes #head #body)
    }
}

fn trees_of(tokens: &TokenStream) -> Vec<TokenTree> {
    tokens.clone().into_iter().collect()
}

fn is_group(tree: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == delimiter)
}

fn is_punct(tree: &TokenTree, character: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn is_word(tree: &TokenTree, word: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident == word)
}

/// Counts the tokens of the attributes that an item starts with.
fn count_attributes(item: &[TokenTree]) -> usize {
    let is_attribute = |pair: &&[TokenTree]| match pair {
        [hash, brackets] => is_punct(hash, '#') && is_group(brackets, Delimiter::Bracket),
        _ => false,
    };
    2 * item.chunks(2).take_while(is_attribute).count()
}

fn documented(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            // Of a macro that writes documentation, like `include_str!`, the text is not known yet.
            _ => Some(String::new()),
        },
        _ => None,
    }
}

fn rename_self(tokens: TokenStream, renamed: &Ident) -> TokenStream {
    let rename = |tree| match tree {
        TokenTree::Ident(ident) if ident == "self" => {
            let mut renamed = renamed.clone();
            renamed.set_span(ident.span().resolved_at(renamed.span()));
            TokenTree::Ident(renamed)
        }
        TokenTree::Group(group) => TokenTree::Group(body::filled(&group, rename_self(group.stream(), renamed))),
        other => other,
    };
    tokens.into_iter().map(rename).collect()
}

/// The names that patterns bind.
#[derive(Default)]
struct Bindings(Vec<Ident>);

impl<'a> Visit<'a> for Bindings {
    fn visit_pat_ident(&mut self, binding: &'a PatIdent) {
        self.0.push(binding.ident.clone());
        visit_pat_ident(self, binding);
    }
}
