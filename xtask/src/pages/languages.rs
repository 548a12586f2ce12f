//! The README in two languages: what is in one is in the other.

use super::page::Page;
use super::{all, named};

const ENGLISH: &str = "README.md";
const CHINESE: &str = "README.zh-CN.md";

/// Where the links of a page lead, in the order of the alphabet. A heading has another anchor in each language.
fn destinations(page: &Page) -> Vec<&str> {
    let other_language = [ENGLISH, CHINESE];
    let links = page.destinations.iter().map(String::as_str).filter(|link| !other_language.contains(link));
    let mut links: Vec<_> = links.map(|link| if link.starts_with('#') { "#" } else { link }).collect();
    links.sort_unstable();
    links
}

/// The figures of a page with a decimal point, in the order of their size.
fn figures(page: &Page) -> Vec<&str> {
    let words = page.prose.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let mut figures: Vec<_> = words.map(|word| word.trim_matches('.')).filter(|word| word.contains('.')).collect();
    figures.sort_unstable();
    figures
}

#[test]
fn both_readmes_have_the_same_sections() {
    let pages = all();
    assert_eq!(named(&pages, ENGLISH).levels, named(&pages, CHINESE).levels);
}

#[test]
fn both_readmes_have_the_same_code() {
    let pages = all();
    let (english, chinese) = (&named(&pages, ENGLISH).code, &named(&pages, CHINESE).code);
    for (own, other) in english.iter().zip(chinese) {
        assert!(own.is_translated_by(other), "{}\n{}", own.text, other.text);
    }
    assert_eq!(english.len(), chinese.len());
}

#[test]
fn both_readmes_have_the_same_figures() {
    let pages = all();
    assert_eq!(figures(named(&pages, ENGLISH)), figures(named(&pages, CHINESE)));
}

#[test]
fn both_readmes_lead_to_the_same_pages() {
    let pages = all();
    let (english, chinese) = (named(&pages, ENGLISH), named(&pages, CHINESE));
    assert_eq!(destinations(english), destinations(chinese));
    assert!(english.destinations.iter().any(|link| link == CHINESE));
    assert!(chinese.destinations.iter().any(|link| link == ENGLISH));
}
