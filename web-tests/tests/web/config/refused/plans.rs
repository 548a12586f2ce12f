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
            "`free` must be a number, like `free = 100`",
            "the name of a plan must not be empty, like `plans = { free = 100, paid = 10000 }`",
        ],
    ),
    refused(
        Refuses,
        "policy.a.plans = { ‸'' = 1 }",
        &["the name of a plan must not be empty, like `plans = { free = 100, paid = 10000 }`"],
    ),
];
