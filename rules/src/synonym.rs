//! The words that other libraries use for the arguments of this one.

/// Each argument, and what it is called elsewhere.
const SYNONYMS: [(&str, &[&str]); 19] = [
    ("rule", &["limits", "quota", "throttle"]),
    ("rules", &["limits", "quota", "throttle"]),
    ("concurrency", &["concurrent", "max_concurrency", "max_concurrent", "in_flight", "max_in_flight", "parallel"]),
    ("count", &["limit", "max", "rate", "times", "calls", "requests", "max_calls", "max_requests"]),
    ("per", &["window", "interval", "period", "duration", "every", "seconds", "ttl"]),
    ("capacity", &["burst"]),
    ("tz", &["timezone", "time_zone", "zone"]),
    ("key", &["by", "id", "subject", "group_by"]),
    ("denials", &["count", "limit", "max", "times"]),
    ("within", &["per", "window", "interval", "period"]),
    ("duration", &["ttl", "time", "seconds"]),
    ("cost", &["weight"]),
    ("on_outage", &["on_failure", "on_unavailable", "fail_open", "fail_closed", "outage"]),
    ("wait", &["timeout", "max_wait"]),
    ("skip_if", &["skip", "unless", "exempt"]),
    ("shadow", &["dry_run", "log_only"]),
    ("reject", &["error", "on_error", "fallback"]),
    ("limit", &["count", "max", "calls", "requests", "permits", "size"]),
    ("lease", &["per", "ttl", "timeout", "window", "duration", "expiry", "expires"]),
];

/// Returns the first of the known arguments that is called so elsewhere.
#[must_use]
pub fn synonym(name: &str, known: &[&str]) -> Option<&'static str> {
    let known = SYNONYMS.iter().filter(|(argument, _)| known.contains(argument));
    known.into_iter().find(|(_, words)| words.contains(&name)).map(|(argument, _)| *argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_another_library_stands_for_an_argument_of_the_same_list() {
        assert_eq!(synonym("window", &["count", "per"]), Some("per"));
        assert_eq!(synonym("window", &["denials", "within", "duration"]), Some("within"));
        assert_eq!(synonym("ttl", &["denials", "within", "duration"]), Some("duration"));
    }

    #[test]
    fn a_word_that_fits_no_argument_of_the_list_stands_for_nothing() {
        assert_eq!(synonym("window", &["rule", "key"]), None);
        assert_eq!(synonym("colour", &["count", "per"]), None);
    }
}
