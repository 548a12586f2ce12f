//! Counts by name in a file.

use std::time::Duration;

use tallygate::{Limiter, Policy, Rejection, Rule, rate_limit};

use super::{apply, every_backend, try_apply};

const HOUR: Duration = Duration::from_secs(3_600);

every_backend!(
    a_count_may_be_that_of_a_plan_of_the_file,
    policies_share_the_plans_of_a_file,
    a_plan_has_a_count_for_each_unit
);

async fn a_count_may_be_that_of_a_plan_of_the_file(limiter: Limiter) {
    #[rate_limit(
        name = "config.planned",
        key = "{user}",
        rule(count = limiter.plan_count("config.planned", plan).unwrap_or(1), per = "1h"),
        limiter = limiter
    )]
    async fn call(limiter: &Limiter, user: &str, plan: &str) -> Result<(), Rejection> {
        Ok(())
    }
    let room = async |user: &str, plan: &str| {
        let mut admitted = 0;
        while call(&limiter, user, plan).await.is_ok() {
            admitted += 1;
        }
        admitted
    };
    assert_eq!(room("early", "free").await, 1);
    apply(&limiter, "[policy.'config.planned']\nplans.free = 2\nplans.paid = 0x5\nplans.none = 0")
        .require_known()
        .unwrap();
    assert_eq!([room("a", "free").await, room("b", "paid").await, room("c", "other").await], [2, 5, 1]);
    assert_eq!(room("d", "none").await, 0);
    apply(&limiter, "[policy.'config.planned'.plans]\nfree = 3");
    assert_eq!([room("a", "free").await, room("b", "paid").await], [1, 0]);
}

async fn policies_share_the_plans_of_a_file(limiter: Limiter) {
    #[rate_limit(
        name = "config.shared.one",
        key = "{user}",
        rule(count = limiter.plan_count("config.shared.one", user).unwrap_or(0), per = "1h"),
        limiter = limiter
    )]
    async fn one(limiter: &Limiter, user: &str) -> Result<(), Rejection> {
        Ok(())
    }
    #[rate_limit(
        name = "config.shared.two",
        key = "{user}",
        rule(count = limiter.plan_count("config.shared.two", user).unwrap_or(0), per = "1h"),
        limiter = limiter
    )]
    async fn two(limiter: &Limiter, user: &str) -> Result<(), Rejection> {
        Ok(())
    }
    let mut admitted = [0; 4];
    apply(&limiter, "[plans]\nfree = 2\npaid = 4\n[policy.'config.shared.two']\nplans.paid = 1")
        .require_known()
        .unwrap();
    for _ in 0..5 {
        admitted[0] += u8::from(one(&limiter, "free").await.is_ok());
        admitted[1] += u8::from(one(&limiter, "paid").await.is_ok());
        admitted[2] += u8::from(two(&limiter, "free").await.is_ok());
        admitted[3] += u8::from(two(&limiter, "paid").await.is_ok());
    }
    assert_eq!(admitted, [2, 4, 2, 1]);
    assert_eq!(limiter.plan_count("config.shared.one", "other"), None);
}

async fn a_plan_has_a_count_for_each_unit(limiter: Limiter) {
    #[rate_limit(
        name = "config.plans.units",
        key = "{plan}",
        unit("tokens", cost = 100),
        rule(count = limiter.plan_count("config.plans.units", plan).unwrap_or(1), per = "1h"),
        rule(
            count = limiter.plan_count_of("config.plans.units", plan, "tokens").unwrap_or(100),
            per = "1h",
            unit = "tokens"
        ),
        limiter = limiter
    )]
    async fn call(limiter: &Limiter, plan: &str) -> Result<(), Rejection> {
        Ok(())
    }
    let room = async |plan: &str| {
        let mut admitted = 0;
        while call(&limiter, plan).await.is_ok() {
            admitted += 1;
        }
        admitted
    };
    let file = "[plans]\nfree = { calls = 9, tokens = 300 }\npro = { calls = 2, tokens = 60_000 }\nplain = 3\nodd.tokens = 900";
    apply(&limiter, file).require_known().unwrap();
    assert_eq!([room("free").await, room("pro").await], [3, 2]);
    assert_eq!([room("plain").await, room("odd").await], [1, 1], "by the counts of the code where a plan has none");
}

#[tokio::test]
async fn in_memory_one_number_is_the_count_of_the_first_unit_where_no_varying_rule_counts_calls() {
    let limiter = Limiter::in_memory();
    let _policy = Policy::builder("config.plans.one")
        .rule(Rule::sliding_window(9, HOUR))
        .rule(Rule::sliding_window(9, HOUR).counting("tokens").varying())
        .rule(Rule::sliding_window(9, HOUR).counting("bytes").varying())
        .build()
        .unwrap();
    apply(&limiter, "[plans]\nfree = 3").require_known().unwrap();
    let of = |policy, unit| limiter.plan_count_of(policy, "free", unit);
    assert_eq!(["calls", "tokens", "bytes"].map(|unit| of("config.plans.one", unit)), [Some(3), Some(3), None]);
    assert_eq!(["calls", "tokens"].map(|unit| of("config.plans.nobody", unit)), [Some(3), None]);
}

#[tokio::test]
async fn in_memory_a_unit_of_a_plan_that_nothing_asks_for_is_refused() {
    #[rate_limit(
        name = "config.plans.tokens",
        unit("tokens", cost = 1),
        unit("bytes", cost = 1),
        rule(count = plan, per = "1h"),
        rule(count = plan, per = "1h", unit = "tokens"),
        rule(count = 9, per = "1h", unit = "bytes")
    )]
    async fn call(plan: u64) -> Result<(), Rejection> {
        Ok(())
    }
    let mistake = |text: &str| try_apply(&Limiter::in_memory(), text).unwrap_err().to_string();
    assert_eq!(
        mistake("[policy.'config.plans.tokens']\nplans = { free = 1, pro = { calls = 2, tokns = 9 } }"),
        "line 2, column 40: no rule of this policy counts `tokns`, so nothing asks for this count; did you mean `tokens`?"
    );
    assert_eq!(
        mistake("[policy.'config.plans.tokens']\nplans.pro.bytes = 9"),
        "line 2, column 11: no `count` in `bytes` of this function is an expression, so nothing asks for this count; remove it, or \
         write it in `rules`"
    );
    // Other programs may share the file, and count any unit.
    let shared = apply(&Limiter::in_memory(), "[plans]\npro = { tokns = 9, credits = 7 }");
    let unknown = shared.require_known().unwrap_err().to_string();
    assert_eq!(unknown, "line 2, column 9: no policy counts `tokns`; did you mean `tokens`?");
    drop(call(1));
}

#[tokio::test]
async fn in_memory_a_count_of_a_plan_that_is_too_great_for_its_algorithm_is_refused() {
    #[rate_limit(
        name = "config.plans.great",
        unit("tokens", cost = 1),
        rule(count = plan, per = "1h"),
        rule(count = 9, per = "1h", unit = "tokens"),
        rule(count = plan, per = "1h", unit = "tokens", algorithm = "fixed_window")
    )]
    async fn call(plan: u64) -> Result<(), Rejection> {
        Ok(())
    }
    let by_hand = Policy::builder("config.plans.great.by hand").rule(Rule::sliding_counter(9, HOUR)).build().unwrap();
    let file = |policy: &str, plans: &str| try_apply(&Limiter::in_memory(), &format!("[policy.'{policy}']\n{plans}"));
    let mistake = |policy: &str, plans: &str| file(policy, plans).unwrap_err().to_string();
    assert_eq!(
        mistake("config.plans.great", "plans = { free = 1, pro = 3_000_000_000 }"),
        "line 2, column 21: plan `pro` has a count of 3000000000, and that of this algorithm is at most 2147483648; lower it"
    );
    assert!(mistake("config.plans.great", "plans.pro.calls = 3_000_000_000").contains("at most 2147483648"));
    assert!(mistake(by_hand.name(), "plans.pro = 70_000_000").contains("at most 67108864"));
    file("config.plans.great", "plans.pro = { calls = 2_147_483_648, tokens = 3_000_000_000 }").unwrap();
    drop(call(1));
}

#[tokio::test]
async fn in_memory_a_count_for_all_policies_that_is_too_great_for_a_function_is_refused() {
    #[rate_limit(
        name = "config.plans.shared",
        unit("credits_of_plans", cost = 1),
        rule(count = 9, per = "1h"),
        rule(count = plan, per = "1h", unit = "credits_of_plans")
    )]
    async fn call(plan: u64) -> Result<(), Rejection> {
        Ok(())
    }
    let file = |changes: &str| {
        let text = format!(
            "[plans]\npro = {{ credits_of_plans = 3_000_000_000 }}\nfree = {{ credits_of_plans = 9 }}\n{changes}"
        );
        try_apply(&Limiter::in_memory(), &text).map(drop).map_err(|mistake| mistake.to_string())
    };
    let mistake = "line 2, column 1: policy `config.plans.shared`: plan `pro` has a count of 3000000000, and that of this algorithm is \
                   at most 2147483648; lower it, or give the policy `plans` of its own";
    assert_eq!(file(""), Err(mistake.to_owned()));
    assert_eq!(file("[policy.'config.plans.shared']\nplans.free.credits_of_plans = 5"), Err(mistake.to_owned()));
    assert_eq!(file("[policy.'config.plans.shared']\nplans.pro.credits_of_plans = 5"), Ok(()));
    let fixed = "[policy.'config.plans.shared']\nrules = ['9 per 1h', '5 credits_of_plans per 1h']";
    assert_eq!(file(fixed), Ok(()), "no call asks for the count");
    drop(call(1));
}

#[tokio::test]
async fn in_memory_a_misspelt_plan_is_refused_and_the_plans_in_force_stay() {
    let limiter = Limiter::in_memory();
    let file =
        |paid: &str| format!("plans = ['free', 'paid']\n[policy.'config.listed']\nplans = {{ free = 1, {paid} = 2 }}");
    apply(&limiter, &file("paid"));
    let mistake = try_apply(&limiter, &file("piad")).unwrap_err().to_string();
    assert_eq!(mistake, "line 3, column 21: no plan `piad`; did you mean `paid`?");
    assert_eq!(limiter.plan_count("config.listed", "paid"), Some(2));
}

#[tokio::test]
async fn in_memory_plans_that_nothing_asks_for_are_refused() {
    #[rate_limit(name = "config.plans.varying", rule(count = plan, per = "1h"))]
    async fn varying(plan: u64) -> Result<(), Rejection> {
        Ok(())
    }
    #[rate_limit(name = "config.plans.fixed", rule(count = 1, per = "1h"))]
    async fn fixed() -> Result<(), Rejection> {
        Ok(())
    }
    let mistake = |text: &str| try_apply(&Limiter::in_memory(), text).unwrap_err().to_string();
    assert_eq!(
        mistake("[policy.'config.plans.varying']\nrules = ['2 per 1h']\nplans = { free = 1 }"),
        "line 3, column 1: the `rules` replace those whose `count` is an expression, so these `plans` change nothing; remove one \
         of the two"
    );
    assert_eq!(
        mistake("[policy.'config.plans.fixed']\nplans = { free = 1 }"),
        "line 2, column 1: no `count` of this function is an expression, so nothing asks for these `plans`; remove them, or write \
         the count in `rules`"
    );
    let _ = (varying(1), fixed());
}
