//! The template of a listed key, the values that it shows, and the subjects that are made from values.

use std::collections::BTreeSet;

use tallygate_rules::{Filter, FilteredValue, Template, TemplatePart, is_plain};

use crate::address::Network;
use crate::error::Error;
use crate::limiter::{Check, Limiter};
use crate::policy::Policy;
use crate::subject::{Subject, SubjectBuilder};

/// Stands before the digest of a shortened subject.
const DIGEST_MARK: u8 = b'!';

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
#[derive(Clone, Debug, PartialEq)]
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

    /// Whether the template may render to this subject: the text of the template stands around escaped values. Only the
    /// start of a shortened subject is compared.
    pub(super) fn fits(&self, subject: &str) -> bool {
        fits(self.0.parts(), subject)
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

/// Whether the parts may render to a subject. All places where a part may begin are kept, so the work is bounded by the
/// product of both lengths.
fn fits(parts: &[TemplatePart], subject: &str) -> bool {
    let subject = subject.as_bytes();
    let rest = |at: &usize| subject.get(*at..).unwrap_or_default();
    let mut starts = BTreeSet::from([0]);
    for part in parts {
        // The rest is the digest of a whole subject.
        if starts.iter().any(|at| is_digest(rest(at))) {
            return true;
        }
        starts = match part {
            TemplatePart::Text(text) => {
                let text = escaped(text);
                if starts.iter().any(|at| is_cut(text.as_bytes(), rest(at))) {
                    return true;
                }
                starts.iter().filter(|at| rest(at).starts_with(text.as_bytes())).map(|at| at + text.len()).collect()
            }
            TemplatePart::Value(value) => ends_of_values(subject, begins_of_values(value, &starts, rest)),
        };
    }
    starts.contains(&subject.len()) || starts.iter().any(|at| is_digest(rest(at)))
}

/// Returns where a value may begin. Alternatives begin behind their tags.
fn begins_of_values<'s>(
    value: &FilteredValue,
    starts: &BTreeSet<usize>,
    rest: impl Fn(&usize) -> &'s [u8],
) -> BTreeSet<usize> {
    if !value.has_alternatives() {
        return starts.clone();
    }
    let tags: Vec<_> = value.alternatives().iter().map(FilteredValue::tag).collect();
    let behind = |at: &usize| {
        let tag = tags.iter().find(|tag| rest(at).starts_with(tag.as_bytes()))?;
        Some(at + tag.len())
    };
    starts.iter().filter_map(behind).collect()
}

/// Returns where values that begin at these places may end: wherever only bytes of values lie between.
fn ends_of_values(subject: &[u8], begins: BTreeSet<usize>) -> BTreeSet<usize> {
    let mut ends = BTreeSet::new();
    for begin in begins {
        // All ends of a place within an earlier value are known already.
        if ends.insert(begin) {
            let bytes = subject.iter().skip(begin).take_while(|byte| is_of_value(**byte)).count();
            ends.extend(begin..=begin + bytes);
        }
    }
    ends
}

fn is_digest(rest: &[u8]) -> bool {
    rest.first() == Some(&DIGEST_MARK)
}

/// Whether a subject was shortened within this text.
fn is_cut(text: &[u8], rest: &[u8]) -> bool {
    let mark = rest.iter().position(|byte| *byte == DIGEST_MARK);
    mark.and_then(|mark| rest.get(..mark)).is_some_and(|start| text.starts_with(start))
}

fn is_of_value(byte: u8) -> bool {
    is_plain(byte) || byte == b'%'
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
    fn a_subject_fits_a_key_if_its_text_stands_around_escaped_values() {
        let fits = |key: &str, subject: &str| KeyTemplate::read("p", key).unwrap().fits(subject);
        for subject in ["sms:138", "sms:", "sms:zo%C3%AB", "sms:13!0123456789abcdef0123456789abcdef"] {
            assert!(fits("sms:{phone}", subject), "{subject}");
        }
        for subject in ["138", "sms:1:2", "not a subject", "mail:138", "sms", ""] {
            assert!(!fits("sms:{phone}", subject), "{subject}");
        }
        assert!(fits("{a}:{b}/é", "x:y/%C3%A9") && !fits("{a}:{b}", "x") && !fits("{a}:{b}", "x:y:z"));
        assert!(fits("{@user|@ip}/x", "user:zoe/x") && fits("{@user|@ip}/x", "ip:192.0.2.1/x"));
        assert!(!fits("{@user|@ip}/x", "zoe/x") && !fits("{@user|@ip}/x", "user:zoe"));
        assert!(fits("all calls", "all calls") && !fits("all calls", "all") && fits("", ""));
    }

    #[test]
    fn a_key_of_many_values_is_compared_in_few_steps() {
        let key = (0..200).fold(String::new(), |key, number| key + &format!("{{v{number}}}"));
        let template = KeyTemplate::read("p", &format!("{key}:x")).unwrap();
        let subject = "a".repeat(98);
        assert!(!template.fits(&subject) && template.fits(&format!("{subject}:x")));
        let alternatives = "{@a|@aa}".repeat(200);
        let template = KeyTemplate::read("p", &format!("{alternatives}x")).unwrap();
        assert!(!template.fits(&"a:aa:".repeat(20)));
    }

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
