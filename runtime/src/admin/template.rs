//! The template of a listed key, the values that it shows, and the subjects that are made from values.

use tallygate_rules::{Filter, FilteredValue, Template, TemplatePart};

use crate::address::Network;
use crate::error::Error;
use crate::limiter::{Check, Limiter};
use crate::policy::Policy;
use crate::subject::{Subject, SubjectBuilder};

/// The name of the context's value for the client's address.
pub(super) const CLIENT_ADDRESS: &str = "@ip";

/// The remedy for an address that the programs write differently.
pub(super) const CLIENT_ADDRESS_REMEDY: &str = "an IPv6 address is counted by its network, whose length the programs choose; write the network as `tallygate top` \
     prints it, like 2001:db8:1:2::/64, and IPv4 like 192.0.2.1";

/// The template of a key: text beside values.
pub(super) struct KeyTemplate(Template);

/// A value that the key of a subject shows: `phone` of `sms:{phone:hash}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    name: String,
    is_hashed: bool,
}

impl Placeholder {
    pub(super) fn hashed(name: &str) -> Self {
        Self { name: name.to_owned(), is_hashed: true }
    }

    /// Returns the name, as it stands between the braces without filters: `phone`, `self.tenant`, `@ip`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether a key shows the digest of this value, for which the [secret](crate::LimiterBuilder::secret) of
    /// the programs is needed.
    #[must_use]
    pub fn is_hashed(&self) -> bool {
        self.is_hashed
    }
}

/// The subjects of a call of a policy: see [`RegisteredPolicy::render`](super::RegisteredPolicy::render).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjects {
    pub(super) main: Subject,
    pub(super) others: Vec<(String, Subject)>,
}

impl Subjects {
    /// Returns the main subject, or [everyone](Subject::everyone) if no rule counts it.
    #[must_use]
    pub fn main(&self) -> &Subject {
        &self.main
    }

    /// Returns the other subjects, by their labels.
    pub fn others(&self) -> impl Iterator<Item = (&str, &Subject)> {
        self.others.iter().map(|(label, subject)| (label.as_str(), subject))
    }

    /// Returns the subject of that label, or the main one without a label; `None` if there is no such label.
    #[must_use]
    pub fn subject(&self, label: Option<&str>) -> Option<&Subject> {
        match label {
            None => Some(&self.main),
            Some(label) => self.others().find(|(known, _)| *known == label).map(|(_, subject)| subject),
        }
    }

    /// Starts a call of these subjects.
    pub fn check<'a>(&'a self, limiter: &'a Limiter, policy: &'a Policy) -> Check<'a> {
        self.others().fold(limiter.check(policy, &self.main), |check, (label, subject)| check.subject(label, subject))
    }
}

impl KeyTemplate {
    pub(super) fn read(policy: &str, key: &str) -> Result<Self, Error> {
        let refused = |mistake| Error::new(format!("policy `{policy}`: its key `{key}` is no template: {mistake}"));
        Template::parse(key).map(Self).map_err(refused)
    }

    pub(super) fn parts(&self) -> &[TemplatePart] {
        self.0.parts()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|value| &*value.name)
    }

    /// Returns the first value that it shows by `Debug`, except values of the context: they are text, which `Debug`
    /// does not change here.
    pub(super) fn debugged(&self) -> Option<&str> {
        let mut values = self.0.values();
        let debugged = values.find(|value| value.filters.contains(&Filter::Debug) && !value.name.starts_with('@'));
        debugged.map(|value| &*value.name)
    }

    /// Returns the subject of a call with these values.
    pub(super) fn subject<'v>(&self, builder: SubjectBuilder<'_>, value: impl Fn(&str) -> &'v str) -> Subject {
        let read = |shown| Ok(tagged(shown, value(&shown.name)).unwrap_or((shown, "")));
        builder.template(&self.0, |shown| read(shown).map(|(shown, value)| (shown, value.to_owned()))).build()
    }

    /// Returns the first value with alternatives whose text begins with none of their names, and these names.
    pub(super) fn untagged<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Option<(&str, String)> {
        let shown =
            self.0.values().find(|shown| value(&shown.name).is_some_and(|text| tagged(shown, text).is_none()))?;
        let tags = shown.alternatives().iter().map(|value| format!("`{}…`", value.tag()));
        Some((&shown.name, tags.collect::<Vec<_>>().join(" or ")))
    }

    /// Whether all addresses of clients among its values are written as the programs write them.
    pub(super) fn has_sound_addresses<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> bool {
        let mut shown = self.0.values().filter_map(|shown| tagged(shown, value(&shown.name)?));
        shown.all(|(shown, text)| may_be_client_address(shown, text))
    }

    /// Whether there is text around its values, by which a whole subject differs from a value.
    pub(super) fn has_text(&self) -> bool {
        self.0.parts().iter().any(|part| matches!(part, TemplatePart::Text(_)))
    }

    /// Returns an example of a subject: `sms:PHONE`.
    pub(super) fn example(&self) -> String {
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => escaped(text),
            TemplatePart::Value(value) => {
                let first = value.alternatives().first().unwrap_or(value);
                let tag = if value.has_alternatives() { first.tag() } else { String::new() };
                tag + &example(&first.name)
            }
        };
        self.0.parts().iter().map(part).collect()
    }
}

/// Returns the alternative that a text like `user:zoe` names, and the value behind the name.
pub(super) fn tagged<'s, 'v>(shown: &'s FilteredValue, text: &'v str) -> Option<(&'s FilteredValue, &'v str)> {
    if !shown.has_alternatives() {
        return Some((shown, text));
    }
    shown.alternatives().iter().find_map(|value| Some((value, text.strip_prefix(&*value.tag())?)))
}

/// Returns an example of the value of that name.
fn example(name: &str) -> String {
    if name == CLIENT_ADDRESS {
        return "192.0.2.1".to_owned();
    }
    name.chars().filter(|&c| c == '_' || c.is_alphanumeric()).collect::<String>().to_uppercase()
}

/// Text of a template as it stands in subjects.
pub(super) fn escaped(text: &str) -> String {
    let mut subject = Subject::everyone();
    subject.push_text(text);
    subject.to_string()
}

/// The values that these templates show, in the order in which they first appear.
pub(super) fn placeholders<'t>(templates: impl IntoIterator<Item = &'t KeyTemplate>) -> Vec<Placeholder> {
    let mut found: Vec<Placeholder> = Vec::new();
    for value in templates.into_iter().flat_map(|key| key.0.values()) {
        let (name, is_hashed) =
            (&value.name, value.alternatives().iter().any(|value| value.filters.contains(&Filter::Hash)));
        match found.iter_mut().find(|known| known.name() == name) {
            Some(known) => known.is_hashed |= is_hashed,
            None => found.push(Placeholder { name: name.clone(), is_hashed }),
        }
    }
    found
}

/// Returns whether the programs may write a value like this, if it is a client's address: IPv4 as an address or as the
/// network of the value's filter, and IPv6 as a network.
///
/// A different text for the same client would silently be another subject.
pub(super) fn may_be_client_address(shown: &FilteredValue, text: &str) -> bool {
    if shown.name != CLIENT_ADDRESS {
        return true;
    }
    let bits = shown.filters.iter().find_map(|filter| match filter {
        Filter::Subnet(bits) => Some(*bits),
        _ => None,
    });
    match Network::parse(text) {
        Some(network) => network.is_of_client(bits) && network.to_string() == text,
        None => !text.contains(':'),
    }
}

/// Returns whether a value is a whole IPv6 address, as written by programs that count networks of 128 bits.
pub(super) fn is_whole_client_address(shown: &FilteredValue, text: &str) -> bool {
    let is_whole = |network: Network| network.is_whole_ipv6() && network.to_string() == text;
    shown.name == CLIENT_ADDRESS && Network::parse(text).is_some_and(is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_has_the_names_of_the_values() {
        let example = |key: &str| KeyTemplate::read("p", key).unwrap().example();
        assert_eq!(example("api/{@user:lower|@ip}"), "api/user:USER");
        assert_eq!([example("sms:{phone:trim}"), example("{@ip}/{user.id}")], ["sms:PHONE", "192.0.2.1/USERID"]);
    }

    #[test]
    fn a_network_is_written_in_one_way() {
        let may_be =
            |key: &str, address: &str| KeyTemplate::read("p", key).unwrap().has_sound_addresses(|_| Some(address));
        for address in ["192.0.2.1", "2001:db8:1:2::/64", "8000::/1", "anything else"] {
            assert!(may_be("{@ip}", address), "{address}");
        }
        for address in [
            " 192.0.2.1",
            "192.0.2.1:80",
            "192.0.2.0/24",
            "64:ff9b::c000:201",
            "2001:db8::7",
            "::ffff:192.0.2.1",
            "2001:db8::7/64",
            "2001:DB8::/64",
            "2001:db8::/+64",
            "::/0",
            "::1/128",
            "2002:c000:201::/64",
            "2002:c000:201::/48",
            "2001:0:cb00:7101::/64",
        ] {
            assert!(!may_be("{@ip}", address), "{address}");
        }
        for (key, address) in [
            ("{@ip:subnet(24)}", "192.0.2.0/24"),
            ("{@ip:subnet(24)}", "192.0.2.1"),
            ("{@ip:subnet(24, 48)}", "2001:db8:1::/48"),
            ("{@user|@ip:subnet(24)}", "ip:192.0.2.0/24"),
            ("{@user|@ip:subnet(24)}", "user:2001:db8::7"),
            ("{ip}", "192.0.2.0/16"),
        ] {
            assert!(may_be(key, address), "{key} {address}");
        }
        for (key, address) in [
            ("{@ip:subnet(24)}", "192.0.2.0/16"),
            ("{@ip:subnet(24)}", "192.0.2.7/24"),
            ("{@ip:subnet(24)}", "2001:db8::7"),
            ("{@user|@ip:subnet(24)}", "ip:192.0.2.0/25"),
            ("{@ip:subnet(24)}/{@ip}", "192.0.2.0/24"),
        ] {
            assert!(!may_be(key, address), "{key} {address}");
        }
    }
}
