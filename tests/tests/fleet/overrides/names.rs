//! Names that this process does not know.

use tallygate::{Limiter, Policy, Rule};

use super::{HOUR, hourly};

fn policy() -> Policy {
    let builder = Policy::builder("over.names").rule(hourly(2).named("hourly"));
    builder.rule_on("network", Rule::sliding_window(9, 24 * HOUR).named("daily")).build().unwrap()
}

#[tokio::test]
async fn an_unknown_policy_is_refused_while_others_are_known() {
    let limiter = Limiter::in_memory();
    let _policy = policy();
    let set = || limiter.override_policy("over.namse").text("1 per 1h");
    let refused = set().set().await.unwrap_err().to_string();
    assert!(refused.starts_with("this process knows no policy `over.namse`; did you mean `over.names`?"), "{refused}");
    assert!(refused.contains("`allow_unknown` stores the override all the same"), "{refused}");
    assert!(limiter.overrides().await.unwrap().is_empty());
    set().allow_unknown().set().await.unwrap();
    assert_eq!(limiter.overrides().await.unwrap()[0].policy(), "over.namse");
}

#[tokio::test]
async fn an_unknown_rule_or_subject_of_a_known_policy_is_refused() {
    let limiter = Limiter::in_memory();
    let _policy = policy();
    let builder = || limiter.override_policy("over.names");
    let refused = [
        (builder().text("horly = 1 per 1h"), "no rule with the name `horly`; did you mean `hourly`?"),
        (builder().text("2 = 1 per 1h"), "no rule at the position 2; its positions are 0, 1"),
        (builder().label("netwrok").text("1 per 1h"), "no rules on the subject `netwrok`; did you mean `network`?"),
        (
            builder().label("network").text("hourly = 1 per 1h"),
            "rule `hourly` counts the main subject; override it without a label",
        ),
        (
            builder().subject(&super::subject()).text("1 = 1 per 1h"),
            "rule 1 counts the subject `network`; override it with that label",
        ),
    ];
    for (builder, message) in refused {
        let refused = builder.clone().set().await.unwrap_err().to_string();
        assert!(refused.starts_with("policy `over.names`: ") && refused.contains(message), "{refused}");
        builder.allow_unknown().set().await.unwrap();
    }
}

#[tokio::test]
async fn a_single_rule_is_checked_beside_the_other_rules_of_a_known_policy() {
    let limiter = Limiter::in_memory();
    let rules = [hourly(2).named("hourly"), Rule::sliding_window(9, 24 * HOUR).named("daily")];
    let _policy = Policy::builder("over.beside").rules(rules).build().unwrap();
    let mistake = async |text: &str| {
        let set = limiter.override_policy("over.beside").text(text).set().await;
        set.unwrap_err().to_string()
    };
    let twice = "policy `over.beside`: rule 1: two rules count the same window of 1h; keep the stricter one";
    assert_eq!(mistake("daily = 5 per 1h").await, twice);
    assert!(mistake("daily = 5 per 0s").await.contains("rule 1: `per` must be longer than zero"));
    assert!(mistake("daily = 5 per 1d, daily = 6 per 1d").await.contains("rule `daily` is overridden twice"));
    assert!(mistake("daily = 5 per 1d, 6 per 1h").await.contains("say it of each"));
    assert!(mistake("daily = 5 per day").await.contains("did you mean `daily = 5 per 1d`?"));
    assert!(mistake("").await.contains("a rule is missing"));
    let none = limiter.override_policy("over.beside").set().await.unwrap_err().to_string();
    assert!(none.contains("at least one rule"), "{none}");
}
