//! Mistakes in the names of plans.

use super::Schema::{Accepts, Refuses};
use super::{Refused, refused};

pub(super) const REFUSED: &[Refused] = &[
    refused(
        Accepts,
        "plans = ['free', 'pro']\n[policy.a]\nplans.free = 1\nplans.‸prp = 100",
        &["no plan `prp`; did you mean `pro`?"],
    ),
    refused(
        Accepts,
        "[plans]\nfree = 1\npro = 100\n[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['1 per 1h']\nplan = '{@plan}'\nplans = { ‸prp = 7, ‸enterprise = 9 }",
        &[
            "no plan `prp`; did you mean `pro`?",
            "no plan `enterprise`; add it to `plans` before the policies, or remove it",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nplans = { free = 1, pro = 9 }\n[policy.b]\nplans = { free = 2, ‸prp = 9 }",
        &[
            "no other policy has a plan `prp`; did you mean `pro`? If both are plans, list all of them before the policies, like \
             `plans = [\"free\", \"pro\", \"prp\"]`",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nplans = { ‸prp = 1 }\n[policy.b]\nplans.pro = 2\n[policy.c]\nplans.pro = 3",
        &[
            "no other policy has a plan `prp`; did you mean `pro`? If both are plans, list all of them before the policies, like \
             `plans = [\"pro\", \"prp\"]`",
        ],
    ),
    refused(Refuses, "plans = ‸[]", &["`plans` must not be empty, like `plans = [\"free\", \"paid\"]`"]),
    refused(Refuses, "[‸plans]", &["`plans` must not be empty, like `plans = { free = 100, paid = 10000 }`"]),
    refused(
        Refuses,
        "plans = ‸7",
        &[
            "`plans` must be a list of names, like `plans = [\"free\", \"paid\"]`, or counts, like `plans = { free = 100, paid = 10000 }`",
        ],
    ),
    refused(
        Refuses,
        "plans = [‸7, ‸' ']",
        &[
            "`plans` lists names, like `plans = [\"free\", \"paid\"]`",
            "the name of a plan must not be empty, like `plans = { free = 100, paid = 10000 }`",
        ],
    ),
    refused(
        Refuses,
        "plans = { free = ‸'100', ‸'' = 1 }",
        &[
            "`free` must be a number, like `free = 100`, or a number for each unit, like `free = { calls = 20, tokens = 60000 }`",
            "the name of a plan must not be empty, like `plans = { free = 100, paid = 10000 }`",
        ],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['1 per 1h']\nplan = '{@plan}'\nplans = { free = ‸'9', pro = { calls = ‸'9' } }",
        &[
            "`free` must be a number, like `free = 100`, or a number for each unit, like `free = { calls = 20, tokens = 60000 }`",
            "`calls` must be a number, like `calls = 100`",
        ],
    ),
    refused(
        Refuses,
        "[policy.a.plans]\nfree = ‸{}\npro = { tokens = ‸'many', ‸Bytes = 1 }",
        &[
            "the counts of a plan must not be empty, like `free = { calls = 20, tokens = 60000 }`",
            "`tokens` must be a number, like `tokens = 100`",
            "`Bytes` is not the name of a unit; did you mean `bytes`?",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['1 per 1h', '9 tokens per 1h']\ncost = { tokens = 1 }\nplan = '{@plan}'\nplans = { free.‸tokns = 7, pro = { calls = 9, ‸bytes = 9 } }",
        &[
            "no rule counts `tokns`, so this plan changes nothing of it; did you mean `tokens`?",
            "no rule counts `bytes`, so this plan changes nothing of it; the rules count `calls`, `tokens`",
        ],
    ),
    refused(
        Accepts,
        "[plans]\npro.tokens = 9\n[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['1 per 1h']\nplan = ‸'{@plan}'",
        &[
            "no plan has a count in a unit that these rules count, so `plan` changes nothing; remove it, or add such counts to `plans`",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['9 per 1h', '900 tokens per 1h']\ncost = { tokens = 50 }\nplan = '{@plan}'\nplans = { ‸free = { calls = 1, tokens = 40 }, pro.tokens = 50 }",
        &[
            "no request of plan `free` is ever admitted: each costs 50 tokens, and its count is 40; raise the count, or lower the `cost`",
        ],
    ),
    // The faster a bucket fills, the less it holds beside what is taken ahead.
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['1000 per 1s burst 150']\ncost = 100\nprefetch = '50ms'\n\
         plan = '{@plan}'\nplans = { free = 900, ‸paid = 2_000, rich = 10_000 }",
        &[
            "no request of plan `paid` is ever admitted: each costs 100, and `prefetch` leaves 50 of the tokens of `2000 per 1s burst \
             150`; raise its `capacity`, shorten `prefetch`, or lower the `cost`",
        ],
    ),
    refused(
        Refuses,
        "policy.a.plans = { ‸'' = 1 }",
        &["the name of a plan must not be empty, like `plans = { free = 100, paid = 10000 }`"],
    ),
];
