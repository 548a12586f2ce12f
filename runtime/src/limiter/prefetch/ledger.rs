//! The ledger of one subject: its parts, and how much to ask for next.

use std::mem;
use std::sync::Arc;

use super::part::{MOST_UNITS, Part, PutBack, Taken};
use crate::call::{Call, CallOptions, Demand, OwnedCall, TallyId};
use crate::clock::Clock;
use crate::decision::Report;
use crate::policy::{Ahead, Policy};
use crate::population::Inhabitant;
use crate::subject::SubjectKey;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// A subject with at least this many calls in the time of `ahead` is busy. Fewer calls are not worth a part.
const BUSY: u64 = 8;

/// The most parts at a time.
const MOST_PARTS: usize = 4;

/// How many times larger than the previous part a part may be.
const GROWTH: u64 = 8;

/// How long a refill may take before another one begins: its runtime may stall.
const PATIENCE_US: u64 = 1_000_000;

/// The units that one subject has taken ahead.
pub(super) struct Ledger {
    pub(super) hash: u64,
    inhabitant: Inhabitant,
    /// Distinguishes the ledger from others of its subject.
    pub(super) number: u64,
    /// The policy as Redis decides it.
    policy: Policy,
    /// The segment of the policy's group, as it stands in keys.
    segment: Arc<str>,
    subject: SubjectKey,
    ahead: Ahead,
    /// The oldest first.
    parts: Vec<Arc<Part>>,
    /// The calls for which too little was left, and their cost.
    missed_calls: AtomicU64,
    missed_cost: AtomicU64,
    /// The use of parts that have ended.
    ended: Demand,
    /// The demand at the time when a refill was last considered.
    seen: Mutex<Demand>,
    since_us: AtomicU64,
    /// Until when no other refill begins beside the running one; 0 without one.
    refilling_until_us: AtomicU64,
    /// Until when no refill begins after a denial or a failure. No answer to a refill makes it earlier.
    paused_until_us: AtomicU64,
    /// The most to ask for, as far as the last answer tells; `None` before there was one.
    units_at_most: Option<u64>,
    /// Whether the tally was reset, of which its parts were taken.
    pub(super) is_reset: Arc<AtomicBool>,
}

pub(super) struct Refill {
    pub(super) call: OwnedCall,
    pub(super) ahead: Ahead,
    /// The number of the ledger.
    pub(super) number: u64,
    /// Whether the tally of the ledger was reset: then nothing of the part is given back.
    pub(super) is_reset: Arc<AtomicBool>,
}

impl Ledger {
    /// Starts with a call that Redis decides.
    pub(super) fn new(hash: u64, id: TallyId<'_>, call: Call<'_>, ahead: Ahead, now_us: u64) -> Self {
        Self {
            hash,
            inhabitant: Inhabitant::of(&id.group.segment),
            number: 0,
            policy: call.policy.clone(),
            segment: Arc::clone(&id.group.segment),
            subject: *id.subject,
            ahead,
            parts: Vec::new(),
            missed_calls: AtomicU64::new(1),
            missed_cost: AtomicU64::new(call.options.cost),
            ended: Demand::default(),
            seen: Mutex::default(),
            since_us: AtomicU64::new(now_us),
            refilling_until_us: AtomicU64::new(0),
            paused_until_us: AtomicU64::new(0),
            units_at_most: None,
            is_reset: Arc::default(),
        }
    }

    pub(super) fn matches(&self, id: TallyId<'_>) -> bool {
        **id.subject == *self.subject && id.group.has_segment(&self.segment)
    }

    /// The policy, for the table's counts of ledgers by policy.
    pub(super) fn inhabitant(&self) -> Inhabitant {
        self.inhabitant
    }

    /// Whether its rules are those of the call.
    pub(super) fn decides(&self, call: Call<'_>) -> bool {
        call.policy.has_rules_of(&self.policy)
    }

    /// Takes a call, if enough is left. Returns the refill to start, if one is due.
    pub(super) fn take(&self, call: Call<'_>, clock: &Clock) -> (Option<Taken>, Option<Refill>) {
        let CallOptions { cost, report_is_optional, .. } = call.options;
        let taken = self.parts.iter().find_map(|part| Some((part, part.take(cost, clock)?)));
        let now_us = taken.map_or_else(|| clock.now_us(), |(_, now_us)| now_us);
        if taken.is_none() {
            self.missed_cost.fetch_add(cost, Ordering::Relaxed);
            self.missed_calls.fetch_add(1, Ordering::Relaxed);
        }
        let report = || if report_is_optional { self.report(now_us) } else { Report::default() };
        let taken = taken.map(|(part, _)| part.taken(now_us, self.missed_calls.load(Ordering::Relaxed), report()));
        let is_due = self.is_refill_due(now_us) && self.begin_refill(now_us);
        let units = if is_due { self.units_to_ask(now_us) } else { None };
        (taken, units.map(|units| self.refill(call, units)))
    }

    /// Puts back the units of a call that is not made.
    pub(super) fn put_back(&self, taken: &Taken, cost: u64) -> PutBack {
        if !self.parts.iter().find(|part| part.gave(taken)).is_some_and(|part| part.put_back(cost)) {
            return PutBack::TooLate;
        }
        // What was seen is not used any more: later calls must not have to make up for it.
        let mut seen = lock(&self.seen);
        *seen = seen.less(Demand { calls: 1, cost });
        drop(seen);
        let is_missed = self.missed_calls.load(Ordering::Relaxed) != taken.missed_calls;
        if is_missed { PutBack::Missed } else { PutBack::Unnoticed }
    }

    /// The units that are left.
    pub(super) fn left(&self, now_us: u64) -> u64 {
        self.parts.iter().map(|part| part.left_at(now_us)).sum()
    }

    /// Where the rules stand. When Redis answers for the last part, it counts all parts as used; this adds what is left
    /// of them.
    fn report(&self, now_us: u64) -> Report {
        self.parts.last().map(|last| last.report(self.left(now_us))).unwrap_or_default()
    }

    pub(super) fn parts(&self) -> &[Arc<Part>] {
        &self.parts
    }

    /// The demand since the ledger began, including denied calls.
    fn demand(&self) -> Demand {
        let (calls, cost) = (self.missed_calls.load(Ordering::Relaxed), self.missed_cost.load(Ordering::Relaxed));
        let used = self.parts.iter().map(|part| part.used()).fold(self.ended, Demand::plus);
        Demand { calls, cost }.plus(used)
    }

    fn is_refill_due(&self, now_us: u64) -> bool {
        let is_enough =
            |part: &Arc<Part>| part.left() >= part.units / 4 && now_us.saturating_add(self.ahead.us / 5) < part.ends_us;
        if self.parts.last().is_some_and(is_enough) {
            return false;
        }
        now_us >= self.paused_until_us.load(Ordering::Relaxed)
            && now_us >= self.refilling_until_us.load(Ordering::Relaxed)
            && self.parts.len() < MOST_PARTS
            && self.demand().less(*lock(&self.seen)).calls >= BUSY
    }

    /// Whether this call has to begin the refill.
    fn begin_refill(&self, now_us: u64) -> bool {
        let (until_us, claim_us) = (&self.refilling_until_us, now_us.saturating_add(PATIENCE_US));
        let last_us = until_us.load(Ordering::Relaxed);
        now_us >= last_us && until_us.compare_exchange(last_us, claim_us, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// How much to ask for: somewhat more than the calls need during one part, but no more than is likely to be
    /// admitted. `None` if that is not worth it; then the calls are counted anew.
    fn units_to_ask(&self, now_us: u64) -> Option<u64> {
        let all = self.demand();
        let Demand { calls, cost: demand } = all.less(mem::replace(&mut *lock(&self.seen), all));
        let elapsed_us = now_us.saturating_sub(self.since_us.swap(now_us, Ordering::Relaxed)).max(self.ahead.us / 16);
        let meanwhile = |number: u64| {
            let number = u128::from(number) * u128::from(self.ahead.us) / u128::from(elapsed_us.max(1));
            u64::try_from(number).unwrap_or(u64::MAX)
        };
        let each = (demand / calls.max(1)).max(1);
        let wanted = meanwhile(demand);
        // Whatever the last answer was, the smallest part that is worth it is tried: calls may cost more than before.
        let least = BUSY.saturating_mul(each);
        let at_most = self.units_at_most.unwrap_or(GROWTH.saturating_mul(least)).max(least);
        let units = wanted.saturating_add(wanted / 4).min(at_most).min(MOST_UNITS);
        let is_worth_it = calls >= BUSY && meanwhile(calls) >= BUSY && units / each >= BUSY / 2;
        if !is_worth_it {
            self.end_refill();
        }
        is_worth_it.then_some(units)
    }

    fn refill(&self, call: Call<'_>, units: u64) -> Refill {
        // A denied refill denies no caller, so it does not count towards a ban.
        let options = CallOptions { cost: units, report: true, provisional: true, ..CallOptions::PLAIN };
        let call = OwnedCall::new(Call { options, awaited: None, ..call });
        Refill { call, ahead: self.ahead, number: self.number, is_reset: Arc::clone(&self.is_reset) }
    }

    /// Adds a part, and lets the next one be several times larger if enough remains. Removes ended parts.
    pub(super) fn add(&mut self, part: Arc<Part>, remaining: u64, now_us: u64) {
        self.remove_if(|part| now_us >= part.ends_us);
        self.units_at_most = Some(remaining.max(2 * part.units).min(GROWTH.saturating_mul(part.units)));
        self.parts.push(part);
        self.end_refill();
    }

    pub(super) fn remove(&mut self, ended: &Arc<Part>) {
        self.remove_if(|part| Arc::ptr_eq(part, ended));
    }

    fn remove_if(&mut self, is_over: impl Fn(&Arc<Part>) -> bool) {
        for part in self.parts.extract_if(.., |part| is_over(part)) {
            self.ended = self.ended.plus(part.used());
        }
    }

    /// Records that Redis has denied a part: nothing is asked for until `until_us`. The next part is at most as large
    /// as what remains, or half as large as this one.
    pub(super) fn denied(&mut self, units: u64, remaining: u64, until_us: u64) {
        self.units_at_most = Some(remaining.max(units / 2));
        self.end_refill();
        self.pause(until_us);
    }

    pub(super) fn pause(&self, until_us: u64) {
        self.paused_until_us.fetch_max(until_us, Ordering::Relaxed);
    }

    /// Lets the next refill begin, unless there is a pause.
    fn end_refill(&self) {
        self.refilling_until_us.store(0, Ordering::Relaxed);
    }

    /// Whether nobody has called for a while, and all parts have ended.
    pub(super) fn is_idle(&self, now_us: u64) -> bool {
        let is_quiet = now_us.saturating_sub(self.since_us.load(Ordering::Relaxed)) > 2 * self.ahead.us;
        is_quiet && self.parts.iter().all(|part| now_us >= part.ends_us)
    }
}
