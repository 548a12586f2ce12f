//! Asking for a part in the background, and giving back what is left of it at its end.

use std::sync::Arc;

use super::ledger::Refill;
use super::part::{Part, Taken};
use super::{Ledgers, RefillUnderWay};
use crate::algorithm;
use crate::call::{Call, CallOptions};
use crate::decision::{AdmittedAt, Report, RuleStatus, Wait};
use crate::limiter::core::Core;
use crate::micros;
use crate::observe::PrefetchUse;
use crate::policy::Stored;
use crate::store::{Answer, Outcome};
use crate::sync::atomic::Ordering;

/// How long calls do not look for overrides again, as that reads another clock.
const LOOKS_US: u64 = 10_000;

/// How long nothing is asked for where Redis is away or slow.
const PAUSE_US: u64 = 1_000_000;

impl Core {
    /// Takes a call of one subject of what was taken ahead, if that is enough. It also counts what the subject needs, and has a
    /// part asked for in the background if that is due.
    pub(in crate::limiter) fn take_ahead(self: &Arc<Self>, stored: &Stored, call: Call<'_>) -> Option<Taken> {
        let ahead = stored.ahead_of(call.first_group())?;
        let CallOptions { cost, peek, report, report_is_optional, .. } = call.options;
        // A peek and a call without cost take nothing, and a report shows what all processes have used.
        if peek || cost == 0 || report && !report_is_optional {
            return None;
        }
        let (taken, refill) = self.ledgers.take(call, ahead);
        if let Some(refill) = refill {
            self.runtimes.spawn(ask(Arc::clone(self), refill));
        }
        taken
    }

    /// Looks now and then for overrides, as a call does that Redis decides. Returns whether those that are known are so old that
    /// every call waits for others.
    pub(in crate::limiter) fn has_to_await_overrides(self: &Arc<Self>, now_us: u64) -> bool {
        let looks_us = &self.ledgers.looks_us;
        if now_us < looks_us.load(Ordering::Relaxed) {
            return false;
        }
        let has_to = self.refresh_overrides().is_some();
        if !has_to {
            looks_us.store(now_us.saturating_add(LOOKS_US), Ordering::Relaxed);
        }
        has_to
    }

    /// Gives back what is left of a part. What gets lost is not given back again, and counts until it is out of its window.
    async fn give_back(&self, call: Call<'_>, left: u64, at: &AdmittedAt) {
        if left == 0 {
            return;
        }
        let options = CallOptions { cost: left, ..CallOptions::PLAIN };
        let given_back = self.store.recount(Call { options, ..call }, 0, at).await;
        if given_back.is_ok() {
            call.policy.observed().prefetched(PrefetchUse::GivenBack, left);
        }
        self.cached_denials.invalidate(call);
        self.wake(call);
    }
}

/// Asks for a part, and gives back what is left of it at its end.
async fn ask(core: Arc<Core>, refill: Refill) {
    let call = refill.call.as_call();
    let sent_us = core.clock.now_us();
    let Some((answer, units)) = answer(&core, &refill, sent_us).await else { return };
    let (part, until_us) = core.add(&refill, answer, units, sent_us);
    core.wake(call);
    core.clock.sleep_until(until_us).await;
    core.ledgers.with(call, |ledger| ledger.remove(&part));
    let left = part.end();
    call.policy.observed().prefetched(PrefetchUse::Used, units - left.min(units));
    core.give_back(call, left, &part.at).await;
}

/// Asks Redis once. Returns its answer if it has admitted the part.
async fn answer(core: &Core, refill: &Refill, sent_us: u64) -> Option<(Answer, u64)> {
    let call = refill.call.as_call();
    let asked = {
        let _under_way = RefillUnderWay::new(&core.ledgers.refills);
        core.store.decide(call).await
    };
    let units = call.options.cost;
    let now_us = core.clock.now_us();
    match asked {
        Ok(answer) if answer.outcome == Outcome::Admitted => {
            call.policy.observed().prefetched(PrefetchUse::Taken, units);
            Some((answer, units))
        }
        Ok(Answer { outcome: Outcome::Denied { retry_after, .. }, report, .. }) => {
            let until_us = denied_until_us(retry_after, refill.ahead.us, sent_us, now_us);
            core.ledgers.with_numbered(refill, |ledger| ledger.denied(units, remaining(&report), until_us));
            None
        }
        // The subject is banned, or Redis does not answer. What may have been counted stays counted: nothing is sent again.
        _ => {
            core.ledgers.with_numbered(refill, |ledger| ledger.pause(now_us.saturating_add(PAUSE_US)));
            None
        }
    }
}

impl Core {
    /// Adds a part to the ledger that has asked for it. Returns until when it is used: not at all if it came late, or if the
    /// ledger has ended meanwhile.
    fn add(&self, refill: &Refill, answer: Answer, units: u64, sent_us: u64) -> (Arc<Part>, u64) {
        let now_us = self.clock.now_us();
        let Answer { report, at, .. } = answer;
        let ends_us = sent_us.saturating_add(lasts_us(&report, refill.ahead.us)).saturating_sub(refill.ahead.margin_us);
        let remaining = remaining(&report);
        let is_late = now_us.saturating_sub(sent_us) > refill.ahead.us / 2;
        let ends_us = if is_late { now_us } else { ends_us };
        let part = Arc::new(Part::new(units, ends_us, at, report));
        let added = self.ledgers.with_numbered(refill, |ledger| {
            ledger.add(Arc::clone(&part), remaining, now_us);
            if is_late {
                ledger.pause(now_us.saturating_add(PAUSE_US));
            }
        });
        // Nobody takes of a part that no ledger has.
        let until_us = if added.is_some() { ends_us } else { now_us };
        (part, until_us)
    }
}

impl Ledgers {
    /// Does something with the ledger that has asked for a part, if it is still there.
    fn with_numbered(&self, refill: &Refill, with: impl FnOnce(&mut super::ledger::Ledger)) -> Option<()> {
        self.with(refill.call.as_call(), |ledger| (ledger.number == refill.number).then(|| with(ledger)))?
    }
}

/// When a part may be asked for again: no later than one that is smaller may be admitted.
fn denied_until_us(retry_after: Wait, ahead_us: u64, sent_us: u64, now_us: u64) -> u64 {
    retry_after.ends_us(sent_us).min(now_us.saturating_add(ahead_us / 2)).max(now_us.saturating_add(ahead_us / 4))
}

/// How long a part lasts: no longer than the window of a rule that does not slide.
fn lasts_us(report: &Report, ahead_us: u64) -> u64 {
    let slides = |status: &&RuleStatus| algorithm::with(status.rule(), |counting| counting.slides());
    let resets =
        report.rules().iter().filter(|status| !slides(status)).map(|status| micros::from_duration(status.reset()));
    resets.fold(ahead_us, u64::min)
}

/// The most that every rule would admit now.
fn remaining(report: &Report) -> u64 {
    report.rules().iter().map(RuleStatus::remaining).min().unwrap_or_default()
}
