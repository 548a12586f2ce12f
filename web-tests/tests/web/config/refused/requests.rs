//! Mistakes in a policy of requests.

use super::Schema::{Accepts, Refuses};
use super::{Refused, refused};

pub(super) const REFUSED: &[Refused] = &[
    refused(
        Accepts,
        "values = ['user']\n[policy.a]\nmatch = { path = '/' }\nkey = ‸'{@usr}'\nrules = ['1 per 1m']",
        &["`{@usr}` is no value that `values` lists; did you mean `user`?"],
    ),
    refused(
        Accepts,
        "values = []\n[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['9 per 1m', { count = 1, per = '1m', key = ‸'{@tenant|@ip}' }]",
        &["`{@tenant}` is no value that `values` lists; add it there, if the program finds it in requests"],
    ),
    refused(
        Refuses,
        "values = [‸'@user', ‸7]",
        &[
            "`values` lists names of letters, digits and `_`, like `values = [\"user\", \"plan\"]`",
            "`values` lists names of letters, digits and `_`, like `values = [\"user\", \"plan\"]`",
        ],
    ),
    refused(
        Refuses,
        "[policy.‸a]\nmatch = { path = '/' }\nrules = ['10 per 60s']",
        &["`key` is missing; add it, like `key = \"{@ip}\"`"],
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
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = ‸'{@ip}'\nrules = [{ count = 1, per = '1m', key = 'all' }]",
        &["no rule uses this `key`, because each has a `key` of its own; remove one of theirs"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = ‸'{@user|ip}'\nrules = ['10 per 60s']",
        &[
            "`key`: `{@user|ip}`: the alternative `ip` is no value of the context; write the name of one behind an `@`, like \
           `{@user|@ip}`",
        ],
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
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\ncost = ‸0",
        &["`cost` must be at least 1, like `cost = 5`"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s', '90 per 1h']\ncost = ‸11",
        &["no request of this `cost` is ever admitted: `10 per 1m` admits at most 10 at once; lower the `cost`"],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\nrefund_if = ‸'failed'",
        &["`refund_if` must be `\"success\"`, so that only failures count, or `\"failure\"`"],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\nreject = { status = ‸200, ‸text = '' }",
        &[
            "`status` must be from 400 to 599, like `status = 403`",
            "unknown argument `text`; the arguments are `status`, `body`, `content_type`",
        ],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\n‸reject = { content_type = ‸'html' }",
        &[
            "`status` is missing; add it, like `status = 403`",
            "`content_type` must be a media type, like `content_type = \"text/html\"`",
        ],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\nexempt_paths = [‸'health']",
        &["the path `health` must start with `/`, like `/login`"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/api/*' }\nkey = '{@ip}'\nrules = ['10 per 60s']\nexempt_paths = [‸'/health', ‸'/*']",
        &[
            "`match` has no such path, so there is nothing to exempt; remove it, or change `path`",
            "this exempts all requests of the policy; exempt fewer paths, or remove the policy",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = ['/a', '/b'] }\nkey = '{@ip}'\nrules = ['10 per 60s']\nexempt_paths = [‸'/a', '/b']",
        &["this exempts all requests of the policy; exempt fewer paths, or remove the policy"],
    ),
    refused(
        Refuses,
        "[policy.a]\nrules = ['10 per 60s']\n‸cost = 5\n‸longest_pause = '1h'\n‸refund_if = 'success'\n‸reject = { status = 403 }\n‸exempt_paths = '/'",
        &[
            "`cost` of a function is an argument of its attribute; in a file it is for requests, beside `match`",
            "`longest_pause` of a function is an argument of its attribute; in a file it is for requests, beside `match`",
            "`refund_if` of a function is an argument of its attribute; in a file it is for requests, beside `match`",
            "`reject` of a function is an argument of its attribute; in a file it is for requests, beside `match`",
            "`exempt_paths` is for requests, beside `match`",
        ],
    ),
    refused(
        Refuses,
        "[policy.a]\nrules = ['1000 per 60s']\nprefetch = ‸'100ms'\n[policy.b]\nrules = ['1000 per 60s']\nprefetch = ‸true",
        &["`prefetch` of a function is an argument of its attribute; in a file, `prefetch = false` has each call ask Redis";
            2],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['1000 per 60s']\nprefetch = ‸false",
        &["`prefetch` must be a text in quotes, like `prefetch = \"100ms\"`"],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['9 per 60s']\nlongest_pause = ‸true",
        &["`longest_pause` must be a text in quotes, like `longest_pause = \"1h\"`"],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['9 per 60s']\n‸pausable = true",
        &["unknown argument `pausable`; did you mean `longest_pause`?"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['1000 per 60s']\nprefetch = '100ms'\nlongest_pause = ‸'1h'",
        &[
            "a subject cannot be paused beside `prefetch`: other processes would still make the calls that they have taken ahead; remove \
             one of them",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = [{ count = 9, per = '60s', key = 'all' }, '5 per 60s shadow']\n\
         longest_pause = ‸'1h'",
        &["no enforced rule counts the subject that is paused; add a rule on it"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['1000 per 500ms']\nprefetch = ‸'100ms'",
        &[
            "`prefetch` is at most a tenth of the shortest `per`, and too long for `1000 per 500ms`; write at most `prefetch = \"50ms\"`",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['600 per 60s', '60_000 tokens per 60s burst 700']\n\
         cost = { tokens = 650 }\nprefetch = ‸'100ms'",
        &[
            "`prefetch` of 100ms leaves 600 of the tokens of `60000 tokens per 1m burst 700`, which is less than a call takes; raise its `capacity`, shorten `prefetch`, or remove it",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\nplan = ‸'{@plan}'",
        &["`plan` needs `plans`, like `plans = { free = 100 }`"],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\n‸plans = { free = 100 }",
        &["`plans` of requests need a `plan`, like `plan = \"{@plan}\"`"],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\nplan = ‸'plan'\nplans = { free = ‸'100', paid = ‸-1 }",
        &[
            "`plan` must be one value of the context, like `plan = \"{@plan}\"`",
            "`free` must be a number, like `free = 100`, or a number for each unit, like `free = { calls = 20, tokens = 60000 }`",
            "`paid` must be a number, like `paid = 100`, or a number for each unit, like `paid = { calls = 20, tokens = 60000 }`",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 concurrent lease 30s']\nplan = '{@plan}'\n‸plans = { free = 100 }",
        &["`plans` need a rule whose count they set, like `rules = [\"100 per 1h\"]`"],
    ),
    refused(
        Accepts,
        "[plans]\nfree = 100\n[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 concurrent lease 30s']\nplan = ‸'{@plan}'",
        &["`plans` need a rule whose count they set, like `rules = [\"100 per 1h\"]`"],
    ),
    refused(
        Refuses,
        "[policy.a]\n‸plans = {}\n‸plan = '{@plan}'",
        &[
            "`plans` must not be empty, like `plans = { free = 100, paid = 10000 }`",
            "`plan` is for requests, beside `match`; the code of a function asks for a count of `plans` by `Limiter::plan_count`",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s', ‸'9 tokens per 1s', { count = 9, per = '1s', unit = ‸'bytes' }]",
        &[
            "requests cost nothing in `tokens`, so this rule limits nothing; write `cost = { tokens = 500 }`, count calls, or limit a function with `unit(\"tokens\", cost = …)`",
            "requests cost nothing in `bytes`, so this rule limits nothing; write `cost = { bytes = 500 }`, count calls, or limit a function with `unit(\"bytes\", cost = …)`",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s', '900 tokens per 60s']\n\
         cost = { ‸calls = 11, ‸tokens = 901, ‸token = 5 }",
        &[
            "no request of this `cost` is ever admitted: `10 per 1m` admits at most 10 at once; lower the `cost`",
            "no request of this `cost` is ever admitted: `900 tokens per 1m` admits at most 900 at once; lower the `cost`",
            "no rule counts `token`, so this costs nothing; did you mean `tokens`?",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['900 tokens per 60s']\ncost.tokens = 1\ncost.‸bytes = 5\ncost.‸calls = 5",
        &[
            "no rule counts `bytes`, so this costs nothing; the rules count `tokens`",
            "no rule counts `calls`, so this costs nothing; the rules count `tokens`",
        ],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s', '900 tokens per 60s']\n\
         cost = { ‸requests = 2, ‸Tokens = 5, ‸tokens = 0, bytes = ‸'5' }",
        &[
            "`requests` means calls, which a rule counts without a unit; remove it, or write another name",
            "`Tokens` is not the name of a unit; did you mean `tokens`?",
            "`cost` must be at least 1, like `cost = { tokens = 500 }`",
            "`bytes` must be a number, like `bytes = 100`",
        ],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s', '900 tokens per 60s']\ncost = { ‸calls = 0, tokens = 5 }",
        &["`cost` must be at least 1, like `cost = { calls = 5 }`"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['900 tokens per 60s', '3 concurrent lease 30s']\n\
         cost = { ‸calls = 2, tokens = 5, ‸bytes = 5 }",
        &[
            "`cost` needs a rule that counts it, like `10 per 60s`: `prevent_duplicate` and `concurrent` count each call once; \
             remove it, or add a rule",
            "no rule counts `bytes`, so this costs nothing; the rules count `tokens`",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['3 concurrent lease 30s']\ncost.‸tokens = 5",
        &[
            "`cost` needs a rule that counts it, like `900 tokens per 60s`: `prevent_duplicate` and `concurrent` count each call \
             once; remove it, or add a rule",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['3 concurrent lease 30s', '900 tokens per 60s']\n\
         cost = { tokens = 500 }\nplan = '{@plan}'\nplans = { closed = 0, ‸free = 499, paid = 500, ‸trial = 1 }",
        &[
            "no request of plan `free` is ever admitted: each costs 500 tokens, and its count is 499; raise the count, or lower \
             the `cost`",
            "no request of plan `trial` is ever admitted: each costs 500 tokens, and its count is 1; raise the count, or lower \
             the `cost`",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['9 per 1m', '900 bytes per 1d']\ncost.bytes = 5\n\
         plan = '{@plan}'\nplans = { free = 9, ‸big = { calls = 9, bytes = 10_000_000_000 } }",
        &["plan `big` has a count of 10000000000, and that of this algorithm is at most 2147483648; lower it"],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nplan = '{@plan}'\nplans = { free = 9 }\nprefetch = '200ms'\nrules = [‸'1000 per 60', { count = 1000, per = ‸'1x' }]",
        &[
            "`1000 per 60` is not a rule: the duration `60` has no unit; did you mean `1000 per 1m`?",
            "`per` has the unknown unit `x`; write a whole number and one of `ms`, `s`, `m`, `h`, `d`, like \"60s\"",
        ],
    ),
    refused(
        Accepts,
        "[plans]\nfree = 4\npaid = 100\n[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\ncost = 5\nplan = ‸'{@plan}'",
        &[
            "no request of plan `free` is ever admitted: each costs 5, and its count is 4; raise the count, or lower the `cost`",
        ],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\n‸cost = {}",
        &["`cost` must not be empty, like `cost = { tokens = 500 }`"],
    ),
    refused(
        Refuses,
        "[policy.a]\n‸message = 'no'\nrules = [{ count = 9, per = '1m', message = ‸'no' }]",
        &["`message` of a function is an argument of its attribute; in a file it is for requests, beside `match`"; 2],
    ),
    refused(
        Refuses,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\nmessage = ‸7",
        &["`message` must be a text in quotes, like `message = \"try again in {@retry_after}\"`"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\nmessage = ‸'slow down, {user}'",
        &["`{user}` is no value of the context; write the name of one behind an `@`, like `{@ip}`"],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = ‸'{@header_X-Key}'\nrules = ['10 per 60s']",
        &[
            "`key`: `{@header_X-Key}` is no value of the context; write its name with letters, digits and `_`, like `{@header_x_api_key}`",
        ],
    ),
    refused(
        Accepts,
        "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = [{ count = 1, per = '1m', message = ‸'$unit: none' }]\nmessage = ‸'{{@user}}'",
        &[
            "`$unit` without braces is fixed text, so this `message` shows it as it stands; write `{@unit}`",
            "`{{@user}}` in double braces is fixed text, so this `message` shows it as it stands; write `{@user}`, or `{{{@user}}}` for the value in braces",
        ],
    ),
    refused(
        Accepts,
        "values = ['user']\n[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s']\nmessage = ‸'{@usr}'",
        &["`{@usr}` is no value that `values` lists; did you mean `user`?"],
    ),
];
