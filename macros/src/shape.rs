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
    attributes: Vec<Attribute>,
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
        Ok(Self { head, attributes: function.attrs, signature: function.sig, body })
    }

    /// Returns whether an attribute of that name is still to come.
    pub(crate) fn has_attribute(&self, name: &str) -> bool {
        let last = |attribute: &Attribute| attribute.path().segments.last().map(|segment| segment.ident == name);
        self.attributes.iter().filter_map(last).any(|same| same)
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
    /// It goes behind the inner attributes and the items that the body starts with. They do nothing, and behind a statement
    /// the former would be errors and the latter a lint's.
    pub(crate) fn prepend(&self, check: &TokenStream) -> TokenStream {
        let Self { head, body, .. } = self;
        let mut trees: Vec<_> = body.stream().into_iter().collect();
        let statements = trees.split_off(declarations(body.stream()));
        let mut checked = Group::new(Delimiter::Brace, quote!(#(#trees)* #check #(#statements)*));
        checked.set_span(body.span());
        quote!(#head #checked)
    }
}

fn is_block(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// Counts the tokens of the inner attributes and items at the start of a body.
fn declarations(body: TokenStream) -> usize {
    let all = body.clone().into_iter().count();
    let statements = |input: ParseStream<'_>| {
        Attribute::parse_inner(input)?;
        while let Some(behind) = behind_item(input) {
            input.advance_to(&behind);
        }
        input.parse::<TokenStream>()
    };
    statements.parse2(body).map_or(0, |statements| all.saturating_sub(statements.into_iter().count()))
}

/// Returns the input behind the item that it starts with.
fn behind_item(input: ParseStream<'_>) -> Option<ParseBuffer<'_>> {
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
