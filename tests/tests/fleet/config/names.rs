//! Names that no policy has, and policies that a file does not fit.

use tallygate::{Limiter, Policy, Rejection, rate_limit};
use tallygate_harness::log::Log;

use super::{apply, file, hourly, room, try_apply};

#[tokio::test]
async fn in_memory_a_name_that_no_policy_has_is_reported_with_what_was_meant() {
    let policy = Policy::builder("config.names").rule(hourly(1)).build().unwrap();
    let limiter = Limiter::in_memory();
    let applied =
        apply(&limiter, "[policy.'config.nams']\nrules = ['2 per 1h']\n[policy.'config.names']\nrules = ['2 per 1h']");
    let message = "line 1, column 9: this process knows no policy `config.nams`; did you mean `config.names`? (a policy that \
                   is built by hand is known from then on)";
    let unknown: Vec<_> = applied.unknown().iter().map(ToString::to_string).collect();
    assert_eq!(unknown, [message]);
    assert_eq!(applied.require_known().unwrap_err().to_string(), message);
    assert_eq!(room(&limiter, &policy).await, 2);
}

#[tokio::test]
async fn in_memory_a_function_is_known_and_changed_before_its_first_call() {
    #[rate_limit(name = "config.early", key = "{user}", rule(count = 1, per = "1h"), limiter = limiter)]
    async fn call(limiter: &Limiter, user: &str) -> Result<(), Rejection> {
        Ok(())
    }
    let limiter = Limiter::in_memory();
    apply(&limiter, &file("config.early", "'2 per 1h'")).require_known().unwrap();
    call(&limiter, "alice").await.unwrap();
    call(&limiter, "alice").await.unwrap();
    call(&limiter, "alice").await.unwrap_err();
}

#[tokio::test]
async fn in_memory_functions_are_known_wherever_they_are() {
    trait Named {
        async fn of_trait(&self) -> Result<(), Rejection>;
    }
    struct Service;
    impl Named for Service {
        #[rate_limit(name = "config.known.trait", rule(count = 1, per = "1h"))]
        async fn of_trait(&self) -> Result<(), Rejection> {
            Ok(())
        }
    }
    #[rate_limit(name = "config.known.generic", key = "{shown}", rule(count = 1, per = "1h"))]
    async fn generic<T: std::fmt::Display>(shown: T) -> Result<(), Rejection> {
        Ok(())
    }
    #[rate_limit(key = "{user}", rule(count = 1, per = "1h"))]
    async fn unnamed(user: &str) -> Result<(), Rejection> {
        Ok(())
    }
    // Used, and never called.
    let _ = (Service.of_trait(), generic(7), unnamed("alice"));
    let path = format!("{}.in_memory_functions_are_known_wherever_they_are.unnamed", module_path!().replace("::", "."));
    let names = ["config.known.trait", "config.known.generic", &path];
    let text = names.map(|name| file(name, "'2 per 1h'")).join("\n");
    apply(&Limiter::in_memory(), &text).require_known().unwrap();
}

#[tokio::test]
async fn in_memory_a_file_that_does_not_fit_a_function_is_refused_before_its_first_call() {
    #[rate_limit(name = "config.unfit", key = "{user}", rule(count = 1, per = "1h"))]
    async fn call(user: &str) -> Result<(), Rejection> {
        Ok(())
    }
    let text = "[policy.'config.unfit']\nkey = 'u:{user}'\nrules = ['2 per 1h']";
    let error = try_apply(&Limiter::in_memory(), text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2, column 7: the key of this policy is a part of the program: write `key = \"{user}\"`, or remove it"
    );
    call("alice").await.unwrap();
}

#[tokio::test]
async fn in_memory_a_file_that_does_not_fit_a_later_policy_leaves_it_its_rules_and_says_so_once() {
    let (log, _listening) = Log::listen();
    let limiter = Limiter::in_memory();
    let text = "[policy.'config.misfit']\nkey = 'u:{user}'\nrules = ['2 per 1h']";
    apply(&limiter, text);
    let policy = Policy::builder("config.misfit").rule(hourly(1)).key("{user}").build().unwrap();
    assert_eq!(room(&limiter, &policy).await, 1);
    assert_eq!(room(&limiter, &policy).await, 0);
    let message =
        "line 2, column 7: the key of this policy is a part of the program: write `key = \"{user}\"`, or remove it";
    let lines = log.lines();
    let said: Vec<_> = lines.iter().filter(|line| line.contains("does not fit")).collect();
    assert!(said.len() == 1 && said[0].contains("ERROR") && said[0].contains(message), "{said:?}");
    // By now the policy is known.
    assert_eq!(try_apply(&limiter, text).unwrap_err().to_string(), message);
}

#[tokio::test]
async fn in_memory_a_key_of_a_policy_by_hand_is_refused() {
    let policy = Policy::builder("config.by_hand").rule(hourly(1)).build().unwrap();
    let text = "[policy.'config.by_hand']\nkey = '{user}'\nrules = ['2 per 1h']";
    let error = try_apply(&Limiter::in_memory(), text).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 7: the program says no `key` of this policy; remove it");
    drop(policy);
}
