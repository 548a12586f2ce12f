#![doc = include_str!("guide/links.md")]
#![doc = include_str!("../guide/README.md")]

// The pages are separate files, so that they can be read in the repository, too. There, a link such as
// `[escaping][keys#escaping]` uses the definition at the end of its page, which leads to a file. Here, the definitions
// of `links.md` come first, and the first of two definitions counts.
//
// Pages that are left out here are tested elsewhere: their snippets need web frameworks or other crates.

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/attribute.md")]
pub mod attribute {}

#[cfg(not(doctest))]
#[doc = include_str!("guide/links.md")]
#[doc = include_str!("guide/picture.md")]
#[doc = include_str!("../guide/algorithms.md")]
pub mod algorithms {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/semantics.md")]
pub mod semantics {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/keys.md")]
pub mod keys {}

#[cfg(not(doctest))]
#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/web.md")]
pub mod web {}

#[cfg(not(doctest))]
#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/configuration.md")]
pub mod configuration {}

#[cfg(not(doctest))]
#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/simulation.md")]
pub mod simulation {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/testing.md")]
pub mod testing {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/callers.md")]
pub mod callers {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/prefetch.md")]
pub mod prefetch {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/recipes.md")]
pub mod recipes {}

#[cfg(not(doctest))]
#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/gateway.md")]
pub mod gateway {}

#[cfg(not(doctest))]
#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/client.md")]
pub mod client {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/production.md")]
pub mod production {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/managed.md")]
pub mod managed {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/outages.md")]
pub mod outages {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/observability.md")]
pub mod observability {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/script.md")]
pub mod script {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../guide/limitations.md")]
pub mod limitations {}

#[cfg(test)]
mod tests {
    const LINKS: &str = include_str!("guide/links.md");
    const PICTURE: &str = include_str!("guide/picture.md");

    const PAGES: [(&str, &str); 20] = [
        ("readme", include_str!("../guide/README.md")),
        ("attribute", include_str!("../guide/attribute.md")),
        ("algorithms", include_str!("../guide/algorithms.md")),
        ("web", include_str!("../guide/web.md")),
        ("configuration", include_str!("../guide/configuration.md")),
        ("simulation", include_str!("../guide/simulation.md")),
        ("testing", include_str!("../guide/testing.md")),
        ("semantics", include_str!("../guide/semantics.md")),
        ("keys", include_str!("../guide/keys.md")),
        ("callers", include_str!("../guide/callers.md")),
        ("prefetch", include_str!("../guide/prefetch.md")),
        ("recipes", include_str!("../guide/recipes.md")),
        ("gateway", include_str!("../guide/gateway.md")),
        ("client", include_str!("../guide/client.md")),
        ("production", include_str!("../guide/production.md")),
        ("managed", include_str!("../guide/managed.md")),
        ("outages", include_str!("../guide/outages.md")),
        ("observability", include_str!("../guide/observability.md")),
        ("script", include_str!("../guide/script.md")),
        ("limitations", include_str!("../guide/limitations.md")),
    ];

    /// Labels of what is no page.
    const OTHERS: [&str; 3] = ["readme", "picture", "rule-text"];

    /// Splits `keys#escaping` into page and heading.
    fn page_and_heading(label: &str) -> (&str, &str) {
        label.split_once('#').unwrap_or((label, ""))
    }

    /// The definitions `[label]: destination` of a text.
    fn definitions(text: &str) -> impl Iterator<Item = (&str, &str)> {
        text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "))
    }

    /// What stands between each `opening` and the `closing` behind it.
    fn between<'a>(text: &'a str, opening: &str, closing: char) -> impl Iterator<Item = &'a str> {
        text.split(opening).skip(1).filter_map(move |rest| rest.split(closing).next())
    }

    /// Whether the page has a heading of that anchor, which both GitHub and rustdoc make of its words.
    fn has_heading(page: &str, anchor: &str) -> bool {
        let (_, text) = PAGES.into_iter().find(|(name, _)| *name == page).expect("there is such a page");
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let mut anchors = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"));
        anchor.is_empty() || anchors.any(|heading| heading == anchor)
    }

    #[test]
    fn every_link_between_pages_leads_to_a_heading_in_the_repository_and_in_the_documentation() {
        for (name, text) in PAGES {
            for label in between(text, "][", ']') {
                assert!(definitions(text).any(|(defined, _)| defined == label), "{name}.md lacks [{label}]");
                let mut here = definitions(LINKS).chain(definitions(PICTURE));
                assert!(here.any(|(defined, _)| defined == label), "links.md lacks [{label}]");
            }
            for (label, destination) in definitions(text).filter(|(label, _)| !OTHERS.contains(label)) {
                let (page, heading) = page_and_heading(label);
                assert!(has_heading(page, heading), "{name}.md: [{label}]");
                let file = destination.rsplit('/').next().unwrap_or(destination);
                assert_eq!(file.replacen(".md", "", 1), label, "{name}.md");
            }
            for destination in between(text, "](", ')') {
                let own = destination.strip_prefix('#').is_some_and(|heading| has_heading(name, heading));
                assert!(own || destination.starts_with("https://"), "{name}.md: ({destination})");
            }
        }
        for (label, destination) in definitions(LINKS).filter(|(label, _)| !OTHERS.contains(label)) {
            assert_eq!(destination, format!("crate::guide::{label}"));
        }
    }
}
