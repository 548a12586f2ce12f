//! The names that the arguments of a function bind.

use proc_macro2::Ident;
use syn::ext::IdentExt as _;
use syn::visit::{Visit, visit_pat_ident};
use syn::{FnArg, Pat, PatIdent, PatRest, PatWild, Path, Type};

/// A name that an argument binds, or a part of an argument that is destructured.
#[derive(Clone)]
pub(crate) struct Binding {
    pub(crate) name: Ident,
    pub(crate) is_mutable: bool,
}

/// Returns the names that the arguments bind, and the names of patterns in the body that bind the arguments again.
pub(super) fn bound_names<'a>(
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

/// Returns whether an argument of that name is a `&str`. A user's own type with the name `str` can be borrowed in the
/// same way.
pub(super) fn is_text<'a>(arguments: impl IntoIterator<Item = &'a FnArg>, name: &str) -> bool {
    let is_str = |of: &Type| matches!(of, Type::Path(path) if path.path.is_ident("str"));
    matches!(type_of(arguments, name), Some(Type::Reference(reference)) if is_str(&reference.elem))
}

/// The types of whole numbers.
const NUMBERS: [&str; 12] = ["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize"];

/// Returns whether an argument of that name is a whole number, by the name of its type.
pub(super) fn is_number<'a>(arguments: impl IntoIterator<Item = &'a FnArg>, name: &str) -> bool {
    let is_whole = |path: &Path| NUMBERS.iter().any(|number| path.is_ident(number));
    matches!(type_of(arguments, name), Some(Type::Path(of)) if is_whole(&of.path))
}

/// Returns the type of the argument of that name; `None` for a part of an argument that is destructured.
fn type_of<'a>(arguments: impl IntoIterator<Item = &'a FnArg>, name: &str) -> Option<&'a Type> {
    arguments.into_iter().find_map(|argument| {
        let FnArg::Typed(typed) = argument else { return None };
        let Pat::Ident(binding) = &*typed.pat else { return None };
        (binding.by_ref.is_none() && binding.ident.unraw() == name).then_some(&*typed.ty)
    })
}

/// Returns whether a part of an argument has no name, and is in no part that has one.
pub(super) fn has_unnamed_part<'a>(
    arguments: impl IntoIterator<Item = &'a FnArg>,
    rebound: impl IntoIterator<Item = &'a Pat>,
) -> bool {
    let mut nameless = Nameless(false);
    arguments.into_iter().for_each(|argument| nameless.visit_fn_arg(argument));
    rebound.into_iter().for_each(|pattern| nameless.visit_pat(pattern));
    nameless.0
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

#[derive(Default)]
struct Bindings(Vec<Binding>);

impl<'a> Visit<'a> for Bindings {
    fn visit_pat_ident(&mut self, binding: &'a PatIdent) {
        let is_mutable = binding.by_ref.is_none() && binding.mutability.is_some();
        self.0.push(Binding { name: binding.ident.clone(), is_mutable });
        visit_pat_ident(self, binding);
    }
}
