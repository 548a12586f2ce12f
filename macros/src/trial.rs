//! Properties that hold for every input: random inputs in the tests of this crate, and inputs of the fuzzer in `fuzz/`.

#![allow(unreachable_pub, reason = "the fuzz targets call it")]

use proc_macro2::TokenStream;
use syn::{File, ItemFn};
use tallygate_rules::{TemplateUse, format_duration, parse_duration};

use crate::diagnostic::{Diagnostics, SpanRange, Spanned};
use crate::pipeline::limit;
use crate::template::SpannedTemplate;

/// The deepest nesting of inputs, because the parsers of the compiler and of `syn` are recursive.
const DEPTH: usize = 40;

/// The function for an input that is an attribute alone.
const FUNCTION: &str = "async fn send_code(phone: &str, user: User) -> Result<(), Rejection> { send(phone).await }";

/// Tries the attribute in the first line on the function in the rest.
///
/// # Panics
///
/// Panics if the expansion is neither a limited function, nor the unchanged item with errors.
pub fn attribute(text: &str) {
    let (attribute, item) = text.split_once('\n').unwrap_or((text, FUNCTION));
    let (Some(attribute), Some(item)) = (tokens(attribute), tokens(item)) else { return };
    let expanded = limit(attribute, &item);
    let shown = expanded.to_string();
    let item_shown = item.to_string();
    if shown.starts_with(&item_shown) && shown.contains("compile_error !") {
        let errors = shown[item_shown.len()..].to_owned();
        assert!(syn::parse_str::<File>(&errors).is_ok(), "{errors}");
    } else {
        assert!(shown.contains(":: __private ::"), "{shown}");
        let parsed = syn::parse2::<ItemFn>(item).is_ok();
        assert!(!parsed || syn::parse2::<File>(expanded).is_ok(), "{shown}");
    }
}

/// Tries a template.
///
/// # Panics
///
/// Panics if the parts of the template do not make its text.
pub fn template(text: &str) {
    for template_use in [TemplateUse::Key, TemplateUse::Message, TemplateUse::BanMessage] {
        let mut diagnostics = Diagnostics::default();
        let spanned = Spanned { value: text.to_owned(), span: SpanRange::call_site() };
        let read = SpannedTemplate::parse(spanned, template_use, &mut diagnostics);
        let refused = diagnostics.finish().is_err();
        assert_eq!(read.is_none(), refused, "{text:?}");
        for placeholder in read.iter().flat_map(SpannedTemplate::placeholders) {
            assert!(text.contains(&placeholder.text) && !placeholder.root.is_empty(), "{text:?}");
        }
        if read.is_some() && !text.contains(['{', '}']) {
            assert_eq!(read.map(|read| read.placeholders().count()), Some(0), "{text:?}");
        }
    }
}

/// Tries a duration.
///
/// # Panics
///
/// Panics if the duration is read with another length, or changes when it is written and read again.
pub fn duration(text: &str) {
    let Ok(read) = parse_duration(text) else { return };
    let written = format_duration(read);
    assert_eq!(parse_duration(&written).ok(), Some(read), "{text:?} {written:?}");
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u128 = text[..text.len() - unit.len()].parse().unwrap_or(u128::MAX);
    let unit_us = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => panic!("the unit of {text:?}"),
    };
    assert_eq!(read.as_micros(), number * unit_us, "{text:?}");
}

fn tokens(text: &str) -> Option<TokenStream> {
    // Each of these signs can add a level of recursion.
    let depth = text.bytes().fold((0_usize, 0), |(open, deepest), byte| match byte {
        b'(' | b'[' | b'{' | b'<' | b'|' | b'&' | b'*' | b'-' | b'!' => (open + 1, deepest.max(open + 1)),
        b')' | b']' | b'}' | b',' | b';' => (open.saturating_sub(1), deepest),
        _ => (open, deepest),
    });
    (depth.1 <= DEPTH).then(|| text.parse().ok()).flatten()
}
