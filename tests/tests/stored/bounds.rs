//! An operation reads and writes little of a log, however long the log is and whatever its calls cost. The tests count
//! commands, because times vary.

use std::time::Duration;

use futures_util::future::join_all;
use tallygate::{Limiter, Permit, Policy, Rule, Subject};
use tallygate_harness::clocked::{Clocked, START_US};
use tallygate_lua::{ENTRY_BYTES, LOG_ENTRIES, REFUND_DISTANCE};

const HOUR_US: u64 = 3_600_000_000;
const KEY: &str = "tallygate:p/w1h:s";
/// As many steps as a binary search in the longest log takes, and a few reads more.
const SEARCH: usize = 17 + 5;

struct Long {
    clocked: Clocked,
    limiter: Limiter,
    policy: Policy,
    /// How often it was read and written since it was asked last.
    before: [usize; 4],
}

impl Long {
    /// A log of so many calls within the last hour, which weigh 1, 2, 3, 1, 2, 3 and so on.
    async fn of(entries: u64, count: u64) -> Self {
        let clocked = Clocked::start();
        let limiter = clocked.limiter().await;
        let policy =
            Policy::builder("p").rule(Rule::sliding_window(count, Duration::from_secs(3_600))).build().unwrap();
        let step_us = HOUR_US / (entries + 1);
        let (mut log, mut surplus) = (vec![0; ENTRY_BYTES], 0_u32);
        for entry in 0..entries {
            let at = (START_US - step_us * (entries - entry)).to_be_bytes();
            surplus += u32::try_from(entry % 3).unwrap();
            log.push(at[1] | if entry > 0 { 0x80 } else { 0 });
            log.extend(&at[2..]);
            log.extend(surplus.to_be_bytes());
        }
        let mut connection = clocked.server().connection();
        redis::cmd("SET").arg(KEY).arg(log).arg("EX").arg(7_200).exec(&mut connection).unwrap();
        let mut filled = Self { clocked, limiter, policy, before: [0; 4] };
        filled.commands();
        filled
    }

    /// How often the log was read in part, measured, changed and replaced.
    fn commands(&mut self) -> [usize; 4] {
        let now = ["getrange", "strlen", "setrange", "set"].map(|command| self.clocked.server().calls(command));
        let since = std::array::from_fn(|index| now[index] - self.before[index]);
        self.before = now;
        since
    }

    async fn call(&self, cost: u64) -> Option<Permit> {
        let subject = Subject::of("s");
        let check = self.limiter.check(&self.policy, &subject).cost(cost).refundable();
        check.await.unwrap().into_result().ok()
    }
}

#[tokio::test]
async fn a_decision_searches_a_log_in_which_weights_differ_and_copies_none_of_it() {
    for cost in [1, 65_000] {
        let mut long = Long::of(2 * LOG_ENTRIES as u64, 200_000).await;
        assert!(long.call(cost).await.is_none());
        let [read, measured, changed, replaced] = long.commands();
        assert!(read <= SEARCH && measured <= 1, "{read}, {measured}");
        assert_eq!((changed, replaced), (0, 0));
    }
}

#[tokio::test]
async fn a_report_searches_a_long_log() {
    let mut long = Long::of(2 * LOG_ENTRIES as u64, 1 << 31).await;
    let decision = long.limiter.peek(&long.policy, &Subject::of("s")).await.unwrap();
    assert_eq!(decision.report()[0].remaining(), (1 << 31) - 4 * LOG_ENTRIES as u64 + 1);
    let [read, measured, changed, replaced] = long.commands();
    assert!(read <= SEARCH && measured <= 1, "{read}, {measured}");
    assert_eq!((changed, replaced), (0, 0));
}

#[tokio::test]
async fn a_refund_rewrites_only_what_is_behind_its_call() {
    let mut long = Long::of(LOG_ENTRIES as u64, 1 << 31).await;
    long.clocked.advance(Duration::from_millis(60));
    let permit = long.call(100_000).await.unwrap();
    long.commands();
    assert!(permit.refund().await.unwrap());
    let [read, measured, changed, replaced] = long.commands();
    assert!(read <= 3 && measured == 1, "{read}, {measured}");
    assert_eq!((changed, replaced), (1, 0));
}

#[tokio::test]
async fn a_refund_behind_too_many_calls_gives_nothing_back() {
    let mut long = Long::of(1, 1 << 31).await;
    let mut permits = Vec::new();
    for _ in 0..REFUND_DISTANCE + 2 {
        permits.push(long.call(7).await.unwrap());
        long.clocked.advance(Duration::from_millis(1));
    }
    let (second, first) = (permits.swap_remove(1), permits.swap_remove(0));
    long.commands();
    assert!(!first.refund().await.unwrap());
    let [read, _, changed, replaced] = long.commands();
    assert!(read <= SEARCH);
    assert_eq!((changed, replaced), (0, 0));
    assert!(second.refund().await.unwrap());
    assert_eq!(long.commands()[2..], [1, 0]);
}

#[tokio::test]
async fn a_clock_set_back_is_found_by_a_search_and_copies_once() {
    let mut long = Long::of(LOG_ENTRIES as u64, 1 << 31).await;
    long.clocked.set(START_US - HOUR_US / 2);
    assert!(long.call(1).await.is_some());
    let [read, _, _, replaced] = long.commands();
    assert!(read <= SEARCH + 3, "{read}");
    assert_eq!(replaced, 1);
}

#[tokio::test]
async fn a_clean_up_copies_what_still_counts_once_in_32_calls_at_most() {
    let mut long = Long::of(1, 10).await;
    long.commands();
    let mut copies = 0;
    for _ in 0..320 {
        long.clocked.advance(Duration::from_secs(400));
        assert!(long.call(1).await.is_some());
        copies += long.commands()[3];
    }
    assert!((5..=10).contains(&copies), "{copies}");
}

#[tokio::test]
async fn most_of_a_log_is_dropped_however_much_still_counts() {
    let mut long = Long::of(4 * LOG_ENTRIES as u64, 1 << 31).await;
    // Later than three quarters of its calls by more than the window.
    long.clocked.advance(Duration::from_secs(2_700));
    let mut copies = 0;
    for _ in 0..32 {
        long.clocked.advance(Duration::from_millis(60));
        assert!(long.call(1).await.is_some());
        copies += long.commands()[3];
    }
    assert_eq!(copies, 1);
}

#[tokio::test]
async fn a_call_of_many_subjects_forgets_what_is_later_than_now_of_some_of_them_at_a_time() {
    let long = Long::of(2 * LOG_ENTRIES as u64, 1 << 31).await;
    let rule = || Rule::sliding_window(1 << 31, Duration::from_secs(3_600));
    let labels: Vec<_> = (0..8).map(|label| label.to_string()).collect();
    let policy = labels.iter().fold(Policy::builder("p"), |policy, label| policy.rule_on(label, rule()));
    let (policy, same) = (policy.build().unwrap(), Subject::of("s"));
    let call = async || {
        let check = long.limiter.check(&policy, &same).refundable();
        let check = labels.iter().fold(check, |check, label| check.subject(label, &same));
        check.await.unwrap().into_result().unwrap()
    };
    call().await;
    let mut connection = long.clocked.server().connection();
    let bytes: Vec<u8> = redis::cmd("GET").arg(KEY).query(&mut connection).unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*:p=*").query(&mut connection).unwrap();
    assert_eq!(keys.len(), 8);
    for key in keys {
        redis::cmd("SET").arg(key).arg(&bytes).arg("KEEPTTL").exec(&mut connection).unwrap();
    }
    let asked = || long.clocked.server().calls("evalsha");
    let before = asked();
    long.clocked.set(START_US - HOUR_US / 2);
    call().await;
    // Each call forgets one of the eight logs, and the last one decides.
    assert_eq!(asked() - before, 9);
}

#[tokio::test]
async fn calls_at_once_are_decided_whatever_there_is_to_forget() {
    let long = Long::of(2 * LOG_ENTRIES as u64, 1 << 31).await;
    let subjects: Vec<_> = (0..8).map(Subject::of).collect();
    let is_allowed = async |subject| long.limiter.check(&long.policy, subject).await.unwrap().is_allowed();
    assert!(join_all(subjects.iter().map(is_allowed)).await.into_iter().all(|admitted| admitted));
    let mut connection = long.clocked.server().connection();
    let bytes: Vec<u8> = redis::cmd("GET").arg(KEY).query(&mut connection).unwrap();
    for number in 0..8 {
        let key = format!("tallygate:p/w1h:{number}");
        redis::cmd("SET").arg(key).arg(&bytes).arg("KEEPTTL").exec(&mut connection).unwrap();
    }
    long.clocked.set(START_US - HOUR_US / 2);
    assert!(join_all(subjects.iter().map(is_allowed)).await.into_iter().all(|admitted| admitted));
}
