//! The names that the arguments of a function bind.

use proc_macro2::Ident;
use syn::visit::{Visit, visit_pat_ident};
use syn::{FnArg, Pat, PatIdent};

/// A name that an argument binds, or a part of an argument that is destructured.
#[derive(Clone)]
pub(crate) struct Binding {
    pub(crate) name: Ident,
    /// Whether it is `mut name`.
    pub(crate) is_mutable: bool,
}

/// Returns the names that the arguments bind, and those that patterns in the body bind to the arguments again.
pub(super) fn of<'a>(
    arguments: impl IntoIterator<Item = &'a FnArg>,
    rebound: impl IntoIterator<Item = &'a Pat>,
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
    rebound.into_iter().for_each(|pattern| bindings.visit_pat(pattern));
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
