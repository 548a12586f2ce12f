//! The keys of a prefix that are no tallies: those have two colons, and these have one.

/// What the keys of denied subjects have after the prefix.
const DENIALS: &str = ":!denied/";

/// The key of the overrides.
pub(crate) fn overrides(prefix: &str) -> String {
    format!("{prefix}:!overrides")
}

/// The key of the registry of policies.
pub(crate) fn policies(prefix: &str) -> String {
    format!("{prefix}:!policies")
}

/// The key of the denied subjects of a policy, by its escaped name, in a period.
pub(crate) fn denials(prefix: &str, policy: &str, period: u64) -> String {
    format!("{prefix}{DENIALS}{policy}/{period}")
}

/// A key that never exists.
pub(crate) fn ping(prefix: &str) -> String {
    format!("{prefix}:!ping")
}

/// A key that never exists, in a slot of a cluster that the number chooses.
pub(crate) fn ping_in(prefix: &str, number: u32) -> String {
    format!("{prefix}:!ping{{{number}}}")
}

/// Whether a key is one of them.
#[cfg(feature = "admin")]
pub(crate) fn contain(prefix: &str, key: &str) -> bool {
    let denials = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(DENIALS));
    // In an escaped name there is no slash.
    let is_of_denials = denials.and_then(|rest| rest.split_once('/')).is_some_and(|(policy, period)| {
        !policy.is_empty() && !period.is_empty() && period.bytes().all(|byte| byte.is_ascii_digit())
    });
    is_of_denials || [overrides(prefix), policies(prefix), ping(prefix)].iter().any(|reserved| reserved == key)
}

#[cfg(all(test, feature = "admin"))]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_are_known_and_no_others_are() {
        for key in [overrides("t"), policies("t"), ping("t"), denials("t", "sms.send", 0), denials("t", "a%2Fb", 7)] {
            assert!(contain("t", &key), "{key}");
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
            assert!(!contain("t", key), "{key}");
        }
    }
}
