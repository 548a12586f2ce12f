//! What a limiter answers, in the words of the model.

use tallygate::{Check, Decision, Permit, RuleStatus};
use tallygate_harness::model::{Answer, Standing, Verdict};

/// Decides a call.
pub(crate) async fn answer(check: Check<'_>) -> (Answer, Option<Permit>) {
    let decision = check.await.expect("the backend answers");
    let standing = |rule: &RuleStatus| Standing {
        remaining: rule.remaining().into(),
        reset: rule.reset().as_micros(),
        used_up_for: rule.used_up_for().map(|time| time.as_micros()),
    };
    let standings = decision.report().iter().map(standing).collect();
    let (verdict, permit) = match decision {
        Decision::Allowed(permit) => (Verdict::Admitted, Some(permit)),
        Decision::Denied(denial) => {
            let wait = denial.retry_after().map(|wait| wait.as_micros());
            let named = denial.rule().map(|rule| rule.position());
            (named.map_or(Verdict::Banned(wait), |rule| Verdict::Denied(rule, wait)), None)
        }
    };
    (Answer { verdict, standings }, permit)
}
