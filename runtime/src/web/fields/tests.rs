mod duplicates;
mod units;

use std::time::Duration;

use sfv::{ListEntry, Parser};
use tallygate_rules::{Ban, Rule, TokenBucket};

use super::formats::ResponseField;
use super::*;
use crate::context::{Context, scope};
use crate::limiter::Limiter;
use crate::policy::Policy;
use crate::subject::Subject;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn policy(name: &'static str, rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy::builder(name).rules(rules).build().unwrap()
}

/// A limiter, and what it has decided.
struct Decided {
    limiter: Limiter,
    decisions: Decisions,
}

impl Decided {
    fn new() -> Self {
        Self { limiter: Limiter::in_memory(), decisions: Decisions::new() }
    }

    async fn call(&self, policy: &Policy, cost: u64) -> bool {
        let decision = self.limiter.check(policy, &Subject::of("alice")).cost(cost).report().await.unwrap();
        self.decisions.add(policy, &decision);
        decision.is_allowed()
    }

    /// Calls without a report: a denial is all that is known of it.
    async fn call_unreported(&self, policy: &Policy) -> bool {
        let decision = self.limiter.check(policy, &Subject::of("alice")).await.unwrap();
        self.decisions.add(policy, &decision);
        decision.is_allowed()
    }

    fn fields(&self, fields: impl Into<Fields>) -> Vec<ResponseField> {
        fields.into().render(&self.decisions)
    }

    /// The values of the fields of version 11.
    fn values(&self) -> [String; 2] {
        let fields = self.fields(Draft::V11);
        let value = |name| fields.iter().find(|field| field.0 == name).map(|field| field.1.clone()).unwrap_or_default();
        [value("ratelimit-policy"), value("ratelimit")]
    }
}

#[tokio::test(start_paused = true)]
async fn an_admitted_call_shows_what_remains_of_every_rule() {
    let decided = Decided::new();
    let rules = [Rule::sliding_window(5, secs(60)), Rule::fixed_window(100, secs(86_400)).named("daily")];
    assert!(decided.call(&policy("captcha", rules), 2).await);
    assert_eq!(
        decided.values(),
        [
            r#""captcha.1m";q=5;w=60, "captcha.daily";q=100;w=86400"#,
            r#""captcha.1m";r=3;t=60, "captcha.daily";r=98;t=86400"#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_denial_shows_its_wait_and_no_window_that_ends_later() {
    let decided = Decided::new();
    let policy = policy("captcha", [Rule::sliding_window(1, secs(60)), Rule::sliding_window(5, secs(3_600))]);
    assert!(decided.call(&policy, 1).await);
    tokio::time::advance(Duration::from_millis(1_500)).await;
    assert!(!decided.call(&policy, 1).await);
    let quotas = r#""captcha.1m";q=1;w=60, "captcha.1h";q=5;w=3600"#;
    assert_eq!(decided.values(), [quotas, r#""captcha.1m";r=0;t=59, "captcha.1h";r=4"#]);
    assert_eq!(decided.decisions.retry_after(), Some(Duration::from_millis(58_500)));
    assert!(decided.decisions.any_denied());
}

#[tokio::test(start_paused = true)]
async fn a_denial_without_a_report_shows_the_rule_that_denies() {
    let decided = Decided::new();
    let policy = policy("captcha", [Rule::sliding_window(1, secs(60)), Rule::sliding_window(5, secs(3_600))]);
    assert!(decided.call_unreported(&policy).await);
    assert_eq!(decided.fields(Draft::V11), []);
    assert!(!decided.call_unreported(&policy).await);
    assert_eq!(decided.values(), [r#""captcha.1m";q=1;w=60"#, r#""captcha.1m";r=0;t=60"#]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_never_admitted_has_no_window() {
    let decided = Decided::new();
    assert!(!decided.call(&policy("upload", [Rule::sliding_window(5, secs(60))]), 6).await);
    assert_eq!(decided.values(), [r#""upload.1m";q=5;w=60"#, r#""upload.1m";r=5"#]);
    assert_eq!(decided.decisions.retry_after(), None);
    assert_eq!(decided.fields(Draft::V7)[1].1, "limit=5, remaining=5, reset=60");
}

#[tokio::test(start_paused = true)]
async fn a_ban_is_a_limit_without_a_quota() {
    let decided = Decided::new();
    let ban = Ban::new(2, secs(600), secs(3_600));
    let policy = Policy::builder("login").rule(Rule::sliding_window(1, secs(60))).ban(ban).build().unwrap();
    for _ in 0..4 {
        decided.call(&policy, 1).await;
    }
    let [policies, limits] = decided.values();
    assert_eq!(policies, r#""login.1m";q=1;w=60"#);
    assert_eq!(limits, r#""login.1m";r=0;t=60, "login.ban";r=0;t=3600"#);
    let tightest = decided.fields(Fields::from(Draft::V11).items(Items::Tightest));
    assert_eq!(tightest, [("ratelimit".into(), r#""login.ban";r=0;t=3600"#.to_owned())]);
    assert_eq!(decided.fields(Draft::V7), [("ratelimit-policy".into(), "1;w=60".to_owned())]);
    assert_eq!(decided.fields(Legacy::XRateLimit), []);
}

#[tokio::test(start_paused = true)]
async fn fields_of_one_rule_are_of_the_limit_on_calls_while_no_other_denies() {
    let decided = Decided::new();
    let tokens = Rule::from_bucket(100_000, TokenBucket::new(secs(60))).named("tokens");
    let policy = policy("model", [Rule::concurrency(2, secs(30)), tokens, Rule::duplicate(secs(5))]);
    let decision = decided.limiter.check(&policy, &Subject::of("alice")).cost(40_000).report().await.unwrap();
    decided.decisions.add(&policy, &decision);
    let legacy = decided.fields(Legacy::XRateLimit);
    assert_eq!(legacy.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["100000", "60000", "24"]);
    assert_eq!(decided.fields(Draft::V7)[0].1, "100000;w=60");
    let tightest = decided.fields(Fields::from(Draft::V11).items(Items::Tightest));
    assert_eq!(tightest[0].1, r#""model.tokens";q=100000;w=60"#);
}

#[tokio::test(start_paused = true)]
async fn a_limit_on_calls_at_a_time_that_denies_is_the_rule_to_act_on() {
    let decided = Decided::new();
    let policy = policy("export", [Rule::concurrency(1, secs(30)), Rule::sliding_window(9, secs(60))]);
    let _running = decided.limiter.check(&policy, &Subject::of("alice")).await.unwrap();
    assert!(!decided.call(&policy, 1).await);
    let tightest = decided.fields(Fields::from(Draft::V11).items(Items::Tightest));
    assert_eq!(tightest[0].1, r#""export.concurrency";q=1;qu="concurrent-requests""#);
    assert_eq!(decided.fields(Legacy::XRateLimit)[0].1, "1");
}

#[tokio::test(start_paused = true)]
async fn the_window_of_a_bucket_is_the_time_in_which_it_fills() {
    let decided = Decided::new();
    let bucket = Rule::from_bucket(10, TokenBucket::new(secs(1)).with_capacity(100));
    assert!(decided.call(&policy("api", [bucket]), 5).await);
    assert_eq!(decided.values(), [r#""api.1s";q=100;w=10"#, r#""api.1s";r=95;t=1"#]);
}

#[tokio::test(start_paused = true)]
async fn a_window_of_less_than_a_second_is_one_of_a_second() {
    let decided = Decided::new();
    let rules =
        [Rule::sliding_window(5, Duration::from_millis(250)), Rule::sliding_window(9, Duration::from_millis(1_500))];
    assert!(decided.call(&policy("api", rules), 1).await);
    let quotas = r#""api.250ms";q=5;w=1, "api.1500ms";q=9;w=2"#;
    assert_eq!(decided.values(), [quotas, r#""api.250ms";r=4;t=1, "api.1500ms";r=8;t=2"#]);
}

#[cfg(feature = "cron")]
#[tokio::test(start_paused = true)]
async fn a_schedule_has_no_window_of_one_length() {
    let decided = Decided::new();
    let schedule = tallygate_rules::Schedule::parse("0 0 6 * * *", "UTC").unwrap();
    assert!(decided.call(&policy("report", [Rule::cron(10, schedule)]), 1).await);
    let [policies, limits] = decided.values();
    assert_eq!(policies, r#""report.schedule";q=10"#);
    assert!(limits.starts_with(r#""report.schedule";r=9;t="#), "{limits}");
}

#[tokio::test(start_paused = true)]
async fn rules_that_would_have_the_same_name_are_numbered() {
    let decided = Decided::new();
    let rules = [
        Rule::sliding_window(1, secs(60)).named("ban"),
        Rule::sliding_window(2, secs(600)).named("1h"),
        Rule::sliding_window(3, secs(3_600)),
    ];
    assert!(decided.call(&policy("a", rules), 1).await);
    assert_eq!(decided.values()[0], r#""a.ban.0";q=1;w=60, "a.1h.1";q=2;w=600, "a.1h.2";q=3;w=3600"#);
}

#[tokio::test(start_paused = true)]
async fn of_calls_under_one_policy_the_tightest_standing_is_shown() {
    let decided = Decided::new();
    let policy = policy("mail", [Rule::sliding_window(3, secs(60))]);
    assert!(decided.call(&policy, 1).await && decided.call(&policy, 2).await);
    assert_eq!(decided.values()[1], r#""mail.1m";r=0;t=60"#);
    let others = Decided { limiter: Limiter::in_memory(), ..decided };
    assert!(others.call(&policy, 1).await);
    assert_eq!(others.values()[1], r#""mail.1m";r=0;t=60"#);
}

#[tokio::test(start_paused = true)]
async fn the_tightest_rule_is_one_that_denied_or_else_the_one_with_the_least_left() {
    let decided = Decided::new();
    let tightest = |decided: &Decided| decided.fields(Fields::from(Draft::V11).items(Items::Tightest)).remove(1).1;
    assert!(decided.call(&policy("a", [Rule::sliding_window(9, secs(60)), Rule::sliding_window(5, secs(1))]), 1).await);
    assert_eq!(tightest(&decided), r#""a.1s";r=4;t=1"#);
    assert!(decided.call(&policy("b", [Rule::sliding_window(1, secs(60))]), 1).await);
    assert_eq!(tightest(&decided), r#""b.1m";r=0;t=60"#);
    assert!(!decided.call(&policy("c", [Rule::sliding_window(9, secs(10))]), 10).await);
    assert_eq!(tightest(&decided), r#""c.10s";r=9"#);
}

#[tokio::test(start_paused = true)]
async fn older_fields_show_the_tightest_rule() {
    let decided = Decided::new();
    assert!(decided.call(&policy("a", [Rule::sliding_window(9, secs(60)), Rule::fixed_window(5, secs(10))]), 1).await);
    let draft_7 = [("ratelimit-policy", "9;w=60, 5;w=10"), ("ratelimit", "limit=5, remaining=4, reset=10")];
    assert_eq!(decided.fields(Draft::V7), draft_7.map(|(name, value)| (name.into(), value.to_owned())));
    let legacy = [("x-ratelimit-limit", "5"), ("x-ratelimit-remaining", "4"), ("x-ratelimit-reset", "10")];
    assert_eq!(decided.fields(Legacy::XRateLimit), legacy.map(|(name, value)| (name.into(), value.to_owned())));
    assert_eq!(decided.fields(Fields::from(Draft::V11).legacy(Legacy::XRateLimit)).len(), 5);
    assert_eq!(decided.fields(Fields::none()), []);
}

#[tokio::test(start_paused = true)]
async fn a_refund_gives_back_what_remains() {
    let decided = Decided::new();
    let login = policy("login", [Rule::sliding_window(4, secs(1)), Rule::sliding_window(5, secs(60))]);
    let refunded = async {
        let alice = Subject::of("alice");
        let check = decided.limiter.check(&login, &alice);
        check.cost(2).refundable().await.unwrap().into_result().unwrap().refund().await.unwrap()
    };
    assert!(scope(Context::new().collect(&decided.decisions), refunded).await);
    assert_eq!(decided.values()[1], r#""login.1s";r=4;t=1, "login.1m";r=5;t=60"#);
}

#[tokio::test(start_paused = true)]
async fn very_many_decisions_leave_the_sixteen_tightest() {
    let decided = Decided::new();
    for count in (1..=40).rev() {
        let name = format!("policy.{count}");
        let policy = Policy::builder(name).rule(Rule::sliding_window(count, secs(60))).build().unwrap();
        assert!(decided.call(&policy, 1).await);
    }
    let limits = decided.values()[1].clone();
    assert_eq!(limits.matches(";r=").count(), 16);
    assert!(limits.contains(r#""policy.1.1m";r=0"#) && limits.contains(r#""policy.16.1m";r=15"#), "{limits}");
}

#[tokio::test(start_paused = true)]
async fn an_independent_parser_reads_the_fields_whatever_the_names_are() {
    let decided = Decided::new();
    let names = ["plain", "a \"b\" \\c", "Zoë;r=1, \"x\"", "a\nb\0", "𝄞"];
    for name in names {
        assert!(decided.call(&policy(name, [Rule::sliding_window(1_000_000, secs(60)).named(name)]), 1).await);
    }
    for value in decided.values() {
        assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{value}");
        let list: sfv::List = Parser::new(&value).parse().expect("a structured field");
        let name = |entry: &ListEntry| match entry {
            ListEntry::Item(item) => item.bare_item.as_string().expect("a string").as_str().to_owned(),
            ListEntry::InnerList(_) => panic!("an inner list"),
        };
        let found: Vec<_> = list.iter().map(name).collect();
        let expected = ["plain.plain", "a \"b\" \\c.a \"b\" \\c", "Zo%C3%AB;r=1, \"x\".Zo%C3%AB;r=1, \"x\""];
        assert_eq!(found[..3], expected);
        assert_eq!(found[3..], ["a%0Ab%00.a%0Ab%00", "%F0%9D%84%9E.%F0%9D%84%9E"]);
    }
}
