//! Denials that several threads read, record and invalidate.

use std::sync::Arc;

use shuttle::thread;
use tallygate_rules::Rule;

use super::*;
use crate::call::CallOptions;
use crate::subject::Subject;
use crate::sync::interleaved::explore;

const SECOND: Duration = Duration::from_secs(1);
const START_US: u64 = 1_800_000_000_000_000;

fn denied() -> Outcome {
    Outcome::Denied { rule: 0, retry_after: Wait::us(30_000_000) }
}

/// Runs threads on one cache, each with the same call.
fn on_threads<const N: usize>(work: [fn(&DenialCache, Call<'_>) -> bool; N]) -> (Arc<DenialCache>, usize) {
    let denials = Arc::new(DenialCache::new(SECOND).unwrap());
    with_call(|call| denials.record(call, denied(), START_US, START_US));
    let threads = work.map(|work| {
        let denials = Arc::clone(&denials);
        thread::spawn(move || with_call(|call| work(&denials, call)))
    });
    let done = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|done| *done).count();
    (denials, done)
}

fn with_call<T>(work: impl FnOnce(Call<'_>) -> T) -> T {
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, 60 * SECOND)).build().unwrap();
    let subjects = [Subject::of("s").key()];
    work(Call::new(&policy, &subjects, CallOptions::PLAIN))
}

#[test]
fn one_thread_asks_again_when_a_denial_is_due() {
    explore(|| {
        let (_, asked) =
            on_threads([|denials: &DenialCache, call: Call<'_>| denials.get(call, START_US + 1_000_000).is_none(); 3]);
        assert_eq!(asked, 1);
    });
}

#[test]
fn an_answer_to_what_was_asked_before_a_reset_is_not_cached_whichever_comes_first() {
    explore(|| {
        let (denials, _) = on_threads([
            |denials, call| {
                denials.record(call, denied(), START_US + 1, START_US + 2);
                true
            },
            |denials, call| {
                denials.invalidate(call.tally_ids(), START_US + 3);
                true
            },
            |denials, call| denials.get(call, START_US + 4).is_some(),
        ]);
        assert_eq!(with_call(|call| denials.get(call, START_US + 5)), None);
    });
}
