//! The code that the command line and the routes of a service share: both show and change the same, in the same JSON.

mod asked;
mod changes;
pub mod json;
mod open;
mod peeked;

use tallygate_rules::nearest;

pub use self::asked::AskedCounts;
pub use self::changes::{check_ban_duration, check_pause_length, held_pause, override_as_listed, rules_for, shadow};
pub use self::open::{OpenPolicy, RuleState, VaryingRules};
pub use self::peeked::Peeked;
use crate::bounds::shown_word;

/// The longest file of policies, in bytes.
#[cfg(feature = "config")]
pub const FILE_BYTES: usize = crate::bounds::FILE_BYTES;

/// Whether a character is invisible: a control character, or one that changes the order or the shape of others.
#[must_use]
pub fn is_unseen(character: char) -> bool {
    crate::bounds::is_unseen(character)
}

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
