//! The options of a subject beside the main one.

use syn::{Expr, ExprLit, Lit, LitStr};

use crate::attr::argument::Argument;
use crate::attr::arguments::Arguments;
use crate::diagnostic::{Mistakes, Place, error};

/// `subject("label", "key")`.
pub(crate) struct SubjectOptions {
    pub(crate) place: Place,
    pub(crate) label: LitStr,
    pub(crate) key: LitStr,
}

impl SubjectOptions {
    pub(super) fn take_all(arguments: &mut Arguments, mistakes: &mut Mistakes) -> Vec<Self> {
        let subjects = arguments.take_all("subject").into_iter();
        subjects.filter_map(|subject| mistakes.keep(Self::read(subject))).collect()
    }

    fn read(subject: Argument) -> syn::Result<Self> {
        let place = subject.place();
        match &subject.positional()[..] {
            [Expr::Lit(ExprLit { lit: Lit::Str(label), .. }), Expr::Lit(ExprLit { lit: Lit::Str(key), .. })] => {
                Ok(Self { place, label: label.clone(), key: key.clone() })
            }
            _ => Err(error(place, r#"`subject` needs a label and a key, like `subject("network", "{ip:subnet}")`"#)),
        }
    }
}
