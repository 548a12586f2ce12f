//! Suggestions for words that are misspelt or from another library, and the messages about mistaken arguments.

use strsim::osa_distance;

/// The names of each argument and of each of its words in other libraries. If two words fit, the first is meant.
#[rustfmt::skip]
const SYNONYMS: &[(&str, &[&str])] = &[
    ("rule", &["limits", "quota", "quotas", "throttle", "bandwidth", "bandwidths", "rules", "rate_limit"]),
    ("rules", &["limits", "quota", "quotas", "throttle", "bandwidth", "bandwidths", "rule"]),
    ("concurrency", &["concurrent", "max_concurrency", "max_concurrent", "in_flight", "max_in_flight", "parallel",
        "parallelism", "semaphore", "bulkhead", "max_parallel", "concurrency_limit", "max_concurrent_calls",
        "max_concurrent_requests", "max_connections"]),
    ("denials", &["count", "limit", "max", "times", "after", "threshold", "strikes", "violations", "attempts", "failures",
        "maxretry", "max_retry", "max_retries", "max_denials", "hits"]),
    ("within", &["per", "window", "interval", "period", "findtime", "find_time", "every"]),
    ("count", &["limit", "max", "rate", "times", "calls", "requests", "max_calls", "max_requests", "permits", "quota",
        "number", "amount", "tokens", "hits", "attempts", "max_attempts", "max_hits", "max_count", "limit_for_period",
        "threshold", "allowed", "points", "total", "num_requests"]),
    ("limit", &["count", "max", "calls", "requests", "permits", "size", "slots", "max_concurrent", "max_concurrent_calls",
        "concurrency", "quota", "threshold"]),
    ("lease", &["per", "ttl", "timeout", "window", "duration", "expiry", "expires", "expires_in", "lease_time", "seconds",
        "within", "interval", "period", "every"]),
    ("per", &["window", "interval", "period", "duration", "every", "seconds", "secs", "minutes", "hours", "days", "ttl",
        "within", "time", "time_window", "window_size", "window_seconds", "window_ms", "window_length", "timeframe",
        "time_frame", "timespan", "limit_refresh_period", "refresh", "refresh_period", "refill_period",
        "refill_interval", "expiry", "expires_in", "in", "for"]),
    ("unit", &["units", "counts", "counting", "measure", "resource", "dimension", "of"]),
    ("duration", &["ttl", "time", "seconds", "minutes", "hours", "for", "bantime", "ban_time", "ban_for", "ban_duration",
        "length", "block_duration", "block_for", "timeout", "expiry", "expires_in", "penalty"]),
    ("capacity", &["burst", "burst_size", "burst_capacity", "bucket_size", "max_burst", "max_tokens", "size"]),
    ("initial", &["initial_tokens", "initial_capacity", "start"]),
    ("reset_after", &["reset", "idle", "idle_after"]),
    ("cron", &["schedule", "crontab", "calendar", "expression", "cron_expression"]),
    ("tz", &["timezone", "time_zone", "zone"]),
    ("algorithm", &["strategy", "kind", "type", "algo", "mode", "limiter_type"]),
    ("release_if", &["release", "release_on", "release_when", "refund_if", "refund", "retry_if"]),
    ("key", &["by", "id", "subject", "group_by", "key_by", "keys", "key_func", "key_fn", "key_generator", "key_resolver",
        "identifier", "scope", "partition", "partition_key", "group", "bucket", "bucket_key", "cache_key", "user",
        "client"]),
    ("name", &["label", "title", "policy_name", "namespace"]),
    ("message", &["msg", "text", "error_message", "deny_message", "description", "detail", "reason"]),
    ("cost", &["weight", "tokens", "price", "points", "increment", "consume", "quantity"]),
    ("allow_zero_cost", &["zero_cost", "allow_free"]),
    ("on_outage", &["on_failure", "on_unavailable", "fail_open", "fail_closed", "outage", "failure_mode", "fail_mode",
        "fail_safe", "failsafe", "on_redis_error", "on_backend_error", "on_store_error", "on_redis_down",
        "skip_on_error", "swallow_errors", "in_memory_fallback", "fallback_mode"]),
    ("deadline", &["command_timeout", "redis_timeout", "operation_timeout", "store_timeout"]),
    ("wait", &["timeout", "max_wait", "max_wait_time", "wait_timeout", "wait_for", "max_delay", "delay", "queue",
        "queue_timeout", "block", "blocking", "sleep", "timeout_duration"]),
    ("skip_if", &["skip", "unless", "exempt", "exempt_if", "exempt_when", "skip_when", "bypass", "bypass_if", "condition",
        "if", "when", "enabled", "disabled", "ignore_if", "whitelist", "allowlist", "allow_list"]),
    ("shadow", &["dry_run", "dryrun", "log_only", "report_only", "monitor", "observe", "passive", "simulate"]),
    ("reject", &["error", "on_error", "fallback", "fallback_method", "on_reject", "on_rejected", "on_limit", "on_limited",
        "on_denied", "on_exceeded", "on_breach", "handler", "error_handler", "map_err", "response", "callback"]),
    ("limiter", &["store", "storage", "backend", "redis", "rate_limiter", "connection", "pool", "cache", "with"]),
    ("policy", &["config", "policies", "preset", "profile"]),
    ("check_fn", &["check", "check_function", "companion", "peek", "inspect"]),
    ("refund_if", &["refund", "refund_on", "refund_when", "rollback_if", "rollback_on", "uncount_if", "count_if",
        "skip_failed_requests", "skip_successful_requests", "deduct_when"]),
    ("refund_key", &["refund_subject", "refund_for", "refund_only", "refund_rule", "refunded_key"]),
    ("settle", &["usage", "actual_cost", "charge", "reconcile"]),
    ("pause", &["backoff", "back_off", "pause_if", "retry_after", "suspend"]),
    ("longest_pause", &["pausable", "max_pause", "pause_limit", "max_backoff"]),
    ("pause_key", &["pause_subject", "paused_key", "pause_on", "pause_by"]),
    ("prevent_duplicate", &["dedup", "dedupe", "deduplicate", "idempotent", "idempotency", "debounce", "no_duplicate",
        "no_duplicates", "no_repeat", "no_repeats", "prevent_duplicates", "unique", "duplicate", "duplicates", "cooldown", "min_interval"]),
    ("ban", &["jail", "lockout", "lock_out", "penalty", "blacklist", "block_for", "ban_for"]),
    ("warn_at", &["warn", "warning", "warn_threshold", "soft_limit", "threshold", "alert_at", "notify_at"]),
    ("match", &["path", "paths", "route", "routes", "url", "urls", "uri", "endpoint", "endpoints", "method", "methods"]),
    ("methods", &["method", "verb", "verbs", "http_method", "http_methods"]),
    // Algorithms.
    ("sliding_window", &["sliding", "sliding_log", "sliding_window_log", "moving_window", "moving", "rolling",
        "rolling_window", "log", "exact"]),
    ("fixed_window", &["fixed", "fixed_window_counter", "window", "tumbling_window"]),
    ("sliding_counter", &["sliding_window_counter", "approximate", "approximated_sliding_window", "weighted_window",
        "counter"]),
    ("token_bucket", &["bucket", "gcra", "leaky_bucket", "leaky", "tokenbucket", "leakybucket", "cell"]),
    // `on_outage`.
    ("deny", &["closed", "close", "fail_closed", "fail_close", "reject", "reject_all", "deny_all", "block", "refuse",
        "error", "fail", "raise", "throw", "unavailable", "503"]),
    ("local", &["memory", "in_memory", "standby", "fallback", "local_memory", "in_process", "process", "degrade",
        "degraded", "cache", "in_memory_fallback", "estimate"]),
    ("allow", &["open", "fail_open", "allow_all", "pass", "permit", "admit", "accept", "ignore", "skip", "bypass",
        "continue", "swallow", "none", "unlimited"]),
    // `until`.
    ("body", &["stream", "response", "response_body", "sent", "stream_end"]),
    // The text form of rules.
    ("1", &["once", "one"]),
    ("2", &["twice", "two"]),
    ("3", &["three"]),
    ("5", &["five"]),
    ("10", &["ten"]),
    ("about", &["approx", "approximately", "around", "sliding_counter", "approximate"]),
    ("fixed", &["fixed_window", "tumbling", "tumbling_window"]),
    ("sliding", &["sliding_window", "rolling", "rolling_window", "moving", "moving_window"]),
    ("bucket", &["token_bucket", "leaky_bucket", "leaky", "gcra"]),
    ("concurrent", &["concurrency", "concurrently", "parallel", "in_parallel", "simultaneous", "simultaneously", "in_flight",
        "at_once", "at_a_time", "at_the_same_time", "max_concurrent", "slots", "running"]),
    ("burst", &["capacity", "max"]),
    ("as", &["named", "name", "called"]),
];

/// Returns the first known word that another library calls so. Letter case and hyphens are ignored.
#[must_use]
pub fn synonym(name: &str, known: &[&str]) -> Option<&'static str> {
    let name = snake_case(name);
    let mut known = SYNONYMS.iter().filter(|(word, _)| known.contains(word));
    known.find(|(word, synonyms)| *word == name || synonyms.contains(&&*name)).map(|(word, _)| *word)
}

/// Returns the known word that is meant: by another library's name for it, or else by the most similar one.
#[must_use]
pub fn meant<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    synonym(word, known).or_else(|| nearest(word, known.iter().copied()))
}

/// Returns `did you mean …?`, or all known words after `otherwise` if none of them is meant.
#[must_use]
pub fn remedy(meant: Option<&str>, otherwise: &str, known: &[&str]) -> String {
    match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("{otherwise} `{}`", known.join("`, `")),
    }
}

/// Writes `maxCalls`, `max-calls` and `Max calls` as `max_calls`.
#[must_use]
pub fn snake_case(name: &str) -> String {
    let mut words = String::new();
    let mut is_behind_lower_case = false;
    for character in name.trim().chars() {
        if character.is_uppercase() && is_behind_lower_case {
            words.push('_');
        }
        is_behind_lower_case = character.is_lowercase() || character.is_ascii_digit();
        words.extend(if matches!(character, '-' | ' ' | '.') { '_' } else { character }.to_lowercase());
    }
    words
}

/// The message about a name with a placeholder.
pub const NAME_WITH_BRACES: &str =
    "`name` is fixed text; remove the braces, and use placeholders in a `key`, like `key = \"sms:{phone}\"`";

/// The message about an empty key of a rule.
pub const EMPTY_KEY: &str =
    "`key` must not be empty; to count all calls together, write any text, like `key = \"all\"`";

/// The message about an empty message.
pub const EMPTY_MESSAGE: &str = "`message` must not be empty; without `message`, the default text is used";

/// The message about the window of a limit that has none.
pub const NO_WINDOW: &str = "`{@per}` is the window of a rule, and a limit on concurrent calls has none; remove it";

/// Returns the message about a missing argument.
#[must_use]
pub fn missing_argument(name: &str, example: &str) -> String {
    format!("`{name}` is missing; add it, like `{example}`")
}

/// Returns the message about an argument that must be a text.
#[must_use]
pub fn must_be_text(name: &str, example: &str) -> String {
    format!("`{name}` must be a text in quotes, like `{example}`")
}

/// Returns the message about an argument that must be a whole number.
#[must_use]
pub fn must_be_number(name: &str, example: &str) -> String {
    format!("`{name}` must be a whole number, like `{example}`")
}

/// Returns the message about an argument that must be a number, and may have a fraction.
#[must_use]
pub fn must_be_fraction(name: &str, example: &str) -> String {
    format!("`{name}` must be a number, like `{example}`")
}

/// Returns the message about an unknown argument, with the known one that was probably meant.
///
/// # Examples
///
/// ```
/// let text = tallygate_rules::unknown_argument("cont", &["count", "per"]);
/// assert_eq!(text, "unknown argument `cont`; did you mean `count`?");
/// ```
#[must_use]
pub fn unknown_argument(name: &str, known: &[&str]) -> String {
    format!("unknown argument `{name}`; {}", remedy(meant(name, known), "the arguments are", known))
}

/// The longest word, in letters, that is compared with others. A comparison takes as many steps as the product of the
/// lengths.
const LONGEST_WORD: usize = 128;

/// Returns the known word that is most similar to `word`, if it is similar enough to be meant.
///
/// A third of the letters may differ, and one letter of a short word. Letter case is ignored.
///
/// # Examples
///
/// ```
/// assert_eq!(tallygate_rules::nearest("dayly", ["hourly", "daily"]), Some("daily"));
/// assert_eq!(tallygate_rules::nearest("weekly", ["hourly", "daily"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    if length > LONGEST_WORD {
        return None;
    }
    let most = (length / 3).max(1);
    let similar = known.into_iter().filter_map(|candidate| Some((edits_up_to(most, word, candidate)?, candidate)));
    similar.min_by_key(|&(edits, _)| edits).map(|(_, candidate)| candidate)
}

/// Returns `; did you mean …?` for the end of a message, or an empty text if no word is similar enough.
///
/// # Examples
///
/// ```
/// assert_eq!(tallygate_rules::did_you_mean("dayly", ["hourly", "daily"]), "; did you mean `daily`?");
/// assert_eq!(tallygate_rules::did_you_mean("weekly", ["hourly", "daily"]), "");
/// ```
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
}

/// Returns how many letters must be inserted, removed, replaced or swapped with their neighbour to turn one word into
/// the other, if it is at most `most`. Letter case is ignored.
pub(crate) fn edits_up_to(most: usize, one: &str, other: &str) -> Option<usize> {
    // Words of very different lengths need no slow comparison.
    let lengths = one.chars().count().abs_diff(other.chars().count());
    let edits = || osa_distance(&one.to_lowercase(), &other.to_lowercase());
    (lengths <= most).then(edits).filter(|&edits| edits <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_another_library_stands_for_an_argument_of_the_same_list() {
        assert_eq!(synonym("window", &["count", "per"]), Some("per"));
        assert_eq!(synonym("window", &["denials", "within", "duration"]), Some("within"));
        assert_eq!(synonym("ttl", &["denials", "within", "duration"]), Some("duration"));
        assert_eq!(synonym("permits", &["count", "per"]), Some("count"));
        assert_eq!(synonym("permits", &["limit", "lease"]), Some("limit"));
    }

    #[test]
    fn the_words_are_known_in_every_spelling() {
        for name in ["maxRequests", "max-requests", "MAX_REQUESTS", "Max requests"] {
            assert_eq!(synonym(name, &["count", "per"]), Some("count"), "{name}");
        }
        assert_eq!(synonym("onOutage", &["on_outage"]), Some("on_outage"));
    }

    #[test]
    fn a_word_that_fits_no_argument_of_the_list_stands_for_nothing() {
        assert_eq!(synonym("window", &["rule", "key"]), None);
        assert_eq!(synonym("colour", &["count", "per"]), None);
    }

    #[test]
    fn each_kind_of_slip_is_one_edit() {
        for slip in ["brst", "bursts", "bunst", "busrt"] {
            assert_eq!(edits_up_to(5, slip, "burst"), Some(1), "{slip}");
        }
        assert_eq!(edits_up_to(0, "BURST", "burst"), Some(0));
        assert_eq!(edits_up_to(3, "kitten", "sitting"), Some(3));
        assert_eq!(edits_up_to(2, "kitten", "sitting"), None);
    }

    #[test]
    fn the_most_similar_word_is_suggested() {
        assert_eq!(nearest("inital", ["burst", "initial"]), Some("initial"));
        assert_eq!(nearest("bunst", ["hunt", "burst"]), Some("burst"));
        assert_eq!(nearest("pre", ["rule", "per"]), Some("per"));
    }

    #[test]
    fn a_word_like_no_other_suggests_nothing() {
        assert_eq!(nearest("window", ["per", "count"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
