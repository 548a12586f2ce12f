//! Suggestions for misspelt names.

use tallygate_rules::nearest;

use crate::bounds::shown_word;

/// Returns `; did you mean …?` if one of the known names is similar, or the known names if they are few. `kind` says
/// what the names are for, like `policy`.
#[must_use]
pub fn remedy<'a>(kind: &str, name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    const FEW: usize = 8;
    if let Some(meant) = nearest(name, known.clone()) {
        return format!("; did you mean `{}`?", shown_word(meant));
    }
    let known: Vec<_> = known.into_iter().map(shown_word).collect();
    match &known[..] {
        [only] => format!("; the only {kind} is `{only}`"),
        [_, ..] if known.len() <= FEW => format!("; there are `{}`", known.join("`, `")),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_or_a_few_names_are_suggested() {
        let meant = |name: &str, known: &[&'static str]| remedy("policy", name, known.iter().copied());
        assert_eq!(meant("sms.snd", &["sms.send", "login"]), "; did you mean `sms.send`?");
        assert_eq!(meant("export", &["sms.send", "login"]), "; there are `sms.send`, `login`");
        assert_eq!(meant("export", &["login"]), "; the only policy is `login`");
        assert_eq!(meant("export", &[]), "");
    }
}
