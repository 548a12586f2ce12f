//! What is done beside calls: refunds, resets, bans by hand, and overrides.

use std::time::Duration;

use tallygate::{Permit, Rule};
use tallygate_harness::model::{Subjects, Ticket};

use super::{SUBJECTS, Sequence};
use crate::model::coverage::Coverage;
use crate::model::transcript::Act;

impl Sequence<'_> {
    pub(super) async fn refund(&mut self, coverage: &mut Coverage) -> Result<(), String> {
        if self.permits.is_empty() {
            return Ok(());
        }
        let (permit, ticket) = self.permits.swap_remove(self.random.usize(..self.permits.len()));
        if ticket.cost() > 0 && self.random.u8(0..3) == 0 {
            return self.settle(permit, ticket, coverage).await;
        }
        let expected = self.model.refund(&ticket, self.now_us);
        coverage.met(if expected { "refunded" } else { "refunded too late" });
        self.transcript.note(self.now_us, Act::Refund(ticket.clone(), expected));
        let refunded = permit.refund().await.expect("the backend answers");
        same(expected, refunded)?;
        self.end(ticket).await
    }

    /// Settles a permit for less than its call has cost, or for more.
    async fn settle(&mut self, permit: Permit, ticket: Ticket, coverage: &mut Coverage) -> Result<(), String> {
        let used = match self.random.u8(0..4) {
            0 => ticket.cost() + self.random.u64(0..2),
            1 => ticket.cost() + self.random.u64(1..1_000),
            _ => self.random.u64(..ticket.cost()),
        };
        let expected = self.model.recount(&ticket, used, self.now_us);
        coverage.met_if("settled for less", expected && used < ticket.cost());
        coverage.met_if("settled for more", expected && used > ticket.cost());
        self.transcript.note(self.now_us, Act::Settle(ticket.clone(), used, expected));
        same(expected, permit.settle(used).await.expect("the backend answers"))?;
        self.end(ticket).await
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
        if duration.is_zero() { check.unban().await } else { check.ban(duration).await }.expect("the backend answers");
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
