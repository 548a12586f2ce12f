//! What a misspelt name was meant to be.

use tallygate_rules::nearest;

/// Returns `; did you mean …?` where one of the known names is similar, or the known names where there are few.
#[must_use]
pub fn remedy<'a>(name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    const FEW: usize = 8;
    if let Some(meant) = nearest(name, known.clone()) {
        return format!("; did you mean `{meant}`?");
    }
    let known: Vec<_> = known.into_iter().collect();
    match known.len() {
        0 => String::new(),
        1..=FEW => format!("; there are `{}`", known.join("`, `")),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_or_a_few_names_are_suggested() {
        assert_eq!(remedy("sms.snd", ["sms.send", "login"]), "; did you mean `sms.send`?");
        assert_eq!(remedy("export", ["sms.send", "login"]), "; there are `sms.send`, `login`");
        assert_eq!(remedy("export", []), "");
    }
}
