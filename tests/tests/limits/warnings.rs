//! Warnings: a subject is near a limit.

use std::future::IntoFuture as _;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use tallygate::{DecidedBy, Limiter, LimiterBuilder, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_harness::server::{Server, away, connected, patient};
use tallygate_harness::until::until_found;
use tokio::task::JoinSet;

const HOUR: Duration = Duration::from_secs(3_600);

/// The policy, the subject, the position of the rule, and what remains of it.
type Told = (String, String, usize, u64);

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Told>>>);

impl Heard {
    fn listen(&self, builder: LimiterBuilder) -> LimiterBuilder {
        let heard = self.clone();
        builder.on_warning(move |warning| {
            let status = warning.status();
            let (policy, subject) = (warning.policy().name().to_owned(), warning.subject().to_owned());
            heard.0.lock().unwrap().push((policy, subject, status.position(), status.remaining()));
        })
    }

    fn take(&self) -> Vec<Told> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn told(policy: &str, subject: &str, position: usize, remaining: u64) -> Told {
    (policy.to_owned(), subject.to_owned(), position, remaining)
}

fn policy(name: &'static str, count: u64) -> Policy {
    Policy::builder(name).rule(Rule::sliding_window(count, HOUR)).warn_at(0.8).build().unwrap()
}

/// Calls that often at once, and returns how many were admitted.
async fn call_at_once(limiter: &Limiter, policy: &Policy, calls: usize) -> usize {
    let mut all = JoinSet::new();
    for _ in 0..calls {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        all.spawn(async move { limiter.check(&policy, &Subject::of("zoe")).await.unwrap().is_allowed() });
    }
    all.join_all().await.into_iter().filter(|admitted| *admitted).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_cause_one_warning() {
    let server = Server::start();
    let heard = Heard::default();
    let limiters = [
        heard.listen(Limiter::builder()).build_in_memory().unwrap(),
        connected(&heard.listen(patient()), &server.url()).await,
    ];
    for limiter in limiters {
        assert_eq!(call_at_once(&limiter, &policy("at_once", 50), 80).await, 50);
        assert_eq!(heard.take(), [told("at_once", "zoe", 0, 10)]);
    }
}

#[tokio::test]
async fn a_subject_causes_another_warning_after_it_was_away_from_the_limit_in_memory() {
    tokio::time::pause();
    let heard = Heard::default();
    let limiter = heard.listen(Limiter::builder()).build_in_memory().unwrap();
    for _ in 0..3 {
        assert_eq!(call_at_once(&limiter, &policy("again", 10), 20).await, 10);
        assert_eq!(heard.take(), [told("again", "zoe", 0, 2)]);
        tokio::time::advance(HOUR).await;
    }
}

#[tokio::test]
async fn each_subject_of_a_call_has_its_own_warning_in_memory() {
    let heard = Heard::default();
    let limiter = heard.listen(Limiter::builder()).build_in_memory().unwrap();
    let rules = Policy::builder("subjects").rule(Rule::sliding_window(10, HOUR));
    let policy = rules.rule_on("network", Rule::sliding_window(5, HOUR)).warn_at(0.8).build().unwrap();
    for call in 0..8 {
        let network = Subject::of("network").and(call / 4);
        let decision = limiter.check(&policy, &Subject::of("zoe")).subject("network", &network).await.unwrap();
        assert!(decision.is_allowed());
    }
    let networks =
        [told("subjects", "network:0", 1, 1), told("subjects", "zoe", 0, 2), told("subjects", "network:1", 1, 1)];
    assert_eq!(heard.take(), networks);
}

#[tokio::test]
async fn a_peek_and_a_call_that_costs_nothing_tell_nothing_and_their_permits_warn_in_memory() {
    let heard = Heard::default();
    let limiter = heard.listen(Limiter::builder()).build_in_memory().unwrap();
    let (policy, zoe) = (policy("peeks", 10), Subject::of("zoe"));
    assert!(limiter.check(&policy, &zoe).cost(9).await.unwrap().is_allowed());
    assert_eq!(heard.take().len(), 1);
    for check in [limiter.check(&policy, &zoe).peek(), limiter.check(&policy, &zoe).cost(0)] {
        let permit = check.await.unwrap().into_result().unwrap();
        assert_eq!(permit.warning().map(tallygate::RuleStatus::remaining), Some(1));
    }
    assert_eq!(heard.take(), []);
}

#[tokio::test]
async fn the_rules_in_force_are_those_that_are_warned_of_in_memory() {
    let heard = Heard::default();
    let limiter = heard.listen(Limiter::builder()).build_in_memory().unwrap();
    let policy = policy("overridden", 10);
    limiter.override_policy("overridden").rules([Rule::sliding_window(100, HOUR)]).set().await.unwrap();
    assert!(limiter.check(&policy, &Subject::of("zoe")).cost(79).await.unwrap().is_allowed());
    assert_eq!(heard.take(), []);
    assert!(limiter.check(&policy.with_counts([1]), &Subject::of("zoe")).await.unwrap().is_allowed());
    assert_eq!(heard.take(), [told("overridden", "zoe", 0, 20)]);
}

#[tokio::test]
async fn what_the_standby_admits_is_warned_of() {
    let heard = Heard::default();
    let limiter = away(|builder| heard.listen(builder));
    let policy = policy("standby", 10);
    let permit = limiter.check(&policy, &Subject::of("zoe")).cost(8).await.unwrap().into_result().unwrap();
    assert_eq!((permit.decided_by(), permit.warning().is_some()), (DecidedBy::Standby, true));
    assert_eq!(heard.take(), [told("standby", "zoe", 0, 2)]);
}

#[tokio::test]
async fn an_annotated_function_warns_in_memory() {
    struct Api {
        limiter: Limiter,
    }

    impl Api {
        #[rate_limit(
            name = "annotated",
            key = "{user}",
            rule(count = 10, per = "1h"),
            rule(count = u64::from(plan), per = "1d"),
            warn_at = 0.5,
            limiter = self.limiter
        )]
        async fn call(&self, user: &str, plan: u32) -> Result<(), Rejection> {
            let _ = user;
            Ok(())
        }
    }

    let heard = Heard::default();
    let api = Api { limiter: heard.listen(Limiter::builder()).build_in_memory().unwrap() };
    for _ in 0..6 {
        api.call("zoe", 12).await.unwrap();
    }
    assert_eq!(heard.take(), [told("annotated", "zoe", 0, 5), told("annotated", "zoe", 1, 6)]);
}

#[tokio::test]
async fn a_listener_that_panics_leaves_no_concurrent_call() {
    let panics = |builder: LimiterBuilder| builder.on_warning(|_| panic!("as a mistaken listener does"));
    let limiters = [panics(Limiter::builder()).build_in_memory().unwrap(), away(panics)];
    let rules = [Rule::concurrency(1, HOUR), Rule::sliding_window(5, HOUR)];
    let policy = Policy::builder("export").rules(rules).warn_at(0.8).build().unwrap();
    for limiter in limiters {
        let subject = Subject::of("zoe");
        let call = AssertUnwindSafe(limiter.check(&policy, &subject).cost(4).into_future());
        assert!(call.catch_unwind().await.is_err(), "it comes near the limit");
        let decision = limiter.peek(&policy, &subject).await.unwrap();
        assert_eq!((decision.report()[0].remaining(), decision.report()[1].remaining()), (1, 1));
    }
}

#[tokio::test]
async fn a_listener_that_panics_leaves_no_lease_in_redis() {
    let server = Server::start();
    // After twice the deadline, a call whose answer was not taken is given back.
    let builder = patient().deadline(Duration::from_secs(5)).on_warning(|_| panic!("as a mistaken listener does"));
    let limiter = connected(&builder, &server.url()).await;
    let rules = [Rule::concurrency(1, HOUR), Rule::sliding_window(5, HOUR)];
    let policy = Policy::builder("export").rules(rules).warn_at(0.8).build().unwrap();
    let subject = Subject::of("zoe");
    let call = AssertUnwindSafe(limiter.check(&policy, &subject).cost(4).into_future());
    assert!(call.catch_unwind().await.is_err(), "it comes near the limit");
    until_found("the lease was given back, and the call stays counted", async || {
        let decision = limiter.peek(&policy, &subject).await;
        decision.is_ok_and(|decision| [0, 1].map(|rule| decision.report()[rule].remaining()) == [1, 1])
    })
    .await;
    assert_eq!(server.ask::<u64>("EXISTS tallygate:export/leases:zoe"), 0);
}
