use std::time::Duration;

use tallygate_rules::Rule;
use tokio::sync::oneshot::Receiver;

use super::*;
use crate::call::CallOptions;
use crate::error::BackendError;
use crate::policy::Policy;
use crate::store::redis::script::wire::Reply;
use crate::subject::Subject;

const SECOND: Duration = Duration::from_secs(1);

type ReplyReceiver = Receiver<Result<Reply, BackendError>>;

/// A queue whose clock stands still.
struct TestQueue {
    queue: Queue,
    now: Instant,
    light: Policy,
    heavy: Policy,
    /// The callers of the first calls of the turns. They wait for their answers.
    first: Vec<ReplyReceiver>,
}

impl TestQueue {
    fn new() -> Self {
        let light = Policy::builder("light").rule(Rule::sliding_window(1, SECOND)).build().unwrap();
        let rules = (1..=32).map(|number| Rule::fixed_window(number.into(), number * SECOND));
        let heavy = Policy::builder("heavy").rules(rules).build().unwrap();
        Self { queue: Queue::default(), now: Instant::now(), light, heavy, first: Vec::new() }
    }

    /// Queues a request; returns what happens to it, and the channel of its answer.
    fn push(&mut self, policy: &Policy, patience: Duration) -> (Queued, ReplyReceiver) {
        let (caller, answered) = Caller::new(self.now + patience);
        let subject = [Subject::everyone().key()];
        let request = Call::new(policy, &subject, CallOptions::PLAIN);
        let place = self.queue.push(WaitingRequest::new(request, caller), self.now);
        (place, answered)
    }

    fn push_light(&mut self, patience: Duration) -> (Queued, ReplyReceiver) {
        let light = self.light.clone();
        self.push(&light, patience)
    }

    /// Begins the turns of two requests and takes both requests.
    fn begin_both(&mut self) -> [TurnId; 2] {
        [SECOND; 2].map(|patience| {
            let (place, answered) = self.push_light(patience);
            self.first.push(answered);
            let id = place.turn.unwrap();
            assert_eq!(self.taken(id), ["light"]);
            id
        })
    }

    fn taken(&mut self, id: TurnId) -> Vec<String> {
        self.batches(id).concat()
    }

    /// Takes the batches of each script, as the names of their policies.
    fn batches(&mut self, id: TurnId) -> Vec<Vec<String>> {
        let name = |request: Call<'_>| request.policy.name().to_owned();
        let batches = self.queue.take(id, self.now).map(|taken| taken.batches).unwrap_or_default();
        batches.iter().map(|(_, batch)| batch.requests().map(name).collect()).collect()
    }
}

#[tokio::test]
async fn a_request_begins_a_turn_while_there_is_one_to_be_had() {
    let mut test = TestQueue::new();
    let [first, second] = test.begin_both();
    let (place, _answered) = test.push_light(SECOND);
    assert_eq!(place.turn, None);
    assert_eq!(test.taken(first), ["light"]);
    // Nobody waits any more, so the turns end, and the next request begins another.
    assert!(test.taken(first).is_empty() && test.taken(second).is_empty());
    let (place, _answered) = test.push_light(SECOND);
    assert!(place.turn.is_some());
}

#[tokio::test]
async fn requests_are_sent_in_their_order_and_the_oldest_one_always() {
    let mut test = TestQueue::new();
    let (light, heavy) = (test.light.clone(), test.heavy.clone());
    let [turn, _] = test.begin_both();
    let queued: Vec<_> = (0..100).map(|_| [test.push(&heavy, SECOND), test.push(&light, SECOND)]).collect();
    let mut calls = Vec::new();
    loop {
        // The requests of each script follow each other.
        let mut sent = test.taken(turn);
        if sent.is_empty() {
            break;
        }
        sent.sort();
        calls.push(sent);
    }
    // The two kinds alternate: a call has as many requests of one as of the other, or one more.
    let count = |call: &[String], name: &str| call.iter().filter(|sent| *sent == name).count();
    assert!(calls.iter().all(|call| count(call, "heavy").abs_diff(count(call, "light")) <= 1), "{calls:?}");
    assert_eq!(calls.concat().len(), 2 * queued.len());
    assert!((5..100).contains(&calls.len()), "{} calls", calls.len());
}

#[tokio::test]
async fn a_call_has_no_more_work_than_it_may() {
    let mut test = TestQueue::new();
    for policy in [test.light.clone(), test.heavy.clone()] {
        let [turn, _] = test.begin_both();
        let queued: Vec<_> = (0..1_000).map(|_| test.push(&policy, SECOND)).collect();
        let work = |requests: usize| {
            let subject = [Subject::everyone().key()];
            let request = Call::new(&policy, &subject, CallOptions::PLAIN);
            let work = ScriptId::of(&[request]).work(request);
            (0..requests).try_fold(Work::MOST, |room, _| room.checked_sub(work))
        };
        let fitting = test.taken(turn).len();
        assert!(fitting < queued.len() && work(fitting).is_some() && work(fitting + 1).is_none());
        test = TestQueue::new();
    }
}

#[tokio::test]
async fn nothing_is_sent_for_a_caller_that_gave_up_or_whose_time_is_over() {
    let mut test = TestQueue::new();
    let [turn, _] = test.begin_both();
    let (_, impatient) = test.push_light(SECOND / 2);
    let (_, gone) = test.push_light(SECOND);
    let (_, _patient) = test.push_light(SECOND);
    drop(gone);
    test.now += SECOND / 2;
    assert_eq!(test.taken(turn), ["light"]);
    drop(impatient);
}

#[tokio::test]
async fn the_turns_answer_all_but_the_less_patient_in_time() {
    let mut test = TestQueue::new();
    test.begin_both();
    for (patience, is_watched) in [(SECOND, true), (3 * SECOND, true), (2 * SECOND, false), (3 * SECOND, true)] {
        assert_eq!(test.push_light(patience).0.is_watched, is_watched, "{patience:?}");
    }
    assert!(test.push_light(3 * SECOND + TICK).0.is_watched);
    // The timers of a runtime are not precise enough to tell these times apart.
    assert!(test.push_light(3 * SECOND).0.is_watched);
}

#[tokio::test]
async fn a_turn_that_should_have_ended_is_lost_to_the_next_request() {
    let mut test = TestQueue::new();
    let lost = test.begin_both();
    let (place, _answered) = test.push_light(3 * SECOND);
    assert_eq!(place.turn, None);
    test.now += 2 * SECOND;
    let (place, _answered) = test.push_light(SECOND);
    assert_eq!(test.taken(place.turn.unwrap()), ["light", "light"]);
    assert!(lost.into_iter().all(|turn| test.taken(turn).is_empty()));
}

#[tokio::test]
async fn those_that_wait_are_answered_when_the_last_turn_is_gone() {
    let mut test = TestQueue::new();
    let [first, second] = test.begin_both();
    let (_, mut answered) = test.push_light(SECOND);
    assert!(test.queue.end(first).is_empty());
    assert!(answered.try_recv().is_err_and(|error| error == tokio::sync::oneshot::error::TryRecvError::Empty));
    assert_eq!(test.queue.end(second).len(), 1);
    assert!(answered.await.is_err());
}

#[tokio::test]
async fn one_caller_calls_by_itself_if_nobody_is_before_it() {
    let mut test = TestQueue::new();
    assert!(test.queue.begin_alone() && !test.queue.begin_alone());
    // The lone caller sends its request, and others need not wait for it.
    let [first, second] = test.begin_both();
    test.queue.end_alone();
    assert!(!test.queue.begin_alone());
    assert!(test.taken(first).is_empty() && test.taken(second).is_empty());
    assert!(test.queue.begin_alone());
}

#[tokio::test]
async fn what_is_decided_by_different_scripts_is_sent_in_different_calls() {
    let mut test = TestQueue::new();
    let [turn, _] = test.begin_both();
    let (light, heavy) = (test.light.clone(), test.heavy.clone());
    let two = Policy::builder("two").rule(Rule::sliding_window(1, SECOND)).rule(Rule::sliding_window(2, 3 * SECOND));
    let two = two.build().unwrap();
    let _queued = [&light, &heavy, &light, &two, &light, &two].map(|policy| test.push(policy, SECOND));
    assert_eq!(test.batches(turn), [vec!["light"; 3], vec!["heavy"], vec!["two"; 2]]);
}
