//! Numbers of a whole process, over all limiters: so these tests need one of their own, in which each number has one test.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use futures_util::FutureExt as _;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tallygate::{Limiter, Policy, Rule, Schedule, Subject, TokenBucket};

const HOUR: Duration = Duration::from_secs(3_600);

/// A gauge without labels.
fn gauge(snapshots: &Snapshotter, name: &str) -> Option<f64> {
    let metrics = snapshots.snapshot().into_vec();
    let (key, .., value) = metrics.into_iter().find(|(key, ..)| key.key().name() == name)?;
    assert_eq!(key.key().labels().count(), 0);
    let DebugValue::Gauge(value) = value else { return None };
    Some(value.0)
}

#[tokio::test]
async fn overrides_are_counted_while_they_are_in_force() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let limiter = Limiter::in_memory();
    let overriding = |name: &str| limiter.override_policy(name).rules([Rule::sliding_window(9, HOUR)]).allow_unknown();
    overriding("one").set().await.unwrap();
    overriding("other").set().await.unwrap();
    let overrides = || gauge(&snapshots, "tallygate_overrides");
    assert_eq!(overrides(), Some(2.0));
    limiter.override_policy("one").clear().await.unwrap();
    assert_eq!(overrides(), Some(1.0));
    drop(limiter);
    assert_eq!(overrides(), Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn a_watched_file_is_counted_while_it_is_not_in_force_and_so_are_policies_that_leave_it() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.toml");
    let sound = "[policy.gauged]\nrules = ['2 per 1h']\n";
    std::fs::write(&path, format!("{sound}[policy.other]\nrules = ['2 per 1h']")).unwrap();
    let limiter = Limiter::in_memory();
    let mut watch = limiter.watch_file(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    watch.changed().await.unwrap().unwrap_err();
    assert_eq!(gauge(&snapshots, "tallygate_unapplied_files"), Some(1.0));
    std::fs::write(&path, format!("{sound}[end]")).unwrap();
    watch.changed().await.unwrap().unwrap();
    let metrics = snapshots.snapshot().into_vec();
    let value = |name: &str| metrics.iter().find(|(key, ..)| key.key().name() == name).map(|(.., value)| value);
    assert_eq!(value("tallygate_unapplied_files"), Some(&DebugValue::Gauge(0.0.into())));
    assert_eq!(value("tallygate_lost_policies_total"), Some(&DebugValue::Counter(1)));
}

/// How many strangers call, and how often each.
const STRANGERS: u64 = 50;
const CALLS: u64 = 5;

/// What has been counted since the last such question: replaced subjects and early denials.
fn counted(snapshots: &Snapshotter) -> [u64; 2] {
    let metrics = snapshots.snapshot().into_vec();
    ["tallygate_replaced_subjects_total", "tallygate_early_denials_total"].map(|name| {
        let of_name = metrics.iter().filter(|(key, ..)| key.key().name() == name);
        of_name.map(|(.., value)| if let DebugValue::Counter(number) = value { *number } else { 0 }).sum()
    })
}

/// Makes a call that costs 1 in each unit.
fn is_denied(limiter: &Limiter, policy: &Policy, subject: &Subject) -> bool {
    let check = policy.units().fold(limiter.check(policy, subject), |check, unit| check.cost_of(unit, 1));
    !check.into_future().now_or_never().unwrap().unwrap().is_allowed()
}

/// A limiter in which so many subjects have called that most new ones share what they have left.
fn flooded(policy: &Policy) -> Limiter {
    let limiter = Limiter::builder().max_subjects(64).build_in_memory().unwrap();
    for number in 0..40 * 64 {
        is_denied(&limiter, policy, &Subject::of("invented").and(number));
    }
    limiter
}

fn window() -> Rule {
    Rule::sliding_window(1, HOUR)
}

/// One policy for each way to decide: a rule of each algorithm, several rules, and calls that pay in units.
fn policies() -> impl Iterator<Item = Policy> {
    let [bucket, fixed] = [Rule::from_bucket(1, TokenBucket::new(HOUR)), Rule::fixed_window(1, HOUR)];
    let cron = Rule::cron(1, Schedule::parse("0 0 0 1 1 *", "UTC").unwrap());
    let (counter, tokens) = (Rule::sliding_counter(1, HOUR), || window().counting("tokens"));
    let all = [
        vec![window()],
        vec![bucket.clone()],
        vec![fixed.clone()],
        vec![counter.clone()],
        vec![cron.clone()],
        vec![window(), bucket],
        vec![fixed, counter, cron],
        vec![window(), tokens()],
        vec![tokens()],
    ];
    all.into_iter().map(|rules| Policy::builder("replaced").rules(rules).build().unwrap())
}

/// A call of several subjects is not denied early if one of them has used its own calls.
fn early_denials_beside_a_tenant() {
    let flooding = Policy::builder("replaced").rule(window()).build().unwrap();
    let tenants = Rule::sliding_window(2, HOUR);
    let of_tenants = Policy::builder("replaced").rule_on("tenant", tenants.clone()).build().unwrap();
    let policy = Policy::builder("replaced").rule(window()).rule_on("tenant", tenants).build().unwrap();
    let mut told = [0; 2];
    for number in 0..10 {
        let recorder = DebuggingRecorder::new();
        let snapshots = recorder.snapshotter();
        let _recording = metrics::set_default_local_recorder(&recorder);
        let limiter = flooded(&flooding);
        let [open, spent] = ["open", "spent"].map(|name| Subject::of(name).and(number));
        let of_tenant = limiter.check(&of_tenants, &spent).subject("tenant", &spent).refundable().into_future();
        let permit = of_tenant.now_or_never().unwrap().unwrap().into_result().unwrap();
        assert!(permit.settle(5).now_or_never().unwrap().unwrap());
        counted(&snapshots);
        for (told, tenant) in told.iter_mut().zip([&spent, &open]) {
            for user in 0..5 {
                let user = Subject::of("user").and(user);
                // Where all others are denied, there may be no room for two subjects.
                let _ = limiter.check(&policy, &user).subject("tenant", tenant).into_future().now_or_never().unwrap();
            }
            *told += counted(&snapshots)[1];
        }
    }
    assert!(told[0] < 10 && told[1] > 20, "{told:?}");
}

#[test]
fn subjects_that_others_replace_are_counted_and_each_denial_for_what_others_have_left_but_none_for_own_calls() {
    for policy in policies() {
        let recorder = DebuggingRecorder::new();
        let snapshots = recorder.snapshotter();
        let _recording = metrics::set_default_local_recorder(&recorder);
        let limiter = flooded(&policy);
        let [replaced, _] = counted(&snapshots);
        assert!(replaced > 2_000, "{replaced} are replaced: {policy:?}");
        let [mut early, mut own] = [0; 2];
        for number in 0..STRANGERS {
            let stranger = Subject::of("stranger").and(number);
            let denied = (0..CALLS).filter(|_| is_denied(&limiter, &policy, &stranger)).count() as u64;
            // One that is admitted has then used its own call.
            *if denied == CALLS { &mut early } else { &mut own } += denied;
        }
        let [_, told] = counted(&snapshots);
        // A stranger that seems to be another takes its calls for its own.
        assert!(
            early >= STRANGERS && (early - early / 10..=early).contains(&told),
            "{told} of {early}, {own}: {policy:?}"
        );
    }
    early_denials_beside_a_tenant();
}
