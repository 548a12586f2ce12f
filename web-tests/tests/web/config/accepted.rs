//! Files that are accepted.

use tallygate::Limiter;
use tallygate::config::Policies;

/// Every form in which something can be written.
pub(super) const ACCEPTED: [&str; 54] = [
    "",
    "# none\n[end] # here\n\n# and nothing more",
    "\u{feff}[policy.a]\r\nrules = ['1 per 60s']\r\n[end]\r\n",
    "[policy.a]\nrules = ['1 per 60s']\n[end]",
    "values = []\n[policy.a]\nmatch = { path = '/' }\nkey = '{@ip} {@method} {@path} {@route} {@header_x}'\nrules = ['1 per 1m']",
    "values = ['user', 'plan']\n[policy.a]\nmatch = { path = '/' }\nkey = '{@user}'\nrules = ['1 per 1m']\nplan = '{@plan}'\nplans.a = 1",
    "[policy.a]\nrules = ['1 per 60s']",
    "[policy.'sms.send']\nkey = 'sms:{phone}'\nrules = ['1 per 60s', { count = 10, per = '1d', name = 'daily' }]",
    "policy.a.rules = ['about 100000 per 1h', '100 per fixed 1d as daily', 'prevent_duplicate per 5s']",
    "policy.a = { rules = ['5 per 1s burst 100', '10 per \"0 0 6 * * *\" Asia/Shanghai'] }",
    "policy.a.rules = [{ count = 1_000, per = '1h', algorithm = 'fixed_window' }]",
    "policy.a.rules = [{ count = 0x10, per = '1h', algorithm = 'sliding_counter' }]",
    "policy.a.rules = [{ count = 5, per = '1s', algorithm = 'token_bucket', capacity = 9, initial = 3, reset_after = '1h' }]",
    "policy.a.rules = [{ count = 5, cron = '0 0 6 * * *', tz = 'Asia/Shanghai' }, { count = 1, cron = '@hourly' }]",
    "policy.a.rules = ['1 per 60s', { count = 9, per = '60s', key = '{ip:subnet(24, 56)}' }]",
    "policy.a.rules = ['10 concurrent lease 30s as exports', { limit = 3, lease = '1m', key = '{user}' }, '9 per 1m']",
    "policy.a.rules = [{ limit = 100_000, lease = '1h', name = 'exports' }, 'prevent_duplicate']",
    "[policy.a]\nmatch = { path = '/exports' }\nkey = '{@user}'\nrules = [{ limit = 1, lease = '30s' }, { limit = 50, lease = '30s', key = 'all' }]",
    "[policy.a]\nmatch = { path = '/search' }\nkey = '{@user:lower|@ip}'\nrules = ['60 per 1m', { count = 9, per = '1m', key = '{@route} {@session|@ip}' }]",
    "policy.a.rules = ['60 per 1m', '20_000 tokens per 1m', '500 tokens per 1s burst 2_000', '9 calls per 1s', '3 calls concurrent lease 30s']",
    "policy.a.rules = [{ count = 20_000, per = '60s', unit = 'tokens' }, { count = 9, per = '1s', unit = 'calls' }]",
    "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['60 per 1m', '20_000 tokens per 1m']\ncost = { calls = 2, tokens = 500 }",
    "[plans]\nfree = 4\n[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['9 per 60s burst 50']\ncost = 5\nplan = '{@plan}'",
    "[policy.a]\non_outage = 'local'\ndeadline = '50ms'",
    "[policy.a]\nplans.free = 100\nplans.'paid in advance' = 10_000\nplans.none = 0",
    "[policy.a]\nmatch = { path = '/' }\nkey = '{@user}'\nrules = ['10 per 60s']\nplan = '{@plan}'\nplans = { paid = 1_000 }",
    "plans = ['free', 'paid']\n[policy.a]\nplans.free = 100\n[policy.b]\nplans = { paid = 7, free = 1 }",
    "[plans]\nfree = 100\n'paid in advance' = 10_000\n[policy.a]\nplans.free = 7",
    "[plans]\nfree = 100\n[policy.a]\nmatch = { path = '/' }\nkey = '{@user}'\nrules = ['10 per 60s']\nplan = '{@plan}'",
    "[policy.a]\nplans = { free = 1, paid = 9 }\n[policy.b]\nplans = { free = 2, partner = 9 }",
    "[policy.a]\nplans = { free = 3, pro = { calls = 20, tokens = 60_000 } }",
    "[plans]\nfree = { calls = 3 }\npro = { bytes = 0 }\n[policy.a]\nmatch = { path = '/' }\nkey = '{@user}'\nrules = ['10 per 60s']\nplan = '{@plan}'",
    "[policy.a]\nmatch = { path = '/' }\nkey = '{@user}'\nrules = ['10 per 60s', '900 tokens per 60s']\ncost = { tokens = 5 }\nplan = '{@plan}'\nplans.pro.tokens = 60_000",
    "[policy.a]\nwarn_at = 0.8",
    "[policy.a]\nprefetch = false",
    "[policy.a]\nshadow = true",
    "policy.a.rules = ['10 per 60s', '5 per 60s shadow', { count = 3, per = '60s', key = '{ip}', shadow = true }]",
    "[policy.a]\nmatch = { path = '/' }\nkey = '{@ip}'\nrules = ['10 per 60s', { count = 5, per = '60s', shadow = true }]",
    "[policy.a]\nrules = ['10 per 60s']\nshadow = false",
    "[policy.a]\nmatch = { path = '/*' }\nkey = '{@user}'\nrules = ['60 per 1m', { count = 1_000, per = '1s', key = '{@plan}' }]\nprefetch = '100ms'",
    "[policy.a]\nrules = ['10 per 60s']\nmatch = { path = '/' }\nkey = '{@ip}'\nwarn_at = 0.5",
    "[policy.a]\nmatch = { path = '/login', methods = ['POST'] }\nkey = '{@ip}'\nrules = ['1 per 60s']",
    "[policy.a]\nmatch.path = ['/a', '/b/*']\nkey = 'all'\nrules = ['1 per 60s']\nshadow = true\non_outage = 'allow'",
    "[policy.a]\nmatch = { methods = 'PURGE' }\nkey = '{@ip}:{@user:lower}'\nrules = [{ count = 10, per = '1m', key = '{@ip}' }, '9 per 1m']",
    "[policy.a]\nmatch = { path = '/*' }\nkey = '{@ip}'\nrules = ['1 per 60s']\nban = { denials = 20, within = '10m', duration = '1h' }",
    "[policy.a]\nmatch = { path = '/*' }\nkey = '{@ip}'\nrules = ['9 per 60s', { count = 99, per = '60s', key = 'all' }]\nlongest_pause = '30m'",
    "[policy.a]\nmatch = { path = '/*' }\nkey = '{@header_x_api_key}'\nrules = ['9 per 60s']\ncost = 5\nrefund_if = 'failure'\nexempt_paths = '/health'",
    "[policy.a]\nmatch = { path = ['/a/*', '/b'] }\nkey = '{@ip}'\nrules = ['9 per 60s']\nexempt_paths = ['/a/*', '/a/health']\nrefund_if = 'success'\nreject = { status = 403, body = 'not now', content_type = 'text/plain' }",
    "[policy.a]\nmatch = { path = '/*' }\nkey = '{@ip}'\nmessage = 'wait {@retry_after}, {@ip:hash}'\nrules = [{ count = 9, per = '1m', message = '{@count} {@unit} per {@per}: {@rule}' }, { limit = 1, lease = '9s', message = '{@path}' }]\nban = { denials = 9, within = '1m', duration = '1h', message = '{{{@user}}}' }",
    "[policy.a]\nmatch = { path = ['/api/a', '/login'] }\nkey = '{@ip}'\nrules = ['9 per 60s']\nexempt_paths = '/api/*'",
    "[policy.a]\nmatch = { path = '/a' }\nkey = '{@ip}'\nrules = ['1 per 60s']\n[policy.b]\nmatch = { path = '/*' }\nkey = '{@ip}'\nrules = ['9 per 60s']",
    "[policy.a]\nmatch = { path = '/*' }\nkey = '{@ip}'\nrules = ['1 per 60s']\nshadow = true\n[policy.b]\nmatch = { path = '/*' }\nkey = '{@ip}'\nrules = ['9 per 60s']",
    "[policy.a]\nmatch = { path = '/*' }\nkey = '{@ip}'\nrules = ['1 per 60s']\n[policy.b]\nmatch = { path = '/*' }\nkey = '{@ip}'\nrules = ['9 per 60s']\nshadow = true",
    "[policy.a]\nmatch = { path = '/*', methods = ['GET'] }\nkey = '{@ip}'\nrules = ['1 per 60s']\n[policy.b]\nmatch = { path = '/*' }\nkey = '{@ip}'\nrules = ['9 per 60s']",
];

#[test]
fn every_form_of_a_policy_is_accepted() {
    for text in ACCEPTED {
        // Other tests build a policy `a`, too.
        let text = &text.replace("policy.a", "policy.accepted");
        let policies = Policies::from_toml(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        Limiter::in_memory().apply(&policies).unwrap_or_else(|error| panic!("{text}\n{error}"));
    }
}

#[test]
fn policies_have_the_order_of_the_file() {
    let text =
        "[policy.z]\nrules = ['1 per 60s']\n[policy.'a.b']\nrules = ['1 per 60s']\n[policy.m]\non_outage = 'deny'";
    let policies = Policies::from_toml(text).unwrap();
    assert_eq!(policies.names().collect::<Vec<_>>(), ["z", "a.b", "m"]);
    assert_eq!(format!("{policies:?}"), r#"Policies { names: ["z", "a.b", "m"], .. }"#);
}

#[test]
fn every_file_of_the_documentation_is_accepted() {
    for text in documented() {
        if let Err(error) = Policies::from_toml(&text) {
            panic!("{text}\n{error}");
        }
    }
}

/// The files in the page about them.
pub(super) fn documented() -> Vec<String> {
    let page = include_str!("../../../../runtime/guide/configuration.md");
    let blocks = page.split("```toml\n").skip(1);
    let files: Vec<_> = blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect();
    assert!(files.len() >= 3, "the page has examples");
    files
}
