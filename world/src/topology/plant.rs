//! Changes scripts on their way to a server, to plant a fault: the world has to find it.

use std::borrow::Cow;

use tallygate_lua as lua;

/// A change of the scripts. Without any text, they stay as they are.
#[derive(Clone, Debug, Default)]
pub struct Plant {
    /// The scripts that change: name and text before, name and text after.
    scripts: Vec<(Text, Text)>,
}

#[derive(Clone, Debug)]
struct Text {
    name: String,
    text: String,
}

impl Text {
    fn new(text: String) -> Self {
        Self { name: sha1_smol::Sha1::from(text.as_bytes()).digest().to_string(), text }
    }
}

impl Plant {
    /// Replaces a text wherever the scripts have it. Returns `None` if none has it.
    #[must_use]
    pub fn replacing(old: &str, new: &str) -> Option<Self> {
        let windows = (1..=8).flat_map(|rules| {
            let several =
                (2..=lua::MAX_TOGETHER_SUBJECTS).filter(move |&count| rules <= lua::max_together_rules(count));
            let together = several.map(|count| lua::windows_together(count, rules));
            let others: Vec<_> = together.chain([lua::windows(rules)]).collect();
            let pausable: Vec<_> = others.iter().map(|text| lua::pausable(text)).collect();
            let alone = [lua::windows_alone(rules), lua::pausable_alone(rules)];
            others.into_iter().chain(pausable).chain(alone)
        });
        let others = [lua::DECIDE, lua::REFUND, lua::LEASE, lua::BAN, lua::PAUSE, lua::PROBE_PLACE].map(str::to_owned);
        let others = others.into_iter().chain([lua::pausable(lua::DECIDE)]);
        let changed = windows.chain(others).filter(|text| text.contains(old));
        let scripts: Vec<_> =
            changed.map(|text| (Text::new(text.clone()), Text::new(text.replace(old, new)))).collect();
        (!scripts.is_empty()).then_some(Self { scripts })
    }

    /// The bytes of a client as the server gets them.
    pub(super) fn change<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let found = self.scripts.iter().find_map(|(old, new)| {
            let by_name = replace(bytes, &old.name, &new.name);
            by_name.or_else(|| replace(bytes, &with_length(&old.text), &with_length(&new.text)))
        });
        // Several calls may come at once.
        found.map_or(Cow::Borrowed(bytes), |changed| Cow::Owned(self.change(&changed).into_owned()))
    }
}

/// A text as a word of a command.
fn with_length(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn replace(bytes: &[u8], old: &str, new: &str) -> Option<Vec<u8>> {
    let at = bytes.windows(old.len()).position(|found| found == old.as_bytes())?;
    Some([&bytes[..at], new.as_bytes(), &bytes[at + old.len()..]].concat())
}
