//! Concurrent callers of one process share round trips.
//!
//! If there is no other request, a caller sends its own alone, at once. All other requests wait in a queue. Up to two
//! tasks empty it, each in a turn: the task takes from the queue what fits into one call, sends it, answers the callers,
//! and goes on until the queue is empty. Nothing is sent for a caller that gave up in the queue.
//!
//! Most callers in the queue need no timer, because a turn answers them in time. A caller has a timer of its own if its
//! deadline is earlier than one before it, or if the turns are on the thread of the limiter, which may be held up. No
//! caller waits for one that sends its request alone, because that future may never be polled again.

pub(super) mod batch;
mod queue;

use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use self::batch::{Batch, Caller};
use self::queue::{Queue, TurnId, TurnStep, WaitingRequest};
use crate::call::Call;
use crate::error::BackendError;
use crate::lock::lock;
use crate::store::redis::connection::connect::late;
use crate::store::redis::connection::real_time;
use crate::store::redis::script::run::NodeRole;
use crate::store::redis::script::unknown_shape;
use crate::store::redis::script::wire::Reply;
use crate::store::redis::server::Server;
use crate::system::home::Side;
use crate::system::home::in_runtime;
use crate::system::under_way::TaskKind;
use crate::system::{Instant, spawn};

#[derive(Debug)]
pub(crate) struct Batcher {
    server: Arc<Server>,
    queue: Mutex<Queue>,
}

/// The right to send a request without waiting for others.
struct Alone<'a>(&'a Batcher);

/// A running turn. It ends when its task is dropped, as at the end of the runtime.
struct RunningTurn {
    batcher: Arc<Batcher>,
    id: TurnId,
}

/// What happens to a request when it arrives.
enum Arrival<'a> {
    Alone(Alone<'a>),
    /// The turns answer it in time, so it needs no timer.
    Watched(ReplyReceiver),
    Unwatched(ReplyReceiver),
}

type ReplyReceiver = oneshot::Receiver<Result<Reply, BackendError>>;

impl Batcher {
    pub(crate) fn new(server: Arc<Server>) -> Arc<Self> {
        Arc::new(Self { server, queue: Mutex::default() })
    }

    /// Returns the reply to a request, or an error at its deadline.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        request: Call<'_>,
        now: Instant,
        until: Instant,
    ) -> Result<Reply, BackendError> {
        // Two of the futures are boxed to keep this one small. Most callers do not wait with a timer.
        let answer = match self.enter(request, now, until)? {
            Arrival::Alone(_alone) => return one(Box::pin(self.server.ask(&[request], until, NodeRole::Owner)).await?),
            Arrival::Watched(answered) => Some(answered.await),
            Arrival::Unwatched(answered) => Box::pin(real_time::wait_for_bounded(until, answered)).await,
        };
        match answer {
            Some(Ok(answer)) => answer,
            Some(Err(_)) => Err(BackendError::away("redis: the runtime was shut down")),
            None => Err(late()),
        }
    }

    /// Lets a caller send its request alone. Otherwise queues it, and begins a turn if one more is allowed.
    fn enter(self: &Arc<Self>, request: Call<'_>, now: Instant, until: Instant) -> Result<Arrival<'_>, BackendError> {
        in_runtime()?;
        self.server.setup.driver.check_process()?;
        if lock(&self.queue).begin_alone() {
            return Ok(Arrival::Alone(Alone(self)));
        }
        let (caller, answered) = Caller::new(until);
        let waiting = WaitingRequest::new(request, caller);
        let (place, driver) = (lock(&self.queue).push(waiting, now), &self.server.setup.driver);
        if let Some(id) = place.turn {
            let turn = RunningTurn { batcher: Arc::clone(self), id }.take();
            driver.spawn(driver.runtimes.counted(TaskKind::Other, turn));
        }
        Ok(if place.is_watched && driver.side == Side::Home {
            Arrival::Watched(answered)
        } else {
            Arrival::Unwatched(answered)
        })
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        lock(&self.0.queue).end_alone();
    }
}

impl RunningTurn {
    /// Makes calls until the queue is empty.
    async fn take(self) {
        while let Some(TurnStep { batches, late }) = self.next() {
            late.into_iter().for_each(Caller::answer_late);
            let mut batches = batches.into_iter().map(|(_, batch)| batch);
            let first = batches.next();
            // Each script is called on its own, all at once.
            let others: Vec<_> = batches.map(|batch| spawn(send(batch, Arc::clone(&self.batcher.server)))).collect();
            if let Some(first) = first {
                first.send(&self.batcher.server).await;
            }
            for other in others {
                // If the task has failed, its callers get an error through their channels.
                let _ = other.await;
            }
        }
    }

    fn next(&self) -> Option<TurnStep> {
        lock(&self.batcher.queue).take(self.id, Instant::now())
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        let unanswered = lock(&self.batcher.queue).end(self.id);
        drop(unanswered);
    }
}

async fn send(batch: Batch, server: Arc<Server>) {
    batch.send(&server).await;
}

fn one(replies: Vec<Reply>) -> Result<Reply, BackendError> {
    replies.into_iter().next().ok_or_else(unknown_shape)
}

#[cfg(test)]
#[cfg(tallygate_shuttle)]
mod threads;

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write as _};
    use std::net::TcpListener;
    use std::thread;
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
    use crate::store::redis_types::Setup;
    use crate::subject::Subject;
    use crate::system::home::Driver;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(60);

    /// The server that listens there.
    fn server(listener: &TcpListener) -> Server {
        let url = format!("redis://{}/", listener.local_addr().unwrap());
        let Ok(Destination::Server(address)) = Destination::parse(&url) else { panic!("it is the url of a server") };
        let setup = Setup {
            prefix: "test".to_owned(),
            deadline: LONG,
            clock: Clock::tokio(),
            looks_only: false,
            driver: Driver::home(),
        };
        Server::new(ServerLocation::Fixed(address.into()), Mode::Standalone, &setup)
    }

    fn policy() -> Policy {
        Policy::builder("p").rule(Rule::sliding_window(1, LONG)).build().unwrap()
    }

    /// Greets whoever connects, and then refuses scripts, as a primary does that has become a replica.
    fn refuse_scripts(listener: &TcpListener) {
        while let Ok((client, _)) = listener.accept() {
            thread::spawn(move || {
                let mut asked = BufReader::new(&client);
                while let Some(command) = read_command(&mut asked) {
                    let answer = match &command[..] {
                        b"HELLO" => "%1\r\n+proto\r\n:3\r\n",
                        b"EVALSHA" => "-READONLY You can't write against a read only replica.\r\n",
                        _ => "+OK\r\n",
                    };
                    (&client).write_all(answer.as_bytes()).unwrap();
                }
            });
        }
    }

    /// Returns the name of the next command; `None` after the last one.
    fn read_command(asked: &mut impl BufRead) -> Option<Vec<u8>> {
        let words = (0..read_number(asked)?).map(|_| {
            let mut word = vec![0; read_number(asked)? + 2];
            asked.read_exact(&mut word).ok()?;
            word.truncate(word.len() - 2);
            Some(word)
        });
        words.collect::<Option<Vec<_>>>()?.into_iter().next()
    }

    /// Reads a number behind a sign, as a command and each of its words begin with one.
    fn read_number(asked: &mut impl BufRead) -> Option<usize> {
        let mut line = String::new();
        asked.read_line(&mut line).ok()?;
        line.get(1..)?.trim_end().parse().ok()
    }

    #[tokio::test]
    async fn a_connection_over_which_one_slot_of_several_is_refused_by_a_replica_is_replaced() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = server(&listener);
        thread::spawn(move || refuse_scripts(&listener));
        let (policy, subjects) = (policy(), ["a", "b"].map(|text| [Subject::of(text).key()]));
        let requests = subjects.each_ref().map(|subject| Call::new(&policy, subject, CallOptions::PLAIN));
        for connections in 1..=2 {
            for answer in server.ask_by_slot(&requests, Instant::now() + LONG).await {
                assert!(answer.unwrap_err().to_string().contains("READONLY"));
            }
            assert_eq!(server.connector.connections(), connections);
        }
    }

    /// Callers of a server that never answers.
    struct TestBatcher {
        batcher: Arc<Batcher>,
        _silent: TcpListener,
    }

    impl TestBatcher {
        fn new() -> Self {
            let silent = TcpListener::bind("127.0.0.1:0").unwrap();
            Self { batcher: Batcher::new(Arc::new(server(&silent))), _silent: silent }
        }

        /// Makes a call, which has no answer within this time.
        fn call(&self, patience: Duration) -> JoinHandle<()> {
            let batcher = Arc::clone(&self.batcher);
            tokio::spawn(async move {
                let policy = policy();
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
        let test = TestBatcher::new();
        let alone = test.call(LONG);
        // Both arrive before the turn runs that the first one begins.
        let (impatient, patient) = (test.call(SHORT), test.call(LONG));
        impatient.await.unwrap();
        assert!(!patient.is_finished() && !alone.is_finished());
    }

    #[tokio::test]
    async fn a_caller_in_the_queue_is_answered_in_time_while_more_patient_ones_have_the_turns() {
        let test = TestBatcher::new();
        let mut patient = Vec::new();
        for _ in 0..3 {
            patient.push(test.call(LONG));
            // The caller sends its request alone, or a turn takes it.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
        let impatient = [test.call(2 * SHORT), test.call(SHORT), test.call(2 * SHORT)];
        for caller in impatient {
            caller.await.unwrap();
        }
        assert!(patient.iter().all(|caller| !caller.is_finished()));
    }

    #[tokio::test]
    async fn callers_behind_calls_without_an_answer_are_answered_in_time() {
        let test = TestBatcher::new();
        let callers: Vec<_> = (0..1_000).map(|_| test.call(SHORT)).collect();
        let patient = test.call(LONG);
        for caller in callers {
            caller.await.unwrap();
        }
        assert!(!patient.is_finished());
    }

    #[test]
    fn without_a_runtime_nothing_is_asked() {
        let test = TestBatcher::new();
        let policy = policy();
        let request = Call::new(&policy, &[], CallOptions::PLAIN);
        let now = Instant::now();
        let entered = test.batcher.enter(request, now, now + LONG);
        assert_eq!(entered.err().unwrap().to_string(), in_runtime().unwrap_err().to_string());
    }
}
