//! Tests of the rules in force, on a store that only keeps texts.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tallygate_rules::Rule;
use tokio::sync::watch;
use tokio::time::timeout;

use super::refresh::ReadNumber;
use super::*;
use crate::error::{BackendError, BackendErrorKind};
use crate::lock::lock;
use crate::store::StoredText;
use crate::subject::Subject;
use crate::system::home::Runtimes;
use crate::system::{Instant, TokioInstant};

const HOUR: Duration = Duration::from_secs(3_600);
const DEADLINE: Duration = Duration::from_millis(250);

/// A store of texts.
#[derive(Default)]
struct StubTexts {
    texts: Mutex<BTreeMap<String, String>>,
    version: AtomicU64,
    now_us: AtomicU64,
    reads: AtomicU64,
    is_away: AtomicBool,
    is_silent: AtomicBool,
}

impl StubTexts {
    fn store(&self, field: &str, text: &str) {
        lock(&self.texts).insert(field.to_owned(), text.to_owned());
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

impl OverrideStore for StubTexts {
    async fn overrides_version(&self) -> Result<Option<String>, BackendError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.is_silent.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
        if self.is_away.load(Ordering::Relaxed) {
            return Err(BackendError::away("away"));
        }
        Ok(Some(self.version.load(Ordering::Relaxed).to_string()))
    }

    async fn all_overrides(&self, most: usize) -> Result<Result<Vec<StoredText>, String>, BackendError> {
        let all = self.some_overrides(usize::MAX).await?;
        Ok(if all.len() > most { Err("too many".to_owned()) } else { Ok(all) })
    }

    async fn some_overrides(&self, _: usize) -> Result<Vec<StoredText>, BackendError> {
        let texts = lock(&self.texts).clone();
        Ok(texts.into_iter().map(|(field, text)| StoredText { field, text }).collect())
    }

    async fn change_override(
        &self,
        field: &str,
        text: Option<&str>,
        _: Option<&str>,
        _: usize,
        expired: Vec<StoredText>,
    ) -> Result<Option<bool>, BackendError> {
        let mut texts = lock(&self.texts);
        texts.retain(|field, _| expired.iter().all(|expired| expired.field != *field));
        let was_there = texts.remove(field).is_some();
        texts.extend(text.map(|text| (field.to_owned(), text.to_owned())));
        self.version.fetch_add(1, Ordering::Relaxed);
        Ok(Some(was_there))
    }

    fn override_time_us(&self) -> u64 {
        self.now_us.load(Ordering::Relaxed)
    }

    async fn ask_override_time(&self) -> Result<(), BackendError> {
        Ok(())
    }

    async fn wait_for<T: Send>(
        &self,
        _: &Policy,
        asking: impl Future<Output = Result<T, BackendError>> + Send,
    ) -> Result<(Result<T, BackendError>, Instant), BackendError> {
        let asked = timeout(DEADLINE, asking).await;
        Ok((asked.unwrap_or_else(|_| Err(BackendError::away("late"))), Instant::now()))
    }
}

fn sharing(store: &Arc<StubTexts>) -> Arc<Overrides<StubTexts>> {
    Arc::new(Overrides::new(Some(Arc::clone(store)), Clock::tokio()))
}

fn alone() -> Overrides<StubTexts> {
    Overrides::new(None, Clock::tokio())
}

/// Refreshes as a limiter does.
fn refresh(overrides: &Arc<Overrides<StubTexts>>, runtimes: &Arc<Runtimes>) -> Option<watch::Receiver<()>> {
    overrides.refresh(runtimes, |begun| {
        let overrides = Arc::clone(overrides);
        async move { overrides.run(begun).await }
    })
}

fn policy() -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(1, HOUR)).build().unwrap()
}

fn target() -> OverrideTarget {
    OverrideTarget::new("p".to_owned(), None, None)
}

fn written(text: &str) -> OverrideContent {
    content(read_written(text).unwrap().0).unwrap()
}

/// The count of the first rule in force, or `None` if it is that of the policy's own rule.
fn count_in_force(overrides: &Overrides<StubTexts>) -> Option<u64> {
    let subjects = [Subject::of("s").key()];
    overrides.in_force(&policy(), &subjects).map(|found| found.policy.rules()[0].count())
}

#[tokio::test(start_paused = true)]
async fn the_first_call_waits_for_the_rules_and_later_ones_only_for_rules_that_are_old() {
    let (store, runtimes) = (Arc::new(StubTexts::default()), Arc::default());
    let overrides = sharing(&store);
    store.store("p", "5 per 1h");
    let first = refresh(&overrides, &runtimes).unwrap();
    overrides.wait_for(first, &policy()).await.unwrap();
    assert_eq!((count_in_force(&overrides), store.reads()), (Some(5), 1));

    assert!(refresh(&overrides, &runtimes).is_none(), "it is not due");
    store.store("p", "7 per 1h");
    tokio::time::advance(Duration::from_millis(1_500)).await;
    assert!(refresh(&overrides, &runtimes).is_none(), "nobody waits for rules of this age");
    assert_eq!(count_in_force(&overrides), Some(5));
    overrides.changed().await;
    assert_eq!((count_in_force(&overrides), store.reads()), (Some(7), 2));

    store.store("p", "9 per 1h");
    tokio::time::advance(Duration::from_secs(2)).await;
    let both = [refresh(&overrides, &runtimes).unwrap(), refresh(&overrides, &runtimes).unwrap()];
    for one in both {
        overrides.wait_for(one, &policy()).await.unwrap();
    }
    assert_eq!((count_in_force(&overrides), store.reads()), (Some(9), 3), "one refresh serves both");
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_silent_store_until_its_deadline_and_is_passed_on_then() {
    let (store, runtimes) = (Arc::new(StubTexts::default()), Arc::default());
    store.is_silent.store(true, Ordering::Relaxed);
    let overrides = sharing(&store);
    let (began, first) = (TokioInstant::now(), refresh(&overrides, &runtimes).unwrap());
    assert!(overrides.wait_for(first, &policy()).await.unwrap().is_some());
    assert!((DEADLINE..2 * DEADLINE).contains(&began.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_the_known_rules_stay_in_force_and_nobody_waits() {
    let (store, runtimes) = (Arc::new(StubTexts::default()), Arc::default());
    let overrides = sharing(&store);
    store.store("p", "5 per 1h");
    overrides.adopt_for(&policy()).await.unwrap();
    store.is_away.store(true, Ordering::Relaxed);
    let first = refresh(&overrides, &runtimes).unwrap();
    overrides.wait_for(first, &policy()).await.unwrap();
    tokio::time::advance(HOUR).await;
    assert!(refresh(&overrides, &runtimes).is_none());
    assert_eq!(count_in_force(&overrides), Some(5));
    assert_eq!(overrides.adopt_for(&policy()).await.unwrap_err().kind(), BackendErrorKind::Away);
}

#[tokio::test]
async fn a_shared_override_expires_by_the_time_of_the_store_and_the_next_change_removes_its_text() {
    let store = Arc::new(StubTexts::default());
    let overrides = sharing(&store);
    overrides.set(target(), written("5 per 1h"), Some(7)).await.unwrap();
    assert_eq!(lock(&store.texts)["p"], "5 per 1h until 0.000007");
    store.now_us.store(6, Ordering::Relaxed);
    assert_eq!(count_in_force(&overrides), Some(5));
    store.now_us.store(7, Ordering::Relaxed);
    assert_eq!((count_in_force(&overrides), overrides.next_end_us()), (None, u64::MAX));
    assert!(!overrides.clear(&target()).await.unwrap(), "it has ended already");
    assert!(lock(&store.texts).is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_a_store_an_override_expires_by_the_clock_of_the_limiter_and_nothing_is_refreshed() {
    let (overrides, runtimes) = (Arc::new(alone()), Arc::default());
    overrides.set(target(), written("5 per 1h"), Some(1_000_000)).await.unwrap();
    assert_eq!((count_in_force(&overrides), overrides.list().await.unwrap().len()), (Some(5), 1));
    assert!(refresh(&overrides, &runtimes).is_none());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!((count_in_force(&overrides), overrides.list().await.unwrap().len()), (None, 0));
}

#[tokio::test]
async fn a_count_of_0_closes_the_limit_until_the_override_is_cleared() {
    let (overrides, subjects) = (alone(), [Subject::of("s").key()]);
    overrides.set(target(), written("5 per 1h"), None).await.unwrap();
    assert_eq!(count_in_force(&overrides), Some(5));
    overrides.set(target(), written("0 per 1h"), None).await.unwrap();
    assert_eq!(count_in_force(&overrides), Some(0));
    assert!(overrides.clear(&target()).await.unwrap());
    assert!(overrides.in_force(&policy(), &subjects).is_none() && !overrides.are_active());
}

#[tokio::test]
async fn each_group_of_the_rules_in_force_gets_its_subject() {
    let (overrides, subjects) = (alone(), [Subject::of("s").key(), Subject::of("network").key()]);
    let own = Policy::builder("p").rule(Rule::sliding_window(1, HOUR)).rule_on("net", Rule::sliding_window(2, HOUR));
    let own = own.build().unwrap();
    overrides.set(target(), written("5 per 1h, 2 concurrent lease 30s"), None).await.unwrap();
    let found = overrides.in_force(&own, &subjects).unwrap();
    let labels = found.policy.groups().iter().map(|group| group.label.as_deref());
    for (label, subject) in labels.zip(&*found.subjects) {
        assert!(*subject == subjects[usize::from(label.is_some())]);
    }
    assert_eq!((found.policy.groups().len(), found.subjects.len()), (3, 3));
}

#[tokio::test]
async fn where_too_much_is_stored_the_known_rules_stay_in_force_and_who_asks_is_told() {
    let store = Arc::new(StubTexts::default());
    let overrides = sharing(&store);
    overrides.set(target(), written("5 per 1h"), None).await.unwrap();
    (0..MOST_OVERRIDES).for_each(|number| store.store(&format!("q{number}"), "1 per 1h"));
    store.store("p", "7 per 1h");
    assert_eq!(overrides.adopt_for(&policy()).await.unwrap_err().to_string(), "too many; clear some");
    assert_eq!(count_in_force(&overrides), Some(5));
}

fn stored<const N: usize>(texts: [(&str, &str); N]) -> Vec<StoredText> {
    texts.map(|(field, text)| StoredText { field: field.to_owned(), text: text.to_owned() }).into()
}

/// The adopted version, and the number of its overrides.
fn known(overrides: &Overrides<StubTexts>) -> (String, usize) {
    let known = overrides.read();
    (known.version.clone().unwrap_or_default(), known.table.len())
}

async fn adopt<const N: usize>(
    overrides: &Overrides<StubTexts>,
    reading: &ReadNumber,
    version: &str,
    texts: [(&str, &str); N],
) -> usize {
    let found = overrides.read_stored(stored(texts)).await;
    overrides.adopt_found(reading, Some(version.to_owned()), found, 0).len()
}

#[tokio::test]
async fn a_refresh_that_began_before_a_change_does_not_undo_it() {
    let overrides = alone();
    let refresh = overrides.read_order.begin();
    let change = overrides.read_order.begin();
    assert_eq!(adopt(&overrides, &change, "new", [("sms", "0 per 1h")]).await, 1);
    assert_eq!(adopt(&overrides, &refresh, "old", []).await, 0, "no policy is changed back");
    assert_eq!(known(&overrides), ("new".to_owned(), 1));
    overrides.keep_known(&refresh, Some("old".to_owned()), String::new());
    assert_eq!((known(&overrides), overrides.excess()), (("new".to_owned(), 1), None));
}

#[tokio::test]
async fn a_refresh_that_began_after_a_change_replaces_it() {
    let overrides = alone();
    let change = overrides.read_order.begin();
    let refresh = overrides.read_order.begin();
    adopt(&overrides, &change, "old", [("sms", "0 per 1h")]).await;
    adopt(&overrides, &refresh, "new", []).await;
    assert_eq!(known(&overrides), ("new".to_owned(), 0));
}

#[tokio::test]
async fn a_reading_without_an_answer_keeps_no_other_from_being_adopted() {
    let overrides = alone();
    let earlier = overrides.read_order.begin();
    let _unanswered = overrides.read_order.begin();
    adopt(&overrides, &earlier, "read", [("sms", "0 per 1h")]).await;
    assert_eq!(known(&overrides), ("read".to_owned(), 1));
}
