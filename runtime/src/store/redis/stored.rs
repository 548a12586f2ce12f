//! Keys for values beside tallies: overrides, the registry of policies, and denied subjects. They have one colon, and
//! those of tallies have two.

pub(super) mod lists;

/// The part after the prefix in the keys of denied subjects.
const DENIALS: &str = ":!denied/";

pub(crate) fn overrides_key(prefix: &str) -> String {
    format!("{prefix}:!overrides")
}

pub(crate) fn policies_key(prefix: &str) -> String {
    format!("{prefix}:!policies")
}

/// The key of the denied subjects of a policy, given its escaped name, in a period.
pub(crate) fn denials_key(prefix: &str, policy: &str, period: u64) -> String {
    format!("{prefix}{DENIALS}{policy}/{period}")
}

pub(crate) fn ping_key(prefix: &str) -> String {
    format!("{prefix}:!ping")
}

/// A key that never exists, in a slot of a cluster that depends on the number.
pub(crate) fn ping_key_in(prefix: &str, number: u32) -> String {
    format!("{prefix}:!ping{{{number}}}")
}

/// Returns the start of the keys of a rehearsal whose slot does not matter. All of them are in one slot.
pub(crate) fn rehearsal_key(prefix: &str) -> String {
    ping_key_in(prefix, 0)
}

/// Whether a key is one of the keys of this module.
#[cfg(feature = "admin")]
pub(crate) fn is_reserved(prefix: &str, key: &str) -> bool {
    let denials = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(DENIALS));
    // An escaped name has no slash.
    let is_of_denials = denials.and_then(|rest| rest.split_once('/')).is_some_and(|(policy, period)| {
        !policy.is_empty() && !period.is_empty() && period.bytes().all(|byte| byte.is_ascii_digit())
    });
    is_of_denials
        || key.starts_with(&ping_key(prefix))
        || [overrides_key(prefix), policies_key(prefix)].iter().any(|reserved| reserved == key)
}

#[cfg(all(test, feature = "admin"))]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_are_known_and_no_others_are() {
        for key in [
            overrides_key("t"),
            policies_key("t"),
            ping_key("t"),
            format!("{}/windows", rehearsal_key("t")),
            denials_key("t", "sms.send", 0),
            denials_key("t", "a%2Fb", 7),
        ] {
            assert!(is_reserved("t", &key), "{key}");
        }
        for key in [
            "t:!denied",
            "t:!denied/",
            "t:!denied/p",
            "t:!denied/p/",
            "t:!denied/p/x",
            "t:!denied//7",
            "t:!denied/p/7/7",
            "s:!overrides",
        ] {
            assert!(!is_reserved("t", key), "{key}");
        }
    }
}
