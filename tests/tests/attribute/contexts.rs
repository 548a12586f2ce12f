//! Values of the context in keys and messages.

use std::future::Future;
use std::pin::Pin;

use tallygate::context::{self, Context};
use tallygate::{Limiter, Rejection, RejectionKind, Subject, rate_limit};

fn of(ip: &'static str, user: &'static str) -> Context {
    Context::new().with("ip", ip).with("user", user)
}

/// Whether a call in that context is admitted.
async fn admits<T>(context: Context, call: impl Future<Output = Result<T, Rejection>>) -> bool {
    context::scope(context, call).await.is_ok()
}

#[rate_limit(
    key = "{@ip}/{phone}",
    rule(count = 1, per = "60s"),
    rule(count = 3, per = "60s", key = "{@user:trim:lower:hash}"),
    limiter = limiter,
    check_fn = send_limit,
    message = "not so fast, {@user:trim} from {@ip}: try again in {@retry_after}"
)]
async fn send(phone: &str, limiter: &Limiter) -> Result<(), Rejection> {
    let _ = (phone, limiter);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn values_of_the_context_stand_beside_arguments() {
    let limiter = &Limiter::in_memory();
    assert!(admits(of("192.0.2.1", "zoe"), send("138", limiter)).await);
    let rejection = context::scope(of("192.0.2.1", " Zoë "), send("138", limiter)).await.unwrap_err();
    assert_eq!(rejection.to_string(), "not so fast, Zoë from 192.0.2.1: try again in 1m");
    assert!(admits(of("192.0.2.2", " Zoe"), send("138", limiter)).await, "another address");
    assert!(admits(of("192.0.2.1", "ZOE"), send("139", limiter)).await, "another phone");
    assert!(!admits(of("192.0.2.3", "zoe"), send("140", limiter)).await, "the user has three already");
}

#[tokio::test]
async fn a_companion_has_the_subjects_of_its_context() {
    let limiter = &Limiter::in_memory();
    assert!(admits(of("192.0.2.1", "zoe"), send("138", limiter)).await);
    let check = context::scope(of("192.0.2.1", "zoe"), async { send_limit("138", limiter) }).await;
    assert_eq!(check.peek().report().await.unwrap().report()[0].remaining(), 0);
    assert!(send_limit("138", limiter).peek().await.is_err(), "outside of the context");
}

#[tokio::test]
async fn a_value_that_is_missing_closes_the_function_and_says_why() {
    let limiter = &Limiter::in_memory();
    for context in [None, Some(Context::new().with("ip", "192.0.2.1")), Some(Context::new().with("user", "zoe"))] {
        let call = send("138", limiter);
        let rejection = match context {
            None => call.await.unwrap_err(),
            Some(context) => context::scope(context, call).await.unwrap_err(),
        };
        assert_eq!(rejection.kind(), RejectionKind::Unavailable);
        let source = std::error::Error::source(&rejection).unwrap().to_string();
        assert!(source.contains("`{@"), "{source}");
    }
}

#[rate_limit(name = "contexts.plain", key = "user:{@user}", rule(count = 1, per = "60s"))]
async fn plain() -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn the_key_is_that_of_the_same_template_written_by_hand() {
    let limiter = Limiter::installed();
    assert!(admits(of("192.0.2.1", "a:b"), plain()).await);
    let policy = Limiter::policy("contexts.plain").unwrap();
    for (subject, remaining) in [(Subject::of("user").and("a:b"), 0), (Subject::of("user").and("a"), 1)] {
        assert_eq!(limiter.peek(&policy, &subject).await.unwrap().report()[0].remaining(), remaining);
    }
    let by_hand = async { limiter.subject().text("user:").context("user").build() };
    assert_eq!(context::scope(of("192.0.2.1", "a:b"), by_hand).await, Subject::of("user").and("a:b"));
}

struct Phone(String);

#[rate_limit(
    key = "{phone.0}:{@ip}",
    rule(count = 1, per = "60s"),
    rule(count = 3, per = "60s", key = "{@user:hash}/{phone.0:lower}"),
    limiter = limiter,
    message = "{phone.0} from {@ip}"
)]
fn future(phone: &Phone, limiter: &Limiter) -> impl Future<Output = Result<u8, Rejection>> + Send + use<> {
    let _ = (phone, limiter);
    async { Ok(7) }
}

#[rate_limit(key = "{@ip}", rule(count = 1, per = "60s"), limiter = limiter, skip_if = phone.0.is_empty())]
fn boxed<'a>(
    phone: &'a Phone,
    limiter: &'a Limiter,
) -> Pin<Box<dyn Future<Output = Result<&'a str, Rejection>> + Send + 'a>> {
    let _ = limiter;
    Box::pin(async move { Ok(&*phone.0) })
}

#[tokio::test]
async fn a_future_has_the_context_in_which_it_is_polled_and_not_the_one_in_which_it_is_made() {
    let limiter = &Limiter::in_memory();
    let phone = Phone("138".into());
    let made =
        context::scope(of("192.0.2.9", "made"), async { [future(&phone, limiter), future(&phone, limiter)] }).await;
    let [first, second] = made;
    assert_eq!(context::scope(of("192.0.2.1", "zoe"), first).await.unwrap(), 7);
    let rejection = context::scope(of("192.0.2.1", "zoe"), second).await.unwrap_err();
    assert_eq!(rejection.to_string(), "138 from 192.0.2.1");
    assert!(admits(of("192.0.2.9", "zoe"), future(&phone, limiter)).await);
    assert_eq!(future(&phone, limiter).await.unwrap_err().kind(), RejectionKind::Unavailable);
}

#[tokio::test]
async fn a_boxed_future_that_is_not_limited_needs_no_context() {
    let limiter = &Limiter::in_memory();
    assert_eq!(boxed(&Phone(String::new()), limiter).await.unwrap(), "");
    let phone = Phone("138".into());
    assert!(boxed(&phone, limiter).await.is_err());
    assert!(admits(of("192.0.2.1", "zoe"), boxed(&phone, limiter)).await);
    assert!(!admits(of("192.0.2.1", "zoe"), boxed(&phone, limiter)).await);
}

#[async_trait::async_trait]
trait Sends {
    async fn send(&self, phone: String) -> Result<String, Rejection>;
}

#[async_trait::async_trait]
impl Sends for Limiter {
    #[rate_limit(key = "{phone}/{@ip}", rule(count = 1, per = "60s"), limiter = self, message = "{phone}, {@user}")]
    async fn send(&self, phone: String) -> Result<String, Rejection> {
        Ok(phone)
    }
}

#[tokio::test]
async fn methods_of_async_traits_have_the_context() {
    let limiter = Limiter::in_memory();
    assert_eq!(context::scope(of("192.0.2.1", "zoe"), limiter.send("138".into())).await.unwrap(), "138");
    let rejection = context::scope(of("192.0.2.1", "zoe"), limiter.send("138".into())).await.unwrap_err();
    assert_eq!(rejection.to_string(), "138, zoe");
}

#[rate_limit(
    key = "{@ip}",
    rule(count = 1, per = "60s"),
    ban(denials = 1, within = "10m", duration = "1h", message = "{@ip:hash} is out"),
    prevent_duplicate(key = "{@user}", message = "again, {@user:lower}?"),
    refund_if = Result::is_err
)]
async fn around() -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn bans_and_duplicates_have_values_of_the_context_too() {
    let scope =
        async |ip, user| context::scope(of(ip, user), around()).await.map_err(|rejection| rejection.to_string());
    assert_eq!(scope("192.0.2.1", "Zoe").await, Ok(()));
    assert_eq!(scope("192.0.2.2", "Zoe").await, Err("again, zoe?".into()));
    let digest = tallygate::Limiter::installed().subject().value("192.0.2.2").hash().build();
    assert_eq!(scope("192.0.2.2", "Bob").await, Err(format!("{digest} is out")));
}

#[rate_limit(
    key = "{@user:lower|@ip}",
    rule(count = 1, per = "60s"),
    rule(count = 3, per = "60s", key = "{tenant}/{@session|@user:hash|@ip}"),
    limiter = limiter,
    check_fn = search_limit
)]
async fn search(tenant: &str, limiter: &Limiter) -> Result<(), Rejection> {
    let _ = (tenant, limiter);
    Ok(())
}

#[rate_limit(key = "{@user:lower|@ip}", rule(count = 1, per = "60s"), limiter = limiter)]
fn search_boxed(limiter: &Limiter) -> Pin<Box<dyn Future<Output = Result<(), Rejection>> + Send + '_>> {
    Box::pin(async { Ok(()) })
}

#[tokio::test(start_paused = true)]
async fn the_first_alternative_that_is_there_counts_and_its_name_keeps_it_apart() {
    let limiter = &Limiter::in_memory();
    let ip = |ip: &'static str| Context::new().with("ip", ip);
    assert!(admits(of("192.0.2.1", "zoe"), search("a", limiter)).await);
    assert!(!admits(of("192.0.2.2", "Zoe"), search("a", limiter)).await, "the same user");
    assert!(admits(ip("192.0.2.1"), search("a", limiter)).await, "nobody is signed in");
    assert!(!admits(ip("192.0.2.1"), search("a", limiter)).await);
    assert!(admits(of("192.0.2.2", "192.0.2.3"), search("a", limiter)).await);
    assert!(admits(ip("192.0.2.3"), search("a", limiter)).await, "a user of that name is no address");
    let limiter = &Limiter::in_memory();
    assert!(admits(of("192.0.2.1", "zoe"), search_boxed(limiter)).await);
    assert!(!admits(of("192.0.2.2", "ZOE"), search_boxed(limiter)).await);
    assert!(admits(ip("192.0.2.2"), search_boxed(limiter)).await);
}

#[tokio::test]
async fn alternatives_render_as_a_subject_that_is_built_by_hand() {
    let limiter = &Limiter::in_memory();
    assert!(admits(of("192.0.2.1", "Zoë"), search("a", limiter)).await);
    let policy = Limiter::policy("attribute.contexts.search").unwrap();
    let digest = limiter.subject().text("a/user:").value("Zoë").hash().build();
    let main = Subject::of("user").and("zoë");
    let check = limiter.check(&policy, &main);
    let report = check.subject("{tenant}/{@session|@user:hash|@ip}", &digest).peek().report().await.unwrap();
    assert_eq!(report.report().iter().map(tallygate::RuleStatus::remaining).collect::<Vec<_>>(), [0, 2]);
}

#[tokio::test]
async fn without_any_of_the_alternatives_a_call_is_rejected_and_the_source_names_them() {
    let limiter = &Limiter::in_memory();
    for context in [Context::new(), of("", ""), Context::new().with("role", "admin")] {
        let rejection = context::scope(context, search("a", limiter)).await.unwrap_err();
        assert_eq!(rejection.kind(), RejectionKind::Unavailable);
        let source = std::error::Error::source(&rejection).unwrap().to_string();
        assert!(source.starts_with("`{@user|@ip}` "), "{source}");
    }
}
