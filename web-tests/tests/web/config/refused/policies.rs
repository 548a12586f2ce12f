//! Mistakes in a policy of a function, or in the file as a whole.

use super::Schema::{Accepts, Refuses};
use super::{Refused, refused};

pub(super) const REFUSED: &[Refused] = &[
    refused(
        Accepts,
        "[‸end]\n[policy.a]\nrules = ['1 per 1m']",
        &["`[end]` must be the last line, and have nothing in it"],
    ),
    refused(
        Refuses,
        "[policy.a]\nrules = ['1 per 1m']\n[‸end]\nwhole = true",
        &["`[end]` must be the last line, and have nothing in it"],
    ),
    refused(Refuses, "‸end = true", &["`[end]` must be the last line, and have nothing in it"]),
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
        "policy.a.rules = [{ count = 9, per = '1m', unit = ‸'Tokens' }]",
        &["`Tokens` is not the name of a unit; did you mean `tokens`?"],
    ),
    refused(
        Accepts,
        "policy.a.rules = [{ count = 9, per = '1m', unit = ‸'burst' }]",
        &["`burst` is a word of the text of rules, and not the name of a unit; write another, like `tokens`"],
    ),
    refused(
        Refuses,
        "policy.a.rules = [‸'20k tokens/min']",
        &["`20k tokens/min` is not a rule: the count `20k` is not a whole number; did you mean `20000 tokens per 1m`?"],
    ),
    refused(
        Accepts,
        "policy.a.rules = [‸'9 requests per 1m']",
        &[
            "`9 requests per 1m` is not a rule: `requests` means calls, which a rule counts without a unit; did you mean `9 per 1m`?",
        ],
    ),
    refused(
        Refuses,
        "policy.a.rules = [{ limit = 1, lease = '30s', ‸unit = 'tokens' }]",
        &["`unit` is for a rule with a `count`: a limit on concurrent calls counts calls; remove it"],
    ),
    refused(
        Accepts,
        "policy.a.rules = [{ count = ‸10_000_000_000, per = '1d', unit = 'bytes' }]",
        &[
            "`count` of this algorithm is at most 2147483648, as a log stores sums of costs in 32 bits; count a larger unit, like kilobytes in place of bytes, or use the algorithm `fixed_window`",
        ],
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
        "policy.a.rules = [{ limit = 1, lease = '30s', ‸until = 'body' }]",
        &[
            "`until` is an argument of the attribute; remove it: requests that a file limits run until their body is over",
        ],
    ),
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
        "[policy.a]\nrules = ['10 per 60s']\nshadow = ‸'yes'",
        &["`shadow` must be `true` or `false`, like `shadow = true`"],
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
