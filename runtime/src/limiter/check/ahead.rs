//! Calls that are decided by what this process has taken ahead, as far as that goes.
//!
//! A call of one subject is decided by its part alone, or by Redis alone. Of several subjects, those that have a part take of it,
//! and Redis decides the rest in one request. If the rest is denied, what was taken is put back. If a part ends before the answer
//! comes, all is given back, and Redis decides the whole call.

use std::sync::Arc;

use tallygate_rules::Role;

use super::attempt::Attempt;
use crate::call::{Call, CallOptions, LeaseName};
use crate::decision::{AdmittedAt, Charge, DecidedBy, Decision, Report, RuleStatus, Wait};
use crate::limiter::core::Core;
use crate::limiter::leases::LeasedAnswer;
use crate::limiter::ledgers::{Part, Taken};
use crate::policy::Stored;
use crate::store::{Answer, Outcome};
use crate::subject::SubjectKey;

/// The parts that this process has taken ahead of each subject of a call.
#[derive(Default)]
struct OwnParts(Vec<Vec<Arc<Part>>>);

/// What a call of several subjects has taken of their parts. It is put back unless the call is made.
struct TakenOfSome<'a> {
    core: &'a Arc<Core>,
    call: Call<'a>,
    /// What was taken of each subject; `None` for a subject that Redis decides.
    taken: Vec<Option<Taken>>,
}

impl Attempt<'_> {
    /// Decides a call of one subject by what was taken ahead of it.
    #[cold]
    pub(super) fn decide_ahead(&self, stored: &Stored) -> Option<Decision> {
        let call = self.stored(self.call());
        // At a closed limit, nothing was taken ahead. Of several subjects, some may have to be asked for.
        if call.subjects.len() > 1 || self.closed.is_some() {
            return None;
        }
        let taken = self.core.take_ahead(stored, call)?;
        if self.core.has_to_await_overrides(taken.now_us) {
            self.core.ledgers.put_back(call, &taken);
            return None;
        }
        let Taken { at, report, .. } = taken;
        call.policy.observed().decided_ahead();
        Some(self.decision(call, admitted(report, at), None, DecidedBy::Backend))
    }

    /// Decides a call by Redis, but for those of its several subjects that have taken calls ahead.
    pub(super) async fn ask_beside_ahead(&self, stored: &Stored, call: Call<'_>) -> LeasedAnswer {
        if call.subjects.len() == 1 {
            return self.ask_whole(call).await;
        }
        // All questions to Redis share one deadline.
        self.core.store.within_deadline(call.policy, self.ask_rest(stored, call)).await
    }

    async fn ask_rest(&self, stored: &Stored, call: Call<'_>) -> LeasedAnswer {
        let ahead = TakenOfSome::take(self.core, stored, call);
        let rest = ahead.rest();
        if rest.is_empty() {
            call.policy.observed().decided_ahead();
            return Ok((ahead.completed_by(&admitted(Report::default(), AdmittedAt::Once(0))), None));
        }
        if rest.len() == call.subjects.len() {
            return self.ask_whole(call).await;
        }
        let policy = stored.rest(&ahead.asked());
        let (answer, lease) = self.core.ask(Call::new(&policy, &rest, call.options)).await?;
        match answer.outcome {
            Outcome::Admitted if !ahead.has_ended() => Ok((ahead.completed_by(&answer), lease)),
            Outcome::Admitted => {
                drop(lease);
                ahead.give_back(&answer);
                self.ask_again(call).await
            }
            // The denial counts towards the ban of a subject that was not asked about.
            Outcome::Denied { .. } if ahead.has_main() && call.policy.ban().is_some() && !call.options.provisional => {
                drop(ahead);
                self.ask_again(call).await
            }
            Outcome::Denied { .. } | Outcome::Banned { .. } => Ok((answer, lease)),
        }
    }

    /// Decides a whole call of which nothing was taken ahead.
    async fn ask_whole(&self, call: Call<'_>) -> LeasedAnswer {
        // Parts that come while Redis is asked may be in its answer or not.
        let own = if call.options.report { OwnParts::of(self.core, call) } else { OwnParts::default() };
        let (answer, lease) = self.core.ask(call).await?;
        Ok((own.added_to(self.core, call, answer), lease))
    }

    /// Asks after another request, whose lease may still be on its way back.
    async fn ask_again(&self, call: Call<'_>) -> LeasedAnswer {
        let options = CallOptions { lease: call.options.lease.map(|_| LeaseName::next()), ..call.options };
        self.ask_whole(Call { options, ..call }).await
    }
}

impl OwnParts {
    fn of(core: &Core, call: Call<'_>) -> Self {
        Self(call.parts().map(|part| core.ledgers.parts(part)).collect())
    }

    /// To Redis, what was taken ahead is used. This process may still use its own parts.
    fn added_to(self, core: &Core, call: Call<'_>, answer: Answer) -> Answer {
        let now_us = core.clock.now_us();
        let own: Vec<u64> =
            { self.0.iter() }.map(|parts| parts.iter().map(|part| part.left_at(now_us)).sum()).collect();
        let own = |status: &RuleStatus| {
            let group = call.policy.group_of(status.position());
            group.and_then(|group| own.get(group)).copied().unwrap_or_default()
        };
        let CallOptions { peek, cost, .. } = call.options;
        let is_admitted = |status: &RuleStatus| {
            let weight = if status.rule().role() == Role::Duplicate { 1 } else { cost };
            status.remaining().max(own(status)) >= weight
        };
        let is_own = matches!(answer.outcome, Outcome::Denied { .. })
            && !answer.report.is_empty()
            && answer.report.rules().iter().all(is_admitted);
        let outcome = if peek && is_own { Outcome::Admitted } else { answer.outcome };
        Answer { outcome, report: answer.report.with_more(own), ..answer }
    }
}

impl<'a> TakenOfSome<'a> {
    /// Takes of each subject that has a part.
    fn take(core: &'a Arc<Core>, stored: &Stored, call: Call<'a>) -> Self {
        Self { core, call, taken: call.parts().map(|part| core.take_ahead(stored, part)).collect() }
    }

    /// Whether Redis decides each subject.
    fn asked(&self) -> Vec<bool> {
        self.taken.iter().map(Option::is_none).collect()
    }

    /// The subjects that Redis decides.
    fn rest(&self) -> Vec<SubjectKey> {
        let rest = self.call.subjects.iter().zip(&self.taken).filter(|(_, taken)| taken.is_none());
        rest.map(|(subject, _)| *subject).collect()
    }

    /// Whether the main subject has taken a call.
    fn has_main(&self) -> bool {
        self.taken.first().is_some_and(Option::is_some)
    }

    /// Whether a part has ended meanwhile.
    fn has_ended(&self) -> bool {
        let now_us = self.core.clock.now_us();
        self.taken.iter().flatten().any(|taken| now_us >= taken.ends_us)
    }

    /// Returns the answer to the whole call, which is made.
    fn completed_by(mut self, answer: &Answer) -> Answer {
        let at = self.admitted_at(&answer.at);
        let taken = self.taken.iter_mut().filter_map(Option::take);
        let mut report: Vec<_> = taken.flat_map(|taken| taken.report.rules().to_vec()).collect();
        report.extend(answer.report.rules().iter().cloned());
        admitted(report.into(), at)
    }

    /// Gives all that was counted back to Redis: the parts have ended, and take nothing back.
    fn give_back(mut self, answer: &Answer) {
        let charge = Charge::new(self.call, self.admitted_at(&answer.at));
        self.taken.clear();
        let core = Arc::clone(self.core);
        self.core.runtimes.spawn(async move {
            // A refund that gets lost leaves the call counted until it is out of its window.
            let _ = core.store.recount(charge.counted(None), 0, &charge.admitted).await;
        });
    }

    fn admitted_at(&self, rest: &AdmittedAt) -> AdmittedAt {
        let mut asked = 0..;
        let us = |taken: &Option<Taken>| match taken {
            Some(taken) => taken.at.us(0),
            None => asked.next().map_or(0, |index| rest.us(index)),
        };
        AdmittedAt::Each(self.taken.iter().map(us).collect())
    }

    fn put_back(&mut self, index: usize) {
        if let Some(taken) = self.taken.get_mut(index).and_then(Option::take) {
            self.core.ledgers.put_back(self.call.part(index), &taken);
            self.core.wake(self.call.part(index));
        }
    }
}

impl Drop for TakenOfSome<'_> {
    fn drop(&mut self) {
        (0..self.taken.len()).for_each(|index| self.put_back(index));
    }
}

fn admitted(report: Report, at: AdmittedAt) -> Answer {
    Answer { outcome: Outcome::Admitted, report, at, lapse: Wait::NEVER }
}
