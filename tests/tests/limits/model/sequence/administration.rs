//! What is done beside calls: refunds, resets, bans by hand, and overrides.

use std::time::Duration;

use tallygate::{Permit, Rule};
use tallygate_harness::model::{Costs, Subjects, Ticket, UNITS, Used};

use super::{SUBJECTS, Sequence};
use crate::model::coverage::Coverage;
use crate::model::policies::LABELS;
use crate::model::transcript::Act;

impl Sequence<'_> {
    pub(super) async fn refund(&mut self, coverage: &mut Coverage) -> Result<(), String> {
        if self.permits.is_empty() {
            return Ok(());
        }
        let (permit, ticket) = self.permits.swap_remove(self.random.usize(..self.permits.len()));
        match self.random.u8(0..6) {
            0 | 1 if !ticket.is_peek() => return self.settle(permit, ticket, coverage).await,
            2 => return self.refund_on_one(permit, ticket, coverage).await,
            3 | 4 if !ticket.is_peek() && ticket.counts_units() => return self.settle(permit, ticket, coverage).await,
            _ => {}
        }
        let expected = self.model.refund(&ticket, self.now_us);
        coverage.met(if expected { "refunded" } else { "refunded too late" });
        self.transcript.note(self.now_us, Act::Refund(ticket.clone(), expected));
        let refunded = permit.refund().await.expect("the backend answers");
        same(expected, refunded)?;
        self.end(ticket).await
    }

    /// Refunds a permit on one of the subjects that its rules count.
    async fn refund_on_one(&mut self, permit: Permit, ticket: Ticket, coverage: &mut Coverage) -> Result<(), String> {
        let subjects: Vec<_> = ticket.counted_subjects().into_iter().filter(|subject| *subject > 0).collect();
        let Some(&subject) = self.random.choice(&subjects) else {
            drop(permit);
            return self.end(ticket).await;
        };
        let label = LABELS[subject].expect("only the main subject has none");
        let expected = self.model.refund_on(&ticket, subject, self.now_us);
        coverage.met_if("refunded on one subject", expected);
        self.transcript.note(self.now_us, Act::RefundOn(ticket.clone(), subject, expected));
        same(expected, permit.refund_on(label).await.expect("the backend answers"))?;
        self.end(ticket).await
    }

    /// Settles a permit for less than its call has cost, or for more, in some of its units.
    async fn settle(&mut self, permit: Permit, ticket: Ticket, coverage: &mut Coverage) -> Result<(), String> {
        let used = self.used(&ticket);
        let expected = self.model.settle(&ticket, &used, self.now_us);
        cover_settlement(coverage, &ticket, &used, expected);
        self.transcript.note(self.now_us, Act::Settle(ticket.clone(), used, expected));
        let settled = match used {
            Used { calls: Some(calls), units: [None, None] } => permit.settle(calls).await,
            Used { calls, units } => {
                let of_each = ["calls"].into_iter().chain(UNITS).zip([calls].into_iter().chain(units));
                let named: Vec<_> = of_each.filter_map(|(name, used)| Some((name, used?))).collect();
                permit.settle_units(&named).await
            }
        };
        same(expected, settled.expect("the backend answers"))?;
        self.end(ticket).await
    }
}

fn cover_settlement(coverage: &mut Coverage, ticket: &Ticket, used: &Used, has_changed: bool) {
    let Costs { calls, units } = ticket.costs();
    let of_calls = used.calls.filter(|_| has_changed);
    coverage.met_if("settled for less", of_calls.is_some_and(|used| used < calls));
    coverage.met_if("settled for more", of_calls.is_some_and(|used| used > calls));
    for ((unit, cost), used) in UNITS.iter().zip(units).zip(used.units) {
        let (Some(used), cost) = (used.filter(|_| has_changed), cost.unwrap_or(0)) else { continue };
        coverage.met_if("a unit settled", cost > 0);
        coverage.met_if("paid afterwards", cost == 0 && used > 0);
        let is_beyond = ticket.least_count(Some(unit)).is_some_and(|count| used > count);
        coverage.met_if("paid afterwards beyond the limit", cost == 0 && is_beyond);
    }
}

fn same(expected: bool, answered: bool) -> Result<(), String> {
    if expected == answered {
        return Ok(());
    }
    Err(format!("the model answers {expected}, the limiter {answered}"))
}

impl Sequence<'_> {
    /// Resets subjects. After that, a refund of an earlier permit could remove another call's hits.
    pub(super) async fn reset(&mut self, coverage: &mut Coverage) -> Result<(), String> {
        let (version, call) = self.any_call();
        let main = call.plan.counts_the_main_subject() && self.random.bool();
        let subjects = if main { Subjects::Main } else { Subjects::All };
        self.model.reset(&call, subjects);
        coverage.met(if main { "reset" } else { "all subjects reset" });
        self.transcript.note(self.now_us, Act::Reset(subjects, call.subjects));
        let subject = self.subject(0, call.subjects[0]);
        let check = self.check(version, &call, &subject);
        if main { check.reset().await } else { check.reset_all().await }.expect("the backend answers");
        for (permit, ticket) in std::mem::take(&mut self.permits) {
            drop(permit);
            self.end(ticket).await?;
        }
        Ok(())
    }

    /// Bans a subject by hand, or ends its ban.
    pub(super) async fn ban(&mut self, coverage: &mut Coverage) {
        let (version, call) = self.any_call();
        let Some(ban) = self.versions[version].policy.ban() else { return };
        let duration = *self.random.choice([&Duration::ZERO, &ban.duration(), &ban.within()]).unwrap();
        self.model.ban(&call, duration, self.now_us);
        self.banned_by_hand |= !duration.is_zero();
        coverage.met(if duration.is_zero() { "ban ended by hand" } else { "banned by hand" });
        self.transcript.note(self.now_us, Act::Ban(call.subjects[0], duration));
        let subject = self.subject(0, call.subjects[0]);
        let check = self.check(version, &call, &subject);
        if duration.is_zero() { check.unban().await.map(|_| ()) } else { check.ban(duration).await }
            .expect("the backend answers");
    }

    /// Overrides the rules of all subjects or of one, or clears that.
    pub(super) async fn override_rules(&mut self, coverage: &mut Coverage) {
        let subject = self.random.bool().then(|| self.random.usize(..SUBJECTS[0]));
        let rules = self.random.bool().then(|| self.random.choice(&self.overrides).unwrap().clone());
        coverage.met("override changed");
        self.put_override(subject, rules).await;
    }

    pub(super) async fn put_override(&mut self, subject: Option<usize>, rules: Option<Vec<Rule>>) {
        let limiter = &self.stage.limiter;
        self.model.override_rules(subject, rules.clone());
        self.transcript.note(self.now_us, Act::Override(subject, rules.clone()));
        let subject = subject.map(|number| self.subject(0, number));
        let mut builder = limiter.override_policy("model").allow_unknown();
        if let Some(subject) = &subject {
            builder = builder.subject(subject);
        }
        let done = match rules {
            Some(rules) => builder.rules(rules).set().await,
            None => builder.clear().await.map(drop),
        };
        done.expect("the backend answers");
    }
}
