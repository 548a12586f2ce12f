//! Selectors of series, as queries and scraped metrics contain them: `name{label="value", …}`.

/// A name, and what the labels have to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) name: String,
    pub(crate) matchers: Vec<Matcher>,
}

/// What a label has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matcher {
    pub(crate) label: String,
    pub(crate) operator: String,
    pub(crate) value: String,
}

impl Selector {
    /// Returns all selectors of a text whose names begin like this.
    pub(crate) fn all(text: &str, name: &str) -> Vec<Self> {
        let starts = text.match_indices(name).map(|(start, _)| start);
        // Not within a longer name, nor in that of a recorded query, which has colons.
        let is_whole = |start: &usize| !text[..*start].ends_with(|before: char| is_in_name(before) || before == ':');
        starts.filter(is_whole).filter_map(|start| Self::first(&text[start..])).collect()
    }

    fn first(text: &str) -> Option<Self> {
        let (name, rest) = text.split_at(text.find(|after: char| !is_in_name(after)).unwrap_or(text.len()));
        let matchers = match rest.strip_prefix('{') {
            Some(rest) => rest.split_once('}')?.0.split(',').map(Matcher::read).collect(),
            None if rest.starts_with(':') => return None,
            None => Vec::new(),
        };
        Some(Self { name: name.to_owned(), matchers })
    }

    /// Whether a scraped series is one of these.
    pub(crate) fn selects(&self, series: &Self) -> bool {
        self.name == series.name
            && self.matchers.iter().all(|matcher| matcher.alternatives().any(|one| one.holds(series)))
    }

    /// The selectors that have one alternative each of this one: a series of each has to be there.
    pub(crate) fn alternatives(&self) -> impl Iterator<Item = Self> {
        let alternatives = self.matchers.iter().flat_map(Matcher::alternatives);
        let any = Self { name: self.name.clone(), matchers: Vec::new() };
        [any].into_iter().chain(alternatives.map(|one| Self { name: self.name.clone(), matchers: vec![one] }))
    }
}

impl Matcher {
    fn read(text: &str) -> Self {
        let text = text.trim();
        let (label, rest) = text.split_at(text.find(|after| !is_in_name(after)).expect("an operator"));
        let (operator, value) = rest.split_once('"').expect("a value in quotes");
        let value = value.strip_suffix('"').expect("the end of the value");
        Self { label: label.to_owned(), operator: operator.trim().to_owned(), value: value.to_owned() }
    }

    fn alternatives(&self) -> impl Iterator<Item = Self> {
        self.value.split('|').map(|value| Self { value: value.to_owned(), ..self.clone() })
    }

    fn holds(&self, series: &Selector) -> bool {
        // Prometheus itself adds these labels to what it scrapes.
        if ["job", "instance"].contains(&self.label.as_str()) {
            return true;
        }
        let Some(there) = series.matchers.iter().find(|there| there.label == self.label) else { return false };
        // A variable of the dashboard stands for anything.
        let is_any = self.value.starts_with('$');
        if self.operator.starts_with('!') {
            is_any || there.value != self.value
        } else {
            is_any || there.value == self.value
        }
    }
}

fn is_in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

#[test]
fn a_selector_is_found_in_a_query_and_asks_for_each_alternative() {
    let query =
        r#"sum by (policy) (rate(x_total{job=~"$job", outcome=~"limited|banned"}[5m])) / a:x_share:b > max(x_size)"#;
    let found = Selector::all(query, "x_");
    assert_eq!(found.iter().map(|selector| selector.name.as_str()).collect::<Vec<_>>(), ["x_total", "x_size"]);
    let scraped = Selector::all("x_total{rule=\"0\",outcome=\"limited\"} 7", "x_").remove(0);
    assert!(found[0].selects(&scraped));
    let missing = found[0].alternatives().filter(|one| !one.selects(&scraped));
    assert_eq!(missing.map(|one| one.matchers[0].value.clone()).collect::<Vec<_>>(), ["banned"]);
}
