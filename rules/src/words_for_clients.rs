//! What a key counts, in words for who knows neither the code nor its names.

use crate::template::{Filter, Piece, scan};

/// Members of values that say nothing of them: `user.name.as_str()` is the name.
const ACCESSORS: [&str; 12] = [
    "as_ref",
    "as_str",
    "clone",
    "deref",
    "get",
    "inner",
    "into_inner",
    "self",
    "to_owned",
    "to_string",
    "unwrap",
    "value",
];

/// Returns what is counted by itself, like `phone` for `sms:{code.phone:trim}` or `client network` for `{@ip:subnet}`; `None`
/// for a key that counts all calls together.
#[must_use]
pub fn counted_in_words(key: &str) -> Option<String> {
    let pieces = scan(key).unwrap_or_default();
    let mut values: Vec<_> = pieces.iter().filter_map(value_in_words).collect();
    values.dedup();
    let last = values.pop()?;
    Some(if values.is_empty() { last } else { format!("{} and {last}", values.join(", ")) })
}

fn value_in_words(piece: &Piece<'_>) -> Option<String> {
    let Piece::Braced(inner) = piece else { return None };
    let (value, filters) = Filter::split(inner).unwrap_or((inner, Vec::new()));
    let is_network = filters.contains(&Filter::Subnet);
    Some(match value {
        "@ip" if is_network => "client network".to_owned(),
        "@ip" => "client address".to_owned(),
        "*" => "set of values".to_owned(),
        _ => {
            let network = if is_network { " network" } else { "" };
            format!("{}{network}", name(value).unwrap_or_else(|| "value".to_owned()))
        }
    })
}

/// The last name of a value that says something, as words.
fn name(value: &str) -> Option<String> {
    let names = value.trim_start_matches('@').rsplit('.').map(|name| name.trim().trim_end_matches("()"));
    let mut telling = names.filter(|name| !ACCESSORS.contains(name) && !name.starts_with(|c: char| c.is_ascii_digit()));
    telling.next().map(|name| name.trim_start_matches("r#").replace('_', " ").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_without_its_code() {
        for (key, words) in [
            ("{@ip}", "client address"),
            ("{@ip:subnet}", "client network"),
            ("{@user:lower}", "user"),
            ("sms:{code.phone:trim}", "phone"),
            ("{order.customer_id.as_str()}", "customer id"),
            ("{self.tenant}/{user.0.name()}", "tenant and name"),
            ("{a}:{b}:{peer:subnet}", "a, b and peer network"),
            ("{*:debug:hash}", "set of values"),
            ("{self.0}", "value"),
            ("{r#type}", "type"),
        ] {
            assert_eq!(counted_in_words(key).as_deref(), Some(words), "{key}");
        }
        assert_eq!(counted_in_words("all {{calls}}"), None);
        assert_eq!(counted_in_words(""), None);
    }
}
