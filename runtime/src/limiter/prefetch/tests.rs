//! Tests of `Prefetch` on a stub of the store below.

use futures_util::FutureExt as _;
use tallygate_rules::Rule;
use tokio::task::yield_now;

use super::ledger::Ledger;
use super::*;
use crate::algorithm::Quota;
use crate::lock::lock;
use crate::policy::Policy;
use crate::store::stub::StubStore;
use crate::subject::{Subject, SubjectKey};

const AHEAD: Duration = Duration::from_secs(1);

fn prefetch(begin_refresh_if_old: fn() -> bool) -> Prefetch<StubStore> {
    let (clock, sleepers) = (Clock::tokio(), Arc::new(Sleepers::new("test".to_owned())));
    Prefetch::new(StubStore::default(), AHEAD, clock, sleepers, Arc::default(), begin_refresh_if_old)
}

fn policy() -> Policy {
    let rule = Rule::sliding_window(1_000, Duration::from_secs(60));
    Policy::builder("p").rule(rule).prefetch(AHEAD).build().unwrap()
}

/// Makes enough calls for the subject to be busy. Returns how many were decided at once.
async fn call_often(prefetch: &Prefetch<StubStore>, policy: &Policy, subject: &[SubjectKey]) -> usize {
    let mut at_once = 0;
    for _ in 0..40 {
        let call = Call::new(policy, subject, CallOptions::PLAIN);
        match prefetch.decide_at_once(call) {
            Some(decided) => drop((decided.unwrap(), at_once += 1)),
            None => drop(prefetch.decide(call).await.unwrap()),
        }
        yield_now().await;
    }
    at_once
}

#[tokio::test(start_paused = true)]
async fn a_busy_subject_is_decided_ahead_and_what_is_left_is_given_back() {
    let (prefetch, policy, subject) = (prefetch(|| false), policy(), [Subject::of("s").key()]);
    let at_once = call_often(&prefetch, &policy, &subject).await;
    let asked = prefetch.0.below.asked();
    let single = asked.iter().filter(|asked| *asked == "decide 1").count();
    assert!(at_once > 0 && single + at_once == 40 && asked.len() > single, "{at_once} at once, {asked:?}");
    tokio::time::sleep(2 * AHEAD).await;
    let given_back = prefetch.0.below.asked();
    assert!(given_back.iter().any(|asked| asked.starts_with("recount") && asked.ends_with("as 0")), "{given_back:?}");
}

#[tokio::test(start_paused = true)]
async fn while_the_rules_in_force_have_to_be_asked_for_nothing_is_decided_ahead() {
    let (prefetch, policy, subject) = (prefetch(|| true), policy(), [Subject::of("s").key()]);
    assert_eq!(call_often(&prefetch, &policy, &subject).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_reset_ends_what_was_taken_ahead() {
    let (prefetch, policy, subject) = (prefetch(|| false), policy(), [Subject::of("s").key()]);
    call_often(&prefetch, &policy, &subject).await;
    let call = Call::new(&policy, &subject, CallOptions::PLAIN);
    assert!(prefetch.decide_at_once(call).is_some());
    prefetch.reset(call).await.unwrap();
    assert!(prefetch.decide_at_once(call).is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_that_was_asked_for_before_a_reset_is_given_back_after_it() {
    for is_answered in [true, false] {
        let (prefetch, policy, subject) = (prefetch(|| false), policy(), [Subject::of("s").key()]);
        let call = Call::new(&policy, &subject, CallOptions::PLAIN);
        for _ in 0..20 {
            if prefetch.decide_at_once(call).is_none() {
                drop(prefetch.decide(call).await.unwrap());
            }
            if is_answered {
                yield_now().await;
            }
        }
        prefetch.reset(call).await.unwrap();
        tokio::time::sleep(2 * AHEAD).await;
        let asked = prefetch.0.below.asked();
        assert!(!asked.iter().any(|asked| asked.starts_with("recount")), "{asked:?}");
        assert_eq!(asked.iter().any(|asked| asked.starts_with("decide") && asked != "decide 1"), is_answered);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_given_back_after_a_reset_that_failed() {
    let (prefetch, policy, subject) = (prefetch(|| false), policy(), [Subject::of("s").key()]);
    call_often(&prefetch, &policy, &subject).await;
    lock(&prefetch.0.below.answers).push_back(Err(BackendError::away("gone")));
    assert!(prefetch.reset(Call::new(&policy, &subject, CallOptions::PLAIN)).await.is_err());
    tokio::time::sleep(2 * AHEAD).await;
    let asked = prefetch.0.below.asked();
    assert!(asked.iter().any(|asked| asked.starts_with("recount") && asked.ends_with("as 0")), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_of_any_cost_are_decided_ahead_also_if_they_cost_more_than_before() {
    let (prefetch, policy, subject) = (prefetch(|| false), policy(), [Subject::of("s").key()]);
    for cost in [500, 1, 3_000] {
        let call = Call::new(&policy, &subject, CallOptions { cost, ..CallOptions::PLAIN });
        let mut at_once = 0;
        for _ in 0..200 {
            match prefetch.decide_at_once(call) {
                Some(decided) => drop((decided.unwrap(), at_once += 1)),
                None => drop(prefetch.decide(call).await.unwrap()),
            }
            tokio::time::sleep(AHEAD / 50).await;
        }
        assert!(at_once > 100, "{at_once} calls of cost {cost}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_any_number_of_denied_parts_another_one_is_tried() {
    let (prefetch, policy, subject) = (prefetch(|| false), policy(), [Subject::of("s").key()]);
    let call = Call::new(&policy, &subject, CallOptions { cost: 500, ..CallOptions::PLAIN });
    drop(prefetch.decide_at_once(call));
    for _ in 0..40 {
        assert!(prefetch.0.ledgers.with(call.stored(), |ledger| ledger.denied(8, 0, 0)).is_some());
    }
    for _ in 0..20 {
        if prefetch.decide_at_once(call).is_none() {
            drop(prefetch.decide(call).await.unwrap());
        }
        yield_now().await;
    }
    assert!(prefetch.0.below.asked().iter().any(|asked| asked.starts_with("decide") && asked != "decide 500"));
}

#[tokio::test(start_paused = true)]
async fn no_answer_to_a_part_shortens_the_pause_after_a_denied_call() {
    let part = || Arc::new(Part::new(8, 0, AdmittedAt::Once(0), Report::default()));
    let answers: [fn(&mut Ledger, Arc<Part>); 2] =
        [|ledger, _| ledger.denied(8, 0, 0), |ledger, part| ledger.add(part, 8, 0)];
    for answer in answers {
        let (prefetch, policy, subject) = (prefetch(|| false), policy(), [Subject::of("s").key()]);
        let call = Call::new(&policy, &subject, CallOptions::PLAIN);
        drop(prefetch.decide_at_once(call));
        let answered = prefetch.0.ledgers.with(call.stored(), |ledger| {
            ledger.pause(u64::MAX);
            answer(ledger, part());
        });
        assert!(answered.is_some());
        assert_eq!(call_often(&prefetch, &policy, &subject).await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_drained_limiter_gives_back_at_once_and_takes_nothing_ahead() {
    let (prefetch, policy, subject) = (prefetch(|| false), policy(), [Subject::of("s").key()]);
    assert!(call_often(&prefetch, &policy, &subject).await > 0);
    prefetch.0.below.asked();
    assert!(prefetch.0.runtimes.drain(AHEAD / 2, || {}).await.is_nothing());
    let given_back = prefetch.0.below.asked();
    assert!(given_back.iter().any(|asked| asked.starts_with("recount") && asked.ends_with("as 0")), "{given_back:?}");
    assert_eq!(call_often(&prefetch, &policy, &subject).await, 0);
    assert_eq!(prefetch.0.below.asked(), ["decide 1"; 40]);
}

#[tokio::test(start_paused = true)]
async fn what_a_denied_call_of_several_subjects_took_is_given_back_although_its_part_has_ended() {
    let prefetch = prefetch(|| false);
    let rule = Rule::sliding_window(1_000, Duration::from_secs(60));
    let policy = Policy::builder("p").rule(rule.clone()).rule_on("org", rule).prefetch(AHEAD).build().unwrap();
    let subjects = [Subject::of("s").key(), Subject::of("t").key()];
    let call = Call::new(&policy, &subjects, CallOptions::PLAIN).stored();
    let (main, store) = (call.part(0), &prefetch.0.below);
    let ahead = policy.stored().unwrap().ahead_of(0).unwrap();
    prefetch.0.ledgers.take(main, ahead);
    let part = Arc::new(Part::new(8, prefetch.0.clock.now_us() + 1_000, AdmittedAt::Once(7), Report::default()));
    for ends_meanwhile in [false, true] {
        prefetch.0.ledgers.with(main, |ledger| ledger.add(Arc::clone(&part), 8, 0)).unwrap();
        let taken = prefetch.0.take(policy.stored().unwrap(), main).unwrap();
        if ends_meanwhile {
            prefetch.0.ledgers.with(main, |ledger| ledger.remove(&part));
            assert_eq!(part.end(), 7);
        }
        store.asked();
        prefetch.0.put_back(call, 0, &taken);
        yield_now().await;
        let given_back: &[&str] = if ends_meanwhile { &["recount 1 as 0"] } else { &[] };
        assert_eq!(
            (store.asked(), part.left()),
            (given_back.iter().map(|&one| one.to_owned()).collect(), 8 * u64::from(!ends_meanwhile))
        );
        prefetch.0.ledgers.with(main, |ledger| ledger.remove(&part));
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_were_put_back_do_not_keep_later_ones_from_being_taken_ahead() {
    let (prefetch, policy, subject) = (prefetch(|| false), policy(), [Subject::of("s").key()]);
    let stored = policy.stored().unwrap();
    let call = Call::new(&policy, &subject, CallOptions::PLAIN).stored();
    prefetch.0.ledgers.take(call, stored.ahead_of(0).unwrap());
    let part = Arc::new(Part::new(80, u64::MAX, AdmittedAt::Once(7), Report::default()));
    prefetch.0.ledgers.with(call, |ledger| ledger.add(Arc::clone(&part), 80, 0)).unwrap();
    prefetch.0.below.answer(Outcome::Denied { rule: 0, retry_after: Wait::us(9) });
    let taken: Vec<_> = (0..80).map(|_| prefetch.0.take(stored, call).unwrap()).collect();
    yield_now().await;
    for taken in &taken {
        prefetch.0.put_back(call, 0, taken);
    }
    prefetch.0.ledgers.with(call, |ledger| ledger.remove(&part));
    tokio::time::sleep(2 * AHEAD).await;
    assert!(call_often(&prefetch, &policy, &subject).await > 0);
}

#[tokio::test(start_paused = true)]
async fn units_that_are_put_back_wake_callers_only_if_a_call_has_missed_them() {
    let (prefetch, policy, subject) = (prefetch(|| false), policy(), [Subject::of("s").key()]);
    let stored = policy.stored().unwrap();
    let call = Call::new(&policy, &subject, CallOptions::PLAIN).stored();
    let dear = Call { options: CallOptions { cost: 9, ..CallOptions::PLAIN }, ..call };
    prefetch.0.ledgers.take(call, stored.ahead_of(0).unwrap());
    let part = Arc::new(Part::new(8, u64::MAX, AdmittedAt::Once(7), Report::default()));
    prefetch.0.ledgers.with(call, |ledger| ledger.add(part, 8, 0)).unwrap();
    let sleeper = prefetch.0.sleepers.join(call.keys("test").collect());
    for is_missed in [false, true] {
        let taken = prefetch.0.take(stored, call).unwrap();
        assert!(!is_missed || prefetch.0.take(stored, dear).is_none());
        prefetch.0.put_back(call, 0, &taken);
        assert_eq!(sleeper.woken().now_or_never().is_some(), is_missed);
    }
}

#[tokio::test(start_paused = true)]
async fn the_report_of_a_denied_call_has_the_rules_of_all_subjects_with_what_is_put_back() {
    let prefetch = prefetch(|| false);
    let rule = Rule::sliding_window(1_000, Duration::from_secs(60));
    let policy = Policy::builder("p").rule(rule.clone()).rule_on("org", rule).prefetch(AHEAD).build().unwrap();
    let subjects = [Subject::of("s").key(), Subject::of("t").key()];
    let options = CallOptions { cost: 3, report: true, report_is_optional: true, ..CallOptions::PLAIN };
    let call = Call::new(&policy, &subjects, options);
    let stored = call.stored();
    prefetch.0.ledgers.take(stored.part(0), policy.stored().unwrap().ahead_of(0).unwrap());
    let status = |remaining| RuleStatus::new(0, policy.rules()[0].clone(), Quota::new(remaining, 0));
    let part = Part::new(8, u64::MAX, AdmittedAt::Once(7), vec![status(900)].into());
    prefetch.0.ledgers.with(stored.part(0), |ledger| ledger.add(Arc::new(part), 8, 0)).unwrap();
    let remaining = |answer: &Answer| answer.report.rules().iter().map(RuleStatus::remaining).collect::<Vec<_>>();
    for (outcome, expected) in [(Outcome::Denied { rule: 1, retry_after: Wait::us(9) }, 908), (Outcome::Admitted, 905)]
    {
        prefetch.0.below.answer(outcome);
        let answer = prefetch.decide(call).await.unwrap().answer;
        assert_eq!((answer.outcome, remaining(&answer)), (outcome, vec![expected]));
    }
}
