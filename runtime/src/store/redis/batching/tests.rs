use std::net::TcpListener;
use std::time::Duration;

use tallygate_rules::Rule;
use tokio::task::JoinHandle;

use super::*;
use crate::call::CallOptions;
use crate::clock::Clock;
use crate::policy::Policy;
use crate::store::redis::Destination;
use crate::store::redis::connection::attempt::ServerLocation;
use crate::store::redis::connection::greeting::Mode;
use crate::store::setup::Setup;
use crate::subject::Subject;

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);

/// Callers of a server that greets nobody.
struct Trial {
    batcher: Arc<Batcher>,
    _silent: TcpListener,
}

impl Trial {
    fn new() -> Self {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}/", silent.local_addr().unwrap());
        let Ok(Destination::Server(address)) = Destination::parse(&url) else { panic!("it is the url of a server") };
        let setup = Setup { prefix: "test".to_owned(), deadline: LONG, clock: Clock::tokio(), looks_only: false };
        let server = Server::new(ServerLocation::Fixed(address.into()), Mode::Standalone, &setup);
        Self { batcher: Batcher::new(Arc::new(server)), _silent: silent }
    }

    /// Calls, and has no answer within that time.
    fn call(&self, patience: Duration) -> JoinHandle<()> {
        let batcher = Arc::clone(&self.batcher);
        tokio::spawn(async move {
            let policy = Policy::builder("p").rule(Rule::sliding_window(1, LONG)).build().unwrap();
            let subjects = [Subject::everyone().key()];
            let request = Call::new(&policy, &subjects, CallOptions::PLAIN);
            let now = Instant::now();
            let answer = batcher.ask(request, now, now + patience).await;
            assert_eq!(answer.unwrap_err().to_string(), late().to_string());
            assert!(now.elapsed() >= patience);
        })
    }
}

#[tokio::test]
async fn a_caller_is_answered_in_time_while_a_more_patient_one_of_the_same_call_waits() {
    let trial = Trial::new();
    let alone = trial.call(LONG);
    // Both arrive before the turn that the first one begins.
    let (impatient, patient) = (trial.call(SHORT), trial.call(LONG));
    impatient.await.unwrap();
    assert!(!patient.is_finished() && !alone.is_finished());
}

#[tokio::test]
async fn a_caller_in_the_queue_is_answered_in_time_while_more_patient_ones_have_the_turns() {
    let trial = Trial::new();
    let mut patient = Vec::new();
    for _ in 0..3 {
        patient.push(trial.call(LONG));
        // It calls by itself, or a turn takes its request.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    let impatient = [trial.call(2 * SHORT), trial.call(SHORT), trial.call(2 * SHORT)];
    for caller in impatient {
        caller.await.unwrap();
    }
    assert!(patient.iter().all(|caller| !caller.is_finished()));
}

#[tokio::test]
async fn callers_behind_calls_without_an_answer_are_answered_in_time() {
    let trial = Trial::new();
    let callers: Vec<_> = (0..1_000).map(|_| trial.call(SHORT)).collect();
    let patient = trial.call(LONG);
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(!patient.is_finished());
}

#[test]
fn without_a_runtime_nothing_is_asked() {
    let trial = Trial::new();
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, LONG)).build().unwrap();
    let request = Call::new(&policy, &[], CallOptions::PLAIN);
    let now = Instant::now();
    let entered = trial.batcher.enter(request, now, now + LONG);
    assert_eq!(entered.err().unwrap().to_string(), in_runtime().unwrap_err().to_string());
}
