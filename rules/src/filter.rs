//! Filters: what becomes of a value before it is put into a text.

use crate::suggestion::nearest;

/// A change to a value before it is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// How `Debug` shows it, in place of `Display`.
    Debug,
    /// Lower case.
    Lower,
    /// No white space around it.
    Trim,
    /// A digest in place of it.
    Hash,
    /// The network of an address.
    Subnet,
}

const FILTERS: [(&str, Filter); 5] = [
    ("debug", Filter::Debug),
    ("lower", Filter::Lower),
    ("trim", Filter::Trim),
    ("hash", Filter::Hash),
    ("subnet", Filter::Subnet),
];

impl Filter {
    pub(crate) fn parse(name: &str, placeholder: &str) -> Result<Self, String> {
        let known = FILTERS.map(|(known, _)| known);
        let found = FILTERS.iter().find(|(known, _)| *known == name).map(|&(_, filter)| filter);
        found.ok_or_else(|| {
            let remedy = match nearest(name, known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("the filters are `{}`", known.join("`, `")),
            };
            match name {
                "" => format!("`{{{placeholder}}}` has no filter after its `:`; {remedy}"),
                _ => format!("`{{{placeholder}}}` has the unknown filter `{name}`; {remedy}"),
            }
        })
    }

    fn name(self) -> &'static str {
        FILTERS.iter().find(|(_, filter)| *filter == self).map_or("", |(name, _)| name)
    }

    /// Returns when it is applied: the value becomes text, which is cleaned, then reduced to its network, then hashed.
    fn stage(self) -> u8 {
        match self {
            Self::Debug => 0,
            Self::Lower | Self::Trim => 1,
            Self::Subnet => 2,
            Self::Hash => 3,
        }
    }
}

/// Refuses a filter that is repeated, or that comes after the filter of a later stage.
pub(crate) fn check_order(placeholder: &str, filters: &[Filter]) -> Result<(), String> {
    let mut ordered: Vec<Filter> = Vec::new();
    let mut mistake = None;
    for &filter in filters {
        let name = filter.name();
        if ordered.contains(&filter) {
            mistake.get_or_insert_with(|| format!("has the filter `{name}` twice"));
            continue;
        }
        if let Some(later) = ordered.iter().find(|earlier| earlier.stage() > filter.stage()) {
            mistake.get_or_insert_with(|| format!("applies `{name}` to the result of `{}`", later.name()));
        }
        ordered.push(filter);
    }
    let Some(mistake) = mistake else { return Ok(()) };
    ordered.sort_by_key(|filter| filter.stage());
    let value = placeholder.split(':').next().unwrap_or_default().trim();
    let names: Vec<_> = ordered.into_iter().map(Filter::name).collect();
    Err(format!("`{{{placeholder}}}` {mistake}; write `{{{value}:{}}}`", names.join(":")))
}
