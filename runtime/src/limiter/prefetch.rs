//! Decides calls by what this process has taken ahead of them.
//!
//! A process that is busy with a subject takes the cost of several calls from the store below at once: a *part*. It
//! decides by its parts until they end, at most `ahead` after they were asked for. The next part is asked for in the
//! background, before the last one is used up. What is left of a part at its end is given back.

mod ledger;
mod ledgers;
mod part;
mod several;

use std::sync::Arc;
use std::time::Duration;

use self::ledger::Refill;
use self::ledgers::Ledgers;
use self::part::{Part, PutBack, Taken};
use crate::algorithm;
use crate::call::{Call, CallOptions, OwnedCall};
use crate::clock::Clock;
use crate::decision::{AdmittedAt, Recount, Report, RuleStatus, Wait};
use crate::error::BackendError;
use crate::micros;
use crate::observe::{PrefetchUse, log};
use crate::policy::Stored;
use crate::sleepers::Sleepers;
use crate::store::{Answer, Decider, LayeredAnswer, Outcome};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::system;
use crate::system::home::Runtimes;
use crate::system::under_way::TaskKind;

/// How long calls rely on the last check of the age of the rules: it reads another clock.
const CHECK_EVERY_US: u64 = 10_000;

/// How long nothing is asked for after the store was away or slow.
const PAUSE_US: u64 = 1_000_000;

/// Takes calls ahead of the store below.
pub(super) struct Prefetch<S>(Arc<PrefetchedStore<S>>);

pub(super) struct PrefetchedStore<S> {
    below: S,
    ledgers: Ledgers,
    /// The longest that a decision takes under a policy without a deadline.
    deadline: Duration,
    clock: Clock,
    sleepers: Arc<Sleepers>,
    runtimes: Arc<Runtimes>,
    /// Begins to read the rules in force again if they are old. Returns whether that has to be awaited before a call is
    /// decided.
    begin_refresh_if_old: Box<dyn Fn() -> bool + Send + Sync>,
    /// When a call checks the age of the rules again.
    next_check_us: AtomicU64,
}

impl<S: Decider> Prefetch<S> {
    pub(super) fn new(
        below: S,
        deadline: Duration,
        clock: Clock,
        sleepers: Arc<Sleepers>,
        runtimes: Arc<Runtimes>,
        begin_refresh_if_old: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(PrefetchedStore {
            below,
            ledgers: Ledgers::new(clock.clone()),
            deadline,
            clock,
            sleepers,
            runtimes,
            begin_refresh_if_old: Box::new(begin_refresh_if_old),
            next_check_us: AtomicU64::new(0),
        }))
    }
}

impl<S: Decider> Prefetch<S> {
    /// Decides a call that was not decided by parts alone.
    async fn ask(&self, stored: &Stored, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        if self.0.lets_others_run() {
            system::consume_budget().await;
            if let Some(decided) = self.decide_at_once(call) {
                return decided;
            }
        }
        let (call, asked_us) = (Call { policy: &stored.policy, ..call }, self.0.clock.now_us());
        let answered = if call.subjects.len() == 1 {
            self.0.ask_whole(call).await?
        } else {
            let answered = self.0.ask_beside_parts(stored, call).await?;
            self.0.below.note(call, answered.answer.outcome, asked_us);
            answered
        };
        self.0.ledgers.record(call, answered.answer.outcome, asked_us);
        Ok(answered)
    }
}

impl<S: Decider> Decider for Prefetch<S> {
    #[inline]
    fn decide_at_once(&self, call: Call<'_>) -> Option<Result<LayeredAnswer, BackendError>> {
        let Some(stored) = call.policy.stored() else { return self.0.below.decide_at_once(call) };
        if self.0.lets_others_run() {
            return None;
        }
        let call = Call { policy: &stored.policy, ..call };
        self.0.decide_ahead(stored, call).or_else(|| self.0.below.decide_at_once(call))
    }

    async fn decide(&self, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        match call.policy.stored() {
            // Boxed, so that a call of which nothing is taken ahead does not carry this state.
            Some(stored) => Box::pin(self.ask(stored, call)).await,
            None => self.0.below.decide(call).await,
        }
    }

    fn note(&self, call: Call<'_>, outcome: Outcome, asked_us: u64) {
        self.0.below.note(call.stored(), outcome, asked_us);
    }

    fn forget(&self, call: Call<'_>) {
        self.0.below.forget(call.stored());
    }

    /// `counted` already has the stored policy, by which the store below has counted the call.
    async fn recount(&self, counted: Call<'_>, recount: &Recount, admitted: &AdmittedAt) -> Result<bool, BackendError> {
        self.0.below.recount(counted, recount, admitted).await
    }

    async fn reset(&self, call: Call<'_>) -> Result<(), BackendError> {
        let stored = call.stored();
        // Before, so that no part is asked for afterwards; and again, for what others have begun meanwhile.
        let ended = self.0.ledgers.end_with_tallies(stored);
        let reset = self.0.below.reset(stored).await;
        let ended = ended.into_iter().chain(self.0.ledgers.end_with_tallies(stored));
        // Of tallies that are still there, what is left of the parts is given back.
        ended.for_each(|is_reset| is_reset.store(reset.is_ok(), Ordering::Release));
        self.0.sleepers.wake(stored);
        reset
    }

    async fn ban(&self, call: Call<'_>, duration: Duration) -> Result<(), BackendError> {
        let stored = call.stored();
        self.0.ledgers.end(stored.part(0));
        let banned = self.0.below.ban(stored, duration).await;
        self.0.ledgers.end(stored.part(0));
        // The new ban may end earlier than the previous one.
        self.0.sleepers.wake(stored.part(0));
        banned
    }
}

impl<S: Decider> PrefetchedStore<S> {
    /// Decides a call of one subject by its parts. A call of several subjects may need an answer of the store.
    fn decide_ahead(self: &Arc<Self>, stored: &Stored, call: Call<'_>) -> Option<Result<LayeredAnswer, BackendError>> {
        if call.subjects.len() > 1 {
            return None;
        }
        let taken = self.take(stored, call)?;
        if self.has_to_await_rules(taken.now_us) {
            self.put_back(call, 0, &taken);
            return None;
        }
        let Taken { at, report, .. } = taken;
        call.policy.observed().decided_ahead();
        Some(Ok(admitted(report, at).into()))
    }

    /// Takes a call of one subject from its parts, if enough is left. It also counts the demand of the subject, and
    /// starts a refill in the background if one is due.
    fn take(self: &Arc<Self>, stored: &Stored, call: Call<'_>) -> Option<Taken> {
        let ahead = stored.ahead_of(call.first_group())?;
        let CallOptions { cost, peek, report, report_is_optional, .. } = call.options;
        // A peek and a call without cost take nothing, and a report shows the use of all processes.
        if peek || cost == 0 || report && !report_is_optional {
            return None;
        }
        let (taken, refill) = self.ledgers.take(call, ahead);
        if let Some(refill) = refill {
            self.runtimes.spawn(TaskKind::Correction, Arc::clone(self).refill(refill));
        }
        taken
    }

    /// Puts back the units of one subject of a call that is not made. If their part has ended, and its rest was given
    /// back, they follow it.
    ///
    /// Units that nobody has missed make no room. To wake callers for them would wake the caller of this call, too: it would
    /// ask again and again.
    fn put_back(self: &Arc<Self>, call: Call<'_>, index: usize, taken: &Taken) {
        let part = call.part(index);
        match self.ledgers.put_back(part, taken) {
            PutBack::Unnoticed => {}
            PutBack::Missed => self.sleepers.wake(part),
            PutBack::TooLate => self.refund(call.counted().part(index), AdmittedAt::Once(taken.at.us(0))),
        }
    }

    /// Gives back what a call that is not made has been counted as, in the background.
    fn refund(self: &Arc<Self>, counted: Call<'_>, at: AdmittedAt) {
        let (shared, counted) = (Arc::clone(self), OwnedCall::new(counted));
        self.runtimes.spawn(TaskKind::Correction, async move {
            shared.give_back(counted.as_call(), &at).await;
        });
    }

    /// Gives back what was counted in the store; returns whether that is done. If it fails, it is not sent again, and
    /// counts until it is out of its window.
    async fn give_back(&self, counted: Call<'_>, at: &AdmittedAt) -> bool {
        let given_back = self.below.recount(counted, &Recount::REFUND, at).await;
        if let Err(error) = &given_back {
            log::not_given_back(counted.policy.name(), error);
        }
        self.sleepers.wake(counted);
        given_back.is_ok()
    }

    /// Whether the rules in force are too old. Only some calls check that; a call that the store decides always does.
    fn has_to_await_rules(&self, now_us: u64) -> bool {
        if now_us < self.next_check_us.load(Ordering::Relaxed) {
            return false;
        }
        let has_to = (self.begin_refresh_if_old)();
        if !has_to {
            self.next_check_us.store(now_us.saturating_add(CHECK_EVERY_US), Ordering::Relaxed);
        }
        has_to
    }

    /// Whether other tasks run before a call is decided: a refill is a task, which callers that never wait would block.
    fn lets_others_run(&self) -> bool {
        self.ledgers.has_running_refills() && system::is_budget_spent()
    }

    /// Asks for a part, and gives back its rest at its end, or when the limiter is drained.
    async fn refill(self: Arc<Self>, refill: Refill) {
        // Asked by a task that is counted: `drain` either waits for it, or has begun before.
        if self.runtimes.background.is_draining() {
            return;
        }
        let call = refill.call.as_call();
        let sent_us = self.clock.now_us();
        if self.ledgers.with_numbered(&refill, |_| ()).is_none() {
            return;
        }
        let Some(answer) = self.ask_for_part(&refill, sent_us).await else { return };
        let (part, until_us) = self.add(&refill, answer, sent_us);
        self.sleepers.wake(call);
        self.runtimes.background.pause(self.clock.sleep_until(until_us)).await;
        self.ledgers.with(call, |ledger| ledger.remove(&part));
        let left = part.end();
        call.policy.observed().prefetched(PrefetchUse::Used, part.units.saturating_sub(left));
        let rest = Call { options: CallOptions { cost: left, ..CallOptions::PLAIN }, ..call };
        let is_due = left > 0 && !refill.is_reset.load(Ordering::Acquire);
        if is_due && self.give_back(rest, &part.at).await {
            call.policy.observed().prefetched(PrefetchUse::GivenBack, left);
        }
    }

    /// Asks the store once. Returns its answer if it has admitted the part.
    async fn ask_for_part(&self, refill: &Refill, sent_us: u64) -> Option<Answer> {
        let call = refill.call.as_call();
        let asked = {
            let _under_way = self.ledgers.begin_refill();
            self.below.decide(call).await
        };
        let units = call.options.cost;
        let now_us = self.clock.now_us();
        match asked.map(|answered| answered.answer) {
            Ok(answer) if answer.outcome == Outcome::Admitted => {
                call.policy.observed().prefetched(PrefetchUse::Taken, units);
                Some(answer)
            }
            Ok(Answer { outcome: Outcome::Denied { retry_after, .. }, report, .. }) => {
                let until_us = denied_until_us(retry_after, refill.ahead.us, sent_us, now_us);
                self.ledgers.with_numbered(refill, |ledger| ledger.denied(units, remaining(&report), until_us));
                None
            }
            // The subject is banned, or nothing answers. Nothing is sent again: what may have been counted stays
            // counted.
            _ => {
                self.ledgers.with_numbered(refill, |ledger| ledger.pause(now_us.saturating_add(PAUSE_US)));
                None
            }
        }
    }

    /// Adds a part to the ledger that has asked for it. Returns until when the part is used: until now if it came late, or if
    /// the ledger has ended.
    fn add(&self, refill: &Refill, answer: Answer, sent_us: u64) -> (Arc<Part>, u64) {
        let now_us = self.clock.now_us();
        let Answer { report, at, .. } = answer;
        let ends_us = sent_us.saturating_add(lasts_us(&report, refill.ahead.us)).saturating_sub(refill.ahead.margin_us);
        let remaining = remaining(&report);
        let is_late = now_us.saturating_sub(sent_us) > refill.ahead.us / 2;
        let ends_us = if is_late { now_us } else { ends_us };
        let part = Arc::new(Part::new(refill.call.options.cost, ends_us, at, report));
        let added = self.ledgers.with_numbered(refill, |ledger| {
            ledger.add(Arc::clone(&part), remaining, now_us);
            if is_late {
                ledger.pause(now_us.saturating_add(PAUSE_US));
            }
        });
        // Nobody takes from a part that no ledger has.
        let until_us = if added.is_some() { ends_us } else { now_us };
        (part, until_us)
    }
}

fn admitted(report: Report, at: AdmittedAt) -> Answer {
    Answer { outcome: Outcome::Admitted, report, at, lapse: Wait::NEVER }
}

/// When a part may be asked for again: at the latest when a smaller one may be admitted.
fn denied_until_us(retry_after: Wait, ahead_us: u64, sent_us: u64, now_us: u64) -> u64 {
    retry_after.ends_us(sent_us).min(now_us.saturating_add(ahead_us / 2)).max(now_us.saturating_add(ahead_us / 4))
}

/// How long a part lasts: at most until the end of the window of a rule that does not slide.
fn lasts_us(report: &Report, ahead_us: u64) -> u64 {
    let slides = |status: &&RuleStatus| algorithm::with(status.rule(), |counting| counting.slides());
    let resets =
        report.rules().iter().filter(|status| !slides(status)).map(|status| micros::from_duration(status.reset()));
    resets.fold(ahead_us, u64::min)
}

/// The greatest cost that every rule would admit now.
fn remaining(report: &Report) -> u64 {
    report.rules().iter().map(RuleStatus::remaining).min().unwrap_or_default()
}

#[cfg(test)]
mod tests;
