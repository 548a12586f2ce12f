//! The paths in the code of an item.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprCall, Field, ImplItem, Item, ItemMod, ItemUse, Macro, Path, TraitItem, Visibility};

use super::attributes::{attributes, attributes_in_impl, attributes_in_trait, is_for_tests};
use super::uses::flatten;

/// Macros whose tokens are code of another crate.
const QUOTING: [&str; 4] = ["quote", "quote_spanned", "parse_quote", "parse_quote_spanned"];

/// Collects paths, each with its line.
#[derive(Default)]
pub(super) struct Mentions {
    pub(super) found: Vec<(Vec<String>, usize)>,
}

impl Mentions {
    fn note(&mut self, path: &Path) {
        if path.leading_colon.is_none() {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.found.push((segments, path.span().start().line));
        }
    }

    /// Notes what looks like a path among the tokens of a macro.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        let mut after_dot = false;
        for token in tokens {
            match &token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.note_segments(&mut path, line);
                    }
                    if path.is_empty() {
                        line = ident.span().start().line;
                    }
                    if !after_dot {
                        path.push(ident.to_string());
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {}
                _ => self.note_segments(&mut path, line),
            }
            colons = if is_punct(&token, ':') { colons + 1 } else { 0 };
            after_dot = is_punct(&token, '.');
            if let TokenTree::Group(group) = token {
                self.note_tokens(group.stream());
            }
        }
        self.note_segments(&mut path, line);
    }

    fn note_segments(&mut self, path: &mut Vec<String>, line: usize) {
        if path.len() > 1 || path.first().is_some_and(|name| is_capitalized(name)) {
            self.found.push((std::mem::take(path), line));
        }
        path.clear();
    }
}

fn is_punct(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == punct)
}

/// Tells types and constants from variables and fields.
fn is_capitalized(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

impl<'ast> Visit<'ast> for Mentions {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !is_for_tests(attributes_in_impl(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if !is_for_tests(attributes_in_trait(item)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.found.extend(flatten(&item.tree).into_iter().map(|(found, line)| (found.path, line)));
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let is_variable = path.get_ident().is_some_and(|name| !is_capitalized(&name.to_string()));
        if !is_variable {
            self.note(path);
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = &*call.func
            && function.path.get_ident().is_some()
        {
            self.note(&function.path);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.note(&call.path);
        let is_quoting = call.path.segments.last().is_some_and(|last| QUOTING.iter().any(|name| last.ident == name));
        if !is_quoting {
            self.note_tokens(call.tokens.clone());
        }
    }

    // Modules inside of functions: their paths begin elsewhere.
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    // `pub(crate)` is no import of the root, and a link in documentation is no import.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}
