//! The shape of the annotated function: what stands before its body, and the body as it is written.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt as _;
use syn::parse::discouraged::Speculative as _;
use syn::parse::{ParseBuffer, ParseStream, Parser as _};
use syn::visit::{Visit, visit_pat_ident};
use syn::{Attribute, FnArg, Item, ItemFn, PatIdent, ReturnType, Signature};

use crate::diagnostic::{Place, error};

/// A function with a body.
///
/// The body stays tokens: it need not parse, and its errors keep their places.
pub(crate) struct Function {
    head: TokenStream,
    pub(crate) signature: Signature,
    body: Group,
}

impl Function {
    pub(crate) fn parse(item: TokenStream) -> syn::Result<Self> {
        let place = Place::of(&item);
        let mut head: Vec<_> = item.into_iter().collect();
        let Some(TokenTree::Group(body)) = head.pop_if(|last| is_block(last)) else {
            return Err(error(place, "`#[rate_limit]` needs a function with a body; put it on an `async fn`"));
        };
        let head: TokenStream = head.into_iter().collect();
        let function: ItemFn = syn::parse2(quote!(#head {}))
            .map_err(|_| error(place, "`#[rate_limit]` limits functions; put it on an `async fn`"))?;
        Ok(Self { head, signature: function.sig, body })
    }

    /// Returns the name that an argument has under this text: `self` too, for a method.
    pub(crate) fn binding(&self, name: &str) -> Option<Ident> {
        self.bindings().into_iter().find(|binding| binding.unraw() == name)
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
        bindings.0
    }

    /// Returns the place of the return type, or of the function's name if it says none.
    pub(crate) fn returned(&self) -> Place {
        match &self.signature.output {
            ReturnType::Type(_, returned) => Place::of(returned),
            ReturnType::Default => Place::from(self.signature.ident.span()),
        }
    }

    /// Returns the function with something to do before anything else.
    ///
    /// It goes behind the items and inner attributes that the body starts with. They do nothing, and would no longer be
    /// the start of the body: inner attributes must be that, and items after statements are a matter of taste.
    pub(crate) fn prepend(&self, check: &TokenStream) -> TokenStream {
        let Self { head, body, .. } = self;
        let body_trees: Vec<_> = body.stream().into_iter().collect();
        let (declarations, statements) = body_trees.split_at(declarations(body.stream()).min(body_trees.len()));
        let stream = quote!(#(#declarations)* #check #(#statements)*);
        let mut group = Group::new(Delimiter::Brace, stream);
        group.set_span(body.span());
        quote!(#head #group)
    }
}

fn is_block(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// Counts the tokens of the inner attributes and items at the start of a body.
fn declarations(body: TokenStream) -> usize {
    let all = body.clone().into_iter().count();
    let skip = |input: ParseStream<'_>| {
        let _ = Attribute::parse_inner(input);
        while let Some(behind) = behind_item(input) {
            input.advance_to(&behind);
        }
        input.parse::<TokenStream>()
    };
    skip.parse2(body).map_or(0, |statements| all - statements.into_iter().count())
}

/// Returns the input behind the item that it starts with.
fn behind_item<'a>(input: ParseStream<'a>) -> Option<ParseBuffer<'a>> {
    let ahead = input.fork();
    match ahead.parse::<Item>() {
        // A macro call may do something.
        Ok(Item::Macro(call)) if call.ident.is_none() => None,
        Ok(_) => Some(ahead),
        Err(_) => None,
    }
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
