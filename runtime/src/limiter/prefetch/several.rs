//! Decides calls of several subjects by their parts.
//!
//! Subjects that have a part take units from it, and the store below decides the other subjects in one request. If that
//! denies the call, the units are put back. If a part ends before the answer comes, everything is given back, and the
//! store decides the whole call.

use std::sync::Arc;

use tallygate_rules::Role;

use super::part::{Part, Taken};
use super::{PrefetchedStore, admitted};
use crate::call::{Awaited, Call, CallOptions, LeaseName, Scope};
use crate::decision::{AdmittedAt, Report, RuleStatus};
use crate::error::BackendError;
use crate::policy::{Stored, SubjectCost};
use crate::store::{Answer, Decider, LayeredAnswer, Outcome};
use crate::subject::SubjectKey;
use crate::system::Instant;

struct OwnParts(Vec<Vec<Arc<Part>>>);

/// The units that a call of several subjects has taken from their parts. Dropping this puts them back, unless the call
/// is made.
struct TakenOfSome<'a, S: Decider> {
    shared: &'a Arc<PrefetchedStore<S>>,
    call: Call<'a>,
    /// The units of each subject; `None` for a subject that the store decides.
    taken: Vec<Option<Taken>>,
}

impl<S: Decider> PrefetchedStore<S> {
    /// Decides a call of several subjects: by parts for the subjects that have one, and by the store for the others.
    pub(super) async fn ask_beside_parts(
        self: &Arc<Self>,
        stored: &Stored,
        call: Call<'_>,
    ) -> Result<LayeredAnswer, BackendError> {
        // All requests share one deadline.
        let deadline = call.policy.deadline().unwrap_or(self.deadline);
        let until = call.until().unwrap_or_else(|| Instant::now() + deadline);
        let awaited = Awaited { caller: None, until: Some(until) };
        let call = Call { awaited: Some(&awaited), ..call };
        let ahead = TakenOfSome::take(self, stored, call);
        let rest = ahead.rest();
        if rest.is_empty() {
            call.policy.observed().decided_ahead();
            return Ok(ahead.completed_by(&admitted(Report::default(), AdmittedAt::Once(0))).into());
        }
        if rest.len() == call.subjects.len() {
            return self.ask_whole(call).await;
        }
        let policy = stored.rest(&ahead.asked());
        let costs = ahead.costs_of_rest();
        let call_of_rest = Call { policy: &policy, subjects: &rest, costs: &[], scope: Scope::Rest, ..call };
        let answered = self.below.decide(call_of_rest.with_costs(&costs)).await?;
        match answered.answer.outcome {
            Outcome::Admitted if !ahead.has_ended() => {
                Ok(LayeredAnswer { answer: ahead.completed_by(&answered.answer), ..answered })
            }
            Outcome::Admitted => {
                drop(answered.lease);
                ahead.give_back(&answered.answer);
                self.ask_again(call).await
            }
            // A denial has to count towards the ban of the main subject, about which the store was not asked.
            Outcome::Denied { .. } if ahead.has_main() && call.policy.ban().is_some() && !call.options.provisional => {
                drop(ahead);
                self.ask_again(call).await
            }
            Outcome::Denied { .. } | Outcome::Banned { .. } | Outcome::Paused { .. } | Outcome::Probing { .. } => {
                let report = ahead.report_beside(&answered.answer.report, |cost| cost);
                Ok(LayeredAnswer { answer: Answer { report, ..answered.answer }, ..answered })
            }
        }
    }

    /// Decides a whole call by the store.
    pub(super) async fn ask_whole(&self, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        // Read before the request, as its answer may or may not include parts that come meanwhile.
        let own = call.options.report.then(|| OwnParts::of(self, call));
        let answered = self.below.decide(call).await?;
        let Some(own) = own else { return Ok(answered) };
        let answer = own.added_to(self.clock.now_us(), call, answered.answer);
        Ok(LayeredAnswer { answer, ..answered })
    }

    /// Asks again with a lease of another name, because the lease of the first request may still be on its way back.
    async fn ask_again(&self, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        let options = CallOptions { lease: call.options.lease.map(|_| LeaseName::next()), ..call.options };
        self.ask_whole(Call { options, ..call }).await
    }
}

impl OwnParts {
    fn of<S: Decider>(shared: &PrefetchedStore<S>, call: Call<'_>) -> Self {
        Self(call.parts().map(|part| shared.ledgers.parts(part)).collect())
    }

    /// Adds the parts of this process to the answer: to the store, they are used.
    fn added_to(self, now_us: u64, call: Call<'_>, answer: Answer) -> Answer {
        let own: Vec<u64> =
            { self.0.iter() }.map(|parts| parts.iter().map(|part| part.left_at(now_us)).sum()).collect();
        let own = |status: &RuleStatus| {
            let group = call.policy.group_of(status.position());
            group.and_then(|group| own.get(group)).copied().unwrap_or_default()
        };
        let is_admitted = |status: &RuleStatus| {
            let is_duplicate = status.rule().role() == Role::Duplicate;
            let needed = if is_duplicate { 1 } else { call.needs_for(status.position()) };
            status.remaining().max(own(status)) >= needed
        };
        // Without a part of this process, the denial is that of the store.
        let is_by_part = |rule: u32| {
            let is_denying = |status: &RuleStatus| status.position() == rule as usize;
            answer.report.rules().iter().any(|status| is_denying(status) && own(status) > 0)
        };
        let is_own = matches!(answer.outcome, Outcome::Denied { rule, .. } if is_by_part(rule))
            && answer.report.rules().iter().all(is_admitted);
        let outcome = if call.options.peek && is_own { Outcome::Admitted } else { answer.outcome };
        Answer { outcome, report: answer.report.with_more(own), ..answer }
    }
}

impl<'a, S: Decider> TakenOfSome<'a, S> {
    /// Takes units from the part of each subject that has one.
    fn take(shared: &'a Arc<PrefetchedStore<S>>, stored: &Stored, call: Call<'a>) -> Self {
        Self { shared, call, taken: call.parts().map(|part| shared.take(stored, part)).collect() }
    }

    /// Returns of each subject whether the store decides it.
    fn asked(&self) -> Vec<bool> {
        self.taken.iter().map(Option::is_none).collect()
    }

    /// Returns the subjects that the store decides.
    fn rest(&self) -> Vec<SubjectKey> {
        let rest = self.call.subjects.iter().zip(&self.taken).filter(|(_, taken)| taken.is_none());
        rest.map(|(subject, _)| *subject).collect()
    }

    /// Returns what the call costs on these subjects, if the policy has units.
    fn costs_of_rest(&self) -> Vec<SubjectCost> {
        let costs = self.call.costs.iter().zip(&self.taken).filter(|(_, taken)| taken.is_none());
        costs.map(|(cost, _)| *cost).collect()
    }

    /// Whether units of the main subject were taken.
    fn has_main(&self) -> bool {
        self.taken.first().is_some_and(Option::is_some)
    }

    /// Whether a part has ended since units were taken from it.
    fn has_ended(&self) -> bool {
        let now_us = self.shared.clock.now_us();
        self.taken.iter().flatten().any(|taken| now_us >= taken.ends_us)
    }

    /// Makes the call, and returns the answer to all of it.
    fn completed_by(mut self, answer: &Answer) -> Answer {
        let (at, report) = (self.admitted_at(&answer.at), self.report_beside(&answer.report, |_| 0));
        self.taken.clear();
        admitted(report, at)
    }

    /// Returns the report on the rules of all subjects, of which `rest` has those that the store decides. `put_back` says how
    /// much is put back of what the call costs.
    fn report_beside(&self, rest: &Report, put_back: impl Fn(u64) -> u64) -> Report {
        let taken = self.taken.iter().enumerate().filter_map(|(index, taken)| Some((index, taken.as_ref()?)));
        let reports = taken.map(|(index, taken)| taken.report.with_more(|_| put_back(self.call.cost_at(index))));
        let rules = reports.chain([rest.clone()]).flat_map(|report| report.rules().to_vec());
        rules.collect::<Vec<_>>().into()
    }

    /// Gives everything that was counted back to the store: the parts have ended, so nothing can be put back.
    fn give_back(mut self, answer: &Answer) {
        let admitted = self.admitted_at(&answer.at);
        self.taken.clear();
        self.shared.refund(self.call.counted(), admitted);
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
            self.shared.put_back(self.call, index, &taken);
        }
    }
}

impl<S: Decider> Drop for TakenOfSome<'_, S> {
    fn drop(&mut self) {
        (0..self.taken.len()).for_each(|index| self.put_back(index));
    }
}
