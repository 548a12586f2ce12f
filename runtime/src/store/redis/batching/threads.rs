//! Tests of the queue with threads that call at the same time.

use std::sync::Arc;
use std::time::Duration;

use shuttle::thread::{self, JoinHandle};
use tallygate_rules::Rule;
use tokio::sync::oneshot::error::TryRecvError;

use super::{Caller, Queue, ReplyReceiver, TurnId, TurnStep, WaitingRequest};
use crate::call::{Call, CallOptions};
use crate::policy::Policy;
use crate::subject::Subject;
use crate::sync::interleaved::explore;
use crate::sync::{Mutex, lock};
use crate::system::Instant;

/// Makes a call as the batcher does. Returns its answer and the turn that it begins, unless the caller sends its
/// request alone.
fn call(queue: &Arc<Mutex<Queue>>, policy: &Policy) -> Option<(ReplyReceiver, Option<JoinHandle<()>>)> {
    if lock(queue).begin_alone() {
        thread::yield_now();
        lock(queue).end_alone();
        return None;
    }
    let now = Instant::now();
    let (caller, answered) = Caller::new(now + Duration::from_secs(60));
    let waiting = WaitingRequest::new(Call::new(policy, &[Subject::everyone().key()], CallOptions::PLAIN), caller);
    let turn = lock(queue).push(waiting, now).turn;
    let queue = Arc::clone(queue);
    Some((answered, turn.map(|turn| thread::spawn(move || take(&queue, turn)))))
}

/// Drops what the turn takes, so that the callers see their channels closed.
fn take(queue: &Mutex<Queue>, turn: TurnId) {
    while let Some(taken) = next(queue, turn) {
        drop(taken);
        thread::yield_now();
    }
    assert!(lock(queue).end(turn).is_empty(), "the last turn ends when nobody waits");
}

fn next(queue: &Mutex<Queue>, turn: TurnId) -> Option<TurnStep> {
    lock(queue).take(turn, Instant::now())
}

#[test]
fn nobody_is_left_waiting_when_all_turns_have_ended() {
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
    explore(move || {
        let queue = Arc::<Mutex<Queue>>::default();
        let threads = [(); 4].map(|()| {
            let (queue, policy) = (Arc::clone(&queue), policy.clone());
            thread::spawn(move || [call(&queue, &policy), call(&queue, &policy)])
        });
        let called = threads.map(|thread| thread.join().unwrap());
        let (answered, turns): (Vec<_>, Vec<_>) = called.into_iter().flatten().flatten().unzip();
        turns.into_iter().flatten().for_each(|turn| turn.join().unwrap());
        for mut answered in answered {
            assert!(answered.try_recv().is_err_and(|error| error == TryRecvError::Closed), "it waits for ever");
        }
    });
}
