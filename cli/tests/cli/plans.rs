//! Questions about a plan, or about a count, where each call gives the count of a rule.

use tallygate::config::Policies;
use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::until::until_found;

use crate::console::Console;
use crate::seeded::{HOUR, MINUTE, Seeded, folder, limiter, write};

/// The file that a program of the documentation applies.
const PLANS: &str = "\
[plans]
free = 2
paid = 10_000

[policy.search]
match = { path = \"/search\" }
key = \"{@user}\"
rules = [\"1 per 1h\"]
plan = \"{@plan}\"
";

/// Makes two calls of `zoe`, whose count is that of a plan, and waits until the policy is listed with its plans.
pub(crate) async fn begin(seeded: &Seeded) {
    let console = seeded.console();
    write(console.folder, "plans.toml", PLANS);
    let fleet = limiter(console.url, "tallygate").await;
    fleet.apply(&Policies::from_toml(PLANS).unwrap()).unwrap();
    let api = Policy::builder("api").key("{user}").rule(Rule::sliding_window(1, HOUR).varying()).build().unwrap();
    let paid = api.with_counts([fleet.plan_count("api", "paid").unwrap()]);
    for _ in 0..2 {
        assert!(fleet.check(&paid, &Subject::of("zoe")).await.unwrap().is_allowed());
    }
    let listed = async || fleet.registered_policies().await.unwrap();
    until_found("the plans are listed", async || {
        listed().await.find("api").is_some_and(|api| api.plans().count() == 2)
    })
    .await;
}

async fn applied(console: &Console<'_>, text: &str, policy: &Policy, counts: &[u64]) -> Limiter {
    let fleet = limiter(console.url, "tallygate").await;
    fleet.apply(&Policies::from_toml(text).unwrap()).unwrap();
    let policy = policy.with_counts(counts.iter().copied());
    assert!(fleet.check(&policy, &Subject::of("zoe")).await.unwrap().is_allowed());
    let listed = async || fleet.registered_policies().await.unwrap();
    until_found("it is listed", async || listed().await.find(policy.name()).is_some()).await;
    fleet
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peek_at_a_plan_says_whether_a_customer_is_limited() {
    let seeded = Seeded::start().await;
    begin(&seeded).await;
    let console = seeded.console();
    assert!(console.run("peek api zoe").expect(1).out.starts_with("undecided\n"));
    let denied = console.run("peek api zoe --plan free").expect(1).out;
    assert!(
        denied.starts_with("denied for ") && denied.contains(" by rule 0\n0   2 per 1h   0 left   resets in "),
        "{denied}"
    );
    let admitted = console.run("peek api zoe --plan paid").expect(0).out;
    assert!(admitted.starts_with("admitted\n0   10000 per 1h   9,998 left   resets in "), "{admitted}");
    assert!(console.run("peek api zoe --plan paid --cost 9999").expect(1).out.starts_with("denied for "));
    assert!(console.run("peek api zoe --count 3").expect(0).out.contains("0   3 per 1h   1 left   resets in "));
    let closed = console.run("peek api new --count 0").expect(1).out;
    assert!(closed.starts_with("denied for good by rule 0\n"), "{closed}");
    let json = console.run("peek api zoe --plan free --json").expect(1).json();
    assert_eq!((&json["admitted"], &json["rules"][0]["limit"]), (&false.into(), &2.into()));
    let json = console.run("policies --json").expect(0).json();
    assert_eq!(json["policies"][0]["plans"], serde_json::json!({ "free": 2, "paid": 10_000 }));
    assert_eq!(json["policies"][1]["plans"], serde_json::json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_or_a_count_that_cannot_be_asked_about_is_refused_with_a_remedy() {
    let seeded = Seeded::start().await;
    begin(&seeded).await;
    let console = seeded.console();
    let refused = |words: &str| console.run(words).expect(2).errors;
    let meant = "tallygate: policy `api` has no plan `piad`; did you mean `paid`? Its plans are `free`, `paid`\n";
    assert_eq!(refused("peek api zoe --plan piad"), meant);
    assert_eq!(refused("top api --plan piad"), meant);
    assert!(refused("peek login alice --plan paid").contains("each rule of policy `login` has its count"));
    assert!(refused("peek login alice --count 7").contains("leave the plan and the count out"));
    assert!(refused("peek api zoe --count many").contains("write a whole number, like 100"));
    assert!(refused("peek api zoe --count daily=7").contains("policy `api` has no rule `daily`"));
    assert!(refused("top --plan paid").contains("name the policy"));
    assert!(refused("top api --by denied --plan paid").contains("leave `--plan` and `--count` out"));
    let refused = |words: &str| console.run_with(words, "time,subject\n1800000000,zoe\n").expect(2).errors;
    assert_eq!(
        refused("simulate plans.toml search --plan piad"),
        "tallygate: plans.toml: policy `search` has no plan `piad`; did you mean `paid`? Its plans are `free`, `paid`\n"
    );
    assert!(
        refused("simulate limits.toml sms.send --plan paid").contains("each rule of policy `sms.send` has its count")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_rules_without_a_count_is_named() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let hourly = Rule::sliding_window(1, HOUR).named("hourly").varying();
    let rules = [hourly, Rule::fixed_window(100, HOUR), Rule::token_bucket(1, MINUTE).varying()];
    let policy = Policy::builder("several").key("{user}").rules(rules).build().unwrap();
    let text = "[policy.several]\nplans = { free = 1, paid = 5, 'a=b' = 3 }";
    let _fleet = applied(&console, text, &policy, &[5, 100, 5]).await;
    let several = console.run("peek several zoe --plan free").expect(2).errors;
    let remedy = "name the rule of each count, like `--count 0=100`, by its position, name or unit";
    assert!(several.contains(&format!("several rules whose count each call gives: 0, 2; {remedy}")), "{several}");
    assert_eq!(console.run("peek several zoe --plan a=b").expect(2).errors, several, "a plan may have such a name");
    for words in ["peek several zoe --plan =free", "peek several zoe --count =7"] {
        let unnamed = console.run(words).expect(2).errors;
        assert!(unnamed.contains(&format!("a count without a rule before its equals sign; {remedy}")), "{unnamed}");
    }
    let printed = console.run("peek several zoe --plan free --count 2=9").expect(1).out;
    assert!(printed.contains(" by rule 0 (hourly)\n0   1 per 1h as hourly"), "{printed}");
    assert!(printed.contains("\n2   9 per 1m bucket "), "{printed}");
    let printed = console.run("peek several zoe --plan hourly=free --plan 2=paid").expect(1).out;
    assert!(printed.contains(" by rule 0 (hourly)\n0   1 per 1h as hourly"), "{printed}");
    assert!(printed.contains("\n2   5 per 1m bucket "), "{printed}");
    assert!(console.run("peek several zoe --plan hourly=").expect(2).errors.contains("write the name of a plan"));
    let printed = console.run("peek several zoe --count hourly=7").expect(0).out;
    assert!(
        printed.contains("leaves out rule 2, ") && printed.contains("0   7 per 1h as hourly   6 left"),
        "{printed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_answers_for_the_rules_of_each_unit() {
    let seeded = Seeded::start().await;
    let console = seeded.console();
    let [calls, tokens] = [HOUR, MINUTE].map(|per| Rule::sliding_window(1, per).varying());
    let policy = Policy::builder("chat").key("{user}").rules([calls, tokens.counting("tokens")]).build().unwrap();
    let text = "[policy.chat]\nplans = { free = { calls = 1, tokens = 50 }, pro = { calls = 20, tokens = 60_000 } }";
    let _fleet = applied(&console, text, &policy, &[5, 100]).await;
    let listed = console.run("policies").expect(0).out;
    assert!(listed.contains("plans: free 1 calls and 50 tokens, pro 20 calls and 60,000 tokens"), "{listed}");
    let json = console.run("policies --json").expect(0).json();
    let chat = json["policies"].as_array().unwrap().iter().find(|policy| policy["name"] == "chat").unwrap();
    let [free, pro] =
        [[1, 50], [20, 60_000]].map(|[calls, tokens]| serde_json::json!({ "calls": calls, "tokens": tokens }));
    assert_eq!(chat["plans"], serde_json::json!({ "free": free, "pro": pro }));
    let admitted = console.run("peek chat zoe --plan pro").expect(0).out;
    assert!(admitted.contains(" 19 left ") && admitted.contains(" 60,000 tokens left"), "{admitted}");
    assert!(console.run("peek chat zoe --plan free").expect(1).out.contains(" by rule 0\n0   1 per 1h "));
    let mixed = console.run("peek chat zoe --plan tokens=free --plan pro").expect(0).out;
    assert!(mixed.contains(" 19 left ") && mixed.contains(" 50 tokens left"), "{mixed}");
    assert!(console.run("top chat --plan free").expect(0).out.starts_with("zoe   100 %   1 of 1 per 1h"));
}

#[test]
fn past_requests_are_decided_by_the_counts_of_a_plan_in_each_unit() {
    let folder = folder();
    let limits = "[policy.chat]\nmatch = { path = \"/chat\" }\nkey = \"{@user}\"\n\
                  rules = [\"1 per 1h\", \"100 tokens per 1h\"]\ncost = { tokens = 50 }\nplan = \"{@plan}\"\n\
                  plans = { pro = { calls = 3, tokens = 300 }, test.tokens = 50 }\n";
    write(folder.path(), "units.toml", limits);
    let console = Console { url: "", folder: folder.path() };
    let rows = "time,subject,tokens\n1800000000,zoe,90\n1800000001,zoe,90\n1800000002,zoe,200\n";
    let decided = |words: &str| console.run_with(&format!("simulate units.toml chat {words}"), rows).expect(0).out;
    assert!(decided("").starts_with("1 of 3 admitted"));
    assert!(decided("--plan pro").starts_with("2 of 3 admitted"));
    assert!(decided("--plan test").starts_with("0 of 3 admitted"));
    assert!(decided("--plan tokens=pro --count calls=9").starts_with("2 of 3 admitted"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_a_plan_would_deny_comes_first() {
    let seeded = Seeded::start().await;
    begin(&seeded).await;
    let console = seeded.console();
    let printed = console.run("top api").expect(0);
    assert_eq!(printed.out, "zoe   2 of n per 1h\n1 of 1 subject\n");
    let printed = console.run("top api --count 8").expect(0);
    assert_eq!(printed.out, "zoe   25 %   2 of 8 per 1h\n1 of 1 subject\n");
    let denied = console.run("top api --by wait --plan free").expect(0).out;
    assert!(denied.starts_with("zoe   100 %   2 of 2 per 1h   denied for "), "{denied}");
    assert!(console.run("top api --by wait --plan paid").expect(0).out.starts_with("nobody is denied by api"));
    let json = console.run("top api --rule 0 --plan free --json").expect(0).json();
    assert_eq!((&json["top"][0]["share"], &json["top"][0]["rules"][0]["limit"]), (&1_000.into(), &2.into()));
}

#[test]
fn past_requests_are_decided_by_the_count_of_a_plan() {
    let folder = folder();
    write(folder.path(), "plans.toml", PLANS);
    write(folder.path(), "more.toml", &PLANS.replace("free = 2", "free = 4"));
    let console = Console { url: "", folder: folder.path() };
    let decided = |words: &str| console.run(&format!("simulate plans.toml search calls.csv {words}")).expect(0).out;
    // Without a plan, the count in the rules.
    assert!(decided("").starts_with("2 of 6 admitted; denied: rule 0 4; "));
    assert!(decided("--plan free").starts_with("3 of 6 admitted; denied: rule 0 3; "));
    assert_eq!(decided("--plan paid"), "6 of 6 admitted\n");
    assert!(decided("--count 4").starts_with("5 of 6 admitted; denied: rule 0 1; "));
    assert!(decided("--count 0").starts_with("0 of 6 admitted; "));
    let compared = decided("--plan free --compare more.toml");
    assert!(compared.contains("newly admitted   2 calls"), "{compared}");
}
