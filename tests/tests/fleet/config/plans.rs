//! Counts by name in a file.

use tallygate::{Limiter, Rejection, rate_limit};

use super::{apply, every_backend, try_apply};

every_backend!(a_count_may_be_that_of_a_plan_of_the_file, policies_share_the_plans_of_a_file);

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
