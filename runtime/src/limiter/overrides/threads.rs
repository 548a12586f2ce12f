//! Overrides that several threads read and change.

use std::sync::Arc;
use std::time::Duration;

use shuttle::thread;
use tallygate_rules::Rule;

use super::Overrides;
use super::active::{ActiveOverride, ChangedPolicies};
use super::refresh::ReadOrder;
use super::target::OverrideTarget;
use crate::clock::Clock;
use crate::policy::Policy;
use crate::subject::Subject;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::interleaved::explore;
use crate::sync::{Mutex, lock};

fn policy() -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap()
}

fn target(number: u32) -> OverrideTarget {
    OverrideTarget::new("p".to_owned(), None, Some(Subject::of(number)))
}

#[test]
fn whether_there_are_overrides_is_known_once_all_changes_are_made() {
    explore(|| {
        let overrides = Arc::new(Overrides::<()>::new(None, Clock::tokio()));
        let threads = [(0, "5 per 60s until 1"), (1, "5 per 60s")].map(|(number, text)| {
            let overrides = Arc::clone(&overrides);
            thread::spawn(move || {
                let new = ActiveOverride::read(&target(number), text).unwrap();
                overrides.put(target(number), new).unwrap();
                let subjects = [Subject::of(number).key()];
                let in_force = overrides.changed_policy(&policy(), &subjects);
                // The other thread may have removed expired overrides.
                assert!(in_force.is_none_or(|policy| policy.rules()[0].count() == 5));
                overrides.remove_expired_by(2_000_000);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(overrides.read().table.len(), 1);
        assert!(overrides.are_active() && !overrides.any_expires());
        assert!(overrides.remove(&target(1)) && !overrides.are_active());
    });
}

#[test]
fn threads_share_what_a_change_makes_of_a_policy() {
    explore(|| {
        let (changed, policy) = (Arc::new(ChangedPolicies::default()), policy());
        let made = Arc::new(AtomicU64::new(0));
        let threads = [(); 3].map(|()| {
            let (changed, policy, made) = (Arc::clone(&changed), policy.clone(), Arc::clone(&made));
            thread::spawn(move || {
                changed.get(&policy, None, || {
                    made.fetch_add(1, Ordering::Relaxed);
                    Some(self::policy())
                })
            })
        });
        let results = threads.map(|thread| thread.join().unwrap().unwrap());
        assert!(results.iter().all(|result| result.is_clone_of(&results[0])));
        assert_eq!(made.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn an_older_reading_never_replaces_a_newer_one() {
    explore(|| {
        let (order, adopted) = (Arc::new(ReadOrder::default()), Arc::new(Mutex::new(Vec::new())));
        // The stored value, which changes during reads.
        let stored = Arc::new(AtomicU64::new(0));
        let threads = [(); 3].map(|()| {
            let (order, adopted, stored) = (Arc::clone(&order), Arc::clone(&adopted), Arc::clone(&stored));
            thread::spawn(move || {
                stored.fetch_add(1, Ordering::Relaxed);
                let reading = order.begin();
                let read = stored.load(Ordering::Relaxed);
                order.adopt(&reading, || lock(&adopted).push(read));
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let adopted = lock(&adopted);
        // The read that began last has seen every change.
        assert_eq!(adopted.last(), Some(&3), "{adopted:?}");
    });
}
