//! The shape of the annotated function: the part before its body, and the body as tokens.

mod async_block;
mod body;
mod insertion;
mod return_type;
mod tokens;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::visit::{Visit, visit_pat_ident};
use syn::visit_mut::{VisitMut, visit_type_mut};
use syn::{
    Attribute, Expr, ExprLit, FnArg, ItemFn, Lit, Local, Meta, MetaList, Pat, PatIdent, PatRest, PatWild, Path,
    Signature, Type, Visibility,
};

pub(crate) use self::insertion::{Additions, Epilogue};

use crate::diagnostic::{SpanRange, error};
use crate::shape::body::Body;
use crate::shape::tokens::{is_group, is_punct, trees_of, ungrouped, with_contents};

/// A name that an argument binds, or a part of an argument that is destructured.
#[derive(Clone)]
pub(crate) struct Binding {
    pub(crate) name: Ident,
    pub(crate) is_mutable: bool,
}

/// The types of whole numbers.
const NUMBERS: [&str; 12] = ["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize"];

/// The body stays tokens, so it need not parse, and its errors keep their places.
pub(crate) struct Function {
    outer: TokenStream,
    /// All tokens from the visibility to the return type or the `where` clause.
    head: TokenStream,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    body: Body,
}

impl Function {
    pub(crate) fn parse(item: &TokenStream) -> syn::Result<Self> {
        let mut trees = trees_of(&ungrouped(item.clone()));
        let Some(body) = trees.last().and_then(body_of) else {
            let span = SpanRange::of_tokens(item);
            return Err(error(span, "`#[rate_limit]` needs a function with a body; put it on an `async fn` or a `fn`"));
        };
        trees.pop();
        let head: TokenStream = trees.drain(count_attributes(&trees)..).collect();
        let outer: TokenStream = trees.into_iter().collect();
        let mut function: ItemFn = syn::parse2(quote!(#outer #head {})).map_err(|_| {
            error(SpanRange::of_tokens(item), "`#[rate_limit]` limits functions; put it on an `async fn` or a `fn`")
        })?;
        Ungrouped.visit_signature_mut(&mut function.sig);
        let body = Body::find(body, &function.sig);
        let ItemFn { attrs: attributes, vis: visibility, sig: signature, .. } = function;
        Ok(Self { outer, head, attributes, visibility, signature, body })
    }

    /// Returns whether the function cannot await, so that it blocks its thread until the call is decided.
    pub(crate) fn is_blocking(&self) -> bool {
        self.body.is_plain()
    }

    /// Returns whether the check awaits the decision in a future that the user wrote, which must not capture more for
    /// it.
    pub(crate) fn ends_with_async_block(&self) -> bool {
        self.body.ends_with_async_block()
    }

    /// Returns whether the function is not async and its return type looks like a future.
    pub(crate) fn returns_future(&self) -> bool {
        self.signature.asyncness.is_none() && return_type::is_future(&self.signature.output)
    }

    /// Returns the first `return` before the function's future: it leaves the function without being limited.
    pub(crate) fn early_return(&self) -> Option<SpanRange> {
        self.body.early_return()
    }

    /// Returns the arguments of each later attribute of that name.
    pub(crate) fn attributes_named(&self, name: &str) -> impl Iterator<Item = TokenStream> {
        let is_named =
            move |attribute: &&Attribute| attribute.path().segments.last().is_some_and(|segment| segment.ident == name);
        self.attributes.iter().filter(is_named).map(|attribute| match &attribute.meta {
            Meta::List(list) => list.tokens.clone(),
            Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
        })
    }

    pub(crate) fn documentation(&self) -> impl Iterator<Item = String> {
        self.attributes.iter().filter_map(documented)
    }

    /// Returns the identifier of the argument with this name, also of `self`.
    ///
    /// The identifier differs from the name if another attribute has rewritten the function and bound the argument
    /// again.
    pub(crate) fn binding(&self, name: &str) -> Option<Ident> {
        let renamed = self.body.renamed_self().filter(|_| name == "self").cloned();
        renamed.or_else(|| self.bindings().into_iter().map(|binding| binding.name).find(|ident| ident.unraw() == name))
    }

    /// Returns whether the type of the argument is written as `&str`. A user's own type with the name `str` can be borrowed in
    /// the same way.
    pub(crate) fn is_text(&self, name: &str) -> bool {
        let is_str = |of: &Type| matches!(of, Type::Path(path) if path.path.is_ident("str"));
        matches!(self.type_of(name), Some(Type::Reference(reference)) if is_str(&reference.elem))
    }

    /// Returns whether the type of the argument is written as that of a whole number, like `u64`.
    pub(crate) fn is_number(&self, name: &str) -> bool {
        let is_whole = |path: &Path| NUMBERS.iter().any(|number| path.is_ident(number));
        matches!(self.type_of(name), Some(Type::Path(of)) if is_whole(&of.path))
    }

    /// Returns the type of the argument of that name; `None` for a part of an argument that is destructured.
    fn type_of(&self, name: &str) -> Option<&Type> {
        self.signature.inputs.iter().find_map(|argument| {
            let FnArg::Typed(typed) = argument else { return None };
            let Pat::Ident(binding) = &*typed.pat else { return None };
            (binding.by_ref.is_none() && binding.ident.unraw() == name).then_some(&*typed.ty)
        })
    }

    pub(crate) fn bindings(&self) -> Vec<Binding> {
        bound_names(&self.signature.inputs, self.body.rebindings())
    }

    /// Returns the bindings that the body sees: where another attribute binds arguments again, only these new bindings.
    pub(crate) fn innermost_bindings(&self) -> Vec<Binding> {
        let rebindings = self.body.rebindings();
        if rebindings.is_empty() {
            return bound_names(&self.signature.inputs, []);
        }
        bound_names([], rebindings)
    }

    pub(crate) fn rebindings(&self) -> &[Local] {
        self.body.rebindings()
    }

    /// Returns the names of `innermost_bindings`, each once and without `self`.
    pub(crate) fn argument_names(&self) -> Vec<String> {
        let receiver = self.body.renamed_self();
        let mut names: Vec<String> = Vec::new();
        for Binding { name, .. } in self.innermost_bindings() {
            let is_receiver = name == "self" || Some(&name) == receiver;
            let name = name.unraw().to_string();
            if !is_receiver && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns whether a part of an argument has no name, `_` or a part that `..` stands for, and is in no part that has one.
    pub(crate) fn has_unnamed_part(&self) -> bool {
        let mut nameless = Nameless(false);
        self.signature.inputs.iter().for_each(|argument| nameless.visit_fn_arg(argument));
        self.body.rebindings().iter().for_each(|rebinding| nameless.visit_pat(&rebinding.pat));
        nameless.0
    }

    /// Returns an expression of the user as it has to be written where the arguments are bound again.
    pub(crate) fn in_scope(&self, expression: &impl ToTokens) -> TokenStream {
        let expression = expression.to_token_stream();
        match self.body.renamed_self() {
            Some(renamed) => rename_self(expression, renamed),
            None => expression,
        }
    }

    /// Returns the span of the result's type, or of the function's name if it has no type.
    pub(crate) fn result_span(&self) -> SpanRange {
        let Signature { output, ident, .. } = &self.signature;
        let result = if self.body.is_future() { return_type::output(output) } else { return_type::whole(output) };
        result.map_or_else(|| SpanRange::from(ident.span()), SpanRange::of_tokens)
    }

    /// Returns the type of the body's result, as it is written in the body.
    pub(crate) fn result_type(&self) -> TokenStream {
        return_type::result(&self.signature.output, self.body.is_future())
    }

    /// Returns whether the result is `impl IntoResponse` or another trait of responses.
    pub(crate) fn returns_response(&self) -> bool {
        return_type::is_response(&self.signature.output, self.body.is_future())
    }

    /// Returns whether the result is a `Result` of `impl IntoResponse` or another trait of responses.
    pub(crate) fn returns_response_in_result(&self) -> bool {
        return_type::is_response_in_result(&self.signature.output, self.body.is_future())
    }

    /// Returns the type of the error, if the result is a `Result` that shows it.
    pub(crate) fn error_type(&self) -> Option<&Type> {
        return_type::error(&self.signature.output, self.body.is_future())
    }

    /// Returns two variants of the function, with and without its first argument under a `#[cfg]`, each behind its
    /// condition. The compiler removes such arguments only after it has expanded the attribute.
    pub(crate) fn variants(&self) -> Option<[(TokenStream, TokenStream); 2]> {
        let arguments = &self.signature.inputs;
        let (position, condition) =
            arguments.iter().enumerate().find_map(|(position, argument)| Some((position, condition_of(argument)?)))?;
        let [with, without] = [true, false].map(|has_it| {
            let mut signature = self.signature.clone();
            let argument = |(at, mut argument): (usize, FnArg)| {
                if at == position {
                    remove_condition(&mut argument);
                }
                (at != position || has_it).then_some(argument)
            };
            signature.inputs = arguments.iter().cloned().enumerate().filter_map(argument).collect();
            let (outer, visibility, body) = (&self.outer, &self.visibility, self.body.block());
            quote!(#outer #visibility #signature #body)
        });
        Some([(condition.clone(), with), (quote!(not(#condition)), without)])
    }

    pub(crate) fn with_additions(&self, additions: &Additions) -> TokenStream {
        let Self { outer, head, .. } = self;
        let body = self.body.with_additions(additions);
        let attributes = &additions.attributes;
        quote!(#outer #attributes #head #body)
    }
}

/// Returns the braces of a body, also of a macro's `$body:block`.
fn body_of(last: &TokenTree) -> Option<Group> {
    match trees_of(&ungrouped(last.clone().into())).pop() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => Some(body),
        _ => None,
    }
}

/// Removes the invisible groups around types, which a macro's `$type:ty` leaves.
struct Ungrouped;

impl VisitMut for Ungrouped {
    fn visit_type_mut(&mut self, found: &mut Type) {
        while let Type::Group(group) = found {
            *found = (*group.elem).clone();
        }
        visit_type_mut(self, found);
    }
}

fn condition_of(argument: &FnArg) -> Option<TokenStream> {
    attributes_of(argument).iter().find_map(condition).map(|list| list.tokens.clone())
}

fn remove_condition(argument: &mut FnArg) {
    let attributes = match argument {
        FnArg::Receiver(receiver) => &mut receiver.attrs,
        FnArg::Typed(typed) => &mut typed.attrs,
    };
    if let Some(position) = attributes.iter().position(|attribute| condition(attribute).is_some()) {
        attributes.remove(position);
    }
}

fn attributes_of(argument: &FnArg) -> &[Attribute] {
    match argument {
        FnArg::Receiver(receiver) => &receiver.attrs,
        FnArg::Typed(typed) => &typed.attrs,
    }
}

fn condition(attribute: &Attribute) -> Option<&MetaList> {
    attribute.meta.require_list().ok().filter(|list| list.path.is_ident("cfg"))
}

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
            // The text of a macro like `include_str!` is not known yet.
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
        TokenTree::Group(group) => TokenTree::Group(with_contents(&group, rename_self(group.stream(), renamed))),
        other => other,
    };
    tokens.into_iter().map(rename).collect()
}

/// Returns the names that the arguments bind, and those of statements in the body that bind the arguments again.
fn bound_names<'a>(
    arguments: impl IntoIterator<Item = &'a FnArg>,
    rebindings: impl IntoIterator<Item = &'a Local>,
) -> Vec<Binding> {
    let mut bindings = Bindings::default();
    for argument in arguments {
        match argument {
            FnArg::Receiver(receiver) => bindings.0.push(Binding {
                name: Ident::new("self", receiver.self_token.span),
                is_mutable: receiver.mutability.is_some(),
            }),
            FnArg::Typed(typed) => bindings.visit_pat(&typed.pat),
        }
    }
    rebindings.into_iter().for_each(|rebinding| bindings.visit_pat(&rebinding.pat));
    bindings.0
}

#[derive(Default)]
struct Bindings(Vec<Binding>);

impl<'a> Visit<'a> for Bindings {
    fn visit_pat_ident(&mut self, binding: &'a PatIdent) {
        let is_mutable = binding.by_ref.is_none() && binding.mutability.is_some();
        self.0.push(Binding { name: binding.ident.clone(), is_mutable });
        visit_pat_ident(self, binding);
    }
}

struct Nameless(bool);

impl<'a> Visit<'a> for Nameless {
    fn visit_pat_wild(&mut self, _: &'a PatWild) {
        self.0 = true;
    }

    fn visit_pat_rest(&mut self, _: &'a PatRest) {
        self.0 = true;
    }

    // A name before `@` binds the whole value, so the pattern after `@` leaves nothing unnamed.
    fn visit_pat_ident(&mut self, _: &'a PatIdent) {}

    fn visit_type(&mut self, _: &'a Type) {}
}
