//! The losses of a new version of a file, which may have been cut.

use crate::bounds::shown_names;
use crate::config::Policies;

/// A version of a file that was applied.
pub(super) struct Version {
    pub(super) text: String,
    pub(super) policies: Policies,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The line `[end]`, which the version in force has: the file is certainly not whole.
    End,
    /// Something that may have been removed on purpose, in words.
    Parts(String),
}

impl Version {
    /// Returns what `other` lacks, unless its last line says that it is whole.
    pub(super) fn loss_of(&self, other: &Self) -> Option<Loss> {
        if other.policies.has_end() {
            return None;
        }
        if self.policies.has_end() {
            return Some(Loss::End);
        }
        let lost: Vec<_> = self.policies.names_not_in(&other.policies).collect();
        let is_beginning =
            self.text.trim_end().strip_prefix(other.text.trim_end()).is_some_and(|rest| !rest.is_empty());
        match lost.as_slice() {
            [] if is_beginning => Some(Loss::Parts("what stood at its end".to_owned())),
            [] => None,
            [_] => Some(Loss::Parts(format!("the policy {}", shown_names(&lost)))),
            _ => Some(Loss::Parts(format!("the policies {}", shown_names(&lost)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "[policy.a]\nrules = ['1 per 1m']\n[policy.b]\nrules = ['2 per 1m']\nwarn_at = 0.8\n";

    fn version(text: &str) -> Version {
        Version { text: text.to_owned(), policies: Policies::from_toml(text).unwrap() }
    }

    fn loss(other: &str) -> Option<Loss> {
        version(WHOLE).loss_of(&version(other))
    }

    fn parts(lost: &str) -> Loss {
        Loss::Parts(lost.to_owned())
    }

    #[test]
    fn what_is_changed_or_added_is_no_loss() {
        assert_eq!(loss(WHOLE), None);
        assert_eq!(loss(WHOLE.trim_end()), None);
        assert_eq!(loss(&format!("{WHOLE}\n[policy.c]\nrules = ['1 per 1m']")), None);
        assert_eq!(loss(&WHOLE.replace("2 per", "3 per").replace("warn_at = 0.8", "")), None);
    }

    #[test]
    fn every_part_of_a_file_from_its_beginning_is_refused_or_a_loss() {
        for length in 0..WHOLE.trim_end().len() {
            let cut = &WHOLE[..length];
            if let Ok(policies) = Policies::from_toml(cut) {
                let other = Version { text: cut.to_owned(), policies };
                assert!(version(WHOLE).loss_of(&other).is_some(), "{cut}");
            }
        }
    }

    #[test]
    fn a_loss_is_named() {
        assert_eq!(loss(&WHOLE[..31]), Some(parts("the policy `b`")));
        assert_eq!(loss("[policy.c]\nrules = ['1 per 1m']"), Some(parts("the policies `a`, `b`")));
        assert_eq!(loss(&WHOLE.replace("warn_at = 0.8", "")), Some(parts("what stood at its end")));
    }

    #[test]
    fn a_file_that_has_its_end_is_whole_and_one_that_lost_it_is_not() {
        let whole = version("[policy.a]\nrules = ['1 per 1m']\n[end]\n");
        assert_eq!(version(WHOLE).loss_of(&whole), None);
        assert_eq!(whole.loss_of(&version("[end]")), None);
        assert_eq!(whole.loss_of(&version(WHOLE)), Some(Loss::End));
    }
}
