use std::time::Duration;

use tallygate_rules::Rule;

use super::*;
use crate::decision::{Rejection, RejectionKind};
use crate::limiter::Limiter;
use crate::policy::Policy;
use crate::subject::Subject;

fn policy() -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap()
}

fn shown(name: &str) -> Option<String> {
    Context::current()?.get(name).map(str::to_owned)
}

/// Makes the subject of `{@ip}:{@user}` in both ways.
fn subjects(limiter: &Limiter) -> [Subject; 2] {
    let mut pushed = Subject::everyone();
    push(&mut pushed, "ip");
    pushed.push_literal(":");
    push_filtered(&mut pushed, "user", str::to_lowercase);
    [pushed, limiter.subject().context("ip").text(":").context("user").lower().build()]
}

#[tokio::test]
async fn an_inner_context_goes_before_the_one_around_it_and_leaves_it_as_it_was() {
    let inner = async { (shown("ip"), shown("user")) };
    let outer = async {
        let inner = scope(Context::new().with("user", "alice").with("user", "bob"), inner).await;
        (inner, shown("user"))
    };
    let around = Context::new().with("ip", "192.0.2.1").with("user", "nobody");
    let (inner, outer) = scope(around, outer).await;
    assert_eq!(inner, (Some("192.0.2.1".into()), Some("bob".into())));
    assert_eq!(outer, Some("nobody".into()));
    assert!(Context::current().is_none());
}

#[tokio::test]
async fn a_task_has_the_context_that_was_carried_into_it_and_no_other() {
    let spawn = async {
        let bare = tokio::spawn(async { shown("ip") }).await.unwrap();
        let carried = tokio::spawn(carry(async { shown("ip") })).await.unwrap();
        (bare, carried)
    };
    let spawned = scope(Context::new().with("ip", "192.0.2.1"), spawn).await;
    assert_eq!(spawned, (None, Some("192.0.2.1".into())));
    assert!(carry(async { Context::current().is_none() }).await);
}

#[tokio::test]
async fn a_thread_has_the_context_that_was_carried_into_it_and_no_other() {
    let ip = || shown("ip");
    let call = async {
        let blocking = tokio::task::spawn_blocking(carry_fn(ip)).await.unwrap();
        let thread = std::thread::spawn(carry_fn(ip)).join().unwrap();
        let bare = std::thread::spawn(ip).join().unwrap();
        (blocking, thread, bare)
    };
    let known = Some("192.0.2.1".to_owned());
    let called = scope(Context::new().with("ip", "192.0.2.1"), call).await;
    assert_eq!(called, (known.clone(), known, None));
    assert!(carry_fn(Context::current)().is_none());
}

#[test]
fn a_function_has_a_context_without_any_runtime() {
    let both = || (shown("ip"), shown("user"));
    let inner = || scope_fn(Context::new().with("user", "zoe"), both);
    let (ip, user) = scope_fn(Context::new().with("ip", "192.0.2.1").with("user", "nobody"), inner);
    assert_eq!((ip.as_deref(), user.as_deref()), (Some("192.0.2.1"), Some("zoe")));
    assert!(Context::current().is_none());
}

#[tokio::test]
async fn values_of_the_context_make_the_subject_that_is_written_out() {
    let limiter = Limiter::in_memory();
    let context = Context::new().with("ip", "2001:db8::7").with("user", "Zoë:X");
    let made = scope(context, async { subjects(&limiter) }).await;
    let written = limiter.subject().value("2001:db8::7").text(":").value("zoë:x").build();
    assert_eq!(made, [written.clone(), written]);
}

#[tokio::test]
async fn a_call_whose_context_lacks_a_value_is_never_admitted_and_says_what_to_add() {
    let limiter = Limiter::in_memory();
    let policy = policy();
    for (context, expected) in [
        (None, "`{@ip}` needs a context, and the call has none; add `web::Layer` to the router, or run the call in"),
        (
            Some(Context::new().with("user", "zoe")),
            "`{@ip}` needs the client's address, which the server does not know",
        ),
        (Some(Context::test()), "`{@user}` is a value that the context does not have; add it with `web::Layer::value`"),
        (
            Some(Context::test().with("usr", "zoe")),
            "`{@user}` is a value that the context does not have; did you mean `usr`?",
        ),
    ] {
        let make = async { subjects(&limiter) };
        let subjects = match context {
            Some(context) => scope(context, make).await,
            None => make.await,
        };
        for subject in subjects {
            let error = limiter.check(&policy, &subject).await.unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
            assert_eq!(Rejection::unavailable("p", error).kind(), RejectionKind::Unavailable);
            assert!(limiter.check(&policy, &subject).peek().await.is_err());
            assert!(limiter.check(&policy, &subject).wait(Duration::from_millis(1)).await.is_err());
            assert!(limiter.check(&policy, &subject).reset().await.is_err());
            assert!(
                limiter.override_policy("p").subject(&subject).text("5 per 1m").allow_unknown().set().await.is_err()
            );
        }
    }
}

#[tokio::test]
async fn another_subject_that_lacks_a_value_is_refused_like_the_main_one() {
    let limiter = Limiter::in_memory();
    let minute = Duration::from_secs(60);
    let rules = Policy::builder("p").rule(Rule::sliding_window(1, minute));
    let policy = rules.rule_on("network", Rule::sliding_window(9, minute)).build().unwrap();
    let (known, [unknown, _]) = (Subject::of("alice"), subjects(&limiter));
    assert!(limiter.check(&policy, &known).subject("network", &unknown).await.is_err());
    assert!(limiter.check(&policy, &unknown).subject("network", &known).await.is_err());
    assert!(limiter.check(&policy, &known).subject("network", &known).await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_message_shows_nothing_in_place_of_a_value_that_is_missing() {
    let message = || {
        let mut message = "for ".to_owned();
        show(&mut message, "user", str::to_owned);
        message
    };
    assert_eq!(message(), "for ");
    assert_eq!(scope(Context::new().with("user", "zoë"), async { message() }).await, "for zoë");
}

#[test]
fn contexts_of_tests_have_addresses_of_their_own() {
    let (one, other) = (Context::test(), Context::test());
    assert!(one.get("ip").unwrap().starts_with("198.18."));
    assert_ne!(one.get("ip"), other.get("ip"));
}

#[test]
fn debug_output_leaves_out_the_values() {
    let shown = format!("{:?}", Context::new().with("user", "alice"));
    assert_eq!(shown, "Context { names: [\"user\"], .. }");
}
