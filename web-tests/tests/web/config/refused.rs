//! Files that are refused: each with a `‸` before every place that is reported, and what is said of it.

/// Whether the schema refuses a file, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Schema {
    Refuses,
    /// What is wrong is beyond what a schema can say.
    Accepts,
}
use Schema::{Accepts, Refuses};

/// A file that is refused.
pub(super) struct Refused {
    pub(super) text: &'static str,
    /// What is said at each place, in the order of the places.
    pub(super) mistakes: &'static [&'static str],
    pub(super) schema: Schema,
    /// The compile error of the same mistake, by its file in `tests/ui/fail`.
    pub(super) compile_error: Option<&'static str>,
}

const fn refused(schema: Schema, text: &'static str, mistakes: &'static [&'static str]) -> Refused {
    Refused { text, mistakes, schema, compile_error: None }
}

/// The compiler says the same.
const fn as_compiled(compile_error: &'static str, schema: Schema, text: &'static str) -> Refused {
    Refused { text, mistakes: &[], schema, compile_error: Some(compile_error) }
}

/// A mistake in a policy, or in the file as a whole.
pub(super) const REFUSED: &[Refused] = &[
    // What the compiler refuses, too.
    as_compiled("rule_count_zero", Refuses, "policy.a.rules = [{ count = ‸0, per = '60s' }]"),
    as_compiled("rule_count_zero", Accepts, "policy.a.rules = [‸'0 per 60s']"),
    as_compiled("rule_count_missing", Refuses, "policy.a.rules = [‸{ per = '60s' }]"),
    as_compiled("rule_count_too_large", Accepts, "policy.a.rules = [{ count = ‸2147483649, per = '60s' }]"),
    as_compiled(
        "rule_counter_too_large",
        Accepts,
        "policy.a.rules = [{ count = ‸100000000, per = '1h', algorithm = 'sliding_counter' }]",
    ),
    as_compiled("rule_per_missing", Refuses, "policy.a.rules = [‸{ count = 10 }]"),
    as_compiled("rule_per_zero", Accepts, "policy.a.rules = [{ count = 10, per = ‸'0s' }]"),
    as_compiled("rule_per_empty", Refuses, "policy.a.rules = [{ count = 10, per = ‸'' }]"),
    as_compiled("rule_per_without_unit", Refuses, "policy.a.rules = [{ count = 10, per = ‸'60' }]"),
    as_compiled("rule_per_unknown_unit", Refuses, "policy.a.rules = [{ count = 10, per = ‸'1M' }]"),
    as_compiled("rule_per_too_long", Accepts, "policy.a.rules = [{ count = 10, per = ‸'4000d' }]"),
    as_compiled("rule_per_number", Refuses, "policy.a.rules = [{ count = 10, per = ‸60 }]"),
    as_compiled(
        "rule_per_beside_cron",
        Refuses,
        "policy.a.rules = [{ count = 10, per = ‸'60s', cron = '0 0 6 * * *' }]",
    ),
    as_compiled("rule_argument_unknown", Refuses, "policy.a.rules = [{ ‸cuont = 10, per = '60s' }]"),
    as_compiled(
        "rule_argument_named_as_in_other_libraries",
        Refuses,
        "policy.a.rules = [{ ‸limit = 5, ‸interval = '60s', ‸by = '{phone}' }]",
    ),
    as_compiled(
        "rule_algorithm_misspelt",
        Refuses,
        "policy.a.rules = [{ count = 10, per = '60s', algorithm = ‸'sliding_windw' }]",
    ),
    as_compiled(
        "rule_algorithm_unlike_any_other",
        Refuses,
        "policy.a.rules = [{ count = 10, per = '60s', algorithm = ‸'lottery' }]",
    ),
    as_compiled("rule_algorithm_cron", Refuses, "policy.a.rules = [{ count = 10, per = '60s', algorithm = ‸'cron' }]"),
    as_compiled(
        "rule_algorithm_beside_cron",
        Refuses,
        "policy.a.rules = [{ count = 10, cron = '0 0 6 * * *', algorithm = ‸'fixed_window' }]",
    ),
    as_compiled(
        "rule_capacity_without_bucket",
        Refuses,
        "policy.a.rules = [{ count = 10, per = '60s', capacity = ‸100 }]",
    ),
    as_compiled(
        "rule_capacity_zero",
        Refuses,
        "policy.a.rules = [{ count = 10, per = '60s', algorithm = 'token_bucket', capacity = ‸0 }]",
    ),
    as_compiled(
        "rule_initial_zero",
        Refuses,
        "policy.a.rules = [{ count = 5, per = '1s', algorithm = 'token_bucket', initial = ‸0 }]",
    ),
    as_compiled("rule_initial_without_bucket", Refuses, "policy.a.rules = [{ count = 5, per = '1s', initial = ‸3 }]"),
    as_compiled(
        "rule_reset_after_zero",
        Accepts,
        "policy.a.rules = [{ count = 5, per = '1s', algorithm = 'token_bucket', reset_after = ‸'0s' }]",
    ),
    as_compiled(
        "rule_bucket_that_is_reset_before_a_token",
        Accepts,
        "policy.a.rules = [{ count = 1, per = '1h', algorithm = 'token_bucket', capacity = 5, reset_after = ‸'10s' }]",
    ),
    as_compiled(
        "rule_time_zone_without_cron",
        Refuses,
        "policy.a.rules = [{ count = 10, per = '60s', tz = ‸'Asia/Shanghai' }]",
    ),
    as_compiled(
        "rule_time_zone_misspelt",
        Accepts,
        "policy.a.rules = [{ count = 10, cron = '0 0 6 * * *', tz = ‸'Asia/Shangai' }]",
    ),
    as_compiled("rule_cron_of_five_fields", Accepts, "policy.a.rules = [{ count = 10, cron = ‸'0 6 * * *' }]"),
    as_compiled("rule_key_empty", Refuses, "policy.a.rules = [{ count = 10, per = '60s', key = ‸'' }]"),
    as_compiled("rule_name_empty", Refuses, "policy.a.rules = [{ count = 10, per = '60s', name = ‸'' }]"),
    as_compiled(
        "rule_name_with_a_placeholder",
        Refuses,
        "policy.a.rules = [{ count = 10, per = '60s', name = ‸'{phone}' }]",
    ),
    as_compiled(
        "two_rules_of_one_name",
        Accepts,
        "policy.a.rules = ['10 per 60s as quota', { count = 20, per = '120s', name = ‸'quota' }]",
    ),
    as_compiled("two_rules_of_one_window", Accepts, "policy.a.rules = ['10 per 60s', { count = 5, per = ‸'1m' }]"),
    as_compiled("rule_that_never_binds", Accepts, "policy.a.rules = [‸{ count = 20, per = '60s' }, '10 per 120s']"),
    as_compiled("concurrency_limit_missing", Refuses, "policy.a.rules = [‸{ lease = '30s' }]"),
    as_compiled("concurrency_limit_zero", Refuses, "policy.a.rules = [{ limit = ‸0, lease = '30s' }]"),
    as_compiled("concurrency_limit_too_large", Accepts, "policy.a.rules = [‸'1000000 concurrent lease 30s']"),
    as_compiled("concurrency_lease_number", Refuses, "policy.a.rules = [{ limit = 10, lease = ‸30 }]"),
    as_compiled("concurrency_lease_without_unit", Refuses, "policy.a.rules = [{ limit = 10, lease = ‸'30' }]"),
    as_compiled("concurrency_lease_too_short", Accepts, "policy.a.rules = [{ limit = 10, lease = ‸'500ms' }]"),
    as_compiled("concurrency_lease_too_long", Accepts, "policy.a.rules = [{ limit = 10, lease = ‸'2h' }]"),
    as_compiled(
        "two_concurrency_limits_of_one_subject",
        Accepts,
        "policy.a.rules = ['10 concurrent lease 30s', ‸{ limit = 20, lease = '1m' }]",
    ),
    as_compiled("rule_key_empty", Refuses, "policy.a.rules = [{ count = 10, per = '60s', key = ‸' ' }]"),
    as_compiled("rule_name_empty", Refuses, "policy.a.rules = [{ count = 10, per = '60s', name = ‸' ' }]"),
    as_compiled(
        "key_of_the_client_without_braces",
        Accepts,
        "policy.a.rules = [{ count = 10, per = '60s', key = ‸'@ip' }]",
    ),
    as_compiled("placeholder_unclosed", Accepts, "policy.a = { key = ‸'sms:{phone', rules = ['10 per 60s'] }"),
    as_compiled("on_outage_misspelt", Refuses, "policy.a.on_outage = ‸'lokal'"),
    as_compiled("on_outage_named_as_in_other_libraries", Refuses, "policy.a.on_outage = ‸'fail_open'"),
    as_compiled("deadline_zero", Accepts, "policy.a.deadline = ‸'0s'"),
    as_compiled("warn_at_zero", Refuses, "policy.a.warn_at = ‸0.0"),
    as_compiled("warn_at_in_percent", Refuses, "policy.a.warn_at = ‸80"),
    as_compiled("warn_at_with_quotes", Refuses, "policy.a.warn_at = ‸'0.8'"),
    as_compiled(
        "warn_at_without_a_rule_to_warn_of",
        Accepts,
        "policy.a = { match = { path = '/' }, key = '{@ip}', rules = ['1 per 60s'], warn_at = ‸0.8 }",
    ),
    as_compiled("deadline_without_unit", Refuses, "policy.a.deadline = ‸'50'"),
    as_compiled(
        "ban_denials_zero",
        Refuses,
        "policy.a = { match = { path = '/' }, key = '{@ip}', rules = ['10 per 60s'], ban = { denials = ‸0, within = '10m', duration = '1h' } }",
    ),
    as_compiled(
        "ban_denials_missing",
        Refuses,
        "policy.a = { match = { path = '/' }, key = '{@ip}', rules = ['10 per 60s'], ‸ban = { within = '10m', duration = '1h' } }",
    ),
    as_compiled(
        "ban_argument_misspelt",
        Refuses,
        "policy.a = { match = { path = '/' }, key = '{@ip}', rules = ['10 per 60s'], ban = { ‸denails = 20, within = '10m', duration = '1h' } }",
    ),
    // What only a file can have.
    refused(
        Refuses,
        "policy.a.rules = [‸'10 per day']",
        &[
            "`10 per day` is not a rule: the duration `day` does not start with a whole number; did you mean `10 per 1d`?",
        ],
    ),
    refused(
        Refuses,
        "policy.a.rules = [‸'n per 1h']",
        &["the count of a rule in a file is a number; write it in place of `n`"],
    ),
    refused(
        Refuses,
        "policy.a.rules = [‸'1 per 1m, 5 per 1h']",
        &["`1 per 1m, 5 per 1h` is not a rule: `,` separates the rules of a list, but one rule is expected; remove it"],
    ),
    refused(
        Refuses,
        "policy.a.rules = [‸10]",
        &["a rule must be a text, like `\"10 per 60s\"`, or a table, like `{ count = 10, per = \"60s\" }`"],
    ),
    refused(Refuses, "policy.a.rules = ‸'10 per 60s'", &["`rules` must be a list, like `rules = [\"10 per 60s\"]`"]),
    refused(Refuses, "policy.a.rules = ‸[]", &["`rules` needs at least one rule, like `rules = [\"10 per 60s\"]`"]),
    refused(
        Refuses,
        "policy.a.rules = [{ count = ‸-1, per = '60s' }]",
        &["`count` must be a whole number, like `count = 10`"],
    ),
    refused(
        Refuses,
        "policy.a.rules = [{ count = ‸1.5, per = '60s' }]",
        &["`count` must be a whole number, like `count = 10`"],
    ),
    refused(
        Refuses,
        "policy.a.rules = [{ ‸count = 10, lease = '30s' }]",
        &["unknown argument `count`; did you mean `limit`?"],
    ),
    refused(Refuses, "[policy.‸a]\n", &["`rules` is missing; add it, like `rules = [\"10 per 60s\"]`"]),
    refused(Refuses, "[policy.a]\n‸limits = ['10 per 60s']", &["unknown argument `limits`; did you mean `rules`?"]),
    refused(
        Refuses,
        "[policy.a]\nrules = ['10 per 60s']\n‸shadow = true",
        &["`shadow` of a function is an argument of its attribute; in a file it is for requests, beside `match`"],
    ),
    refused(
        Refuses,
        "[policy.sms.‸send]\nrules = ['10 per 60s']",
        &["unknown table `send`; a name with a dot stands in quotes, like `[policy.\"sms.send\"]`"],
    ),
    refused(
        Refuses,
        "[policy.‸'']\nrules = ['10 per 60s']",
        &["the name of a policy must not be empty, like `[policy.\"sms.send\"]`"],
    ),
    refused(Refuses, "[policy]\na = ‸'10 per 60s'", &["a policy must be a table, like `[policy.\"a\"]`"]),
    refused(Refuses, "[‸policies.a]\nrules = ['10 per 60s']", &["unknown argument `policies`; did you mean `policy`?"]),
    refused(Refuses, "policy = ‸7", &["`policy` must be a table of policies, like `[policy.\"sms.send\"]`"]),
    // Requests.
    refused(
        Refuses,
        "[policy.‸a]\nmatch = { path = '/' }\nrules = ['10 per 60s']",
        &["`key` is missing; add it, like `key = \"{@ip}\"`"],
    ),
    as_compiled(
        "rule_that_never_binds_beside_a_fixed_window",
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = [‸'20 per 60s', '10 per fixed 60s']",
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = [‸'5 per 60s', { count = 5, per = '60s', key = 'all' }]",
        &[
            "this rule can never bind: `5 per 1m` counts all calls and is at least as strict as `5 per 1m` for the calls of \
           each `{@ip}`; remove it, or raise the other's `count`",
        ],
    ),
    refused(
        Refuses,
        "[policy.a]\n‸match = {}\nkey = '{@ip}'\nrules = ['10 per 60s']",
        &["`path` is missing; add it, like `path = \"/*\"`"],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = ‸'login' }\nkey = '{@ip}'\nrules = ['10 per 60s']",
        &["the path `login` must start with `/`, like `/login`"],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = ['/a', ‸'/users/{id}'] }\nkey = '{@ip}'\nrules = ['10 per 60s']",
        &[
            "the path `/users/{id}` is not a path; write one like `/login`, or `/users/*` for all that begin with `/users/`",
        ],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { methods = [‸'post'] }\nkey = '{@ip}'\nrules = ['10 per 60s']",
        &["unknown method `post`; did you mean `POST`?"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { methods = [‸'PSOT'] }\nkey = '{@ip}'\nrules = ['10 per 60s']",
        &["unknown method `PSOT`; did you mean `POST`?"],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/', ‸method = 'GET' }\nkey = '{@ip}'\nrules = ['10 per 60s']",
        &["unknown argument `method`; did you mean `methods`?"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = ‸'{ip}'\nrules = ['10 per 60s']",
        &["`key`: `{ip}` is no value of the context; write the name of one behind an `@`, like `{@ip}`"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = ‸'login:@ip'\nrules = ['10 per 60s']",
        &["`key`: `@ip` without braces is fixed text, so this `key` is the same for all calls; write `{@ip}`"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = ‸'{@user}/{{ip}}'\nrules = ['10 per 60s']",
        &["`key`: `{{ip}}` in double braces is fixed text, so all its values share one tally; write `{@ip}`, or \
           `{{{@ip}}}` for the value in braces"],
    ),
    refused(
        Refuses,
        "policy.a.rules = [{ ‸permits = 10, ‸windowSeconds = 60 }, { count = ‸'10', per = ‸'1 minute', algorithm = ‸'gcra' }]",
        &[
            "unknown argument `permits`; did you mean `count`?",
            "unknown argument `windowSeconds`; did you mean `per`?",
            "`count` must be a whole number, like `count = 10`",
            "`per` has the unknown unit `minute`; did you mean `per = \"1m\"`?",
            "unknown algorithm `gcra`; did you mean `token_bucket`?",
        ],
    ),
    refused(
        Refuses,
        "policy.a.rules = [‸'10 requests/min', ‸'10 per 1s; 100 per 1h']",
        &[
            "`10 requests/min` is not a rule: after the count, `requests/min` stands in place of `per`; did you mean `10 \
             per 1m`?",
            "`10 per 1s; 100 per 1h` is not a rule: `;` does not separate rules; write `,` between them",
        ],
    ),
    refused(
        Refuses,
        "[policy.a]\n‸fail_open = true\n‸path = '/login'\nrules = ['10 per 60s']",
        &["unknown argument `fail_open`; did you mean `on_outage`?", "unknown argument `path`; did you mean `match`?"],
    ),
    refused(
        Refuses,
        "[policy.a]\non_outage = ‸'allow_all'\ndeadline = ‸50",
        &[
            "unknown `on_outage`: `allow_all`; did you mean `allow`?",
            "`deadline` must be a text in quotes, like `deadline = \"50ms\"`",
        ],
    ),
    refused(
        Accepts,
        "[policy.‸'sms.%s']\nrules = ['10 per 60s']",
        &["`%s` without braces is fixed text, so this `name` is the same for all calls; remove it"],
    ),
    refused(
        Refuses,
        "[policy.‸' ']\nrules = ['10 per 60s']",
        &["the name of a policy must not be empty, like `[policy.\"sms.send\"]`"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = ‸'{@ip}'\nrules = [{ count = 1, per = '1m', key = 'all' }]",
        &["no rule uses this `key`, because each has a `key` of its own; remove one of theirs"],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\nshadow = ‸1",
        &["`shadow` must be `true` or `false`, like `shadow = true`"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/api/*' }\nkey = '{@ip}'\nrules = ['10 per 60s']\n[policy.b]\n‸match = { path = '/api/login', methods = ['POST'] }\nkey = '{@ip}'\nrules = ['10 per 60s']",
        &["the policy `a` limits all these requests, as it stands first; write this one before it, or remove it"],
    ),
    // Several at once.
    refused(
        Refuses,
        "‸polisy = 1\n[policy.'sms.send']\nrules = ['1 per 60s', { count = ‸0, per = '1d', ‸nam = 'daily' }, ‸'5 per hour']\n‸kye = 'x'\n[policy.b]\non_outage = ‸'open'",
        &[
            "unknown argument `polisy`; did you mean `policy`?",
            "`count` must be at least 1, like `count = 10`",
            "unknown argument `nam`; did you mean `name`?",
            "`5 per hour` is not a rule: the duration `hour` does not start with a whole number; did you mean `5 per 1h`?",
            "unknown argument `kye`; did you mean `key`?",
            "unknown `on_outage`: `open`; did you mean `allow`?",
        ],
    ),
];
